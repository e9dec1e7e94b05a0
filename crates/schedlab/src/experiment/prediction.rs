//! A prediction put to the test: what a recording says of conditions that it was not made under, and what comes of them on this machine.
//!
//! In each round the workload is recorded as it is, and once more under each change of its conditions. The first recording is replayed with the same change; both sides are
//! events of the same tasks, and their metrics have one definition. The replay without any change is tested as well: its error is the part that no change brought in.

use super::{CostOverrides, Recorded, simulate};
use crate::Error;
use crate::host::cpus;
use crate::host::run::{Conditions, Place, Subject};
use crate::host::traced::Traced;
use crate::import::Recording;
use crate::output::{Metric, Row, World, headline, registered};
use crate::statistics::Estimate;
use crate::workload::ClosedWorkload;
use indicatif::ProgressBar;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedsim::Machine;
use schedsim::metrics::{self, Summary};
use schedsim::policy::PolicySpec;
use schedsim::workload::{Closed, SchedulingPolicy, Workload};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// What is otherwise than in the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing: how good the replay is.
    Nothing,
    /// The number of CPUs.
    Cpus(u16),
    /// The nice value of the later half of the workload's `[[task]]`s.
    Nice(i32),
    /// `SCHED_FIFO` of this priority for all tasks.
    Fifo(u32),
}

/// How predictions are tested.
pub struct Trial<'a> {
    /// The policy that stands for this kernel's fair scheduler.
    pub policy: &'a PolicySpec,
    /// What is changed, one at a time.
    pub changes: &'a [Change],
    /// The CPUs of the recording.
    pub cpus: u16,
    /// How often all of it is done.
    pub rounds: u32,
    /// A run that takes longer is killed.
    pub limit: Duration,
}

/// A workload with what was predicted of it.
pub struct Prediction {
    /// The workload's name.
    pub name: String,
    /// By change.
    pub tested: Vec<Tested>,
}

/// A change, and both sides by round.
pub struct Tested {
    /// What was changed.
    pub change: Change,
    /// The metrics of the replays.
    pub predicted: Vec<Summary>,
    /// The metrics of the runs.
    pub measured: Vec<Summary>,
}

/// A run on this machine with its events.
struct Run {
    recorded: Recorded,
    /// The threads of the later half of the `[[task]]`s.
    later: BTreeSet<u32>,
}

impl Prediction {
    /// Tests all changes on `workload`.
    ///
    /// # Errors
    /// [`Error::Missing`] if perf or a permission is; [`Error::Input`] if a run fails or cannot be replayed.
    pub fn test(workload: &ClosedWorkload, trial: &Trial<'_>, place: &mut Place, progress: &ProgressBar) -> Result<Prediction, Error> {
        let mut tested: Vec<Tested> =
            trial.changes.iter().map(|&change| Tested { change, predicted: Vec::new(), measured: Vec::new() }).collect();
        for round in 1..=trial.rounds {
            let mut run = |change: Change| {
                progress.set_message(format!("{}, round {round}: {change}", workload.name()));
                progress.inc(1);
                Run::record(workload, change, trial, place)
            };
            let original = run(Change::Nothing)?;
            for one in &mut tested {
                one.predicted.push(original.predict(one.change, trial)?);
                let measured =
                    if one.change == Change::Nothing { original.recorded.summary.clone() } else { run(one.change)?.recorded.summary };
                one.measured.push(measured);
            }
        }
        Ok(Prediction { name: workload.name().to_string(), tested })
    }

