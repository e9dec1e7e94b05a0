//! The laws of every ready queue: after any operations, all that can be observed equals its model.

use super::Op;
use super::models::Model;
use readyq::{Level, Node, Nodes, ReadyQueue, TaskId};
use std::fmt::Debug;

/// A queue, its model, and their common history.
#[derive(Clone)]
pub struct Pair<Q> {
    queue: Q,
    model: Box<dyn Model>,
    slab: Vec<Node>,
    levels: u16,
    /// The waiting tasks, in order of ids.
    waiting: Vec<u32>,
    /// The ids from here on were never inserted.
    fresh: u32,
    history: Vec<Op>,
}

impl<Q: ReadyQueue + Clone> Pair<Q> {
    /// Both empty, for `tasks` tasks at the levels 0 to `levels - 1`.
    pub fn new(queue: Q, model: Box<dyn Model>, tasks: usize, levels: u16) -> Self {
        Pair {
            queue,
            model,
            slab: vec![Node::NEW; tasks],
            levels,
            waiting: vec![],
            fresh: 0,
            history: vec![],
        }
    }

    /// Runs `ops`, then pops all waiting tasks. Returns where queue and model differ.
    pub fn check(mut self, ops: &[Op]) -> Result<(), String> {
        ops.iter().try_for_each(|&op| self.apply(op))?;
        while !self.waiting.is_empty() {
            self.apply(Op::Pop)?;
        }
        self.apply(Op::Pop)
    }

    /// Runs `ops`, and forgets that they were run. From here on there are `levels` levels.
    pub fn then(&mut self, ops: &[Op], levels: u16) -> Result<(), String> {
        ops.iter().try_for_each(|&op| self.apply(op))?;
        self.history.clear();
        self.levels = levels;
        Ok(())
    }

    /// Runs every sequence of up to `length` operations. Returns their number. Tasks that were
    /// never inserted are alike, so only the first of them is tried.
    pub fn check_all(&self, length: usize) -> Result<u64, String> {
        if length == 0 {
            return Ok(1);
        }
        let mut sequences = 1;
        let tasks = self.slab.len() as u32;
        let known = 0..tasks.min(self.fresh + 1);
        let inserts =
            known.flat_map(|task| (0..self.levels).map(move |level| Op::Insert(task, level)));
        let removes = self.waiting.iter().map(|&task| Op::Remove(task));
        for op in inserts.chain(removes).chain([Op::Pop]) {
            if !matches!(op, Op::Insert(task, _) if self.waiting.contains(&task)) {
                let mut next = self.clone();
                next.apply(op)?;
                sequences += next.check_all(length - 1)?;
            }
        }
        Ok(sequences)
    }

    /// Does `op` to both and compares.
    fn apply(&mut self, op: Op) -> Result<(), String> {
        self.history.push(op);
        self.step(op).map_err(|fault| format!("{fault}, after {:?}", self.history))
    }

    fn step(&mut self, op: Op) -> Result<(), String> {
        let nodes = Nodes::from_mut(&mut self.slab);
        let tasks = nodes.len() as u32;
        match op {
            Op::Insert(task, level) => {
                let (task, level) = (task % tasks, level % self.levels);
                if !self.waiting.contains(&task) {
                    self.queue.insert(nodes, TaskId(task), Level(level));
                    self.model.insert(task, level);
                    self.waiting.push(task);
                    self.fresh = self.fresh.max(task + 1);
                }
            }
            Op::Remove(task) => {
                let task = task % tasks;
                if self.waiting.contains(&task) {
                    self.queue.remove(nodes, TaskId(task));
                    self.model.remove(task);
                    self.waiting.retain(|&other| other != task);
                }
            }
            Op::Pop => {
                let peeked = self.queue.peek(nodes);
                let popped = self.queue.pop(nodes);
                same("pop", popped.map(|task| task.0), self.model.pop())?;
                same("peek before pop", peeked, popped)?;
                self.waiting.retain(|&other| Some(TaskId(other)) != popped);
            }
        }
        self.waiting.sort();
        self.look()
    }

    /// Compares everything that can be observed without a change.
    fn look(&self) -> Result<(), String> {
        let nodes = Nodes::from_ref(&self.slab);
        same("is_empty", self.queue.is_empty(), self.waiting.is_empty())?;
        let mut offered = vec![];
        let found = self.queue.find(nodes, |task| {
            offered.push(task.0);
            false
        });
        same("find, when no task is accepted", found, None)?;
        same(
            "find's first offer",
            offered.first().copied(),
            self.queue.peek(nodes).map(|task| task.0),
        )?;
        if let Some(&last) = offered.last() {
            same(
                "find, when the last offer is accepted",
                self.queue.find(nodes, |task| task.0 == last),
                Some(TaskId(last)),
            )?;
        }
        offered.sort();
        same("find's offers", &offered, &self.waiting)
    }
}

fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what}: got {got:?}, expected {expected:?}"))
    }
}
