//! Control groups: shares by weight, independent of the number of tasks; quotas; and all rules on
//! random workloads.

use super::play::*;
use proptest::prelude::*;
use schedsim::engine::{self, Options};
use schedsim::policy::{Cfs, CfsOptions, Eevdf, EevdfOptions, Policy, PolicySpec};
use schedsim::trace::Trace;
use schedsim::workload::{
    Action, Affinity, Attributes, Bandwidth, Cgroup, Membership, TaskSpec, Workload,
};
use schedsim::{CpuId, Machine, Nanos, Time};

const SECOND: u64 = 1000 * MS;

fn hog() -> TaskSpec {
    task(120, NOW, &[(90 * SECOND, Action::Exit)])
}

fn within(group: usize, task: TaskSpec) -> TaskSpec {
    TaskSpec {
        attributes: Attributes { membership: Membership::of(group), ..task.attributes },
        ..task
    }
}

fn on(cpu: u16, task: TaskSpec) -> TaskSpec {
    TaskSpec { affinity: Affinity::Pinned(CpuId(cpu)), cpu: CpuId(cpu), ..task }
}

fn group(weight: u32, max: Option<u64>) -> Cgroup {
    let max = max.map(|ms| Bandwidth { quota: Nanos(ms * MS), period: Cgroup::PERIOD });
    Cgroup { name: "g".to_string(), weight, max }
}

/// The share of one CPU's time in ten seconds for each task, in percent.
fn percent(policy: &str, cpus: u16, cgroups: Vec<Cgroup>, tasks: Vec<TaskSpec>) -> Vec<f64> {
    let (count, until) = (tasks.len(), Time(10 * SECOND));
    let workload = Workload { tasks, cgroups, ..Workload::default() };
    let mut collect = Collect::default();
    let options = Options { seed: 1, until };
    let policy = PolicySpec::parse(policy).unwrap();
    engine::simulate_named(
        &workload,
        &Machine::ideal(cpus),
        &policy,
        options,
        Trace::new(vec![&mut collect]),
    )
    .unwrap();
    Service::until(&collect.0, count, until.0)
        .into_iter()
        .map(|served| served as f64 / (10 * SECOND) as f64 * 100.0)
        .collect()
}

/// Under both schedulers, within two percentage points.
fn expect(cpus: u16, cgroups: &[Cgroup], tasks: &[TaskSpec], expected: &[f64]) {
    for policy in ["eevdf", "cfs"] {
        let seen = percent(policy, cpus, cgroups.to_vec(), tasks.to_vec());
        let close = seen.iter().zip(expected).all(|(seen, expected)| (seen - expected).abs() < 2.0);
        assert!(close && seen.len() == expected.len(), "{policy}: {seen:?} for {expected:?}");
    }
}

#[test]
fn groups_share_by_weight_and_each_divides_its_share() {
    // Three hogs in a group of 100, one in a group of 300, one of nice 0 outside of groups, which
    // weighs 100: 1 to 3 to 1.
    let tasks = [within(0, hog()), within(0, hog()), within(0, hog()), within(1, hog()), hog()];
    expect(
        1,
        &[group(100, None), group(300, None)],
        &tasks,
        &[20.0 / 3.0, 20.0 / 3.0, 20.0 / 3.0, 60.0, 20.0],
    );
    // Nice values count within the group only: 1024 to 335.
    let polite = TaskSpec { info: schedsim::trace::TaskInfo { prio: 125, ..hog().info }, ..hog() };
    expect(
        1,
        &[group(100, None), group(100, None)],
        &[within(0, hog()), within(0, polite.clone()), within(1, polite)],
        &[37.7, 12.3, 50.0],
    );
}

#[test]
fn a_group_that_sleeps_leaves_its_share_to_others() {
    let sleeper = task(120, NOW, &[(MS, Action::Sleep(Nanos(100 * SECOND))), (MS, Action::Exit)]);
    expect(
        1,
        &[group(1000, None), group(100, None)],
        &[within(0, sleeper), within(1, hog()), hog()],
        &[0.0, 50.0, 50.0],
    );
}

#[test]
fn on_several_cpus_a_group_s_weight_is_divided() {
    // On each CPU a hog of the group, with half of 1024, beside one of 1024.
    let tasks = [on(0, within(0, hog())), on(1, within(0, hog())), on(0, hog()), on(1, hog())];
    expect(2, &[group(100, None)], &tasks, &[100.0 / 3.0, 100.0 / 3.0, 200.0 / 3.0, 200.0 / 3.0]);
}