    /// Of each change and metric what was predicted, what was measured, and the error.
    pub fn rows(&self, trial: &Trial<'_>) -> Vec<Row> {
        let of = |tested: &Tested, metric: &metrics::Metric| {
            let [predicted, measured] = [tested.predicted(metric), tested.measured(metric)];
            let row = |world: World, candidate: String, metric: Metric, estimate: Option<Estimate>| {
                let bound = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
                Row {
                    workload: self.name.clone(),
                    candidate,
                    cpus: tested.change.cpus(trial.cpus),
                    value: estimate.map(|estimate| estimate.mean),
                    ci_low: bound(-1.0),
                    ci_high: bound(1.0),
                    runs: trial.rounds,
                    ..Row::new(world, metric)
                }
                .at("change", tested.change.to_string())
            };
            let class = || format!("kernel:{}", tested.change.class());
            let error = tested.error(metric).map(Estimate::exact);
            let known = registered(metric.id);
            let both = [row(World::Sim, trial.policy.to_string(), known, predicted), row(World::Host, class(), known, measured)];
            both.into_iter().chain(known.prediction_error().map(|of| row(World::Sim, trial.policy.to_string(), of, error)))
        };
        self.tested.iter().flat_map(|tested| headline().flat_map(move |(metric, _)| of(tested, metric))).collect()
    }
}

impl Tested {
    /// A metric of the replays.
    pub fn predicted(&self, metric: &metrics::Metric) -> Option<Estimate> {
        estimate(&self.predicted, metric)
    }

    /// A metric of the runs.
    pub fn measured(&self, metric: &metrics::Metric) -> Option<Estimate> {
        estimate(&self.measured, metric)
    }

    /// By which share of what was measured the prediction is too high.
    pub fn error(&self, metric: &metrics::Metric) -> Option<f64> {
        let (predicted, measured) = (self.predicted(metric)?.mean, self.measured(metric)?.mean);
        (measured != 0.0).then(|| predicted / measured - 1.0)
    }
}

fn estimate(summaries: &[Summary], metric: &metrics::Metric) -> Option<Estimate> {
    Estimate::of(&summaries.iter().map(|summary| metric.read(summary).value).collect::<Option<Vec<f64>>>()?)
}

impl Run {
    /// Runs `workload` with `change` while perf records it.
    fn record(workload: &ClosedWorkload, change: Change, trial: &Trial<'_>, place: &mut Place) -> Result<Run, Error> {
        let chosen = cpus::choose(&[], Some(change.cpus(trial.cpus)))?;
        let pinned = chosen.len() < cpus::usable().len();
        let conditions = Conditions { cpus: chosen, pinned, nice: 0, limit: trial.limit, bare: false };
        let closed = change.of_closed(workload.description());
        let names: BTreeSet<String> = later(&closed).map(|index| closed.tasks[index].name.clone()).collect();
        let scratch = tempfile::tempdir().map_err(|error| Error::output(&std::env::temp_dir(), error))?;
        let file = scratch.path().join("perf.data");
        let traced = Traced::record(place, workload.name(), &Subject::Closed(Box::new(closed)), change.class(), &conditions, &file)?;
        let later = traced.reports.iter().flat_map(|report| if let Event::JobEnd { tasks, .. } = report { &tasks[..] } else { &[] });
        let later = later.filter(|task| names.contains(&task.name)).map(|task| task.tid).collect();
        // perf records all CPUs; those that the tasks may not use are no part of this machine.
        let cpus = conditions.cpus.len() as u16;
        let recorded = Recorded::load(&file, false, CostOverrides::default(), |path, options, observers| {
            Ok(Recording { cpus, ..traced.read(path, &options, observers)? })
        });
        Ok(Run { recorded: recorded?, later })
    }

    /// What it would have come to with `change`.
    fn predict(&self, change: Change, trial: &Trial<'_>) -> Result<Summary, Error> {
        let mut workload = self.recorded.workload.clone();
        change.of_replay(&mut workload, &self.later);
        let subject = super::Subject { workload: &workload, ..self.recorded.subject() };
        let machine = Machine { cpus: change.cpus(trial.cpus), ..self.recorded.machine.clone() };
        Ok(simulate(subject, &machine, trial.policy, (1, None), false, None)?.summary)
    }
}

/// The later half of the entries.
fn later(closed: &Closed) -> impl Iterator<Item = usize> + use<> {
    closed.tasks.len() / 2..closed.tasks.len()
}

