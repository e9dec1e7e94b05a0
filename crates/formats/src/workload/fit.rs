//! Fits a stochastic workload to a recording, as Curran & Stumm did (1990, §3.2). It has
//! distributions of CPU bursts, of pauses, of bursts per task and of gaps between arrivals, and the
//! load.
//!
//! A task that existed before the recording or outlived it counts as one arrival within the
//! recording, with the bursts that were seen. So the load is the recorded one. Three things are
//! lost. One is which task waits for which: pauses become independent delays. The others are
//! changes over the time of day, and correlations between the bursts of one task.

mod family;

use family::{Candidate, candidates, duration, variation_squared};
use program::no_such;
use schedsim::metrics::{Histogram, Summary};
use schedsim::trace::{Event, EventKind, Observer, TaskInfo};
use schedsim::workload::Costs;
use schedsim::{Nanos, TaskId, Time, counted};
use std::collections::BTreeMap;
use std::fmt;

/// Fewer arrivals are too few to estimate the gaps between them.
const ARRIVALS: usize = 30;

/// The births and ends of tasks in a recording.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    born: BTreeMap<TaskId, Time>,
    ended: u64,
    excluded: Vec<TaskId>,
}

/// The input of a fit.
pub struct Recorded<'a> {
    /// The name of the workload.
    pub name: &'a str,
    /// The command that fits it, for the head of the file.
    pub command: String,
    /// The metrics of the included tasks.
    pub summary: &'a Summary,
    /// The births and ends of the included tasks.
    pub lives: &'a Lives,
    /// All tasks.
    pub tasks: &'a [TaskInfo],
    /// The recorded CPUs.
    pub cpus: u16,
    /// How long the recording is.
    pub duration: Nanos,
    /// The scheduling costs in the recording.
    pub costs: &'a Costs,
}

/// A fitted workload; it displays as a workload file.
#[derive(Clone, Debug)]
pub struct Fitted {
    heading: Vec<String>,
    name: String,
    cpus: u16,
    load: f64,
    costs: [(&'static str, Nanos); 4],
    arrivals: Option<Candidate>,
    priorities: BTreeMap<u8, u64>,
    bursts: Counts,
    burst: Candidate,
    pause: Option<Candidate>,
}

/// The number of bursts per task.
#[derive(Clone, Debug)]
enum Counts {
    Geometric(f64),
    Empirical(Vec<u32>),
}

impl Lives {
    /// Leaves `tasks` out.
    pub fn excluding(tasks: Vec<TaskId>) -> Lives {
        Lives { excluded: tasks, ..Lives::default() }
    }
}

impl Observer for Lives {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::SchedWakeupNew { task, .. }
                    if self.excluded.binary_search(&task).is_err() =>
                {
                    self.born.insert(task, event.time);
                }
                EventKind::SchedProcessExit { task }
                    if self.excluded.binary_search(&task).is_err() =>
                {
                    self.ended += 1
                }
                _ => {}
            }
        }
    }
}

/// The tasks whose names are not among `names`.
///
/// # Errors
/// If no task has one of the names; the message has the nearest name.
pub fn all_but(tasks: &[TaskInfo], names: &[String]) -> Result<Vec<TaskId>, String> {
    let mut there: Vec<String> = tasks.iter().map(|task| task.name.clone()).collect();
    there.sort();
    there.dedup();
    if let Some(wrong) = names.iter().find(|name| there.binary_search(name).is_err()) {
        return Err(no_such(
            "task",
            wrong,
            &there,
            "`schedlab inspect` lists the tasks of the recording.",
        ));
    }
    let others =
        tasks.iter().zip(0..).filter(|(task, _)| !names.is_empty() && !names.contains(&task.name));
    Ok(others.map(|(_, id)| TaskId(id)).collect())
}