#[test]
fn a_quota_holds_alone_beside_others_and_over_several_cpus() {
    expect(1, &[group(100, Some(20))], &[within(0, hog())], &[20.0]);
    expect(1, &[group(100, Some(20))], &[within(0, hog()), hog()], &[20.0, 80.0]);
    // A quota above the share has no effect.
    expect(1, &[group(100, Some(80))], &[within(0, hog()), hog()], &[50.0, 50.0]);
    expect(
        2,
        &[group(100, Some(50))],
        &[on(0, within(0, hog())), on(1, within(0, hog()))],
        &[25.0, 25.0],
    );
    // Two CPUs' time in each period is all there is.
    expect(
        2,
        &[group(100, Some(200))],
        &[on(0, within(0, hog())), on(1, within(0, hog()))],
        &[100.0, 100.0],
    );
}

#[test]
fn a_task_whose_quota_is_used_up_when_its_cpu_leaves_idle_runs_in_the_next_period() {
    // CPU 0 leaves idle until 20 µs, and task 0 has used the quota at 1020. Task 1 starts at 1010,
    // when some quota is left, and its CPU has left idle at 1030.
    let tasks = vec![
        on(0, within(0, task(120, NOW, &[(MS, Action::Exit)]))),
        on(1, within(0, task(120, at(1010 * US), &[(MS, Action::Exit)]))),
    ];
    let workload = Workload { tasks, cgroups: vec![group(100, Some(1))], ..Workload::default() };
    let machine = Machine { idle_exit: Nanos(20 * US), ..Machine::ideal(2) };
    for events in [
        run(Eevdf::new(2, EevdfOptions::default()), &machine, &workload).1,
        run(Cfs::new(2, CfsOptions::default()), &machine, &workload).1,
    ] {
        assert_eq!([0, 1].map(|task| dispatches(&events, task)), [[(20 * US, 0)], [(100 * MS, 1)]]);
    }
}

#[test]
fn a_group_does_not_pay_for_a_cpu_that_idles_because_its_quota_is_used_up() {
    // At the tick at 20 ms task 0 has used the quota. From 100 ms on it runs for its other 16 ms,
    // and the task that woke meanwhile for 1 ms.
    let sleeper = task(120, NOW, &[(0, Action::Sleep(Nanos(70 * MS))), (MS, Action::Exit)]);
    let tasks = vec![within(0, task(120, NOW, &[(36 * MS, Action::Exit)])), within(0, sleeper)];
    let workload = Workload { tasks, cgroups: vec![group(100, Some(20))], ..Workload::default() };
    let machine = Machine::ideal(1);
    for events in [
        run(Eevdf::new(1, EevdfOptions::default()), &machine, &workload).1,
        run(Cfs::new(1, CfsOptions::default()), &machine, &workload).1,
    ] {
        let idles: Vec<u64> = switches(&events)
            .into_iter()
            .filter(|&(_, next)| next < 0)
            .map(|(time, _)| time / MS)
            .collect();
        assert_eq!(idles, [20, 117]);
    }
}

fn keeps_all_rules<P: Policy>(policy: P, machine: &Machine, workload: &Workload) {
    let promises = policy.promises();
    let found = violations(policy, promises, machine, workload);
    assert!(found.is_empty(), "{}", found[0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: proptest::test_runner::RngSeed::Fixed(5), ..ProptestConfig::default() })]

    #[test]
    fn all_rules_hold_in_groups(
        tasks in mixed_tasks(8),
        groups in prop::collection::vec(0..4usize, 8),
        cgroups in prop::collection::vec((1..2000u32, prop::option::of(1..40u64)), 3),
        machine in random_machine(),
    ) {
        let cgroups = cgroups.into_iter().map(|(weight, max)| group(weight, max)).collect();
        let tasks = tasks
            .into_iter()
            .zip(groups)
            .map(|(task, group)| if group < 3 { within(group, task) } else { task })
            .collect();
        let cpu_sets = vec![(0..machine.cpus.min(2)).map(CpuId).collect()];
        let mut workload = Workload { tasks, cgroups, cpu_sets, ..Workload::default() };
        workload.tasks.iter_mut().for_each(|task| task.cpu = CpuId(task.cpu.0 % machine.cpus));
        keeps_all_rules(Eevdf::new(machine.cpus, EevdfOptions::default()), &machine, &workload);
        keeps_all_rules(Cfs::new(machine.cpus, CfsOptions::default()), &machine, &workload);
    }
}
