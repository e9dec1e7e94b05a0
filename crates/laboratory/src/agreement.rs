//! Measures how far the simulated scheduler is from the real one: `schedlab diff --decisions`.
//!
//! A workload runs in guests. It is then simulated on a machine with the guest's costs, with the
//! background load of the guest. Two questions are answered. Does the simulated policy take the
//! kernel's decision in each of the kernel's situations? Do both dispatch tasks in the same order?
//! In the order, one difference can cause many more.
//!
//! Several boots differ only in the time that the kernel idles before the start. For them, means
//! are compared, and for orders also the agreement of the kernel with itself. If sums of run times
//! decide, a microsecond at the start changes the rest of the order. Then no simulation can be
//! nearer to one boot than another boot is.

mod explained;
mod simulated;
mod table;

use crate::results_directory::ResultsDirectory;
use program::{Error, progress};
use results::{Answer, Metric, Results, Row, SubjectKind};
use schedsim::Machine;
use schedsim::live::Judgement;
use std::path::PathBuf;
use worlds::guest::{Booted, GuestWorld};
use worlds::vm::conformance::Conformance;
use worlds::{Observed, Program, Session, Trial, World};

/// Maximum difference of slices and of virtual times, in ns of a task's time.
const KEPT: u64 = 10_000;

/// The input of the comparison.
pub struct Agreement<'a> {
    /// The guests.
    pub worlds: Vec<GuestWorld>,
    /// The workloads.
    pub programs: &'a [Program],
    /// The number of boots of each workload, each with another phase.
    pub members: u32,
    /// The runs in each guest, by candidate and workload.
    pub trials: Vec<Trial<'a>>,
    /// The seed of the simulator.
    pub seed: u64,
    /// Whether all rules are checked in the simulations.
    pub check: bool,
    /// Whether each decision that differs is shown.
    pub explain: bool,
    /// The directory for the results and both sequences of dispatches, if any.
    pub output: Option<PathBuf>,
}

/// A run in a guest, and its simulation.
struct Pair {
    /// The workload's name.
    workload: String,
    /// `EEVDF in 6.18`.
    name: String,
    member: Option<u64>,
    /// The numbers of the real run.
    real: Vec<Row>,
    /// The shares of CPU time while events were recorded: the simulated tasks arrive as those of
    /// that run did.
    recorded: Vec<(String, f64)>,
    /// The order of the kernel's dispatches, by task; empty for several CPUs.
    order: Vec<u32>,
    /// The simulated policy.
    policy: String,
    /// Its numbers.
    simulated: Vec<Row>,
    machine: Machine,
    conformance: Vec<(Bursts, Conformance)>,
    /// Whether the policy takes the kernel's decisions, or the rule that it broke.
    judgement: Option<Judgement>,
    /// The names of the recording's tasks.
    tasks: Vec<String>,
}

/// The CPU bursts of the tasks in a simulation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bursts {
    /// The bursts of the workload's description, and the measured costs of calls.
    Described,
    /// The bursts recorded in the guest.
    Recorded,
}

/// Two boots, and the share of equal dispatches.
struct Own {
    row: Row,
    share: f64,
}

impl Bursts {
    /// The metric and its title in a table.
    fn names(self) -> (Metric, &'static str) {
        match self {
            Bursts::Described => (Metric::equal_dispatches, "the order of dispatches"),
            Bursts::Recorded => {
                (Metric::equal_dispatches_recorded, "the order with bursts as recorded")
            }
        }
    }
}

