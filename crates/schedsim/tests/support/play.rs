//! Shared by the tests of schedulers: one-line tasks, runs, switches, and random workloads.
#![allow(dead_code, reason = "each test uses a part")]

use proptest::prelude::*;
use schedsim::checks::{Checks, Violation};
use schedsim::engine::{self, Options, Outcome};
use schedsim::policy::{Policy, Promises};
use schedsim::trace::{Event, EventKind, Observer, TaskInfo, Trace};
use schedsim::workload::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
/// Linux's weights from nice −20 to 19, by hand.
pub const NICE_WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];
pub const NOW: Start = Start::At(Time::ZERO);

#[derive(Default)]
pub struct Collect(pub Vec<Event>);
impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

pub fn run_until<P: Policy>(
    policy: P,
    machine: &Machine,
    workload: &Workload,
    until: Time,
) -> (Result<Outcome, engine::Error>, Vec<Event>) {
    let mut collect = Collect::default();
    let options = Options { seed: 1, until };
    let outcome =
        engine::simulate(workload, machine, policy, options, Trace::new(vec![&mut collect]));
    (outcome, collect.0)
}

pub fn run<P: Policy>(policy: P, machine: &Machine, workload: &Workload) -> (Outcome, Vec<Event>) {
    let (outcome, events) = run_until(policy, machine, workload, Time::NEVER);
    (outcome.unwrap(), events)
}

pub fn task(prio: u8, start: Start, steps: &[(u64, Action)]) -> TaskSpec {
    let script: Script = steps.iter().map(|&(run, then)| (Nanos(run), then)).collect();
    let info = TaskInfo { name: "t".into(), pid: 0, tgid: 0, prio };
    TaskSpec {
        info,
        attributes: Attributes::default(),
        affinity: Affinity::Any,
        cpu: CpuId(0),
        start,
        script,
    }
}

pub fn at(time: u64) -> Start {
    Start::At(Time(time))
}

pub fn workload(tasks: Vec<TaskSpec>) -> Workload {
    Workload { tasks, ..Default::default() }
}

/// `(time, next)` of every switch on CPU 0; −1 is idle.
pub fn switches(events: &[Event]) -> Vec<(u64, i64)> {
    let id = |task: TaskId| if task == TaskId::NONE { -1 } else { i64::from(task.0) };
    let switch = |event: &Event| match event.kind {
        EventKind::SchedSwitch { next, .. } if event.cpu == CpuId(0) => {
            Some((event.time.0, id(next)))
        }
        _ => None,
    };
    events.iter().filter_map(switch).collect()
}

/// Adds up the service of each task of a run.
pub struct Service {
    pub served: Vec<u64>,
    running: Vec<Option<(TaskId, u64)>>,
}

impl Service {
    pub fn new(tasks: usize) -> Service {
        Service { served: vec![0; tasks], running: vec![None; 64] }
    }

    /// Follows one event; `served` is up to date then, except for the runs on other CPUs.
    pub fn event(&mut self, event: &Event) {
        if let EventKind::SchedSwitch { next, .. } = event.kind {
            let running = &mut self.running[event.cpu.index()];
            if let Some((task, since)) = running.take() {
                self.served[task.index()] += event.time.0 - since;
            }
            *running = (next != TaskId::NONE).then_some((next, event.time.0));
        }
    }

    /// The service of each of `tasks` before `until`.
    pub fn until(events: &[Event], tasks: usize, until: u64) -> Vec<u64> {
        let mut service = Service::new(tasks);
        events
            .iter()
            .take_while(|event| event.time.0 < until)
            .for_each(|event| service.event(event));
        for (task, since) in service.running.into_iter().flatten() {
            service.served[task.index()] += until - since;
        }
        service.served
    }
}

pub fn hogs(prios: &[u8], work: u64) -> Workload {
    workload(prios.iter().map(|&prio| task(prio, NOW, &[(work, Action::Exit)])).collect())
}

/// `(time, cpu)` of every switch to `task`.
pub fn dispatches(events: &[Event], task: u32) -> Vec<(u64, u16)> {
    let to_task = |event: &&Event| matches!(event.kind, EventKind::SchedSwitch { next, .. } if next == TaskId(task));
    events.iter().filter(to_task).map(|event| (event.time.0, event.cpu.0)).collect()
}

/// Tasks that run, sleep, yield, and give one another tokens to wait for.
pub fn random_tasks(most: usize) -> impl Strategy<Value = Vec<TaskSpec>> {
    let prio = prop_oneof![100..140u8, Just(120)];
    let start = prop_oneof![0..20 * MS, (0..20u64).prop_map(|ms| ms * MS)];
    (1..=most).prop_flat_map(move |count| {
        let action = prop_oneof![
            4 => (0..12 * MS).prop_map(|pause| Action::Sleep(Nanos(pause))),
            1 => Just(Action::Yield),
            1 => Just(Action::Continue),
            2 => (0..count as u32).prop_map(|task| Action::Wake(TaskId(task))),
            1 => Just(Action::Wait),
        ];
        let run = prop_oneof![0..300 * US, 0..9 * MS, (0..9u64).prop_map(|ms| ms * MS)];
        let steps = prop::collection::vec((run, action), 1..12);
        let random_task = (prio.clone(), start.clone(), steps)
            .prop_map(|(prio, start, steps)| task(prio, at(start), &steps));
        prop::collection::vec(random_task, count)
    })
}

/// The same, some of them pinned, on two CPUs only, or real-time.
pub fn mixed_tasks(most: usize) -> impl Strategy<Value = Vec<TaskSpec>> {
    (random_tasks(most), prop::collection::vec((0..6u8, 0..8u16, 0..100u8), most)).prop_map(
        |(mut tasks, kinds)| {
            for (task, (kind, cpu, prio)) in tasks.iter_mut().zip(kinds) {
                task.cpu = CpuId(cpu);
                match kind {
                    0 => task.affinity = Affinity::Pinned(CpuId(cpu)),
                    1 => task.affinity = Affinity::Set(0),
                    2 => task.info.prio = prio,
                    _ => {}
                }
            }
            tasks
        },
    )
}

pub fn random_machine() -> impl Strategy<Value = Machine> {
    let costly = |cpus| Machine {
        cpus,
        switch_cost: Nanos(2 * US),
        migration_cost: Nanos(30 * US),
        idle_exit: Nanos(20 * US),
        wake_cost: Nanos(4 * US),
        ..Machine::ideal(cpus)
    };
    (1..6u16, any::<bool>()).prop_map(
        move |(cpus, is_costly)| if is_costly { costly(cpus) } else { Machine::ideal(cpus) },
    )
}

/// The violations in a run under `policy`; a stall is none.
pub fn violations<P: Policy>(
    policy: P,
    promises: Promises,
    machine: &Machine,
    workload: &Workload,
) -> Vec<Violation> {
    let mut checks = Checks::new(workload, machine, promises);
    let options = Options { seed: 1, until: Time::NEVER };
    match engine::simulate(workload, machine, policy, options, Trace::new(vec![&mut checks])) {
        Ok(outcome) => checks.finish(&outcome),
        Err(engine::Error::Stalled(_)) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}
