//! The busy periods of one CPU, in a stream of events.
//!
//! Who is ready follows from the events. A task that is first seen when it gets the CPU was ready
//! since the trace began, as nothing woke it since. Whatever contradicts itself is a [`Fault`].

use schedsim::trace::{Event, EventKind, Observer, PrevState};
use schedsim::{CpuId, Nanos, TaskId, Time};
use std::mem;

/// The most lines and tasks of a history (conformance/README.md).
const MAX_LINES: usize = 1_000_000;
const MAX_TASKS: usize = 4096;

/// What was written, and what is left out of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// From the first event of the history to its last.
    pub length: Nanos,
    /// Shorter busy periods.
    pub periods: u64,
    /// How many of them have a CPU that idles though a task is ready.
    pub idle: u64,
    /// The history ends before its busy period does, at the most lines or tasks that it may have.
    pub is_cut: bool,
}

/// What happened in a busy period.
pub(super) struct Period {
    /// When it began in the trace.
    pub begins: Time,
    /// The clock of its beginning: ns in which no real-time task ran.
    pub clock: u64,
    /// Its tasks, in the order in which they are seen, and whether each was ready since the trace
    /// began.
    pub tasks: Vec<(TaskId, bool)>,
    /// Who ran when the trace began, if it began in this period; the idle task may have.
    pub ran: Option<TaskId>,
    pub entries: Vec<Entry>,
    /// The CPU idles in it though a task is ready.
    is_idle: bool,
    is_cut: bool,
}

/// An event of a history.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The clock.
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Wake(TaskId),
    New(TaskId),
    Block,
    Exit,
    Pick(TaskId),
}

impl Period {
    fn new(begins: Time, clock: u64) -> Period {
        let (tasks, entries) = (Vec::new(), Vec::new());
        Period { begins, clock, tasks, ran: None, entries, is_idle: false, is_cut: false }
    }

    /// Its length by the clock, in ns.
    pub fn length(&self) -> u64 {
        self.entries.last().map_or(0, |last| last.at - self.clock)
    }

    /// The tasks that were ready since the trace began.
    pub fn waited(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().filter(|(_, waited)| *waited).map(|(task, _)| *task)
    }
}

/// Why a trace is no history of its CPU.
pub(super) struct Fault {
    at: Time,
    task: TaskId,
    why: &'static str,
}

