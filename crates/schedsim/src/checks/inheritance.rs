//! Checks priority inheritance: a mutex holder is as important as the most important task that
//! waits for it.
//!
//! Waits and wakings determine the holder: the woken task has the mutex. When time advances, the
//! check computes the priority that each task should have, over all waits until nothing changes. It
//! compares it with the last announced one. It is off where switches take time: a task keeps its
//! priority during a switch.

use super::{Finding, Rule};
use crate::trace::{Event, EventKind};
use crate::workload::Workload;
use crate::{Machine, Nanos, TaskId};
use std::collections::BTreeMap;

/// Tracks waits, holders and priorities.
#[derive(Clone, Debug)]
pub struct Inheritance {
    own: Vec<u8>,
    announced: Vec<u8>,
    /// By mutex.
    inherits: Vec<bool>,
    owners: Vec<TaskId>,
    waits: BTreeMap<TaskId, u32>,
    has_changed: bool,
}

impl Inheritance {
    /// `None` if no mutex has priority inheritance.
    pub fn new(workload: &Workload, machine: &Machine) -> Option<Inheritance> {
        let is_exact =
            machine.switch_cost + machine.lock_hold == Nanos::ZERO && machine.queue_cost.is_none();
        workload.shared.inheriting().filter(|_| is_exact)?;
        let own: Vec<u8> = workload.tasks.iter().map(|task| task.info.prio).collect();
        let inherits: Vec<bool> =
            workload.shared.mutexes.iter().map(|mutex| mutex.inherit).collect();
        let owners = vec![TaskId::NONE; inherits.len()];
        Some(Inheritance {
            announced: own.clone(),
            own,
            inherits,
            owners,
            waits: BTreeMap::new(),
            has_changed: false,
        })
    }

    pub fn event(&mut self, event: &Event) -> Option<Finding> {
        match event.kind {
            EventKind::ContentionBegin { task, owner, mutex }
                if self.inherits.get(mutex as usize) == Some(&true) =>
            {
                self.owners[mutex as usize] = owner;
                self.waits.insert(task, mutex);
                self.has_changed = true;
            }
            EventKind::SchedWaking { task, .. } => {
                if let Some(mutex) = self.waits.remove(&task) {
                    self.owners[mutex as usize] = task;
                    self.has_changed = true;
                }
            }
            EventKind::SchedPiSetprio { task, old, new } if task.index() < self.own.len() => {
                let known = std::mem::replace(&mut self.announced[task.index()], new);
                self.has_changed = true;
                return (known != old).then(|| {
                    finding(task, format!("goes from priority {old} to {new}, and had {known}"))
                });
            }
            // It never releases what it holds, so this makes no difference.
            EventKind::SchedProcessExit { task } => self
                .owners
                .iter_mut()
                .filter(|owner| **owner == task)
                .for_each(|owner| *owner = TaskId::NONE),
            _ => {}
        }
        None
    }

    /// Called when time advances.
    pub fn settle(&mut self) -> Option<Finding> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let mut due = self.own.clone();
        let mut is_stable = false;
        while !is_stable {
            is_stable = true;
            for (waiter, &mutex) in &self.waits {
                let (owner, prio) = (self.owners[mutex as usize], due[waiter.index()]);
                if owner != TaskId::NONE && prio < due[owner.index()] {
                    due[owner.index()] = prio;
                    is_stable = false;
                }
            }
        }
        let wrong = (0..due.len()).find(|&task| due[task] != self.announced[task])?;
        Some(finding(
            TaskId(wrong as u32),
            format!(
                "has priority {}, but should have {} because of the tasks that wait for it",
                self.announced[wrong], due[wrong]
            ),
        ))
    }
}

fn finding(task: TaskId, message: String) -> Finding {
    Finding { rule: Rule::Inherited, task: Some(task), cpu: None, message }
}
