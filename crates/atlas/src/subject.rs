//! What the rig drives: a ready queue, or one whose running task stays linked.

use super::opaque::opaque;
use readyq::{Level, Nodes, ReadyQueue, RoundRobinInPlace, RulerInPlace, TaskId};

/// A structure that can end a slice.
pub trait Subject {
    /// Removes the next task to run.
    fn take(&mut self, nodes: &mut Nodes) -> Option<TaskId>;

    /// `task`, which ran, waits again; or it arrives.
    fn put(&mut self, nodes: &mut Nodes, task: TaskId, level: Level);

    /// `task` arrives.
    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.put(nodes, task, level);
    }

    /// The number of elements that the operations examined so far.
    fn steps(&self) -> u64 {
        0
    }
}

/// A ready queue: the next task comes out, the task that ran goes in.
pub struct Queue<Q>(pub Q);

impl<Q: ReadyQueue> Subject for Queue<Q> {
    #[inline(always)]
    fn take(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.0.pop(nodes)
    }

    #[inline(always)]
    fn put(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.insert(nodes, task, level);
    }

    fn steps(&self) -> u64 {
        self.0.steps()
    }
}

/// The same subject behind calls that are not inlined, as in a scheduler that is a function. The
/// instructions do not depend on the call site.
pub struct Called<S>(pub S);

impl<S: Subject> Subject for Called<S> {
    #[inline(never)]
    fn take(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.0.take(nodes)
    }

    #[inline(never)]
    fn put(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.put(nodes, task, level);
    }

    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.arrive(nodes, task, level);
    }

    fn steps(&self) -> u64 {
        self.0.steps()
    }
}

/// A structure in which the running task stays linked.
pub struct InPlace<Q>(pub Q);

impl Subject for InPlace<RoundRobinInPlace> {
    #[inline(always)]
    fn take(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.0.rotate(nodes)
    }

    #[inline(always)]
    fn put(&mut self, _nodes: &mut Nodes, _task: TaskId, level: Level) {
        opaque(u32::from(level.0));
    }

    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, _level: Level) {
        self.0.insert(nodes, task);
    }
}

impl Subject for InPlace<RulerInPlace> {
    #[inline(always)]
    fn take(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.0.rotate(nodes)
    }

    #[inline(always)]
    fn put(&mut self, _nodes: &mut Nodes, _task: TaskId, level: Level) {
        opaque(u32::from(level.0));
    }

    fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.insert(nodes, task, level);
    }
}

/// No queue: the same task continues. What remains is the count of slices and the read of the level
/// of the task that ran.
pub struct EmptyLoop;

impl Subject for EmptyLoop {
    #[inline(always)]
    fn take(&mut self, _nodes: &mut Nodes) -> Option<TaskId> {
        Some(TaskId(opaque(0)))
    }

    #[inline(always)]
    fn put(&mut self, _nodes: &mut Nodes, _task: TaskId, level: Level) {
        opaque(u32::from(level.0));
    }
}
