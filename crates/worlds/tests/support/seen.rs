//! The events of two runs whose tasks have other numbers, held against each other.

use schedsim::TaskId;
use schedsim::trace::{Event, EventKind, Observer, TaskInfo};

/// The events of a run, with thread ids in place of task ids: those of a program have another order.
pub struct Events<'t>(pub &'t [TaskInfo], pub Vec<Seen>);

/// When, on which CPU, and what.
pub type Seen = (u64, u16, String);

impl Observer for Events<'_> {
    fn events(&mut self, chunk: &[Event]) {
        let pid = |task: TaskId| self.0.get(task.index()).map_or(0, |info| info.pid);
        for event in chunk {
            let what = match event.kind {
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    format!("switch {} {} {prev_state:?}", pid(prev), pid(next))
                }
                EventKind::SchedWaking { task, target, context } => {
                    format!("waking {} {target:?} {context:?}", pid(task))
                }
                EventKind::SchedWakeupNew { task, target } => {
                    format!("new {} {target:?}", pid(task))
                }
                EventKind::SchedProcessFork { parent, child } => {
                    format!("fork {} {}", pid(parent), pid(child))
                }
                EventKind::SchedMigrateTask { task, from, to } => {
                    format!("migrate {} {from:?} {to:?}", pid(task))
                }
                EventKind::SchedProcessExit { task } => format!("exit {}", pid(task)),
                EventKind::ContentionBegin { task, owner, .. } => {
                    format!("contention {} {}", pid(task), pid(owner))
                }
                EventKind::SchedPiSetprio { task, old, new } => {
                    format!("prio {} {old} {new}", pid(task))
                }
                EventKind::Overhead { task, kind, spent } => {
                    format!("overhead {} {kind:?} {spent}", pid(task))
                }
                other => format!("{other:?}"),
            };
            self.1.push((event.time.0, event.cpu.0, what));
        }
    }
}

/// The first event in which two runs differ, with those around it.
pub fn difference(one: &[Seen], other: &[Seen]) -> Option<String> {
    let first = one.iter().zip(other).position(|(one, other)| one != other);
    let first = first.or((one.len() != other.len()).then_some(one.len().min(other.len())))?;
    let around = |of: &[Seen]| {
        let (begin, end) = (first.saturating_sub(5), (first + 5).min(of.len()));
        of[begin.min(end)..end].iter().map(|seen| format!("{seen:?}")).collect::<Vec<_>>()
    };
    Some(format!("{:#?}, and {:#?}", around(one), around(other)))
}
