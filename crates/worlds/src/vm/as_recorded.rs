//! Rebuilds a guest's workload with its recorded bursts. Between two sleeps each task runs for as
//! long as recorded, interrupts and system calls included, and wakes others where it did. The
//! simulated policy decides which task runs next, and how long at a time.
//!
//! This comparison is finer than one with the workload as described. For a description the
//! simulator knows only the mean cost of calls. A wakeup that is a microsecond late may then fall
//! into another run, and from there on two tasks alternate in the opposite order.

use super::background_load::is_unscheduled;
use schedsim::trace::{Event, EventKind, Observer, PrevState, TaskInfo, WakeContext};
use schedsim::workload::{Recorded, ReplayBuilder, ReplayOptions, Workload};
use schedsim::{CpuId, Nanos, TaskId, Time};
use std::collections::BTreeMap;

/// The recording as a workload whose tasks have the recording's ids. It comes from the `events` of
/// a guest with these tasks on `cpus` CPUs. A switch takes `switch_cost` there, which is in no
/// burst. Tasks that no policy schedules (real-time ones, and `left_out`, by name) are
/// interruptions of others.
pub fn as_recorded(
    events: &[Event],
    tasks: &[TaskInfo],
    cpus: u16,
    switch_cost: Nanos,
    left_out: Option<&str>,
) -> Workload {
    let events = without(&as_reported(events), |task| is_unscheduled(tasks, task, left_out));
    let mut builder = ReplayBuilder::new(ReplayOptions::default());
    builder.events(&events);
    let end = events.last().map_or(Time::ZERO, |event| event.time);
    builder.finish(Recorded { tasks, cpus, end, switch_cost, recorders: &[] }).0
}

/// The events, with wakeups at the time when the policy learns of them: when they are done.
fn as_reported(events: &[Event]) -> Vec<Event> {
    let mut told = Vec::with_capacity(events.len());
    let mut begun: BTreeMap<TaskId, Event> = BTreeMap::new();
    for &event in events {
        match event.kind {
            EventKind::SchedWaking { task, .. } => _ = begun.insert(task, event),
            EventKind::SchedWakeup { task, .. } => {
                told.extend(begun.remove(&task).map(|waking| Event { time: event.time, ..waking }));
                told.push(event);
            }
            _ => told.push(event),
        }
    }
    told
}

/// The events without the interrupting tasks; a task that they interrupt counts as running.
fn without(events: &[Event], interrupts: impl Fn(TaskId) -> bool) -> Vec<Event> {
    let mut kept = Vec::new();
    // By CPU: the interrupted task, since when, and where its run would be reported.
    let mut held: BTreeMap<CpuId, (TaskId, Time, usize)> = BTreeMap::new();
    for &event in events {
        let kind = match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                match (interrupts(prev), interrupts(next)) {
                    (true, true) => None,
                    (false, true) => {
                        let goes_on = prev_state == PrevState::Runnable;
                        held.insert(
                            event.cpu,
                            (if goes_on { prev } else { TaskId::NONE }, event.time, kept.len()),
                        );
                        (!goes_on).then_some(EventKind::SchedSwitch {
                            prev,
                            next: TaskId::NONE,
                            prev_state,
                        })
                    }
                    (true, false) => {
                        let (prev, since, at) = held.remove(&event.cpu).unwrap_or((
                            TaskId::NONE,
                            event.time,
                            kept.len(),
                        ));
                        let stops = prev != TaskId::NONE && prev != next;
                        if stops {
                            // It did not continue: what interrupted it is no part of its burst.
                            let kind = EventKind::SchedSwitch {
                                prev,
                                next: TaskId::NONE,
                                prev_state: PrevState::Runnable,
                            };
                            kept.insert(at, Event { time: since, cpu: event.cpu, kind });
                            held.values_mut()
                                .filter(|(.., other)| *other > at)
                                .for_each(|(.., other)| *other += 1);
                        }
                        let prev = if stops { TaskId::NONE } else { prev };
                        (prev != next).then_some(EventKind::SchedSwitch {
                            prev,
                            next,
                            prev_state: PrevState::Runnable,
                        })
                    }
                    (false, false) => Some(event.kind),
                }
            }
            EventKind::SchedWaking { task, .. }
            | EventKind::SchedWakeup { task, .. }
            | EventKind::SchedWakeupNew { task, .. }
            | EventKind::SchedMigrateTask { task, .. }
                if interrupts(task) =>
            {
                None
            }
            EventKind::SchedWaking { task, target, .. } if held.contains_key(&event.cpu) => {
                Some(EventKind::SchedWaking { task, target, context: WakeContext::Hardirq })
            }
            kind => Some(kind),
        };
        kept.extend(kind.map(|kind| Event { kind, ..event }));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupting_task_is_left_out_and_the_interrupted_one_continues() {
        let at = |time, kind| Event { time: Time(time), cpu: CpuId(0), kind };
        let switch = |prev, next, prev_state| EventKind::SchedSwitch {
            prev: TaskId(prev),
            next: TaskId(next),
            prev_state,
        };
        let (idle, waking) = (TaskId::NONE.0, |task, context| EventKind::SchedWaking {
            task: TaskId(task),
            target: CpuId(0),
            context,
        });
        // Task 9 interrupts task 1, wakes task 2, and runs once more after task 2 has gone to
        // sleep.
        let events = [
            at(10, switch(idle, 1, PrevState::Runnable)),
            at(20, waking(9, WakeContext::Hardirq)),
            at(21, switch(1, 9, PrevState::Runnable)),
            at(22, waking(2, WakeContext::Task)),
            at(25, switch(9, 1, PrevState::Blocked)),
            at(40, switch(1, 9, PrevState::Runnable)),
            at(45, switch(9, 2, PrevState::Blocked)),
            at(60, switch(2, 9, PrevState::Blocked)),
            at(65, switch(9, 1, PrevState::Runnable)),
        ];
        let expected = [
            at(10, switch(idle, 1, PrevState::Runnable)),
            at(22, waking(2, WakeContext::Hardirq)),
            at(40, switch(1, idle, PrevState::Runnable)),
            at(45, switch(idle, 2, PrevState::Runnable)),
            at(60, switch(2, idle, PrevState::Blocked)),
            at(65, switch(idle, 1, PrevState::Runnable)),
        ];
        assert_eq!(without(&events, |task| task == TaskId(9)), expected);
    }
}
