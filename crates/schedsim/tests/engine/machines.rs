//! Machines that are not flat: slow CPUs, threads that share a core, migrations that cost by
//! distance, and how policies handle them.

use super::{NOW, run, switches, task};
use schedsim::checks::Checks;
use schedsim::engine::{self, Options};
use schedsim::policy::{Catalog, PolicySpec};
use schedsim::trace::{EventKind, Trace};
use schedsim::workload::{Action, Affinity, TaskSpec, Workload};
use schedsim::{
    CpuId, Machine, MigrationCosts, Nanos, Place, Random, TaskId, Ticks, Time, Topology,
};

const MS: u64 = 1_000_000;

/// CPUs at `(core, cluster, node, speed)`.
fn machine(places: &[(u16, u16, u16, f64)], smt: f64, migration: MigrationCosts) -> Machine {
    let places: Vec<Place> = places
        .iter()
        .map(|&(core, cluster, node, speed)| Place { core, cluster, node, speed })
        .collect();
    let cpus = places.len() as u16;
    Machine {
        topology: Some(Topology::new(places, Vec::new(), smt, migration).unwrap()),
        ..Machine::ideal(cpus)
    }
}

fn pinned(cpu: u16, steps: &[(u64, Action)]) -> TaskSpec {
    TaskSpec { affinity: Affinity::Pinned(CpuId(cpu)), cpu: CpuId(cpu), ..task(NOW, steps) }
}

/// Two clusters of two cores of two threads.
fn eight() -> Vec<(u16, u16, u16, f64)> {
    (0..8).map(|cpu| (cpu / 2, cpu / 4, 0, 1.0)).collect()
}

#[test]
fn work_takes_as_much_longer_as_a_cpu_is_slower_and_the_rest_is_overhead() {
    let slow = machine(&[(0, 0, 0, 1.0), (1, 0, 0, 0.4)], 1.0, MigrationCosts::default());
    let tasks = vec![pinned(0, &[(6 * MS, Action::Exit)]), pinned(1, &[(6 * MS, Action::Exit)])];
    let workload = Workload { tasks, ..Workload::default() };
    let (outcome, events) = run("initial:rr", &slow, &workload);
    let outcome = outcome.unwrap();
    // 2.5 times as long, to the nanosecond in which the last work is done; a speed is a multiple of
    // 2^-20.
    assert!(outcome.end.0.abs_diff(15 * MS) < 100, "{:?}", outcome.end);
    assert_eq!(outcome.useful, Nanos(12 * MS));
    assert_eq!(
        switches(&events)
            .iter()
            .find(|&&(_, cpu, prev, _)| (cpu, prev) == (0, 0))
            .map(|&(time, ..)| time),
        Some(6 * MS)
    );
}

#[test]
fn busy_threads_share_their_core() {
    // Together they do 1.25 times the work of one: 0.625 each.
    let core = machine(&[(0, 0, 0, 1.0), (0, 0, 0, 1.0)], 1.25, MigrationCosts::default());
    let tasks = vec![pinned(0, &[(5 * MS, Action::Exit)]), pinned(1, &[(15 * MS, Action::Exit)])];
    let workload = Workload { tasks, ..Workload::default() };
    let (outcome, events) = run("initial:rr?quantum=1s", &core, &workload);
    // The first ends after 5 / 0.625 = 8 ms; the other has 10 ms left, which it does alone.
    let ends: Vec<(u64, i64)> = switches(&events)
        .iter()
        .filter(|&&(.., next)| next == -1)
        .map(|&(time, _, prev, _)| (time, prev))
        .collect();
    assert_eq!(ends, [(8 * MS, 0), (18 * MS, 1)]);
    assert_eq!(outcome.unwrap().useful, Nanos(20 * MS));
}

