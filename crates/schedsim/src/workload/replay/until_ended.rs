//! Ends the comparison of a replay with its recording where the recorded work is done.

use crate::trace::{Event, EventKind, Observer, PrevState};
use crate::{TaskId, Time};

/// Passes events on until the last of some tasks has ended.
///
/// A recording starts with a program and ends soon after it; daemons and kernel threads do not end.
/// In a replay they repeat their recorded pauses, each delayed by the task's wait for a CPU, and so
/// continue after the program's end. That is no work of the workload.
/// [`ReplayReport::ended`](super::ReplayReport::ended) lists the tasks that decide; if it is empty,
/// all events pass.
pub struct UntilEnded<'a> {
    observer: &'a mut dyn Observer,
    /// By task: whether the comparison waits for its end.
    awaited: Vec<bool>,
    /// The number of such tasks left.
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

    /// When the last of the tasks ended; `None` if one has not, or if there are none.
    pub fn end(&self) -> Option<Time> {
        self.end
    }

    /// Whether this event is the end of the last task.
    fn ends(&mut self, event: &Event) -> bool {
        let EventKind::SchedSwitch { prev, prev_state: PrevState::Dead, .. } = event.kind else {
            return false;
        };
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
