//! Coverage: measures how often a 95 % interval of an ensemble includes the theoretical value.
//!
//! An ensemble is made as in a comparison, from drawn tasks whose queues have a closed-form
//! solution, many times with different seeds. For each mean, 95 % of the intervals must include the
//! theoretical value. For comparison, the same is done with 1,000 tasks from an empty system, an
//! earlier default. That mean is biased, so narrow intervals miss the theoretical value.
//!
//! Sources: Erlang (1917) for M/M/c, Jackson (1957) for a central queue of bursts and pauses,
//! Little (1961), and Wolff (1982) for what arrivals see.

mod picture;

pub use picture::picture;

use crate::sum_up;
use formats::workload::{Parameters, Template};
use indicatif::ProgressBar;
use program::Error;
use results::{Align, Metric, Row, Table, quantity};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use worlds::experiment::parse_policy;
use worlds::simulator::Simulator;
use worlds::{Candidate, Observed, Program, Run, Session, Trial, World};

/// A workload with known means.
#[derive(Clone, Debug)]
pub struct Law {
    /// The name in results.
    pub name: String,
    /// The text of a workload file.
    definition: String,
    policy: &'static str,
    means: [(Metric, f64); 3],
}

/// The length of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// The default length of a workload file.
    Usual,
    /// The first 1,000 tasks of an empty system, which then drains.
    FromEmpty,
}

/// How often the intervals of a mean included the theoretical value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The workload.
    pub workload: String,
    /// The policy.
    pub policy: String,
    /// `usual` or `from empty`.
    pub length: String,
    /// The metric.
    pub metric: Metric,
    /// The theoretical value.
    pub theory: f64,
    /// The mean over all runs.
    pub mean: f64,
    /// Half the width of an interval, as a share of the theoretical value, on average.
    pub half_width: f64,
    /// The number of intervals.
    pub intervals: u32,
    /// The number of intervals that include the theoretical value.
    pub held: u32,
}

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of intervals.
    pub intervals: u32,
    /// The number of runs for each interval.
    pub ensemble: u32,
    /// The first seed.
    pub seed: u64,
}

/// The accepted range for the share of intervals that include the theoretical value, over
/// [`INTERVALS`] intervals.
const LEAST: f64 = 0.93;
const MOST: f64 = 0.97;
/// The default number of intervals.
pub const INTERVALS: u32 = 500;
/// The distance from 95 % that chance can explain, in standard deviations. In a table of a hundred
/// lines, one line exceeds it in one of a hundred tables.
const CHANCE: f64 = 3.9;
/// The number of ensembles in memory at a time.
const AT_ONCE: u32 = 25;

/// All workloads with known means.
pub fn laws() -> Vec<Law> {
    const LOADS: [f64; 3] = [0.5, 0.7, 0.9];
    // With exponential service the number of tasks has the same distribution for FIFO and for
    // processor sharing.
    const SERVED: [&str; 2] = ["central:rr?quantum=100s", "central:rr?quantum=1ms"];
    let queues = [1, 4].into_iter().flat_map(|cpus| {
        SERVED.into_iter().flat_map(move |policy| LOADS.map(|load| queue(cpus, load, policy)))
    });
    queues
        .chain([(0.5, 10.0), (0.7, 50.0), (0.85, 10.0)].map(|(load, bursts)| unix(load, bursts)))
        .collect()
}

/// M/M/c with a mean service time of 1 ms.
fn queue(cpus: u16, load: f64, policy: &'static str) -> Law {
    const SERVICE: f64 = 1e6;
    let wait = SERVICE * erlang_c(cpus, load) / (f64::from(cpus) * (1.0 - load));
    Law {
        name: format!("M/M/{cpus} at {load}"),
        definition: format!(
            "cpus = {cpus}\nload = {load}\n[[class]]\nbursts = {{ constant = 1 }}\nburst = {{ \
             exponential = \"1ms\" }}\npause = {{ constant = \"1ms\" }}\n"
        ),
        policy,
        means: means(SERVICE + wait, wait, SERVICE / (load * f64::from(cpus))),
    }
}

/// `unix1990` with exponential bursts of 5 ms and free migrations, on 4 CPUs under Central Queue: a
/// network of one queue and independent pauses.
fn unix(load: f64, bursts: f64) -> Law {
    const BURST: f64 = 5e6;
    const PAUSE: f64 = 70e6;
    const SLOWDOWN: f64 = 0.05;
    let (cpus, service, busy) = (4, BURST * (1.0 + SLOWDOWN), load * (1.0 + SLOWDOWN));
    let wait = bursts * service * erlang_c(cpus, busy) / (f64::from(cpus) * (1.0 - busy));
    let response = bursts * service + (bursts - 1.0) * PAUSE + wait;
    Law {
        name: format!("unix1990 at {load}, {bursts} bursts"),
        definition: format!(
            "base = \"unix1990\"\nload = {load}\nbursts = {bursts:.1}\nburst = \"5ms\"\ntmc = \
             \"0ms\"\nsmc = {SLOWDOWN}\n"
        ),
        policy: "central:rr",
        means: means(response, wait, bursts * BURST / (load * f64::from(cpus))),
    }
}

