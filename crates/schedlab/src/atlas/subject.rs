//! What the rig drives: a ready queue by its four verbs, or one whose running task stays linked.

use super::rig::opaque;
use readyq::{Level, Nodes, ReadyQueue, RoundRobinInPlace, RulerInPlace, TaskId};

/// Something that can end a time slice.
pub trait Subject {
    /// `task` arrives.
    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level);

    /// The slice of `running`, which has `level`, ends: who is next?
    fn next(&mut self, nodes: &mut Nodes, running: TaskId, level: Level) -> TaskId;

    /// Whose slice comes first, when all have arrived.
    fn first(&mut self, nodes: &mut Nodes) -> TaskId;

    /// What the operations examined so far.
    fn steps(&self) -> u64 {
        0
    }
}

/// A ready queue: the task that ran goes in, the next one comes out.
pub struct Queue<Q>(pub Q);

impl<Q: ReadyQueue> Subject for Queue<Q> {
    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.insert(nodes, task, level);
    }

    #[inline(always)]
    fn next(&mut self, nodes: &mut Nodes, running: TaskId, level: Level) -> TaskId {
        self.0.insert(nodes, running, level);
        self.0.pop(nodes).unwrap_or(TaskId(0))
    }

    fn first(&mut self, nodes: &mut Nodes) -> TaskId {
        self.0.pop(nodes).unwrap_or(TaskId(0))
    }

    fn steps(&self) -> u64 {
        self.0.steps()
    }
}

/// A structure in which the running task stays linked.
pub struct InPlace<Q>(pub Q);

impl Subject for InPlace<RoundRobinInPlace> {
    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, _level: Level) {
        self.0.insert(nodes, task);
    }

    #[inline(always)]
    fn next(&mut self, nodes: &mut Nodes, _running: TaskId, level: Level) -> TaskId {
        opaque(u32::from(level.0));
        self.0.rotate(nodes).unwrap_or(TaskId(0))
    }

    fn first(&mut self, nodes: &mut Nodes) -> TaskId {
        self.0.rotate(nodes).unwrap_or(TaskId(0))
    }
}

impl Subject for InPlace<RulerInPlace> {
    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.insert(nodes, task, level);
    }

    #[inline(always)]
    fn next(&mut self, nodes: &mut Nodes, _running: TaskId, level: Level) -> TaskId {
        opaque(u32::from(level.0));
        self.0.rotate(nodes).unwrap_or(TaskId(0))
    }

    fn first(&mut self, nodes: &mut Nodes) -> TaskId {
        self.0.rotate(nodes).unwrap_or(TaskId(0))
    }
}

/// No queue at all: the running task runs on. What is left is the count of slices and the look at the level of the task that ran.
pub struct EmptyLoop;

impl Subject for EmptyLoop {
    fn arrive(&mut self, _nodes: &mut Nodes, _task: TaskId, _level: Level) {}

    #[inline(always)]
    fn next(&mut self, _nodes: &mut Nodes, _running: TaskId, level: Level) -> TaskId {
        opaque(u32::from(level.0));
        TaskId(opaque(0))
    }

    fn first(&mut self, _nodes: &mut Nodes) -> TaskId {
        TaskId(0)
    }
}
