//! How many tasks wait on which CPU, as it changes.

use schedsim::metrics::Metrics;
use schedsim::trace::{Event, EventKind, Observer};
use schedsim::{CpuId, TaskId, Time};

/// Follows the lengths of the ready queues by the definition of [`Metrics`]. A length that lasts no time is not told. Where a recording lacks the switch
/// from idle to a task, that is known only when the task leaves its CPU; until then it is told as waiting, which the metrics take back.
pub struct QueueLengths {
    metrics: Metrics,
    /// By CPU: the length told last.
    told: Vec<u32>,
    /// CPUs whose length may have changed at `now`.
    changed: Vec<CpuId>,
    now: Time,
}

/// A ready queue's length from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLength {
    /// From when.
    pub time: Time,
    /// Whose queue.
    pub cpu: CpuId,
    /// How many tasks wait in it.
    pub length: u32,
}

impl QueueLengths {
    /// Of a trace of `cpus` CPUs.
    pub fn new(cpus: u16) -> QueueLengths {
        QueueLengths { metrics: Metrics::new(cpus), told: vec![0; usize::from(cpus)], changed: Vec::new(), now: Time::ZERO }
    }

    /// Takes an event and tells what changed at earlier instants.
    #[inline]
    pub fn event(&mut self, event: &Event, tell: impl FnMut(QueueLength)) {
        if event.time > self.now {
            self.tell_changes(tell);
            self.now = event.time;
        }
        let tasks = named(&event.kind);
        self.mark(tasks);
        self.metrics.events(std::slice::from_ref(event));
        self.mark(tasks);
    }

    /// The length of a CPU's queue now.
    pub fn length(&self, cpu: CpuId) -> u32 {
        self.metrics.ready_length(cpu)
    }

    /// Tells the changes of the last instant.
    pub fn finish(&mut self, tell: impl FnMut(QueueLength)) {
        self.tell_changes(tell);
    }

    /// The queues that the tasks of an event wait in, before it and after it, are those that it may change.
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
    fn tell_changes(&mut self, mut tell: impl FnMut(QueueLength)) {
        for cpu in self.changed.drain(..) {
            let length = self.metrics.ready_length(cpu);
            if cpu.index() >= self.told.len() {
                self.told.resize(cpu.index() + 1, 0);
            }
            if std::mem::replace(&mut self.told[cpu.index()], length) != length {
                tell(QueueLength { time: self.now, cpu, length });
            }
        }
    }
}

/// The tasks whose waiting an event may change.
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
