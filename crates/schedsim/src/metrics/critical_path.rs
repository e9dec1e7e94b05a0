//! The critical path: the chain of bursts, waits for a CPU and sleeps that a run, or the wait of a
//! task, consists of. Whatever is not on it may take longer without delaying the end.
//!
//! It is found backwards. A task that runs has done so since it got its CPU. Before, it was runnable
//! since its waking: there the chain continues with the task that woke it, whatever the sleeper
//! waited for. A sleep is on the path only if no task ended it: a timer, a device. A new task
//! continues with its parent. The pieces have no gaps, so their sum is the length exactly.

use crate::trace::{Call, CallKind, Event, EventKind, Observer, PrevState, WakeContext};
use crate::{Nanos, TaskId, Time};
use std::collections::BTreeMap;

/// The most changes of tasks' states that are kept: 200 MB.
const MOST: u64 = 6 << 20;

/// Keeps what each task did, and finds critical paths in it. Each change of a task's state takes 32
/// bytes; beyond six million there is no path.
#[derive(Clone, Debug)]
pub struct CriticalPath {
    /// What each CPU runs.
    running: Vec<TaskId>,
    /// The object of the call in which the next event happens.
    within: Option<(TaskId, u32)>,
    /// By task: what it did, in order.
    steps: Vec<Vec<Step>>,
    /// By task: whether its calls are recorded, or those of a task that it descends from.
    has_calls: Vec<bool>,
    first: Option<Time>,
    /// How many steps there are: each has its place in this order.
    count: u64,
    /// The most of them.
    most: u64,
}

/// From here on a task is in a state.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Its place in the order of all steps. Times may be equal.
    place: u64,
    time: Time,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It is new, and made by this task.
    New(TaskId),
    /// It was woken: by a task, through an object, or by neither.
    Woken(Option<(TaskId, u32)>),
    /// It is runnable, and was before.
    Preempted,
    Runs,
    /// It sleeps on an object; 0 is none.
    Sleeps(u32),
    Ended,
}

/// A piece of a critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// When it begins.
    pub start: Time,
    /// When it ends, and the next one begins.
    pub end: Time,
    /// Whose it is.
    pub task: TaskId,
    /// What the task does.
    pub doing: Doing,
}

/// What a task on a critical path does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Doing {
    /// It runs.
    Runs,
    /// It waits for a CPU. If the task of the piece before woke it: through which object, if one is
    /// known.
    WaitsForCpu(Option<u32>),
    /// It sleeps on this object, 0 if none is known, until no task wakes it.
    Sleeps(u32),
    /// It was not seen yet.
    Unseen,
}

impl Piece {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.end.since(self.start)
    }
}

impl CriticalPath {
    /// Without events.
    pub fn new() -> CriticalPath {
        CriticalPath::of_at_most(MOST)
    }

    fn of_at_most(most: u64) -> CriticalPath {
        CriticalPath {
            running: Vec::new(),
            within: None,
            steps: Vec::new(),
            has_calls: Vec::new(),
            first: None,
            count: 0,
            most,
        }
    }

    /// Whether the events were too many.
    fn is_over(&self) -> bool {
        self.count > self.most
    }

    /// Why there is no path, if the events were too many.
    pub fn refusal(&self) -> Option<String> {
        self.is_over().then(|| {
            format!(
                "tasks change their states more than {} times, which takes too much memory; give a \
                 part: --window FROM..TO",
                self.most
            )
        })
    }

    /// The path that ends with the last end of a task, in order of time; empty if none ends.
    ///
    /// If calls are recorded, only the tasks that make them, and their descendants, have an end.
    /// The path begins where the first of them does. Else it begins with the first event.
    pub fn of_run(&self) -> Vec<Piece> {
        if self.is_over() {
            return Vec::new();
        }
        let tasks = || (0..).zip(&self.steps).filter(|(task, _)| self.counts(*task));
        let ends = tasks().filter_map(|(task, steps)| {
            let last = steps.last().filter(|last| last.state == State::Ended)?;
            Some((last.place, last.time, TaskId(task)))
        });
        let Some((place, end, task)) = ends.max() else { return Vec::new() };
        let first = tasks().filter_map(|(_, steps)| steps.first()).map(|step| step.time).min();
        let begin = if self.has_calls.contains(&true) { first } else { self.first };
        self.walk(task, place, end, begin.unwrap_or(end))
    }

