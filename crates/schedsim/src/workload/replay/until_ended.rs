//! Where a replay should be compared with its recording: both up to the point where what was recorded is done.

use crate::trace::{Event, EventKind, Observer, PrevState};
use crate::{TaskId, Time};

/// Passes events on until the last of some tasks has ended.
///
/// A recording begins with a program and ends soon after it; the daemons and kernel threads that ran beside it do not end. In a replay they repeat
/// their recorded pauses one after the other, each begun later by what the task had waited for a CPU, and so go on for a while when nothing is left
/// to be done. That is no work of the workload. [`ReplayReport::ended`](super::ReplayReport::ended) says which tasks decide; if there are
/// none, everything passes.
pub struct UntilEnded<'a> {
    observer: &'a mut dyn Observer,
    /// By task: whether its end is waited for.
    awaited: Vec<bool>,
    /// How many are.
    left: usize,
    end: Option<Time>,
}

impl<'a> UntilEnded<'a> {
    /// Passes events on to `observer` until all of `tasks` have ended.
    pub fn new(tasks: &[TaskId], observer: &'a mut dyn Observer) -> UntilEnded<'a> {
        let mut awaited = vec![false; tasks.iter().map(|task| task.index() + 1).max().unwrap_or(0)];
        tasks.iter().for_each(|task| awaited[task.index()] = true);
        let left = awaited.iter().filter(|awaited| **awaited).count();
        UntilEnded { observer, awaited, left, end: None }
    }

    /// When the last of the tasks ended; `None` if one has not, or if there were none.
    pub fn end(&self) -> Option<Time> {
        self.end
    }

    /// Whether this event is the end of the last task.
    fn ends(&mut self, event: &Event) -> bool {
        let EventKind::SchedSwitch { prev, prev_state: PrevState::Dead, .. } = event.kind else { return false };
        let awaited = self.awaited.get_mut(prev.0 as usize).is_some_and(std::mem::take);
        self.left -= usize::from(awaited);
        awaited && self.left == 0
    }
}

impl Observer for UntilEnded<'_> {
    fn events(&mut self, chunk: &[Event]) {
        if self.end.is_some() {
            return;
        }
        let last = chunk.iter().position(|event| self.ends(event));
        self.end = last.map(|last| chunk[last].time);
        self.observer.events(last.map_or(chunk, |last| &chunk[..=last]));
    }
}