#[test]
fn a_migration_costs_by_distance() {
    let costs = MigrationCosts {
        core: Some(Nanos(5)),
        cluster: Some(Nanos(70)),
        node: Some(Nanos(300)),
        remote: Some(Nanos(1000)),
    };
    let places = [(0, 0, 0, 1.0), (0, 0, 0, 1.0), (1, 0, 0, 1.0), (2, 1, 0, 1.0), (3, 2, 1, 1.0)];
    for (to, cost) in [(1, 5), (2, 70), (3, 300), (4, 1000)] {
        // A task that runs on CPU 0 finds it busy when it wakes, and goes to the only other allowed
        // CPU.
        let mut moves = task(NOW, &[(10, Action::Sleep(Nanos(100))), (10_000, Action::Exit)]);
        moves.affinity = Affinity::Set(0);
        let hog = pinned(0, &[(MS, Action::Exit)]);
        let workload = Workload {
            tasks: vec![moves, hog],
            cpu_sets: vec![[CpuId(0), CpuId(to)].into_iter().collect()],
            ..Workload::default()
        };
        let (_, events) = run("central:rr?quantum=1s", &machine(&places, 2.0, costs), &workload);
        let spent: u64 = events
            .iter()
            .map(|event| match event.kind {
                EventKind::Overhead {
                    kind: schedsim::trace::OverheadKind::Migration,
                    spent,
                    ..
                } => spent.0,
                _ => 0,
            })
            .sum();
        assert_eq!(spent, cost, "to CPU {to}");
    }
}

/// The first CPU of each task, in order of ids.
fn first_cpus(policy: &str, machine: &Machine, workload: &Workload) -> Vec<u16> {
    let (_, events) = run(policy, machine, workload);
    let switches = switches(&events);
    (0..workload.tasks.len() as i64)
        .filter_map(|task| Some(switches.iter().find(|&&(.., next)| next == task)?.1))
        .collect()
}

#[test]
fn the_fair_schedulers_fill_cores_before_threads_and_fast_cpus_before_slow_ones() {
    let hog = || task(NOW, &[(20 * MS, Action::Exit)]);
    let four = Workload { tasks: (0..4).map(|_| hog()).collect(), ..Workload::default() };
    for policy in ["eevdf", "cfs"] {
        let mut cores: Vec<u16> =
            first_cpus(policy, &machine(&eight(), 1.3, MigrationCosts::default()), &four)
                .iter()
                .map(|cpu| cpu / 2)
                .collect();
        cores.sort_unstable();
        assert_eq!(cores, [0, 1, 2, 3], "{policy}");
        let little = [(0, 0, 0, 0.3), (1, 0, 0, 0.3), (2, 1, 0, 1.0), (3, 1, 0, 1.0)];
        let two = Workload { tasks: vec![hog(), hog()], ..Workload::default() };
        let mut cpus = first_cpus(policy, &machine(&little, 1.0, MigrationCosts::default()), &two);
        cpus.sort_unstable();
        assert_eq!(cpus, [2, 3], "{policy}");
    }
}

/// Two nodes of two CPUs. Task 7 waits on CPU 0 and tasks 8 to 10 on CPU 2; all of them may go to
/// CPU 1, which is free after 1 ms.
fn crowd() -> (Machine, Workload) {
    let two_nodes = machine(
        &[(0, 0, 0, 1.0), (1, 0, 0, 1.0), (2, 1, 1, 1.0), (3, 1, 1, 1.0)],
        1.0,
        MigrationCosts::default(),
    );
    let on = |cpus: [u16; 2]| cpus.map(CpuId).into_iter().collect();
    let hog = |set: u32, cpu: u16| TaskSpec {
        affinity: Affinity::Set(set),
        cpu: CpuId(cpu),
        ..task(NOW, &[(50 * MS, Action::Exit)])
    };
    let mut tasks: Vec<TaskSpec> = (0..4).map(|_| pinned(1, &[(MS / 4, Action::Exit)])).collect();
    tasks.extend([3, 0, 2].map(|cpu| pinned(cpu, &[(80 * MS, Action::Exit)])));
    tasks.extend([hog(0, 0), hog(1, 2), hog(1, 2), hog(1, 2)]);
    (two_nodes, Workload { tasks, cpu_sets: vec![on([0, 1]), on([1, 2])], ..Workload::default() })
}

