//! The intervals in which each task runs on each CPU.

use schedsim::metrics::Metrics;
use schedsim::trace::{Event, EventKind, Observer};
use schedsim::{CpuId, Nanos, TaskId, Time};

/// An interval in which one task runs on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The CPU.
    pub cpu: CpuId,
    /// The task.
    pub task: TaskId,
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
}

/// Converts switches into intervals, by the same rules as [`Metrics`]. The intervals of a task add
/// up to its CPU time and its charged overhead, even if a recording lacks switches or contradicts
/// itself.
#[derive(Clone, Debug)]
pub struct Occupancy {
    metrics: Metrics,
    cpus: u16,
    closed: Vec<Interval>,
}

impl Default for Occupancy {
    fn default() -> Self {
        Occupancy::new()
    }
}

impl Occupancy {
    /// The state before the first event: no task is known to run.
    pub fn new() -> Occupancy {
        Occupancy { metrics: Metrics::new(0), cpus: 0, closed: Vec::new() }
    }

    /// Processes an event and returns the intervals that it ends. These are the intervals of
    /// `prev`, of another task assumed to run on this CPU, and of `next` if it was assumed to run
    /// elsewhere. An inferred interval can begin before earlier events.
    #[inline]
    pub fn event(&mut self, event: &Event) -> &[Interval] {
        self.closed.clear();
        self.cpus = self.cpus.max(event.cpu.0 + 1);
        let EventKind::SchedSwitch { prev, next, .. } = event.kind else {
            self.metrics.events(std::slice::from_ref(event));
            return &self.closed;
        };
        let running = self.metrics.running(event.cpu);
        let concerned = [
            prev,
            if next == prev { TaskId::NONE } else { next },
            if running == prev || running == next { TaskId::NONE } else { running },
        ];
        let before = concerned.map(|task| (self.metrics.on_cpu(task), self.metrics.runs(task)));
        self.metrics.events(std::slice::from_ref(event));
        for (task, (on_cpu, ran)) in concerned.into_iter().zip(before) {
            let length = self.metrics.on_cpu(task) - on_cpu;
            if length > Nanos::ZERO {
                let cpu = ran.map_or(event.cpu, |(cpu, _)| cpu);
                self.closed.push(Interval {
                    cpu,
                    task,
                    start: Time(event.time.0 - length.0),
                    end: event.time,
                });
            }
        }
        &self.closed
    }

    /// Ends the trace and returns the intervals that are still open.
    pub fn finish(&mut self, end: Time) -> &[Interval] {
        self.closed.clear();
        for cpu in (0..self.cpus).map(CpuId) {
            let task = self.metrics.running(cpu);
            if let Some((_, start)) = self.metrics.runs(task).filter(|&(_, start)| start < end) {
                self.closed.push(Interval { cpu, task, start, end });
            }
        }
        &self.closed
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
            all.extend_from_slice(occupancy.event(&Event {
                time: Time(time),
                cpu: CpuId(cpu),
                kind,
            }));
        }
        all.extend_from_slice(occupancy.finish(Time(end)));
        all.iter()
            .map(|interval| (interval.cpu.0, interval.task.0, interval.start.0, interval.end.0))
            .collect()
    }

    #[test]
    fn a_task_whose_first_event_is_a_switch_out_ran_since_the_start() {
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(
            intervals(&[(10, 0, a, b), (30, 0, b, IDLE)], 50),
            [(0, 0, 0, 10), (0, 1, 10, 30)]
        );
        assert_eq!(intervals(&[(10, 0, IDLE, b)], 50), [(0, 1, 10, 50)]);
    }

    #[test]
    fn a_task_seen_on_another_cpu_runs_there_from_then_on() {
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(
            intervals(&[(10, 0, IDLE, a), (20, 1, IDLE, a), (30, 1, a, b)], 40),
            [(0, 0, 10, 20), (1, 0, 20, 30), (1, 1, 30, 40)]
        );
    }

    #[test]
    fn a_missing_switch_from_idle_is_inferred_from_the_wakeup() {
        let a = TaskId(0);
        let mut occupancy = Occupancy::new();
        let event = |time, kind| Event { time: Time(time), cpu: CpuId(0), kind };
        let switch =
            |prev, next| EventKind::SchedSwitch { prev, next, prev_state: PrevState::Blocked };
        occupancy.event(&event(10, switch(a, IDLE)));
        occupancy.event(&event(20, EventKind::SchedWakeupNew { task: a, target: CpuId(0) }));
        let inferred = Interval { cpu: CpuId(0), task: a, start: Time(20), end: Time(30) };
        assert_eq!(occupancy.event(&event(30, switch(a, IDLE))), [inferred]);
    }

    #[test]
    fn a_missing_switch_gives_the_time_to_the_last_known_task() {
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(intervals(&[(10, 0, IDLE, a), (20, 0, b, IDLE)], 40), [(0, 0, 10, 20)]);
    }
}
