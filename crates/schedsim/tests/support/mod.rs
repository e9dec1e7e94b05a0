//! Shared by the tests of metrics, checks and queueing: builds workloads and runs them under a
//! policy by name.
#![allow(dead_code, reason = "each test uses a part")]

use schedsim::engine::{self, Options, Outcome};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, Observer, PrevState, TaskInfo, Trace};
use schedsim::workload::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};

/// Keeps all events.
#[derive(Default)]
pub struct Collect(pub Vec<Event>);

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

/// A run up to `until`, with `observers`.
pub struct Run<'a> {
    pub workload: &'a Workload,
    pub machine: &'a Machine,
    pub until: Time,
    pub observers: Vec<&'a mut dyn Observer>,
}

impl Run<'_> {
    pub fn under(self, policy: &str) -> Result<Outcome, engine::Error> {
        let options = Options { seed: 1, until: self.until };
        engine::simulate_named(
            self.workload,
            self.machine,
            &PolicySpec::parse(policy).unwrap(),
            options,
            Trace::new(self.observers),
        )
    }
}

/// All events of a run to its end.
pub fn events_of(policy: &str, machine: &Machine, workload: &Workload) -> (Outcome, Vec<Event>) {
    let mut collect = Collect::default();
    let run = Run { workload, machine, until: Time::NEVER, observers: vec![&mut collect] };
    let outcome = run.under(policy).unwrap();
    (outcome, collect.0)
}

pub fn task(start: Start, steps: impl IntoIterator<Item = (u64, Action)>) -> TaskSpec {
    let script: Script = steps.into_iter().map(|(run, then)| (Nanos(run), then)).collect();
    let info = TaskInfo { name: "t".into(), pid: 0, tgid: 0, prio: 120 };
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

/// Events by hand: ids below zero are the idle task.
pub fn event(time: u64, cpu: u16, kind: EventKind) -> Event {
    Event { time: Time(time), cpu: CpuId(cpu), kind }
}

pub fn id(task: i64) -> TaskId {
    if task < 0 { TaskId::NONE } else { TaskId(task as u32) }
}

pub fn switch(time: u64, cpu: u16, prev: i64, prev_state: PrevState, next: i64) -> Event {
    event(time, cpu, EventKind::SchedSwitch { prev: id(prev), next: id(next), prev_state })
}

pub fn waking(time: u64, task: i64, target: u16) -> Event {
    let context = schedsim::trace::WakeContext::Unknown;
    event(time, 0, EventKind::SchedWaking { task: id(task), target: CpuId(target), context })
}

pub fn wakeup(time: u64, task: i64, target: u16) -> Event {
    event(time, 0, EventKind::SchedWakeup { task: id(task), target: CpuId(target) })
}

pub fn wakeup_new(time: u64, task: i64, target: u16) -> Event {
    event(time, 0, EventKind::SchedWakeupNew { task: id(task), target: CpuId(target) })
}

/// Random workloads for swarm tests.
pub mod swarm {
    use super::*;
    use proptest::prelude::*;

    /// A random task's action after a run; its target is chosen when all tasks are known.
    #[derive(Clone, Copy, Debug)]
    pub enum Then {
        Continue,
        Sleep(u64),
        Signal(usize),
        Yield,
    }

    #[derive(Clone, Debug)]
    pub struct Sketch {
        /// The start time, or `None` if the task before it forks it.
        pub start: Option<u64>,
        pub steps: Vec<(u64, Then)>,
        /// `None`: everywhere; below 10: pinned; else the set with index `n - 10`.
        pub place: Option<u32>,
        pub prio: u8,
    }

    fn sketch() -> impl Strategy<Value = Sketch> {
        let then = prop_oneof![
            1 => Just(Then::Continue),
            4 => (0u64..300).prop_map(Then::Sleep),
            2 => (0usize..8).prop_map(Then::Signal),
            1 => Just(Then::Yield),
        ];
        (
            prop_oneof![3 => (0u64..200).prop_map(Some), 1 => Just(None)],
            proptest::collection::vec((prop_oneof![1 => Just(0u64), 4 => 1u64..200, 1 => 3_000_000u64..9_000_000], then), 0..8),
            prop_oneof![3 => Just(None), 1 => (0u32..4).prop_map(Some), 1 => (10u32..12).prop_map(Some)],
            prop_oneof![Just(120u8), 100u8..140],
        )
            .prop_map(|(start, steps, place, prio)| Sketch { start, steps, place, prio })
    }

    /// Up to `tasks` tasks on up to four CPUs. Tasks wake only later ones in the list, whose waits
    /// match the wakes, so that there is no cycle; a task forks only later ones.
    pub fn workloads(tasks: usize) -> impl Strategy<Value = (Workload, Machine)> {
        let machine = (
            1u16..5,
            prop_oneof![Just(0u64), 1u64..20],
            prop_oneof![Just(0u64), 1u64..50],
            prop_oneof![Just(0u64), 1u64..30],
        );
        (proptest::collection::vec(sketch(), 1..tasks), machine).prop_map(
            |(sketches, (cpus, switch, migration, exit))| {
                let machine = Machine {
                    cpus,
                    switch_cost: Nanos(switch),
                    migration_cost: Nanos(migration),
                    idle_exit: Nanos(exit),
                    wake_cost: Nanos(exit / 2),
                    ..Machine::ideal(cpus)
                };
                (build(&sketches, cpus), machine)
            },
        )
    }

    fn build(sketches: &[Sketch], cpus: u16) -> Workload {
        let count = sketches.len();
        let mut scripts: Vec<Vec<(u64, Action)>> = vec![Vec::new(); count];
        for (index, sketch) in sketches.iter().enumerate() {
            if index > 0 && sketch.start.is_none() {
                scripts[index - 1].insert(0, (7, Action::Fork(TaskId(index as u32))));
            }
            for &(run, then) in &sketch.steps {
                match then {
                    Then::Continue => scripts[index].push((run, Action::Continue)),
                    Then::Sleep(pause) => scripts[index].push((run, Action::Sleep(Nanos(pause)))),
                    Then::Yield => scripts[index].push((run, Action::Yield)),
                    Then::Signal(ahead) => {
                        let wakee = index + 1 + ahead;
                        if wakee < count {
                            scripts[index].push((run, Action::Wake(TaskId(wakee as u32))));
                            scripts[wakee].insert(0, (run / 2, Action::Wait));
                        }
                    }
                }
            }
        }
        let tasks = sketches.iter().zip(scripts).enumerate().map(|(index, (sketch, steps))| {
            let start = if index > 0 && sketch.start.is_none() {
                Start::Forked
            } else {
                at(sketch.start.unwrap_or(0))
            };
            let mut spec = task(start, steps);
            spec.info.prio = sketch.prio;
            spec.affinity = match sketch.place {
                None => Affinity::Any,
                Some(cpu @ 0..10) => Affinity::Pinned(CpuId(cpu as u16)),
                Some(set) => Affinity::Set(set - 10),
            };
            spec
        });
        // One set is the even CPUs, the other all but the first, where there are others.
        let evens = (0..cpus).step_by(2).map(CpuId).collect();
        let others = (u16::from(cpus > 1)..cpus).map(CpuId).collect();
        Workload { tasks: tasks.collect(), cpu_sets: vec![evens, others], ..Workload::default() }
    }
}