/// The movable task that runs on CPU 1 first.
fn moved_to_1(policy: &str) -> Option<i64> {
    let (machine, workload) = crowd();
    let (_, events) = run(policy, &machine, &workload);
    switches(&events)
        .into_iter()
        .find(|&(_, cpu, _, next)| cpu == 1 && next >= 7)
        .map(|(.., next)| next)
}

#[test]
fn take_steals_from_the_longest_queue_or_with_an_option_from_the_nearest() {
    assert_eq!(moved_to_1("take:rr?ties=lowest&quantum=1s"), Some(8));
    assert_eq!(moved_to_1("take:rr?ties=lowest&quantum=1s&steal=near"), Some(7));
}

#[test]
fn the_fair_schedulers_take_from_their_own_node_first() {
    assert_eq!(["eevdf", "cfs"].map(moved_to_1), [Some(7); 2]);
}

#[test]
fn every_policy_keeps_the_rules_on_random_machines() {
    let mut random = Random::new(11);
    for round in 0..40 {
        let mut of = |choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
        let (threads, cores, clusters, nodes) =
            (of(&[1, 2]), of(&[1, 2]), of(&[1, 2]), of(&[1, 2]));
        let mut places = Vec::new();
        for cpu in 0..threads * cores * clusters * nodes {
            let core = cpu / threads;
            let cluster = core / cores;
            places.push((
                core as u16,
                cluster as u16,
                (cluster / clusters) as u16,
                [1.0, 0.7, 0.31][(cluster % of(&[1, 3])) as usize],
            ));
        }
        let migration =
            MigrationCosts { remote: Some(Nanos(of(&[0, 3000]))), ..MigrationCosts::default() };
        let [switch_cost, migration_cost, interruption] =
            [[0, 900], [0, 70], [0, 3000]].map(|costs| Nanos(of(&costs)));
        let [timer_cost, unseen, cost, lateness] =
            [[0, 400], [0, 500], [0, 2000], [0, 1000]].map(|costs| Nanos(of(&costs)));
        let looks = [1, 5, 6, 50]
            .into_iter()
            .filter(|_| of(&[0, 1]) == 1)
            .map(|at| (CpuId(0), Time(at * MS + 300_000)))
            .collect();
        let ticks =
            Ticks { cost, lateness, looks, ..Ticks::new(Nanos(4 * MS), Time(of(&[0, 700_000]))) };
        let ticks = Some(ticks).filter(|_| of(&[0, 1]) == 1);
        let machine = Machine {
            switch_cost,
            migration_cost,
            interruption,
            timer_cost,
            unseen,
            ticks,
            ..machine(&places, 1.2, migration)
        };
        let count = 2 + of(&[1, 6, 20]);
        let tasks = (0..count).map(|index| {
            let mut steps: Vec<(u64, Action)> = (0..of(&[1, 8]))
                .map(|_| {
                    let then = match of(&[0, 1, 2]) {
                        0 => Action::Yield,
                        1 => Action::Sleep(Nanos(of(&[1, 90_000, 3 * MS]))),
                        _ => Action::Wake(TaskId(((index + 1) % count) as u32)),
                    };
                    (of(&[0, 1, 50_000, 7 * MS]), then)
                })
                .collect();
            // Every task is woken at least once, and waits for that.
            let next = TaskId(((index + 1) % count) as u32);
            steps.extend([
                (of(&[1, 50_000]), Action::Wake(next)),
                (of(&[0, 1]), Action::Wait),
                (of(&[0, 1]), Action::Exit),
            ]);
            let mut task = task(NOW, &steps);
            task.info.prio = 120 + (index % 3) as u8;
            task
        });
        let workload = Workload { tasks: tasks.collect(), ..Workload::default() };
        for name in Catalog::built_in().names() {
            let policy = PolicySpec::parse(&name).unwrap();
            let mut checks = Checks::new(&workload, &machine, policy.promises(machine.cpus));
            let options = Options { seed: 1, until: Time::NEVER };
            let outcome = engine::simulate_named(
                &workload,
                &machine,
                &policy,
                options,
                Trace::new(vec![&mut checks]),
            )
            .unwrap();
            let violations = checks.finish(&outcome);
            assert!(violations.is_empty(), "{name}, round {round}: {}", violations[0]);
        }
    }
}
