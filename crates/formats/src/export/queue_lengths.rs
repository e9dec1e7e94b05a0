//! The number of waiting tasks on each CPU over time.

use schedsim::metrics::Metrics;
use schedsim::trace::{Event, EventKind, Observer};
use schedsim::{CpuId, TaskId, Time};

/// Follows the lengths of the ready queues by the definition of [`Metrics`]. A length that lasts no
/// time is not reported. If a recording lacks the switch from idle to a task, that is known only
/// when the task leaves its CPU. Until then the task counts as waiting here; the metrics correct
/// that.
pub struct QueueLengths {
    metrics: Metrics,
    /// By CPU: the last reported length.
    reported: Vec<u32>,
    /// CPUs whose length may have changed at `now`.
    changed: Vec<CpuId>,
    now: Time,
}

/// The length of a ready queue from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLength {
    /// The instant.
    pub time: Time,
    /// The CPU.
    pub cpu: CpuId,
    /// The number of waiting tasks.
    pub length: u32,
}

impl QueueLengths {
    /// For a trace of `cpus` CPUs.
    pub fn new(cpus: u16) -> QueueLengths {
        QueueLengths {
            metrics: Metrics::new(cpus),
            reported: vec![0; usize::from(cpus)],
            changed: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// Processes an event and reports the changes at earlier instants.
    #[inline]
    pub fn event(&mut self, event: &Event, report: impl FnMut(QueueLength)) {
        if event.time > self.now {
            self.report_changes(report);
            self.now = event.time;
        }
        let tasks = named(&event.kind);
        self.mark(tasks);
        self.metrics.events(std::slice::from_ref(event));
        self.mark(tasks);
    }

    /// The current length of a CPU's queue.
    pub fn length(&self, cpu: CpuId) -> u32 {
        self.metrics.ready_length(cpu)
    }

    /// Reports the changes of the last instant.
    pub fn finish(&mut self, report: impl FnMut(QueueLength)) {
        self.report_changes(report);
    }

    /// Marks the queues that an event may change: those in which its tasks wait before it and after
    /// it.
    #[inline]
    fn mark(&mut self, tasks: [TaskId; 2]) {
        for task in tasks {
            if let Some(cpu) = self.metrics.waits_on(task)
                && !self.changed.contains(&cpu)
            {
                self.changed.push(cpu);
            }
        }
    }

    #[inline]
    fn report_changes(&mut self, mut report: impl FnMut(QueueLength)) {
        for cpu in self.changed.drain(..) {
            let length = self.metrics.ready_length(cpu);
            if cpu.index() >= self.reported.len() {
                self.reported.resize(cpu.index() + 1, 0);
            }
            if std::mem::replace(&mut self.reported[cpu.index()], length) != length {
                report(QueueLength { time: self.now, cpu, length });
            }
        }
    }
}

/// The tasks whose waiting state an event may change.
#[inline]
fn named(kind: &EventKind) -> [TaskId; 2] {
    match *kind {
        EventKind::SchedSwitch { prev, next, .. } => [prev, next],
        EventKind::SchedWaking { task, .. }
        | EventKind::SchedWakeup { task, .. }
        | EventKind::SchedWakeupNew { task, .. }
        | EventKind::SchedMigrateTask { task, .. } => [task, TaskId::NONE],
        _ => [TaskId::NONE; 2],
    }
}