impl Fault {
    /// The fault in words; `name` names a task.
    pub fn sentence(&self, name: impl Fn(TaskId) -> String) -> String {
        let at = Nanos(self.at.0);
        match self.task {
            TaskId::NONE => format!("at {at} {}", self.why),
            task => format!("at {at} {} {}", name(task), self.why),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Unknown,
    Sleeps,
    Ready,
    Ended,
}

/// Finds the busy periods of a CPU, and keeps the longest.
pub(super) struct Periods {
    cpu: CpuId,
    /// By task: whether it is of a fair class.
    fair: Vec<bool>,
    lives: Vec<Life>,
    /// By task: seen on another CPU, on this one.
    places: Vec<[bool; 2]>,
    /// By task: inherits a priority at some time.
    inherits: Vec<bool>,
    /// By task: the latest period that has it, counted from 1.
    seen: Vec<u64>,
    ready: usize,
    /// Who runs, once that is known.
    running: Option<TaskId>,
    latest: Time,
    clock: u64,
    /// The present period.
    period: Option<Period>,
    /// No period has ended yet.
    is_first: bool,
    longest: Option<Period>,
    left: Written,
    fault: Option<Fault>,
}

impl Periods {
    pub fn new(cpu: CpuId, fair: Vec<bool>) -> Periods {
        Periods {
            cpu,
            lives: vec![Life::Unknown; fair.len()],
            places: vec![[false; 2]; fair.len()],
            inherits: vec![false; fair.len()],
            seen: vec![0; fair.len()],
            fair,
            ready: 0,
            running: None,
            latest: Time::ZERO,
            clock: 0,
            period: Some(Period::new(Time::ZERO, 0)),
            is_first: true,
            longest: None,
            left: Written::default(),
            fault: None,
        }
    }

    /// The longest period, and what is left out of it.
    pub fn finish(mut self) -> Result<(Period, Written), Fault> {
        self.end_period();
        let none = Fault {
            at: self.latest,
            task: TaskId::NONE,
            why: "the trace ends, and no fair task has run on this CPU; give a CPU that was busy",
        };
        match (self.fault, self.longest) {
            (Some(fault), _) => Err(fault),
            (None, None) => Err(none),
            (None, Some(longest)) => {
                let inherits = |task: &TaskId| self.inherits[task.index()];
                if let Some(task) = longest.tasks.iter().map(|(task, _)| *task).find(inherits) {
                    let why = "inherits a priority, so its weight is not known; choose another \
                               part with --window";
                    return Err(Fault { at: longest.begins, task, why });
                }
                self.left.periods -= 1;
                self.left.idle -= u64::from(longest.is_idle);
                self.left.is_cut = longest.is_cut;
                self.left.length = Nanos(longest.length());
                Ok((longest, self.left))
            }
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), (TaskId, &'static str)> {
        let here = self.cpu;
        let is_here = |cpu: CpuId| cpu == here;
        if !self.running.is_some_and(|task| task != TaskId::NONE && !self.is_fair(task)) {
            self.clock += event.time.0.saturating_sub(self.latest.0);
        }
        self.latest = event.time;
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                for task in [prev, next] {
                    self.see(task, is_here(event.cpu))?;
                }
                if is_here(event.cpu) { self.switch(prev, next, prev_state) } else { Ok(()) }
            }
            EventKind::SchedWaking { task, target, .. }
            | EventKind::SchedWakeup { task, target } => {
                self.see(task, is_here(target))?;
                if is_here(target) { self.wake(task, What::Wake(task)) } else { Ok(()) }
            }
            EventKind::SchedWakeupNew { task, target } => {
                self.see(task, is_here(target))?;
                if is_here(target) { self.wake(task, What::New(task)) } else { Ok(()) }
            }
            EventKind::SchedMigrateTask { task, from, to }
                if is_here(from) != is_here(to) && self.is_fair(task) =>
            {
                Err((task, "moves to or from this CPU; bind the tasks to it (taskset)"))
            }
            EventKind::SchedPiSetprio { task, .. } => {
                if let Some(inherits) = self.inherits.get_mut(task.index()) {
                    *inherits = true;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn switch(
        &mut self,
        prev: TaskId,
        next: TaskId,
        state: PrevState,
    ) -> Result<(), (TaskId, &'static str)> {
        if prev == TaskId::NONE && next == TaskId::NONE {
            return Ok(());
        }
        match self.running {
            None => self.begin(prev),
            Some(running) if running != prev => {
                return Err((
                    prev,
                    "stops, but was not seen to run; its events were lost or left out",
                ));
            }
            Some(_) => {}
        }
        if self.is_fair(prev) && state != PrevState::Runnable {
            let (life, what) = match state {
                PrevState::Dead => (Life::Ended, What::Exit),
                _ => (Life::Sleeps, What::Block),
            };
            self.lives[prev.index()] = life;
            self.ready -= 1;
            self.add(what, TaskId::NONE);
        }
        self.running = Some(next);
        if next == TaskId::NONE {
            let has_entries = self.period.as_ref().is_some_and(|period| {
                !period.entries.is_empty() || period.ran.is_some_and(|ran| ran != TaskId::NONE)
            });
            if prev != TaskId::NONE && has_entries {
                self.add(What::Pick(next), TaskId::NONE);
            }
            if let Some(period) = self.period.as_mut().filter(|_| self.ready > 0) {
                period.is_idle = true;
            } else {
                self.end_period();
            }
            return Ok(());
        }
        if !self.is_fair(next) {
            return Ok(());
        }
        match self.lives[next.index()] {
            Life::Ready => {}
            Life::Unknown if self.is_first => {
                self.ready += 1;
                self.waited(next);
            }
            Life::Unknown => {
                return Err((
                    next,
                    "runs and was not woken before, though the CPU had idled since \
                                   the trace began; record sched_waking, too",
                ));
            }
            Life::Sleeps | Life::Ended => {
                return Err((
                    next,
                    "runs though it sleeps or has ended: its waking was not \
                                   recorded; record sched_waking, too",
                ));
            }
        }
        self.lives[next.index()] = Life::Ready;
        self.add(What::Pick(next), next);
        Ok(())
    }

    /// `prev` ran when the trace began.
    fn begin(&mut self, prev: TaskId) {
        let is_fair = self.is_fair(prev);
        let Some(period) = self.period.as_mut().filter(|_| prev != TaskId::NONE) else { return };
        if !is_fair {
            // The clock stood.
            self.clock = 0;
            period.clock = 0;
            period.entries.iter_mut().for_each(|entry| entry.at = 0);
            return;
        }
        // A running task that is woken had not slept yet.
        period.entries.retain(|entry| ![What::Wake(prev), What::New(prev)].contains(&entry.what));
        if mem::replace(&mut self.lives[prev.index()], Life::Ready) != Life::Ready {
            self.ready += 1;
        }
        period.ran = Some(prev);
        self.waited(prev);
    }

    /// The task was ready when the trace began.
    fn waited(&mut self, task: TaskId) {
        let Some(period) = &mut self.period else { return };
        if let Some((_, waited)) = period.tasks.iter_mut().find(|(known, _)| *known == task) {
            *waited = true;
        } else if period.tasks.len() < MAX_TASKS {
            self.seen[task.index()] = self.left.periods + 1;
            period.tasks.push((task, true));
        } else {
            period.is_cut = true;
        }
    }

    fn wake(&mut self, task: TaskId, what: What) -> Result<(), (TaskId, &'static str)> {
        if !self.is_fair(task) {
            return Ok(());
        }
        let what = match self.lives[task.index()] {
            Life::Ready => return Ok(()),
            Life::Ended => return Err((task, "wakes though it has ended; its events were lost")),
            Life::Sleeps => What::Wake(task),
            Life::Unknown => what,
        };
        self.lives[task.index()] = Life::Ready;
        self.ready += 1;
        self.add(what, task);
        Ok(())
    }

    /// The next entry of the period, about `task` unless it is the idle task.
    fn add(&mut self, what: What, task: TaskId) {
        let (begins, clock) = (self.latest, self.clock);
        let period = self.period.get_or_insert_with(|| Period::new(begins, clock));
        if self.is_first && period.entries.is_empty() && period.ran.is_none() {
            // Nobody was seen before this.
            (period.begins, period.clock) = (begins, clock);
        }
        let number = self.left.periods + 1;
        let is_new = self.seen.get(task.index()).is_some_and(|&seen| seen != number);
        // The header, `reset`, `task` and `wake` lines, and the first `pick`.
        let lines = period.entries.len() + 2 * period.tasks.len() + 8;
        if period.is_cut || lines > MAX_LINES || is_new && period.tasks.len() == MAX_TASKS {
            period.is_cut = true;
            return;
        }
        if is_new {
            self.seen[task.index()] = number;
            period.tasks.push((task, false));
        }
        period.entries.push(Entry { at: clock, what });
    }

    /// The CPU idles, and no task is ready.
    fn end_period(&mut self) {
        self.is_first = false;
        let Some(period) = self.period.take().filter(|period| !period.entries.is_empty()) else {
            return;
        };
        self.left.periods += 1;
        self.left.idle += u64::from(period.is_idle);
        if self.longest.as_ref().is_none_or(|longest| longest.length() < period.length()) {
            self.longest = Some(period);
        }
    }

    /// The task is on this CPU, or on another one.
    fn see(&mut self, task: TaskId, here: bool) -> Result<(), (TaskId, &'static str)> {
        if task != TaskId::NONE && task.index() >= self.fair.len() {
            return Err((task, "is not in the trace's list of tasks; write the trace again"));
        }
        if !self.is_fair(task) {
            return Ok(());
        }
        let places = &mut self.places[task.index()];
        places[usize::from(here)] = true;
        match places {
            [true, true] => {
                Err((task, "is on this CPU and on another one; bind the tasks to it (taskset)"))
            }
            _ => Ok(()),
        }
    }

    fn is_fair(&self, task: TaskId) -> bool {
        self.fair.get(task.index()).copied().unwrap_or(false)
    }
}

impl Observer for Periods {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            if self.fault.is_none()
                && let Err((task, why)) = self.event(event)
            {
                self.fault = Some(Fault { at: event.time, task, why });
            }
        }
    }
}
