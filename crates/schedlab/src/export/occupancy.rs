//! Who ran where, from when to when.

use schedsim::trace::{Event, EventKind};
use schedsim::{CpuId, TaskId, Time};

/// A task on a CPU without a break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Where.
    pub cpu: CpuId,
    /// Who.
    pub task: TaskId,
    /// From when.
    pub start: Time,
    /// To when.
    pub end: Time,
}

/// Turns switches into intervals. It reads a stream as [`Metrics`](schedsim::metrics::Metrics) does: per task the intervals add up to its CPU time and the
/// overhead on its account, also where a recording contradicts itself.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    cpus: Vec<Cpu>,
    /// By task: whether it has run, and on which CPU it runs.
    tasks: Vec<Task>,
    closed: Vec<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    running: TaskId,
    since: Time,
    seen: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    has_run: bool,
    on: Option<CpuId>,
}

impl Occupancy {
    /// Before the first event: nobody is known to run.
    pub fn new() -> Occupancy {
        Occupancy::default()
    }

    /// Takes an event and gives the intervals that it ends: that of `prev`, and that of a task that turns up here while it was thought to run
    /// elsewhere.
    #[inline]
    pub fn event(&mut self, event: &Event) -> &[Interval] {
        self.closed.clear();
        if let EventKind::SchedSwitch { prev, next, .. } = event.kind {
            self.switch(event.time, event.cpu, prev, next);
        }
        &self.closed
    }

    /// Ends the trace and gives the intervals that go on until then.
    pub fn finish(&mut self, end: Time) -> &[Interval] {
        self.closed.clear();
        for index in 0..self.cpus.len() {
            self.close(CpuId(index as u16), end);
        }
        &self.closed
    }

    #[inline]
    fn switch(&mut self, now: Time, cpu: CpuId, prev: TaskId, next: TaskId) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Cpu { running: TaskId::NONE, since: Time::ZERO, seen: false });
        }
        let state = self.cpus[cpu.index()];
        if state.running != prev {
            self.reconcile(now, cpu, prev, state.seen);
        }
        self.close(cpu, now);
        if next != TaskId::NONE {
            if let Some(elsewhere) = self.task(next).on {
                self.close(elsewhere, now);
            }
            *self.task(next) = Task { has_run: true, on: Some(cpu) };
        }
        self.cpus[cpu.index()] = Cpu { running: next, since: now, seen: true };
    }

    /// The CPU does not run, as far as is known, the task that leaves it.
    #[cold]
    fn reconcile(&mut self, now: Time, cpu: CpuId, prev: TaskId, seen: bool) {
        self.close(cpu, now);
        if prev == TaskId::NONE {
            return;
        }
        let task = *self.task(prev);
        if let Some(elsewhere) = task.on {
            self.close(elsewhere, now);
        }
        // Before its CPU's first switch, a task that was not seen running elsewhere has run since the start.
        let since = if seen || task.has_run || task.on.is_some() { now } else { Time::ZERO };
        self.task(prev).on = Some(cpu);
        self.cpus[cpu.index()] = Cpu { running: prev, since, seen: true };
    }

    /// Ends what runs on `cpu`.
    #[inline]
    fn close(&mut self, cpu: CpuId, now: Time) {
        let state = &mut self.cpus[cpu.index()];
        let (task, start) = (std::mem::replace(&mut state.running, TaskId::NONE), state.since);
        if task != TaskId::NONE {
            self.tasks[task.index()].on = None;
            if now > start {
                self.tasks[task.index()].has_run = true;
                self.closed.push(Interval { cpu, task, start, end: now });
            }
        }
    }

    #[inline]
    fn task(&mut self, task: TaskId) -> &mut Task {
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, Task::default());
        }
        &mut self.tasks[task.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::trace::PrevState;

    const IDLE: TaskId = TaskId::NONE;

    fn intervals(switches: &[(u64, u16, TaskId, TaskId)], end: u64) -> Vec<(u16, u32, u64, u64)> {
        let mut occupancy = Occupancy::new();
        let mut all = Vec::new();
        for &(time, cpu, prev, next) in switches {
            let kind = EventKind::SchedSwitch { prev, next, prev_state: PrevState::Runnable };
            all.extend_from_slice(occupancy.event(&Event { time: Time(time), cpu: CpuId(cpu), kind }));
        }
        all.extend_from_slice(occupancy.finish(Time(end)));
        all.iter().map(|interval| (interval.cpu.0, interval.task.0, interval.start.0, interval.end.0)).collect()
    }

    #[test]
    fn a_task_that_leaves_first_has_run_since_the_start() {
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(intervals(&[(10, 0, a, b), (30, 0, b, IDLE)], 50), [(0, 0, 0, 10), (0, 1, 10, 30)]);
        assert_eq!(intervals(&[(10, 0, IDLE, b)], 50), [(0, 1, 10, 50)]);
    }

    #[test]
    fn a_task_that_turns_up_elsewhere_runs_there_from_then_on() {
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(intervals(&[(10, 0, IDLE, a), (20, 1, IDLE, a), (30, 1, a, b)], 40), [(0, 0, 10, 20), (1, 0, 20, 30), (1, 1, 30, 40)]);
    }

    #[test]
    fn a_switch_that_was_not_recorded_gives_the_time_to_who_was_known() {
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(intervals(&[(10, 0, IDLE, a), (20, 0, b, IDLE)], 40), [(0, 0, 10, 20)]);
    }
}
