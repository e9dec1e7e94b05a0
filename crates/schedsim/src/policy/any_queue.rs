//! A ready queue whose structure is chosen at run time.
//!
//! A type for each order under each topology would compile three dozen engines. The two most used
//! orders have their own (see `catalog`). All others use this box, which costs an indirect call per
//! operation: little beside the rest of an event.

use readyq::catalog::{self, Unavailable, Visitor};
use readyq::{Level, Nodes, ReadyQueue, Strides, TaskId};

/// Some structure of [`readyq::catalog`].
pub struct AnyQueue(Box<dyn Queue>);

impl AnyQueue {
    /// The structure called `name`, for the levels 0 to `levels - 1`.
    ///
    /// # Errors
    /// If there is no such structure, or if it cannot have this number of levels.
    pub fn new(name: &str, levels: u32, strides: Strides) -> Result<AnyQueue, Unavailable> {
        struct Boxed;
        impl Visitor for Boxed {
            type Out = AnyQueue;
            fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> AnyQueue {
                AnyQueue(Box::new(queue))
            }
        }
        catalog::visit(name, levels, strides, Boxed)
    }
}

impl Clone for AnyQueue {
    fn clone(&self) -> AnyQueue {
        AnyQueue(self.0.boxed_clone())
    }
}

impl ReadyQueue for AnyQueue {
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.insert(nodes, task, level);
    }

    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.0.pop(nodes)
    }

    fn peek(&self, nodes: &Nodes) -> Option<TaskId> {
        self.0.peek(nodes)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.0.remove(nodes, task);
    }

    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        self.0.find(nodes, &mut accept)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn block(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.0.block(nodes, task);
    }
}

/// [`ReadyQueue`] without generics.
trait Queue {
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level);
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId>;
    fn peek(&self, nodes: &Nodes) -> Option<TaskId>;
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId);
    fn find(&self, nodes: &Nodes, accept: &mut dyn FnMut(TaskId) -> bool) -> Option<TaskId>;
    fn is_empty(&self) -> bool;
    fn block(&mut self, nodes: &mut Nodes, task: TaskId);
    fn boxed_clone(&self) -> Box<dyn Queue>;
}

impl<Q: ReadyQueue + Clone + 'static> Queue for Q {
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        ReadyQueue::insert(self, nodes, task, level);
    }

    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        ReadyQueue::pop(self, nodes)
    }

    fn peek(&self, nodes: &Nodes) -> Option<TaskId> {
        ReadyQueue::peek(self, nodes)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        ReadyQueue::remove(self, nodes, task);
    }

    fn find(&self, nodes: &Nodes, accept: &mut dyn FnMut(TaskId) -> bool) -> Option<TaskId> {
        ReadyQueue::find(self, nodes, accept)
    }

    fn is_empty(&self) -> bool {
        ReadyQueue::is_empty(self)
    }

    fn block(&mut self, nodes: &mut Nodes, task: TaskId) {
        ReadyQueue::block(self, nodes, task);
    }

    fn boxed_clone(&self) -> Box<dyn Queue> {
        Box::new(self.clone())
    }
}
