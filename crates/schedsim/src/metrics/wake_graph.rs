//! The wake graph: which task wakes which, and how often.

use crate::TaskId;
use crate::trace::{Event, EventKind, Observer, WakeContext};
use std::collections::HashMap;

/// Counts the wakings from each task to each other. Memory grows with the number of distinct pairs.
#[derive(Clone, Debug, Default)]
pub struct WakeGraph {
    /// What each CPU runs.
    running: Vec<TaskId>,
    /// Hashed for access at every waking; sorted only for output.
    edges: HashMap<(TaskId, TaskId), u64>,
}

/// The wakings of one task by another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeEdge {
    /// The waking task; [`TaskId::NONE`] for interrupts and for an idle CPU.
    pub waker: TaskId,
    /// The woken task.
    pub wakee: TaskId,
    /// How often.
    pub count: u64,
}

impl WakeGraph {
    /// A graph without edges.
    pub fn new() -> WakeGraph {
        WakeGraph::default()
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// All edges, in order of waker and wakee.
    pub fn edges(&self) -> impl Iterator<Item = WakeEdge> + '_ {
        let mut edges: Vec<WakeEdge> = self
            .edges
            .iter()
            .map(|(&(waker, wakee), &count)| WakeEdge { waker, wakee, count })
            .collect();
        edges.sort_unstable_by_key(|edge| (edge.waker, edge.wakee));
        edges.into_iter()
    }

    /// The `k` edges with the highest counts, highest first, equals in order of waker and wakee.
    pub fn strongest(&self, k: usize) -> Vec<WakeEdge> {
        let mut edges: Vec<WakeEdge> = self.edges().collect();
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.count));
        edges.truncate(k);
        edges
    }
}

impl Observer for WakeGraph {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::SchedSwitch { next, .. } => {
                    if event.cpu.index() >= self.running.len() {
                        self.running.resize(event.cpu.index() + 1, TaskId::NONE);
                    }
                    self.running[event.cpu.index()] = next;
                }
                EventKind::SchedWaking { task, context, .. } => {
                    // An interrupt only borrows the CPU. Where the recording does not say, the task
                    // is assumed.
                    let waker = match context {
                        WakeContext::Task | WakeContext::Unknown => {
                            self.running.get(event.cpu.index()).copied()
                        }
                        WakeContext::Softirq | WakeContext::Hardirq => None,
                    };
                    *self.edges.entry((waker.unwrap_or(TaskId::NONE), task)).or_insert(0) += 1;
                }
                _ => {}
            }
        }
    }
}
