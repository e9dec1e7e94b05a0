//! Extracts the background load of a guest from its events, so that the simulator can repeat it.
//! That is when tasks left the gate, and what else ran.
//!
//! The others (kernel threads, the runner that opens the gate) repeat their recorded behaviour by
//! the clock. Each wakes up and runs as recorded, whatever the workload does. That is right for
//! timers and interrupts, and wrong for a thread that works for the workload and ran at its
//! request. Real-time threads are left out, because no policy of a guest's tasks schedules them: a
//! task that they interrupt counts as running.

use schedsim::trace::{Event, EventKind, PrevState, TaskInfo, WakeContext};
use schedsim::workload::{
    Action, Affinity, Attributes, Late, Operation, Script, Start, TaskSpec, Timer, Workload,
};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The cost of a switch, with a yield and the recording's own instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchCost {
    /// From one task to the next, with the decision of a scheduler in user space.
    pub all: Nanos,
    /// The part that is accounted to the tasks.
    pub own: Nanos,
}

/// Whether no policy schedules this one of `tasks`: real-time tasks, and the program, by name, of a
/// policy in user space.
pub fn is_unscheduled(tasks: &[TaskInfo], task: TaskId, program: Option<&str>) -> bool {
    tasks.get(task.index()).is_some_and(|task| task.prio < 100 || program == Some(&task.name))
}

/// Whether a wakeup is by a timer in the simulation. `is_ours`: it is of one of the workload's
/// tasks. All others follow the clock.
pub fn is_by_timer(is_ours: bool, context: WakeContext) -> bool {
    !is_ours || context == WakeContext::Hardirq
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub struct BackgroundLoad {
    /// For each task of the workload, by its number: when it first woke up, and the CPU where it
    /// was before.
    pub arrivals: Vec<Option<(Time, CpuId)>>,
    /// The others.
    pub others: Workload,
}

/// Another task while its events are read.
#[derive(Default)]
struct Other {
    /// Its wakeups, and how long it ran after each.
    bouts: Vec<Bout>,
    /// Since when it runs.
    running: Option<Time>,
    /// Whether it is asleep; else the last bout is not over.
    asleep: bool,
    /// A wakeup that came before it slept.
    early: Option<Time>,
    /// The CPUs on which it ran.
    cpus: BTreeSet<CpuId>,
}

#[derive(Clone, Copy, Default)]
struct Bout {
    woken: Time,
    ran: Nanos,
    /// The part of that which is accounted to its scheduler.
    costs: Nanos,
}

impl BackgroundLoad {
    /// Extracts it from the events of a guest with these tasks, `numbers` being their numbers in
    /// the workload. The costs of switches, interrupts and wakeups on `machine` are no part of a
    /// run. A task named `left_out` is none of the others, like real-time ones: its time is that of
    /// a switch or an interruption.
    pub fn of(
        events: &[Event],
        tasks: &[TaskInfo],
        numbers: &[Option<u32>],
        machine: &Machine,
        switch: SwitchCost,
        left_out: Option<&str>,
    ) -> BackgroundLoad {
        let mut arrivals =
            vec![
                None;
                numbers.iter().flatten().map(|&number| number as usize + 1).max().unwrap_or(0)
            ];
        let mut others: Vec<Other> = tasks.iter().map(|_| Other::default()).collect();
        let is_left_out = |task| is_unscheduled(tasks, task, left_out);
        let (mut held, mut was_on, mut current) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for event in events {
            match event.kind {
                // A task that a left-out one interrupts counts as running.
                EventKind::SchedSwitch { prev, next, .. }
                    if is_left_out(prev) && is_left_out(next) => {}
                EventKind::SchedSwitch { prev, next, prev_state } if is_left_out(next) => {
                    held.insert(event.cpu, (prev, prev_state));
                    current.entry(event.cpu).or_insert(prev);
                }
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    let (prev, prev_state) = held
                        .remove(&event.cpu)
                        .filter(|_| is_left_out(prev))
                        .unwrap_or((prev, prev_state));
                    if prev != next || prev_state != PrevState::Runnable {
                        others
                            .get_mut(prev.index())
                            .into_iter()
                            .for_each(|other| other.stops(prev_state, event.time));
                        others
                            .get_mut(next.index())
                            .into_iter()
                            .for_each(|other| other.runs(event.time, event.cpu, switch.own));
                        current.insert(event.cpu, next);
                    }
                }
                EventKind::SchedWaking { task, target, context } if !is_left_out(task) => {
                    was_on.insert(task, target);
                    if let Some(running) =
                        current.get(&event.cpu).and_then(|task| others.get_mut(task.index()))
                    {
                        let is_ours = numbers.get(task.index()).copied().flatten().is_some();
                        let interruption = if is_ours { machine.interruption } else { Nanos::ZERO };
                        let timer = if is_by_timer(is_ours, context) {
                            machine.timer_cost
                        } else {
                            Nanos::ZERO
                        };
                        running.bout(event.time).costs += interruption + timer;
                    }
                    others
                        .get_mut(task.index())
                        .into_iter()
                        .for_each(|other| other.is_woken(event.time))
                }
                EventKind::SchedWakeup { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                    if let Some(number) = numbers.get(task.index()).copied().flatten() {
                        arrivals[number as usize].get_or_insert((
                            event.time,
                            was_on.get(&task).copied().unwrap_or(event.cpu),
                        ));
                    }
                }
                _ => {}
            }
        }
        let has_several_cpus = events.iter().any(|event| event.cpu != CpuId(0));
        let mut load = Workload::default();
        for ((task, info), (other, number)) in
            (0..).map(TaskId).zip(tasks).zip(others.into_iter().zip(numbers))
        {
            if number.is_none() && !is_left_out(task) && !other.bouts.is_empty() {
                other.join(info, has_several_cpus, &mut load);
            }
        }
        BackgroundLoad { arrivals, others: load }
    }

    /// These others as a workload.
    pub fn around(&self, mut workload: Workload) -> Workload {
        for (task, arrival) in workload.tasks.iter_mut().zip(&self.arrivals) {
            match (task.start, *arrival) {
                (Start::At(start), Some((arrival, cpu))) => {
                    (task.start, task.cpu) = (Start::Asleep(start.max(arrival)), cpu)
                }
                // A task that was not yet at the gate was runnable, and the task that opened the
                // gate ran.
                (Start::At(start), None) => task.start = Start::At(start.max(Time(1))),
                _ => {}
            }
        }
        workload.beside(&self.others)
    }
}