impl Change {
    fn cpus(self, recorded: u16) -> u16 {
        if let Change::Cpus(cpus) = self { cpus } else { recorded }
    }

    fn class(self) -> Class {
        if let Change::Fifo(priority) = self { Class::Fifo(priority) } else { Class::Other }
    }

    /// What real tasks are told to do.
    fn of_closed(self, closed: &Closed) -> Closed {
        let mut closed = closed.clone();
        if let Change::Nice(nice) = self {
            for index in later(&closed) {
                let is_fair = closed.tasks[index].policy == SchedulingPolicy::Other;
                closed.tasks[index].nice = is_fair.then_some(nice).or(closed.tasks[index].nice);
            }
        }
        closed
    }

    /// The same for recorded tasks: priorities are the kernel's, nice 0 being 120 and POSIX 99 being 0.
    fn of_replay(self, workload: &mut Workload, later: &BTreeSet<u32>) {
        for task in &mut workload.tasks {
            match self {
                Change::Nice(nice) if later.contains(&task.info.pid) => task.info.prio = (120 + nice) as u8,
                Change::Fifo(priority) => task.info.prio = 99 - priority as u8,
                _ => {}
            }
        }
    }
}

/// As a heading.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Nothing => write!(f, "as recorded"),
            Change::Cpus(1) => write!(f, "1 CPU"),
            Change::Cpus(cpus) => write!(f, "{cpus} CPUs"),
            Change::Nice(nice) => write!(f, "nice {nice}"),
            Change::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::metrics::Metrics;
    use schedsim::trace::{Event, EventKind, Observer, PrevState};
    use schedsim::workload::{Phase, Tasks};
    use schedsim::{CpuId, Nanos, TaskId, Time};

    #[test]
    fn a_change_is_the_same_for_real_and_for_recorded_tasks() {
        let task = |name: &str| Tasks::new(name, vec![Phase::Run(Nanos(1))]);
        let fifo = Tasks { policy: SchedulingPolicy::Fifo, priority: Some(50), ..task("d") };
        let closed = Closed { tasks: vec![task("a"), task("b"), task("c"), fifo], ..Closed::default() };
        let nices: Vec<Option<i32>> = Change::Nice(10).of_closed(&closed).tasks.iter().map(|task| task.nice).collect();
        assert_eq!(nices, [None, None, Some(10), None], "the later half, where it has a nice value");
        assert_eq!(Change::Fifo(50).of_closed(&closed), closed);
        let scripts = Workload::of(&closed, 2).unwrap();
        let replayed = |change: Change| {
            let mut workload = scripts.clone();
            let later = later(&closed).map(|index| workload.tasks[index].info.pid).collect();
            change.of_replay(&mut workload, &later);
            workload.tasks.iter().map(|task| task.info.prio).collect::<Vec<u8>>()
        };
        assert_eq!(replayed(Change::Nice(10))[..3], [120, 120, 130]);
        assert_eq!(replayed(Change::Fifo(50)), [49; 4]);
        assert_eq!((Change::Cpus(1).cpus(2), Change::Nothing.cpus(2), Change::Fifo(50).class()), (1, 2, Class::Fifo(50)));
    }

    #[test]
    fn an_error_is_a_share_of_what_was_measured() {
        let (metric, _) = headline().find(|(metric, _)| metric.id == "makespan_ns").unwrap();
        let switch =
            |time, prev, next| Event { time, cpu: CpuId(0), kind: EventKind::SchedSwitch { prev, next, prev_state: PrevState::Dead } };
        let summary = |ns: u64| {
            let mut metrics = Metrics::new(1);
            metrics.events(&[switch(Time(1), TaskId::NONE, TaskId(0)), switch(Time(1 + ns), TaskId(0), TaskId::NONE)]);
            metrics.finish(Time(1 + ns))
        };
        let tested = |predicted, measured| Tested {
            change: Change::Nothing,
            predicted: vec![summary(predicted)],
            measured: vec![summary(measured)],
        };
        assert!((tested(110, 100).error(metric).unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(tested(110, 0).error(metric), None);
    }
}
