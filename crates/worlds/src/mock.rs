//! A world with scripted results: tests replication, statistics, budgets, verdicts, output and exit
//! codes without time.
//!
//! ```
//! use results::Metric;
//! use worlds::mock::{Mock, command, run};
//! use worlds::{Determinism, World};
//! let mock = Mock::new(Determinism::Noisy, |session| Ok(run(&[(Metric::makespan_ns, 100.0 + session.seed as f64)])));
//! assert_eq!(mock.name().to_string(), "mock");
//! assert_eq!(command("true").name(), "true");
//! ```

use super::{
    Baseline, Candidate, Capabilities, Defaults, Determinism, Measure, Program, Run, Session,
    Trial, World,
};
use indicatif::ProgressBar;
use program::Error;
use results::{Metric, Row, World as Name};
use schedlab_runner::class::Class;
use std::time::Duration;

type Answer<'a> = dyn FnMut(&Session<'_>) -> Result<Run, Error> + 'a;

/// The world.
pub struct Mock<'a> {
    determinism: Determinism,
    answer: Box<Answer<'a>>,
    refused: Option<Candidate<'static>>,
    cpus: u16,
    now: Duration,
    takes: Duration,
}

/// The metrics that it claims to measure.
const MEASURES: [Metric; 2] = [Metric::makespan_ns, Metric::switches];

impl<'a> Mock<'a> {
    /// With this determinism, and `answer` as the result of each session. A run takes a second of
    /// its clock.
    pub fn new(
        determinism: Determinism,
        answer: impl FnMut(&Session<'_>) -> Result<Run, Error> + 'a,
    ) -> Mock<'a> {
        Mock {
            determinism,
            answer: Box::new(answer),
            refused: None,
            cpus: 1,
            now: Duration::ZERO,
            takes: Duration::from_secs(1),
        }
    }

    /// As [`Mock::new`], but it refuses a candidate.
    #[must_use]
    pub fn refusing(self, candidate: Candidate<'static>) -> Mock<'a> {
        Mock { refused: Some(candidate), ..self }
    }

    /// As [`Mock::new`], with this many CPUs where no number is requested.
    #[must_use]
    pub fn with_cpus(self, cpus: u16) -> Mock<'a> {
        Mock { cpus, ..self }
    }
}

/// A run with these numbers, which another seed would change.
pub fn run(numbers: &[(Metric, f64)]) -> Run {
    let row = |&(metric, value): &(Metric, f64)| Row {
        value: Some(value),
        ..Row::new(Name::Mock, metric)
    };
    Run { rows: numbers.iter().map(row).collect(), random: true, repeats: 1, ..Run::default() }
}

/// A program with this name.
pub fn command(name: &str) -> Program {
    Program::Command(vec![name.to_string()])
}

impl World for Mock<'_> {
    fn name(&self) -> Name {
        Name::Mock
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            determinism: self.determinism,
            cpus: 64,
            candidates: "all",
            workloads: "all",
            ensemble: if self.determinism == Determinism::Chaotic { 1 } else { 16 },
        }
    }

    fn measures(&self, _program: &Program, _cpus: u16) -> Vec<Measure> {
        MEASURES
            .map(|metric| Measure {
                metric,
                direction: metric.description().direction,
                title: Some(metric.id()),
                missing: None,
            })
            .into()
    }

    fn defaults(&self, _program: &Program) -> Result<Defaults, Error> {
        Ok(Defaults {
            candidates: vec![Candidate::Class(Class::Other), Candidate::Class(Class::Batch)],
            baseline: Baseline::First,
        })
    }

    fn cpus(&self, _program: &Program, asked: Option<u16>) -> Result<u16, Error> {
        Ok(asked.unwrap_or(self.cpus))
    }

    fn admit(&self, trial: &Trial<'_>) -> Result<(), Error> {
        match &self.refused {
            Some(refused) if *refused == trial.candidate => {
                Err(Error::Usage(format!("{refused} does not run in this world")))
            }
            _ => Ok(()),
        }
    }

    fn run(
        &mut self,
        sessions: &[Session<'_>],
        _progress: &ProgressBar,
    ) -> Result<Vec<Result<Run, Error>>, Error> {
        self.now += self.takes * sessions.len() as u32;
        Ok(sessions.iter().map(|session| (self.answer)(session)).collect())
    }

    fn clock(&self) -> Duration {
        self.now
    }

    fn about(&self, _trials: &[Trial<'_>]) -> String {
        String::new()
    }
}