impl Other {
    /// The unfinished bout; a task that is first seen runnable has been so since the begin.
    fn bout(&mut self, now: Time) -> &mut Bout {
        if self.bouts.is_empty() || self.asleep {
            self.asleep = false;
            let woken = if self.bouts.is_empty() { Time::ZERO } else { now };
            self.bouts.push(Bout { woken, ..Bout::default() });
        }
        let last = self.bouts.len() - 1;
        &mut self.bouts[last]
    }

    fn is_woken(&mut self, now: Time) {
        if self.running.is_some() {
            self.early = Some(now);
        } else if self.asleep || self.bouts.is_empty() {
            self.asleep = false;
            self.bouts.push(Bout { woken: now, ..Bout::default() });
        }
    }

    fn runs(&mut self, now: Time, cpu: CpuId, switch: Nanos) {
        self.cpus.insert(cpu);
        self.bout(now).costs += switch;
        self.running = Some(now);
    }

    fn stops(&mut self, state: PrevState, now: Time) {
        let since = self.running.take().unwrap_or(Time::ZERO);
        self.bout(now).ran += now.since(since);
        let early = self.early.take();
        if state != PrevState::Runnable {
            self.asleep = true;
            early.into_iter().for_each(|early| self.is_woken(early));
        }
    }

    /// Adds a task to `load` that repeats all this.
    fn join(self, info: &TaskInfo, has_several_cpus: bool, load: &mut Workload) {
        let first = self.bouts[0].woken;
        let timer = load.shared.timers.len() as u32;
        load.shared.timers.push(Timer { origin: Some(first), late: Late::CatchUp });
        let mut script = Script::new();
        if first > Time::ZERO {
            script.push(Nanos::ZERO, Action::Sleep(Nanos(first.0)));
        }
        let next = self.bouts.iter().skip(1).map(|bout| Some(bout.woken)).chain([None]);
        for (bout, next) in self.bouts.iter().zip(next) {
            let ran = bout.ran.saturating_sub(bout.costs);
            let wait =
                |next: Time| Action::Do(Operation::Timer { timer, period: next.since(bout.woken) });
            script.push(ran, next.map_or(Action::Exit, wait));
        }
        let cpu = self.cpus.first().copied().unwrap_or_default();
        load.tasks.push(TaskSpec {
            info: info.clone(),
            attributes: Attributes::default(),
            affinity: if has_several_cpus && self.cpus.len() == 1 {
                Affinity::Pinned(cpu)
            } else {
                Affinity::Any
            },
            cpu,
            start: Start::At(Time::ZERO),
            script,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::trace::WakeContext;
    use schedsim::workload::Shared;

    #[test]
    fn others_do_by_the_clock_what_they_did_and_tasks_arrive_when_they_were_woken() {
        let at = |time, kind| Event { time: Time(time), cpu: CpuId(0), kind };
        let switch = |prev, next, prev_state| EventKind::SchedSwitch {
            prev: TaskId(prev),
            next: TaskId(next),
            prev_state,
        };
        let (waking, wakeup) = (
            |task| EventKind::SchedWaking {
                task: TaskId(task),
                target: CpuId(0),
                context: WakeContext::Unknown,
            },
            |task| EventKind::SchedWakeup { task: TaskId(task), target: CpuId(0) },
        );
        // Task 0 opens the gate for task 1, the workload's; task 2 is a kernel thread that is
        // preempted once; task 3 is real-time.
        let events = [
            at(5, waking(1)),
            at(7, wakeup(1)),
            at(20, switch(0, 1, PrevState::Blocked)),
            at(100, waking(2)),
            at(130, switch(1, 2, PrevState::Runnable)),
            at(150, switch(2, 3, PrevState::Runnable)),
            at(155, switch(3, 2, PrevState::Blocked)),
            at(160, waking(2)),
            at(180, switch(2, 1, PrevState::Blocked)),
            at(190, switch(1, 2, PrevState::Runnable)),
            at(200, switch(2, 1, PrevState::Blocked)),
        ];
        let task = |name: &str, prio| TaskInfo { name: name.to_string(), pid: 1, tgid: 1, prio };
        let tasks =
            [task("init", 120), task("worker", 120), task("kthread", 120), task("migration/0", 0)];
        let numbers = [None, Some(0), None, None];
        let (machine, cost) = (Machine::ideal(1), SwitchCost { all: Nanos(9), own: Nanos(4) });
        let background_load = BackgroundLoad::of(&events, &tasks, &numbers, &machine, cost, None);
        assert_eq!(background_load.arrivals, [Some((Time(7), CpuId(0)))]);
        let steps = |task: usize| {
            background_load.others.tasks[task]
                .script
                .steps()
                .map(|step| (step.run, step.then))
                .collect::<Vec<_>>()
        };
        assert_eq!(steps(0), [(Nanos(20), Action::Exit)]);
        let wait = Action::Do(Operation::Timer { timer: 1, period: Nanos(60) });
        assert_eq!(
            steps(1),
            [(Nanos(0), Action::Sleep(Nanos(100))), (Nanos(46), wait), (Nanos(6), Action::Exit)]
        );
        assert_eq!(background_load.others.tasks.len(), 2);
        let without =
            BackgroundLoad::of(&events, &tasks, &numbers, &machine, cost, Some("kthread"));
        assert_eq!(without.others.tasks.len(), 1);
        let own = TaskSpec { start: Start::At(Time(2)), ..background_load.others.tasks[0].clone() };
        let around = background_load.around(Workload {
            tasks: vec![own],
            shared: Shared::NOTHING,
            ..Workload::default()
        });
        assert_eq!((around.tasks.len(), around.tasks[0].start), (3, Start::Asleep(Time(7))));
    }
}
