//! What became of each task in a recorded job: when it ran, and how long it waited to run.

use schedsim::trace::{Event, EventKind, PrevState};
use schedsim::{CpuId, TaskId};
use std::collections::BTreeMap;

/// A task was runnable and did not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The task of the recording.
    pub task: TaskId,
    /// When it became runnable, or stopped running and stayed runnable, on the clock.
    pub since: u64,
    /// When it ran, or the end of the recording.
    pub until: u64,
}

/// A task ran, or with [`TaskId::NONE`] a CPU idled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The task of the recording.
    pub task: TaskId,
    /// The CPU.
    pub cpu: CpuId,
    /// The begin on the clock.
    pub from: u64,
    /// The end on the clock.
    pub to: u64,
}

/// All waits and runs of a recording, in the order in which they end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Course {
    /// The waits.
    pub waits: Vec<Wait>,
    /// The runs, of idle CPUs too.
    pub runs: Vec<Run>,
    /// The clock at the last event.
    pub end: u64,
}

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits { since: u64 },
    Runs,
    Sleeps,
}

impl Course {
    /// Of the events of a machine with `cpus` CPUs, the first of them at `zero` on the clock. A CPU
    /// without a switch idles: no task of the job has come to run there.
    pub fn of(events: &[Event], zero: u64, cpus: u16) -> Course {
        let mut states: BTreeMap<TaskId, State> = BTreeMap::new();
        let mut current: BTreeMap<CpuId, (TaskId, u64)> = BTreeMap::new();
        let mut course = Course { end: zero, ..Course::default() };
        for event in events {
            let now = zero + event.time.0;
            course.end = now;
            match event.kind {
                EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                    let state = states.entry(task).or_insert(State::Sleeps);
                    if *state == State::Sleeps {
                        *state = State::Waits { since: now };
                    }
                }
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    let (task, from) =
                        current.insert(event.cpu, (next, now)).unwrap_or((prev, zero));
                    course.runs.push(Run { task, cpu: event.cpu, from, to: now });
                    let stays = prev_state == PrevState::Runnable;
                    let left = if stays { State::Waits { since: now } } else { State::Sleeps };
                    states.insert(prev, left);
                    let before = states.insert(next, State::Runs);
                    if let Some(State::Waits { since }) = before {
                        course.waits.push(Wait { task: next, since, until: now });
                    }
                }
                _ => {}
            }
        }
        let end = course.end;
        for cpu in (0..cpus).map(CpuId) {
            let (task, from) = current.get(&cpu).copied().unwrap_or((TaskId::NONE, zero));
            course.runs.push(Run { task, cpu, from, to: end });
        }
        let left = states.iter().filter_map(|(&task, state)| match state {
            State::Waits { since } => Some(Wait { task, since: *since, until: end }),
            _ => None,
        });
        course.waits.extend(left);
        course.waits.retain(|wait| wait.task != TaskId::NONE);
        course
    }

    /// The longest wait among tasks for which `counts` holds.
    pub fn longest_wait(&self, counts: impl Fn(TaskId) -> bool) -> Option<Wait> {
        let waits = self.waits.iter().filter(|wait| counts(wait.task));
        waits.copied().max_by_key(|wait| wait.until - wait.since)
    }

    /// For how long a CPU idled beside a waiting task for which `counts` holds. These are the
    /// longest time without a pause, and the sum over all CPUs.
    pub fn wasted(&self, counts: impl Fn(TaskId) -> bool) -> (u64, u64) {
        let (mut longest, mut sum) = (0, 0);
        for idle in self.runs.iter().filter(|run| run.task == TaskId::NONE) {
            let waits = self.waits.iter().filter(|wait| counts(wait.task));
            let mut spans: Vec<(u64, u64)> = waits
                .map(|wait| (wait.since.max(idle.from), wait.until.min(idle.to)))
                .filter(|(from, to)| from < to)
                .collect();
            spans.sort_unstable();
            let mut open: Option<(u64, u64)> = None;
            for (from, to) in spans.into_iter().chain([(u64::MAX, u64::MAX)]) {
                open = match open {
                    Some((begin, end)) if from <= end => Some((begin, end.max(to))),
                    Some((begin, end)) => {
                        (longest, sum) = (longest.max(end - begin), sum + (end - begin));
                        Some((from, to))
                    }
                    None => Some((from, to)),
                };
            }
        }
        (longest, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Time;
    use schedsim::trace::WakeContext;

    fn switch(time: u64, cpu: u16, prev: TaskId, next: TaskId, prev_state: PrevState) -> Event {
        let kind = EventKind::SchedSwitch { prev, next, prev_state };
        Event { time: Time(time), cpu: CpuId(cpu), kind }
    }

    fn waking(time: u64, task: TaskId) -> Event {
        let context = WakeContext::Hardirq;
        let kind = EventKind::SchedWaking { task, target: CpuId(0), context };
        Event { time: Time(time), cpu: CpuId(0), kind }
    }

    /// Task 1 wakes at 10, runs from 30 to 50 and waits again. Task 2 wakes at 20, is sent to CPU 0
    /// at 50 and runs on. CPU 1 idles all the time.
    #[test]
    fn waits_and_idle_cpus_beside_them_are_found() {
        let (one, two, idle) = (TaskId(1), TaskId(2), TaskId::NONE);
        let events = [
            waking(10, one),
            waking(20, two),
            switch(30, 0, idle, one, PrevState::Runnable),
            switch(50, 0, one, two, PrevState::Runnable),
            switch(90, 0, two, one, PrevState::Blocked),
        ];
        let course = Course::of(&events, 1000, 2);
        let wait = |task, since, until| Wait { task, since, until };
        assert_eq!(
            course.waits,
            [wait(one, 1010, 1030), wait(two, 1020, 1050), wait(one, 1050, 1090)]
        );
        assert_eq!(course.longest_wait(|_| true), Some(wait(one, 1050, 1090)));
        assert_eq!(course.longest_wait(|task| task == two), Some(wait(two, 1020, 1050)));
        // CPU 0 idled beside task 1 from 10 to 30, CPU 1 beside either from 10 to 90.
        assert_eq!(course.wasted(|_| true), (80, 100));
        assert_eq!(course.wasted(|task| task == two), (30, 40));
        assert_eq!(course.wasted(|_| false), (0, 0));
    }

    #[test]
    fn who_never_runs_waits_until_the_end() {
        let (one, two) = (TaskId(1), TaskId(2));
        let events = [
            waking(10, one),
            waking(20, two),
            switch(30, 0, TaskId::NONE, two, PrevState::Runnable),
            switch(500, 0, two, TaskId::NONE, PrevState::Blocked),
        ];
        let longest = Course::of(&events, 0, 1).longest_wait(|_| true);
        assert_eq!(longest, Some(Wait { task: one, since: 10, until: 500 }));
    }
}
