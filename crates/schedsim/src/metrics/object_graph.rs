//! The object graph: through which object which task wakes which, and on what tasks wait.

use crate::trace::{Call, CallKind, Event, EventKind, Observer, PrevState, WakeContext};
use crate::{Nanos, TaskId, Time};
use std::collections::HashMap;

/// Counts wakings by the object of the waker's call, and sleeps by the object of the sleeper's.
/// Object 0 is none. Only recordings with calls name objects.
#[derive(Clone, Debug, Default)]
pub struct ObjectGraph {
    /// What each CPU runs.
    running: Vec<TaskId>,
    /// By task: on what it sleeps, and since when.
    asleep: Vec<Option<(u32, Time)>>,
    /// The object of the call in which the next event happens.
    within: Option<(TaskId, u32)>,
    wakes: HashMap<(u32, TaskId, TaskId), u64>,
    waits: HashMap<u32, Waits>,
}

/// The wakings of one task by another, through one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectEdge {
    /// The object of the waker's call.
    pub object: u32,
    /// The waking task.
    pub waker: TaskId,
    /// The woken task.
    pub wakee: TaskId,
    /// How often.
    pub count: u64,
}

/// The sleeps in calls about one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// How many have ended.
    pub count: u64,
    /// How long all of them were, from leaving the CPU to the waking.
    pub slept: Nanos,
}

impl ObjectGraph {
    /// A graph without edges.
    pub fn new() -> ObjectGraph {
        ObjectGraph::default()
    }

    /// How many pairs of tasks and objects there are.
    pub fn len(&self) -> usize {
        self.wakes.len()
    }

    /// Whether no task has woken another in a call about an object.
    pub fn is_empty(&self) -> bool {
        self.wakes.is_empty()
    }

    /// The `k` edges with the highest counts, highest first, equals in order of object and tasks.
    pub fn strongest(&self, k: usize) -> Vec<ObjectEdge> {
        let edge = |(&(object, waker, wakee), &count): (&(u32, TaskId, TaskId), &u64)| ObjectEdge {
            object,
            waker,
            wakee,
            count,
        };
        let mut edges: Vec<ObjectEdge> = self.wakes.iter().map(edge).collect();
        edges.sort_unstable_by_key(|edge| {
            (std::cmp::Reverse(edge.count), edge.object, edge.waker, edge.wakee)
        });
        edges.truncate(k);
        edges
    }

    /// The `k` objects on which tasks slept longest, longest first.
    pub fn longest(&self, k: usize) -> Vec<(u32, Waits)> {
        let mut all: Vec<(u32, Waits)> =
            self.waits.iter().map(|(&object, &waits)| (object, waits)).collect();
        all.sort_unstable_by_key(|(object, waits)| (std::cmp::Reverse(waits.slept), *object));
        all.truncate(k);
        all
    }

    fn object_of(&mut self, task: TaskId) -> u32 {
        self.within.take().filter(|(of, _)| *of == task).map_or(0, |(_, object)| object)
    }

    fn switch(&mut self, event: &Event, prev: TaskId, next: TaskId, state: PrevState) {
        let object = self.object_of(prev);
        if state == PrevState::Blocked && prev != TaskId::NONE {
            if prev.index() >= self.asleep.len() {
                self.asleep.resize(prev.index() + 1, None);
            }
            self.asleep[prev.index()] = Some((object, event.time));
        }
        if event.cpu.index() >= self.running.len() {
            self.running.resize(event.cpu.index() + 1, TaskId::NONE);
        }
        self.running[event.cpu.index()] = next;
    }

    fn waking(&mut self, event: &Event, task: TaskId, context: WakeContext) {
        let by_task = matches!(context, WakeContext::Task | WakeContext::Unknown);
        let running = self.running.get(event.cpu.index()).copied().unwrap_or(TaskId::NONE);
        let object = self.object_of(running);
        if let Some((on, since)) = self.asleep.get_mut(task.index()).and_then(Option::take) {
            let waits = self.waits.entry(on).or_default();
            waits.count += 1;
            waits.slept += event.time.since(since);
        }
        if by_task && object > 0 {
            *self.wakes.entry((object, running, task)).or_default() += 1;
        }
    }
}

impl Observer for ObjectGraph {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    self.switch(event, prev, next, prev_state);
                }
                EventKind::SchedWaking { task, context, .. } => self.waking(event, task, context),
                _ => {}
            }
        }
    }

    fn hears_calls(&self) -> bool {
        true
    }

    fn call(&mut self, call: &Call) {
        if let CallKind::Within { object, .. } = call.kind {
            self.within = Some((call.task, object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    #[test]
    fn wakings_and_sleeps_are_counted_by_object() {
        let mut graph = ObjectGraph::new();
        let (one, other) = (TaskId(0), TaskId(1));
        let event = |time, kind| Event { time: Time(time), cpu: CpuId(0), kind };
        let within = |time, task, object| Call {
            time: Time(time),
            cpu: CpuId(0),
            task,
            kind: CallKind::Within { object, channel: object },
        };
        let switch = |prev, next, prev_state| EventKind::SchedSwitch { prev, next, prev_state };
        for round in 0..3 {
            let now = round * 100;
            graph.call(&within(now, one, 7));
            graph.events(&[event(now, switch(one, other, PrevState::Blocked))]);
            graph.call(&within(now + 10, other, 7));
            let context = WakeContext::Task;
            let waking = EventKind::SchedWaking { task: one, target: CpuId(0), context };
            graph.events(&[
                event(now + 10, waking),
                event(now + 20, switch(other, one, PrevState::Runnable)),
            ]);
        }
        let edge = ObjectEdge { object: 7, waker: other, wakee: one, count: 3 };
        assert_eq!(graph.strongest(9), [edge]);
        assert_eq!(graph.longest(9), [(7, Waits { count: 3, slept: Nanos(30) })]);
    }

    #[test]
    fn a_waking_in_another_tasks_call_names_no_object() {
        let mut graph = ObjectGraph::new();
        graph.call(&Call {
            time: Time(1),
            cpu: CpuId(0),
            task: TaskId(5),
            kind: CallKind::Within { object: 7, channel: 7 },
        });
        let (target, context) = (CpuId(0), WakeContext::Task);
        let kind = EventKind::SchedWaking { task: TaskId(1), target, context };
        graph.events(&[Event { time: Time(2), cpu: CpuId(0), kind }]);
        assert!(graph.is_empty());
    }
}