impl Fitted {
    /// Fits a workload to the recording.
    ///
    /// # Errors
    /// If no task ran.
    pub fn to(recorded: &Recorded<'_>) -> Result<Fitted, String> {
        let Recorded { summary, lives, .. } = recorded;
        let distributions = &summary.distributions;
        let mut bursts = candidates(&distributions.burst);
        if bursts.is_empty() {
            return Err("no task ran to the end of a CPU burst, so there is nothing to fit a \
                        workload to"
                .to_string());
        }
        let counts: Vec<u32> =
            summary.tasks.iter().map(|task| task.bursts).filter(|&bursts| bursts > 0).collect();
        let time = recorded.duration.0 as f64;
        let load = distributions.burst.total().0 as f64 / (time * f64::from(recorded.cpus));
        let mut priorities = BTreeMap::new();
        for task in summary.tasks.iter().filter(|task| task.bursts > 0) {
            *priorities.entry(recorded.tasks[task.task.index()].prio).or_insert(0) += 1;
        }
        let gaps = gaps(lives.born.values().copied().collect());
        let (mut pauses, mut arrivals) = (candidates(&distributions.pause), candidates(&gaps));
        let (tasks, born) = (counts.len(), lives.born.len());
        let mut heading = vec![
            format!("Fitted by: {}", recorded.command),
            format!(
                "Recorded: {} on {}; {tasks} tasks with CPU bursts; {born} tasks came and {} \
                 ended meanwhile.",
                recorded.duration,
                counted(recorded.cpus.into(), "CPU"),
                lives.ended
            ),
            describe("CPU bursts", &distributions.burst, &bursts),
            describe("pauses", &distributions.pause, &pauses),
        ];
        if gaps.count() as usize + 1 >= ARRIVALS {
            heading.push(describe("gaps between arrivals", &gaps, &arrivals));
        } else {
            arrivals.clear();
            heading.push(format!(
                "{born} arrivals are too few to fit gaps to: exponential is assumed."
            ));
        }
        let first = |candidates: &mut Vec<Candidate>| {
            (!candidates.is_empty()).then(|| candidates.swap_remove(0))
        };
        Ok(Fitted {
            heading,
            name: recorded.name.to_string(),
            cpus: recorded.cpus,
            load,
            costs: [
                ("switch-cost", recorded.costs.switch_cost()),
                ("tmc", recorded.costs.migration_cost()),
                ("idle-exit", recorded.costs.idle_exit()),
                ("wake-cost", recorded.costs.wake_cost()),
            ],
            arrivals: first(&mut arrivals),
            priorities,
            bursts: Counts::of(counts),
            burst: bursts.swap_remove(0),
            pause: first(&mut pauses),
        })
    }
}

/// One line on a sample and its candidate distributions.
fn describe(what: &str, sample: &Histogram, candidates: &[Candidate]) -> String {
    let Some(mean) = sample.mean() else { return format!("{what}: none") };
    let distances: Vec<String> = candidates
        .iter()
        .map(|candidate| format!("{} {:.3}", candidate.family.name(), candidate.distance))
        .collect();
    let variation = variation_squared(sample, mean);
    format!(
        "{what}: {}, mean {}, CV² {variation:.2}; Kolmogorov–Smirnov distances: {}",
        sample.count(),
        Nanos(mean as u64),
        distances.join(", ")
    )
}

fn gaps(mut born: Vec<Time>) -> Histogram {
    born.sort_unstable();
    let mut gaps = Histogram::default();
    born.windows(2).for_each(|pair| gaps.record(pair[1].since(pair[0])));
    gaps
}

impl Counts {
    /// Geometric if that is close enough; else the counts themselves: all, or 100 of them by rank.
    fn of(mut counts: Vec<u32>) -> Counts {
        counts.sort_unstable();
        let all = counts.len() as f64;
        let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / all;
        let geometric = |count: u32| 1.0 - (1.0 - 1.0 / mean).powi(count.cast_signed());
        let from = |index: usize| {
            (index as f64 / all - geometric(counts[index] - 1))
                .abs()
                .min((index as f64 / all - geometric(counts[index])).abs())
        };
        let distance = (0..counts.len())
            .filter(|&index| index == 0 || counts[index - 1] < counts[index])
            .map(from)
            .fold(0.0, f64::max);
        // The distance that a sample of n exceeds by chance about once in twenty times.
        if distance <= family::NEAR.max(1.36 / all.sqrt()) {
            return Counts::Geometric(mean);
        }
        let kept = counts.len().min(100);
        Counts::Empirical(
            (0..kept).map(|place| counts[(2 * place + 1) * counts.len() / (2 * kept)]).collect(),
        )
    }
}