impl Agreement<'_> {
    /// Boots, simulates and compares.
    /// # Errors
    /// If something is missing, or a guest or a simulation fails.
    pub fn run(mut self) -> Result<Answer, Error> {
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let (seed, check) = (self.seed, self.check);
        let members =
            (1..=u64::from(self.members)).map(|member| (self.members > 1).then_some(member));
        let session = |trial, member| Session {
            trial,
            seed,
            member,
            check,
            observed: Observed::Measured,
            trace: None,
        };
        let sessions: Vec<Session<'_>> = members
            .flat_map(|member| self.trials.iter().map(move |trial| session(trial.clone(), member)))
            .collect();
        let mut pairs: Vec<Pair> = Vec::new();
        for world in &mut self.worlds {
            world.prepare(&self.trials)?;
            let bar = progress::bar("booting", 0);
            let booted = world.boot(&sessions, true, &bar);
            bar.finish_and_clear();
            let pair =
                |booted: Result<Booted<'_>, Error>| simulated::beside(&booted?, directory.as_ref());
            pairs.extend(booted?.into_iter().map(pair).collect::<Result<Vec<Pair>, Error>>()?);
        }
        let (mut rows, mut text, mut missed) = (Vec::new(), String::new(), Vec::new());
        for program in self.programs {
            let name = program.name();
            let own: Vec<&Pair> = pairs.iter().filter(|pair| pair.workload == name).collect();
            text += &program.headline();
            let mut cases: Vec<&str> = Vec::new();
            for pair in &own {
                if !cases.contains(&pair.name.as_str()) {
                    cases.push(&pair.name);
                }
            }
            for case in cases {
                let boots: Vec<&Pair> =
                    own.iter().copied().filter(|pair| pair.name == case).collect();
                let itself = Own::of(&boots);
                let mut goals = table::Goals::default();
                text += &table::agreement(&boots, &itself, &mut goals);
                if self.explain {
                    boots.iter().for_each(|pair| text += &explained::differences(pair));
                }
                missed.extend(goals.missed.iter().map(|goal| format!("{name}, {case}: {goal}")));
                rows.extend(boots.iter().flat_map(|pair| pair.rows()));
                rows.extend(itself.into_iter().map(|own| own.row));
            }
        }
        let results = Results::new(rows);
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            directory.finish()?;
        }
        let end = if missed.is_empty() {
            Ok(())
        } else {
            Err(Error::Check(format!(
                "the simulation does not agree with the kernel: {}",
                missed.join("; ")
            )))
        };
        Ok(Answer { end, ..Answer::new(results, text) })
    }
}

impl Pair {
    /// All numbers of both sides.
    fn rows(&self) -> Vec<Row> {
        let of = |metric, value, note| {
            self.simulated_row(Row { value, note, ..Row::new(results::World::Sim, metric) })
        };
        let count = |metric, kind: &str, count: usize| {
            of(metric, Some(count as f64), None).of(SubjectKind::Difference, kind)
        };
        let conformance = self.conformance.iter().flat_map(|(bursts, conformance)| {
            let note = Some(format!(
                "{} dispatches in the kernel, {} simulated",
                conformance.real, conformance.simulated
            ));
            let differences = conformance
                .differences
                .iter()
                .map(|(kind, number)| count(Metric::dispatch_differences, kind.name(), *number));
            let differences = differences.filter(|_| *bursts == Bursts::Described);
            std::iter::once(of(bursts.names().0, Some(conformance.share()), note))
                .chain(differences)
                .collect::<Vec<_>>()
        });
        let judgement = self.judgement.iter().flat_map(|judgement| {
            let differences = judgement.by_class().into_iter();
            let differences = differences
                .map(|(how, number)| count(Metric::decision_differences, how.name(), number));
            let note = Some(format!("{} decisions", judgement.decisions));
            let kept = judgement.kept_alike(KEPT).map(|share| {
                let note = Some(format!("{} states", judgement.states));
                of(Metric::equal_task_states, Some(share), note)
            });
            std::iter::once(of(Metric::equal_decisions, Some(judgement.share()), note))
                .chain(kept)
                .chain(differences)
                .collect::<Vec<_>>()
        });
        let real = self.real.iter().cloned();
        real.chain(self.simulated.iter().cloned()).chain(judgement).chain(conformance).collect()
    }

    /// Marks a row as one of the simulation.
    fn simulated_row(&self, row: Row) -> Row {
        let Some(first) = self.real.first() else { return row };
        let row = Row {
            workload: self.workload.clone(),
            candidate: self.policy.clone(),
            cpus: first.cpus,
            runs: 1,
            ..row
        };
        self.member.map_or(row.clone(), |member| row.at("member", member))
    }

    fn value(rows: &[Row], metric: Metric) -> Option<f64> {
        rows.iter().find(|row| row.metric == metric && row.subject.is_none())?.value
    }

    /// The CPU shares of the simulated tasks, by name.
    fn shares(&self) -> impl Iterator<Item = (&str, f64)> {
        let shares = self.simulated.iter().filter(|row| row.metric == Metric::cpu_share);
        shares.filter_map(|row| Some((row.subject.as_deref()?, row.value?)))
    }
}

impl Own {
    /// All pairs of `boots` with known orders.
    fn of(boots: &[&Pair]) -> Vec<Own> {
        let pairs =
            (0..boots.len()).flat_map(|one| (one + 1..boots.len()).map(move |other| (one, other)));
        let own = |(one, other): (usize, usize)| {
            let (first, second) = (boots[one], boots[other]);
            if first.order.is_empty() || second.order.is_empty() {
                return None;
            }
            let share = Conformance::of(&first.order, &second.order).share();
            let real = first.real.first()?;
            let row = Row {
                metric: Metric::equal_dispatches_itself,
                value: Some(share),
                note: None,
                ..real.clone()
            };
            Some(Own { row: row.at("member", format!("{},{}", one + 1, other + 1)), share })
        };
        pairs.filter_map(own).collect()
    }
}
