//! Chooses the settings to try on a recording if the command names none, by what its programs do.
//!
//! The rule. For all programs: a quarter and the fourfold of the kernel's slice, and `SCHED_BATCH`.
//! Of the programs with bursts of 1 ms or more, the one with the most CPU time is the *background*.
//! Of those with shorter bursts, the one that runs most often is *sensitive*. If both exist and
//! nothing else is known, the background gets `SCHED_BATCH`, nice 10 and `SCHED_IDLE`. The
//! sensitive one then gets nice −10, a short slice and `SCHED_FIFO`. A program that is alone gets
//! only the settings for all.

use super::{Assignment, Deployment, ProgramLoad};
use schedsim::policy::PolicySpec;
use schedsim::workload::{Setting, Workload};
use schedsim::{Nanos, TaskId};

/// A program with such bursts can be the background.
const LONG_BURST: Nanos = Nanos::from_millis(1);
/// A program below this share of all CPU time is no background worth a setting.
const LEAST_SHARE: f64 = 0.02;
/// A program that runs less often is not sensitive.
const FEWEST_BURSTS: u64 = 10;

/// The candidates for a recording of `workload` on `cpus` CPUs, under the policy that matches its
/// kernel's. Tasks `beside` the programs (a recorder) get none of their own.
pub fn usual(
    workload: &Workload,
    beside: &[TaskId],
    cpus: u16,
    under: &PolicySpec,
) -> Vec<Deployment> {
    let programs = ProgramLoad::all(workload, beside);
    let slice = kernel_slice(cpus);
    let one = |program: &str, setting: Setting| Deployment {
        assignments: vec![Assignment { program: program.to_string(), settings: vec![setting] }],
        under: Some(under.clone()),
    };
    let mut all = vec![
        one("*", Setting::Slice(Nanos(slice.0 / 4))),
        one("*", Setting::Slice(Nanos(slice.0 * 4))),
        one("*", Setting::Batch),
    ];
    if programs.len() > 1 {
        if let Some(background) = background(&programs) {
            all.extend(
                [Setting::Batch, Setting::Nice(10), Setting::Idle]
                    .map(|setting| one(&background.name, setting)),
            );
        }
        if let Some(sensitive) = sensitive(&programs) {
            let settings =
                [Setting::Nice(-10), Setting::Slice(Nanos(slice.0 / 4)), Setting::Fifo(50)];
            all.extend(settings.map(|setting| one(&sensitive.name, setting)));
        }
    }
    all
}

/// `base_slice_ns` as Linux 6.18 scales it: 0.7 ms × (1 + log2 of the number of CPUs, at most 8).
pub fn kernel_slice(cpus: u16) -> Nanos {
    Nanos(700_000 * u64::from(1 + cpus.clamp(1, 8).ilog2()))
}

fn background(programs: &[ProgramLoad]) -> Option<&ProgramLoad> {
    let all: Nanos = programs.iter().map(|program| program.demand).sum();
    let heaviest =
        programs.iter().find(|program| program.is_fair && program.mean_burst() >= LONG_BURST)?;
    (heaviest.demand.0 as f64 >= LEAST_SHARE * all.0 as f64).then_some(heaviest)
}

fn sensitive(programs: &[ProgramLoad]) -> Option<&ProgramLoad> {
    let short = programs.iter().filter(|program| {
        program.is_fair && program.mean_burst() < LONG_BURST && program.bursts >= FEWEST_BURSTS
    });
    // The first of equals has the most CPU time.
    short.rev().max_by_key(|program| program.bursts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::workload::{Closed, Phase, Tasks};

    fn names(tasks: Vec<Tasks>, cpus: u16) -> Vec<String> {
        let workload = Workload::of(&Closed { tasks, ..Closed::default() }, cpus).unwrap();
        usual(&workload, &[], cpus, &PolicySpec::parse("eevdf").unwrap())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn hog(name: &str) -> Tasks {
        Tasks::new(name, vec![Phase::Run(Nanos::from_millis(500))])
    }

    fn server(name: &str) -> Tasks {
        let one = [Phase::Run(Nanos::from_micros(100)), Phase::Sleep(Nanos::from_millis(1))];
        Tasks::new(name, (0..50).flat_map(|_| one.clone()).collect())
    }

    #[test]
    fn a_recorder_gets_no_setting_of_its_own() {
        let tasks = vec![server("perf"), hog("a"), server("b")];
        let workload = Workload::of(&Closed { tasks, ..Closed::default() }, 1).unwrap();
        let under = PolicySpec::parse("eevdf").unwrap();
        let of = |beside: &[TaskId]| -> String {
            let all = usual(&workload, beside, 1, &under);
            all.iter().map(|one| one.assignments[0].program.clone()).collect()
        };
        // Of two programs that run as often, the first by name would be the sensitive one.
        assert_eq!((of(&[]), of(&[TaskId(2)])), ("***aaabbb".into(), "***aaaperfperfperf".into()));
        assert_eq!(of(&[TaskId(0)]), "***aaabbb");
    }

    #[test]
    fn background_and_sensitive_programs_are_found_by_what_they_do_and_not_by_their_names() {
        let for_all = ["*: slice=175us", "*: slice=2.8ms", "*: batch"];
        assert_eq!(names(vec![hog("a")], 1), for_all, "alone it gets what is for all");
        let both = names(vec![server("a"), hog("b")], 1);
        let own =
            ["b: batch", "b: nice=10", "b: idle", "a: nice=-10", "a: slice=175us", "a: fifo=50"];
        assert_eq!(both, [&for_all[..], &own[..]].concat());
        let swapped = names(vec![hog("a"), server("b")], 1);
        assert_eq!(swapped[3..].iter().map(|name| &name[..1]).collect::<String>(), "aaabbb");
        assert_eq!(names(vec![hog("a"), hog("b")], 4).len(), 6, "no task is sensitive");
        assert_eq!(names(vec![hog("a"), server("kworker/0:1")], 4)[0], "*: slice=525us");
        assert_eq!(
            names(vec![hog("a"), server("kworker/0:1")], 4).len(),
            3,
            "kernel threads are no programs"
        );
    }
}