/// The mean response time, the mean time in queues, and the mean number of tasks that arrivals
/// find.
fn means(response: f64, wait: f64, gap: f64) -> [(Metric, f64); 3] {
    [
        (Metric::response_time_ns_mean, response),
        (Metric::queueing_ns_mean, wait),
        (Metric::population, response / gap),
    ]
}

/// The probability of waiting in M/M/c.
fn erlang_c(cpus: u16, load: f64) -> f64 {
    let offered = f64::from(cpus) * load;
    let (mut term, mut sum) = (1.0, 0.0);
    for n in 1..=cpus {
        sum += term;
        term *= offered / f64::from(n);
    }
    term / (1.0 - load) / (sum + term / (1.0 - load))
}

impl Law {
    /// Makes intervals and counts those that include each of the means.
    ///
    /// # Errors
    /// If a run fails.
    pub fn measure(
        &self,
        length: Length,
        effort: Effort,
        bar: &ProgressBar,
    ) -> Result<Vec<Line>, Error> {
        let definition = format!("{}{}", length.keys(), self.definition);
        let workload = Template::parse("law.toml", &definition)?.with(&Parameters::default())?;
        let program = Program::Open(Arc::new(workload));
        let policy = parse_policy(self.policy).map_err(Error::Usage)?;
        let mut lines = self.means.map(|(metric, theory)| Line {
            workload: self.name.clone(),
            policy: self.policy.to_string(),
            length: length.to_string(),
            metric,
            theory,
            mean: 0.0,
            half_width: 0.0,
            intervals: effort.intervals,
            held: 0,
        });
        let cpus = Simulator::new().cpus(&program, None)?;
        let trial = Trial { program: &program, candidate: Candidate::Policy(policy), cpus };
        let ensembles: Vec<u32> = (0..effort.intervals).collect();
        for some in ensembles.chunks(AT_ONCE as usize) {
            let seeds = some.iter().flat_map(|ensemble| effort.seeds(*ensemble));
            let sessions: Vec<Session<'_>> = seeds
                .map(|seed| Session {
                    trial: trial.clone(),
                    seed,
                    member: Some(seed),
                    check: false,
                    observed: Observed::Measured,
                    trace: None,
                })
                .collect();
            bar.inc_length(sessions.len() as u64);
            let runs = Simulator::new()
                .run(&sessions, bar)?
                .into_iter()
                .collect::<Result<Vec<Run>, Error>>()?;
            for ensemble in runs.chunks(effort.ensemble as usize) {
                lines.iter_mut().for_each(|line| line.add(ensemble));
            }
        }
        Ok(lines.to_vec())
    }
}

impl Effort {
    /// No two ensembles share a seed.
    fn seeds(self, ensemble: u32) -> std::ops::Range<u64> {
        let first = self.seed + u64::from(ensemble) * u64::from(self.ensemble);
        first..first + u64::from(self.ensemble)
    }
}

impl Length {
    fn keys(self) -> &'static str {
        match self {
            Length::Usual => "",
            Length::FromEmpty => "tasks = 1000\nwarm-up = 0\nafter = \"drain\"\n",
        }
    }
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Length::Usual { "usual" } else { "from empty" })
    }
}

impl Line {
    /// Adds the interval that a comparison prints for these runs.
    fn add(&mut self, runs: &[Run]) {
        let own = |run: &Run| {
            run.rows.iter().find(|row| row.metric == self.metric && row.subject.is_none()).cloned()
        };
        let rows: Vec<(u64, Row)> =
            (0..).zip(runs).filter_map(|(member, run)| Some((member, own(run)?))).collect();
        let summed = sum_up(&rows, None, &[]);
        let Some((row, low, high)) =
            summed.rows.first().and_then(|row| Some((row, row.ci_low?, row.ci_high?)))
        else {
            return;
        };
        self.mean += row.value.unwrap_or(0.0) / f64::from(self.intervals);
        self.half_width += (high - low) / 2.0 / self.theory / f64::from(self.intervals);
        self.held += u32::from((low..=high).contains(&self.theory));
    }

    /// The share of intervals that include the theoretical value.
    pub fn share(&self) -> f64 {
        f64::from(self.held) / f64::from(self.intervals)
    }

    /// Whether the share fits 95 % intervals: from 93 to 97 %, or within chance for this number of
    /// intervals.
    pub fn is_covered(&self) -> bool {
        let chance = CHANCE * (0.95 * 0.05 / f64::from(self.intervals)).sqrt();
        (LEAST.min(0.95 - chance)..=MOST.max(0.95 + chance)).contains(&self.share())
    }
}

