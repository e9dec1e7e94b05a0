//! The specification of every ready queue, as slow and plain code.
//!
//! [`models`] contains each structure's order; [`laws`] compares a queue with its model, operation
//! by operation.
#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod laws;
pub mod models;

use readyq::{Level, Nodes, ReadyQueue, TaskId};

/// An operation on a queue. Ids and levels are taken modulo their limits, so that any sequence is
/// valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The task's slice ends or it wakes: it waits from now on, at this level. Skipped if it waits
    /// already.
    Insert(u32, u16),
    /// The next task runs.
    Pop,
    /// The task is killed or moved away. Skipped if it does not wait.
    Remove(u32),
}

/// Lets every task yield for ever and returns the order of slices: task i is at `levels[i]`, and
/// they arrive in order.
pub fn yielding<Q: ReadyQueue>(
    queue: &mut Q,
    nodes: &mut Nodes,
    levels: &[u16],
    slices: usize,
) -> Vec<u32> {
    for (task, &level) in levels.iter().enumerate() {
        queue.insert(nodes, TaskId(task as u32), Level(level));
    }
    let mut order = Vec::with_capacity(slices);
    for _ in 0..slices {
        let task = queue.pop(nodes).expect("a task that yields comes back");
        order.push(task.0);
        queue.insert(nodes, task, Level(levels[task.index()]));
    }
    order
}

/// A letter per slice: task 0 is A.
pub fn letters(order: &[u32]) -> String {
    order.iter().map(|&task| (b'A' + task as u8) as char).collect()
}

/// How many slices each task had.
pub fn counts(order: &[u32], tasks: usize) -> Vec<usize> {
    (0..tasks as u32).map(|task| order.iter().filter(|&&next| next == task).count()).collect()
}

/// A random generator for choosing operations, equal on every machine.
pub struct Lcg(pub u64);

impl Lcg {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}
