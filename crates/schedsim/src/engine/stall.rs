//! A replay that cannot go on: who waits for whom.

use crate::workload::{Action, Workload};
use crate::{Nanos, TaskId, Time};
use std::collections::BTreeMap;
use std::fmt;

/// Tasks that wait for tokens which nobody will give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When time stood still.
    pub time: Time,
    /// How many tasks wait with work left.
    pub waiting: usize,
    /// Tasks each of which waits for the next, the last for the first; or a single task for which nobody has a token left.
    pub cycle: Vec<(TaskId, String)>,
}

impl Stall {
    /// Explains why `waiting` (tasks and the next step of their scripts) wait for ever.
    pub(super) fn new(workload: &Workload, time: Time, waiting: &[(TaskId, u32)]) -> Stall {
        // For each task, who among the waiting could still wake it.
        let mut wakers: BTreeMap<TaskId, TaskId> = BTreeMap::new();
        for &(waker, cursor) in waiting {
            for step in workload.tasks[waker.index()].script.steps_from(cursor) {
                if let Action::Wake(task) = step.then {
                    wakers.entry(task).or_insert(waker);
                }
            }
        }
        let mut path = vec![waiting[0].0];
        let cycle = loop {
            let Some(&waker) = path.last().and_then(|task| wakers.get(task)) else {
                break path.split_off(path.len() - 1);
            };
            if let Some(first) = path.iter().position(|&task| task == waker) {
                break path.split_off(first);
            }
            path.push(waker);
        };
        let name = |task: TaskId| (task, workload.tasks[task.index()].info.name.clone());
        Stall { time, waiting: waiting.len(), cycle: cycle.into_iter().map(name).collect() }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the workload stalls at {}: {} tasks wait for ever; ", Nanos(self.time.0), self.waiting)?;
        match &self.cycle[..] {
            [(task, name)] => write!(f, "task {} ({name}) waits for a wakeup that no other task has left to give", task.0),
            tasks => {
                for (task, name) in tasks {
                    write!(f, "task {} ({name}) waits for ", task.0)?;
                }
                write!(f, "task {} again", tasks[0].0.0)
            }
        }
    }
}