    /// The path of the longest wait of a task: from where it begins to sleep to where it runs again.
    /// Only sleeps that a task ended count. Empty if there is none.
    pub fn of_longest_wait(&self, task: TaskId) -> Vec<Piece> {
        let steps = self.steps.get(task.index()).map_or(&[][..], Vec::as_slice);
        let wait = |steps: &[Step]| match steps {
            [begin, woken, runs]
                if matches!(
                    (begin.state, woken.state, runs.state),
                    (State::Sleeps(_), State::Woken(Some(_)), State::Runs)
                ) =>
            {
                Some((runs.time.since(begin.time), begin.time, *runs))
            }
            _ => None,
        };
        let longest = steps.windows(3).filter_map(wait).max_by_key(|(length, ..)| *length);
        longest.map_or(Vec::new(), |(_, begin, runs)| self.walk(task, runs.place, runs.time, begin))
    }

    /// Backwards from `end`, where the task enters the step at `place`.
    fn walk(&self, mut task: TaskId, place: u64, end: Time, begin: Time) -> Vec<Piece> {
        let (mut pieces, mut place, mut end) = (Vec::new(), place, end);
        // Places only fall, so the walk ends.
        while end > begin {
            let steps = self.steps.get(task.index()).map_or(&[][..], Vec::as_slice);
            let before = steps.partition_point(|step| step.place < place);
            let step = before.checked_sub(1).map(|at| steps[at]);
            let start = step.map_or(begin, |step| step.time.max(begin));
            let doing = match step.map(|step| step.state) {
                None | Some(State::Ended) => Doing::Unseen,
                Some(State::Runs) => Doing::Runs,
                Some(State::Preempted | State::New(_) | State::Woken(None)) => {
                    Doing::WaitsForCpu(None)
                }
                Some(State::Woken(Some((_, object)))) => {
                    Doing::WaitsForCpu((object > 0).then_some(object))
                }
                Some(State::Sleeps(object)) => Doing::Sleeps(object),
            };
            if end > start || matches!(doing, Doing::WaitsForCpu(Some(_))) {
                pieces.push(Piece { start, end, task, doing });
            }
            let Some(step) = step else { break };
            (place, end) = (step.place, start);
            match step.state {
                State::Woken(Some((by, _))) => task = by,
                State::New(by) if by != TaskId::NONE => task = by,
                _ => {}
            }
        }
        pieces.reverse();
        pieces
    }

    fn counts(&self, task: u32) -> bool {
        !self.has_calls.contains(&true)
            || self.has_calls.get(task as usize).copied().unwrap_or_default()
    }

    fn make_room(&mut self, task: TaskId) {
        if task.index() >= self.steps.len() {
            self.steps.resize_with(task.index() + 1, Vec::new);
            self.has_calls.resize(task.index() + 1, false);
        }
    }

    fn enter(&mut self, task: TaskId, time: Time, state: State) {
        if task == TaskId::NONE {
            return;
        }
        self.make_room(task);
        self.count += 1;
        self.steps[task.index()].push(Step { place: self.count, time, state });
    }

    fn state(&self, task: TaskId) -> Option<State> {
        self.steps.get(task.index())?.last().map(|step| step.state)
    }