/// Writes a CSV file.
///
/// # Errors
/// If a line cannot be written.
pub fn to_csv(lines: &[Line]) -> Result<String, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let wrong = |error: &dyn std::fmt::Display| {
        Error::Internal(format!("lines of coverage cannot be written: {error}"))
    };
    lines.iter().try_for_each(|line| writer.serialize(line)).map_err(|error| wrong(&error))?;
    let bytes = writer.into_inner().map_err(|error| wrong(&error))?;
    String::from_utf8(bytes).map_err(|error| wrong(&error))
}

/// Reads a file that [`to_csv`] wrote.
///
/// # Errors
/// If a line is damaged.
pub fn from_csv(text: &str) -> Result<Vec<Line>, Error> {
    let lines = csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .collect::<Result<Vec<Line>, csv::Error>>();
    lines.map_err(|error| Error::Input(format!("coverage: {error}")))
}

/// The table for people.
pub fn text(lines: &[Line]) -> String {
    let titles =
        ["mean", "theory", "simulated", "half-width", "held"].map(|title| (title, Align::Right));
    let mut table = Table::new(
        [("workload", Align::Left), ("policy", Align::Left), ("length", Align::Left)]
            .into_iter()
            .chain(titles),
    );
    for line in lines {
        let number = |value: f64| quantity(value, line.metric.unit());
        table.row([
            line.workload.clone(),
            line.policy.clone(),
            line.length.clone(),
            line.metric.to_string(),
            number(line.theory),
            number(line.mean),
            format!("{:.1} %", 100.0 * line.half_width),
            format!("{:.1} %", 100.0 * line.share()),
        ]);
    }
    let usual = || lines.iter().filter(|line| line.length == Length::Usual.to_string());
    let (held, all) =
        usual().fold((0, 0), |(held, all), line| (held + line.held, all + line.intervals));
    format!(
        "{table}\n{held} of {all} intervals of runs of usual length include the theoretical \
         value: {:.1} %\n",
        100.0 * f64::from(held) / f64::from(all.max(1))
    )
}

/// Checks that the intervals of runs of the usual length have the right coverage.
///
/// # Errors
/// [`Error::Check`] if they have not.
pub fn expect(lines: &[Line]) -> Result<(), Error> {
    let wrong: Vec<String> = lines
        .iter()
        .filter(|line| line.length == Length::Usual.to_string() && !line.is_covered())
        .map(|line| {
            format!(
                "  {} of {} under {}: {} of {} intervals\n",
                line.metric, line.workload, line.policy, line.held, line.intervals
            )
        })
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Error::Check(format!(
        "95 % intervals include the theoretical value in less than 93 % or more than 97 %:\n{}",
        wrong.concat()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_have_their_textbook_values() {
        assert!(
            (erlang_c(1, 0.6) - 0.6).abs() < 1e-12
                && (erlang_c(2, 0.75) - 9.0 / 14.0).abs() < 1e-12
        );
        let [(_, response), (_, wait), (_, number)] = queue(1, 0.9, "eevdf").means;
        assert!(
            (response - 1e7).abs() < 1.0 && (wait - 9e6).abs() < 1.0 && (number - 9.0).abs() < 1e-6,
            "{response} {wait} {number}"
        );
    }

    #[test]
    fn a_share_may_differ_from_95_percent_by_chance() {
        let line = |held, intervals| Line {
            workload: String::new(),
            policy: String::new(),
            length: "usual".to_string(),
            metric: Metric::population,
            theory: 1.0,
            mean: 1.0,
            half_width: 0.1,
            intervals,
            held,
        };
        assert!(
            line(95, 100).is_covered() && line(90, 100).is_covered() && !line(80, 100).is_covered()
        );
        assert!(
            line(9_310, 10_000).is_covered()
                && !line(9_290, 10_000).is_covered()
                && !line(9_710, 10_000).is_covered()
        );
        assert_eq!(expect(&[line(80, 100)]).unwrap_err().exit_code(), 4);
        assert!(
            expect(&[Line { length: "from empty".to_string(), ..line(0, 100) }, line(95, 100)])
                .is_ok()
        );
        assert_eq!(from_csv(&to_csv(&[line(95, 100)]).unwrap()).unwrap(), [line(95, 100)]);
    }

    #[test]
    fn ensembles_share_no_seed() {
        let effort = Effort { intervals: 3, ensemble: 16, seed: 5 };
        assert_eq!((effort.seeds(0), effort.seeds(1)), (5..21, 21..37));
    }

    /// The canary: the earlier default misses the theoretical value with the same program.
    #[test]
    fn a_narrow_interval_around_a_biased_mean_is_detected() {
        let effort = Effort { intervals: 40, ensemble: 16, seed: 1 };
        let of = |length| unix(0.5, 10.0).measure(length, effort, &ProgressBar::hidden()).unwrap();
        let [cold] = [of(Length::FromEmpty)];
        let population = cold.iter().find(|line| line.metric == Metric::population).unwrap();
        assert!(!population.is_covered(), "{population:?}");
    }
}