/// A workload file.
impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.heading {
            writeln!(f, "# {line}")?;
        }
        writeln!(
            f,
            "name = \"{}\"\ncpus = {}\nload = {:.6}",
            self.name.replace(['"', '\\'], "_"),
            self.cpus,
            self.load
        )?;
        if self.load >= 0.999 {
            writeln!(
                f,
                "# All CPUs were busy all the time: the run ends when this many tasks have piled \
                 up.\npopulation-limit = 20000"
            )?;
        }
        for (key, cost) in self.costs.iter().filter(|(_, cost)| *cost > Nanos::ZERO) {
            writeln!(f, "{key} = \"{}\"", duration(cost.0))?;
        }
        if let Some(Candidate { family, .. }) = &self.arrivals {
            writeln!(f, "arrivals = {family}")?;
        }
        writeln!(f, "\n[[class]]\nname = \"recorded\"")?;
        let all: u64 = self.priorities.values().sum();
        match self.priorities.first_key_value() {
            Some((priority, &tasks)) if tasks == all => writeln!(f, "priority = {priority}")?,
            _ => {
                let share = |(priority, tasks): (&u8, &u64)| {
                    format!(
                        "{{ priority = {priority}, share = {:.8} }}",
                        *tasks as f64 / all as f64
                    )
                };
                writeln!(
                    f,
                    "priorities = [{}]",
                    self.priorities.iter().map(share).collect::<Vec<_>>().join(", ")
                )?;
            }
        }
        match &self.bursts {
            Counts::Geometric(mean) => writeln!(f, "bursts = {{ geometric = {mean:.4} }}")?,
            Counts::Empirical(counts) => writeln!(f, "bursts = {{ empirical = {counts:?} }}")?,
        }
        writeln!(f, "burst = {}", self.burst.family)?;
        match &self.pause {
            Some(pause) => writeln!(f, "pause = {}", pause.family),
            // No pause between two bursts of one task was recorded from its beginning to its end.
            None => writeln!(f, "pause = {{ exponential = \"1ns\" }}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::TomlFile;
    use crate::workload::{Parameters, Template};
    use schedsim::engine::{self, Options};
    use schedsim::metrics::Metrics;
    use schedsim::policy::PolicySpec;
    use schedsim::trace::Trace;
    use schedsim::workload::{CostEstimator, Unix1990};
    use schedsim::{Machine, workload};

    #[test]
    fn a_fit_to_the_trace_of_a_workload_recovers_the_workload() {
        let unix = Unix1990::default().model().unwrap();
        let (scripts, machine) = (unix.scripts(1, 600), Machine::ideal(4));
        let (mut metrics, mut lives) = (Metrics::new(4), Lives::default());
        let trace = Trace::new(vec![&mut metrics, &mut lives]);
        let (policy, options) =
            (PolicySpec::parse("take:rr").unwrap(), Options { seed: 1, until: Time::NEVER });
        let end = engine::simulate_named(&scripts, &machine, &policy, options, trace).unwrap().end;
        let tasks: Vec<TaskInfo> = scripts.tasks.iter().map(|task| task.info.clone()).collect();
        let (summary, costs) = (metrics.finish(end), CostEstimator::new().finish());
        let recorded = Recorded {
            name: "unix",
            command: "a test".to_string(),
            summary: &summary,
            lives: &lives,
            tasks: &tasks,
            cpus: 4,
            duration: Nanos(end.0),
            costs: &costs,
        };
        let text = Fitted::to(&recorded).unwrap().to_string();
        let fitted = Template::read(TomlFile::of("fitted", &text))
            .and_then(|template| template.with(&Parameters::default()))
            .expect(&text);
        let (like, class): (&workload::Class, &workload::Class) =
            (&fitted.model.classes()[0], &unix.classes()[0]);
        // The mean of 30,000 bursts with a CV² of 9 has an error of about 2 %, and the number of
        // bursts of 600 tasks one of 4 %.
        assert!((like.burst.mean() / class.burst.mean() - 1.0).abs() < 0.1, "{text}");
        assert!((like.pause.mean() / class.pause.mean() - 1.0).abs() < 0.05, "{text}");
        assert!((like.bursts.mean() / class.bursts.mean() - 1.0).abs() < 0.15, "{text}");
        assert!(
            text.contains("burst = { octaves")
                && text.contains("pause = { exponential")
                && text.contains("bursts = { geometric"),
            "{text}"
        );
        assert!(text.contains("arrivals = { exponential"), "{text}");
        // The system drains at the end, so its load is a little below that of the arrivals.
        let load = fitted.model.offered_load(4);
        assert!(
            (load - scripts.demand().0 as f64 / (4.0 * end.0 as f64)).abs() < 0.01
                && (0.5..0.8).contains(&load),
            "{text}"
        );
    }

    #[test]
    fn counts_that_are_not_geometric_are_kept() {
        assert!(
            matches!(Counts::of(vec![7; 50]), Counts::Empirical(counts) if counts == vec![7; 50])
        );
        assert!(matches!(
            Counts::of((1..=1000).collect()),
            Counts::Empirical(counts) if counts.len() == 100
        ));
        assert!(matches!(Counts::of(vec![1; 10]), Counts::Geometric(mean) if mean == 1.0));
    }

    #[test]
    fn an_unknown_task_gets_the_nearest_name() {
        let task = |name: &str| TaskInfo { name: name.to_string(), pid: 1, tgid: 1, prio: 120 };
        let tasks = [task("troff"), task("ngspice"), task("troff")];
        assert_eq!(all_but(&tasks, &["troff".to_string()]), Ok(vec![TaskId(1)]));
        assert_eq!(all_but(&tasks, &[]), Ok(vec![]));
        assert!(
            all_but(&tasks, &["trof".to_string()]).unwrap_err().contains("Did you mean `troff`?")
        );
    }
}