    fn event(&mut self, event: &Event) {
        let (time, cpu) = (event.time, event.cpu.index());
        self.first.get_or_insert(time);
        let running = self.running.get(cpu).copied().unwrap_or(TaskId::NONE);
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let within = self.within.take().filter(|(of, _)| *of == prev);
                if self.state(prev).is_none() {
                    let first = self.first.unwrap_or(time);
                    self.enter(prev, first, State::Runs);
                }
                self.enter(
                    prev,
                    time,
                    match prev_state {
                        PrevState::Runnable => State::Preempted,
                        PrevState::Blocked => State::Sleeps(within.map_or(0, |(_, object)| object)),
                        PrevState::Dead => State::Ended,
                    },
                );
                self.enter(next, time, State::Runs);
                if cpu >= self.running.len() {
                    self.running.resize(cpu + 1, TaskId::NONE);
                }
                self.running[cpu] = next;
            }
            EventKind::SchedWaking { task, context, .. } => {
                let within = self.within.take().filter(|(of, _)| *of == running);
                // A task that is woken while it is runnable never slept.
                if matches!(self.state(task), None | Some(State::Sleeps(_))) {
                    let by_task = match context {
                        WakeContext::Task | WakeContext::Unknown => running != TaskId::NONE,
                        // What a task sends arrives in a softirq of its own call.
                        WakeContext::Softirq => within.is_some(),
                        WakeContext::Hardirq => false,
                    };
                    let by = by_task.then(|| (running, within.map_or(0, |(_, object)| object)));
                    self.enter(task, time, State::Woken(by));
                }
            }
            EventKind::SchedProcessFork { parent, child } => {
                self.enter(child, time, State::New(parent));
                let inherits = self.has_calls.get(parent.index()).copied().unwrap_or_default();
                if let Some(own) = self.has_calls.get_mut(child.index()) {
                    *own = inherits;
                }
            }
            EventKind::SchedWakeupNew { task, .. } => {
                let parent = match self.state(task) {
                    Some(State::New(parent)) => parent,
                    _ => running,
                };
                self.enter(task, time, State::New(parent));
            }
            _ => {}
        }
    }
}

impl Default for CriticalPath {
    fn default() -> Self {
        CriticalPath::new()
    }
}

impl Observer for CriticalPath {
    fn events(&mut self, chunk: &[Event]) {
        if self.is_over() {
            self.steps = Vec::new();
        } else {
            chunk.iter().for_each(|event| self.event(event));
        }
    }

    fn hears_calls(&self) -> bool {
        true
    }

    fn call(&mut self, call: &Call) {
        match call.kind {
            CallKind::Within { object, .. } => self.within = Some((call.task, object)),
            CallKind::Ends { .. } if call.task != TaskId::NONE && !self.is_over() => {
                self.make_room(call.task);
                self.has_calls[call.task.index()] = true;
            }
            _ => {}
        }
    }
}

/// The pieces of a path by task and by what it does: how long, and how many; longest first.
pub fn shares(path: &[Piece]) -> Vec<(TaskId, Doing, Nanos, u64)> {
    let mut sums: BTreeMap<(TaskId, Doing), (Nanos, u64)> = BTreeMap::new();
    for piece in path {
        let sum = sums.entry((piece.task, piece.doing)).or_default();
        *sum = (sum.0 + piece.length(), sum.1 + 1);
    }
    let mut all: Vec<_> = sums
        .into_iter()
        .map(|((task, doing), (length, count))| (task, doing, length, count))
        .collect();
    all.sort_by_key(|&(task, doing, length, _)| (std::cmp::Reverse(length), task, doing));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    #[test]
    fn too_many_steps_leave_no_path_and_take_no_memory() {
        let switch = |at: u64| Event {
            time: Time(at),
            cpu: CpuId(0),
            kind: EventKind::SchedSwitch {
                prev: TaskId((at % 2) as u32),
                next: TaskId((1 - at % 2) as u32),
                prev_state: if at == 9 { PrevState::Dead } else { PrevState::Runnable },
            },
        };
        // Two steps a switch, and the first of the first task.
        for (most, is_whole) in [(21, true), (20, false)] {
            let mut path = CriticalPath::of_at_most(most);
            (0..10).for_each(|at| path.events(&[switch(at)]));
            assert_eq!(path.refusal().is_none(), is_whole);
            assert_eq!(path.of_run().is_empty(), !is_whole);
            path.events(&[switch(10)]);
            assert!(path.refusal().is_some_and(|why| why.contains("--window")));
            path.events(&[switch(11)]);
            assert!(path.steps.is_empty() && path.of_run().is_empty());
            assert!(path.of_longest_wait(TaskId(0)).is_empty());
        }
    }
}
