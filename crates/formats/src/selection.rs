//! A part of a trace: a span of time, some CPUs, some tasks.
//!
//! A selection is applied while the trace is read; it keeps no events. What is left is a trace of its
//! own: it begins at zero, and its tasks are those that are left. A CPU that runs a task that is left
//! out is idle.

use crate::import::Recording;
use clap::Args;
use program::{Error, no_such};
use schedsim::admission::CpuNumber;
use schedsim::trace::{Event, EventKind, Observer};
use schedsim::{CpuId, Nanos, TaskId, Time};
use std::collections::BTreeSet;
use std::str::FromStr;

/// Which part of a trace is read.
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only what happens from one time to another since the beginning: 1.5s..2s, 300ms.., ..1s
    #[arg(long, value_name = "FROM..TO")]
    pub window: Option<Window>,
    /// Only what happens on these CPUs, or moves tasks there: 0,2-3
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<CpuSet>,
    /// Only tasks with these names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub comm: Vec<String>,
}

/// A span of time since the beginning of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    from: Time,
    to: Time,
}

impl Window {
    /// From when on, and until before when.
    pub fn bounds(self) -> (Time, Time) {
        (self.from, self.to)
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        let (from, to) = text
            .split_once("..")
            .ok_or_else(|| format!("`{text}` has no `..`; say 1.5s..2s, 300ms.. or ..1s"))?;
        let time = |text: &str, missing: Time| match text {
            "" => Ok(missing),
            _ => text.parse::<Nanos>().map(|span| Time(span.0)).map_err(|error| error.to_string()),
        };
        let window = Window { from: time(from, Time::ZERO)?, to: time(to, Time::NEVER)? };
        if window.from < window.to { Ok(window) } else { Err(format!("`{text}` is empty")) }
    }
}

/// Numbers of CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuSet(BTreeSet<u16>);

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuSet, String> {
        let cpu = |text: &str| {
            let number = text.trim().parse::<u16>().ok().filter(|&cpu| CpuNumber::has(cpu));
            number.ok_or_else(|| format!("`{text}` is no CPU; say 0,2-3"))
        };
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (cpu(first)?, cpu(last)?);
            if first > last {
                return Err(format!("`{part}` is no range; say {last}-{first}"));
            }
            cpus.extend(first..=last);
        }
        Ok(CpuSet(cpus))
    }
}

impl CpuSet {
    /// Their numbers, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied()
    }

    /// The CPU, if it is one.
    pub fn only(&self) -> Option<u16> {
        self.0.first().copied().filter(|_| self.0.len() == 1)
    }
}

impl Selection {
    /// Whether all of a trace is read.
    pub fn is_all(&self) -> bool {
        *self == Selection::default()
    }

    /// Whether the names of tasks matter, which are known at the end of a recording only.
    pub fn names_tasks(&self) -> bool {
        !self.comm.is_empty()
    }

    /// The tasks that are read, of those with these names; `None` if it is all of them.
    ///
    /// # Errors
    /// If no task has one of the names.
    pub fn tasks<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Option<Vec<bool>>, Error> {
        if !self.names_tasks() {
            return Ok(None);
        }
        if let Some(missing) =
            self.comm.iter().find(|comm| !names.clone().any(|name| name == **comm))
        {
            let all: BTreeSet<String> = names.map(str::to_string).collect();
            let all: Vec<String> = all.into_iter().collect();
            let see = "`schedlab inspect` lists the tasks.";
            return Err(Error::Usage(no_such("task", missing, &all, see)));
        }
        Ok(Some(names.map(|name| self.comm.iter().any(|comm| comm == name)).collect()))
    }
}

/// Passes on what is selected.
pub struct Selected<'a> {
    window: Window,
    cpus: Option<BTreeSet<u16>>,
    tasks: Option<Vec<bool>>,
    /// By task: its number among those that are left, once it is seen.
    numbers: Vec<Option<TaskId>>,
    /// The tasks that are left, by their new number.
    left: Vec<TaskId>,
    events: u64,
    chunk: Vec<Event>,
    observers: Vec<&'a mut dyn Observer>,
}

impl<'a> Selected<'a> {
    /// `tasks` is what [`Selection::tasks`] gives.
    pub fn new(
        selection: &Selection,
        tasks: Option<Vec<bool>>,
        observers: Vec<&'a mut dyn Observer>,
    ) -> Selected<'a> {
        Selected {
            window: selection.window.unwrap_or(Window { from: Time::ZERO, to: Time::NEVER }),
            cpus: selection.cpus.as_ref().map(|CpuSet(cpus)| cpus.clone()),
            tasks,
            numbers: Vec::new(),
            left: Vec::new(),
            events: 0,
            chunk: Vec::new(),
            observers,
        }
    }

    /// Ends the trace, whose last event is at `end`.
    ///
    /// # Errors
    /// If nothing is selected.
    pub fn finish(self, end: Time) -> Result<Part, Error> {
        if self.events == 0 {
            let reason = format!(
                "nothing is selected: no event of the {} of the trace is in the window, on these \
                 CPUs and of these tasks; give a larger part",
                Nanos(end.0)
            );
            return Err(Error::Usage(reason));
        }
        let end = end.min(self.window.to);
        Ok(Part { tasks: self.left, end: Time(end.0.saturating_sub(self.window.from.0)) })
    }

    /// What is left of an event.
    fn part(&mut self, event: &Event) -> Option<Event> {
        if !(self.window.from..=self.window.to).contains(&event.time) {
            return None;
        }
        let target = match event.kind {
            EventKind::SchedWaking { target, .. }
            | EventKind::SchedWakeup { target, .. }
            | EventKind::SchedWakeupNew { target, .. }
            | EventKind::SchedMigrateTask { to: target, .. } => target,
            _ => event.cpu,
        };
        let has = |cpu: CpuId| self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0));
        if !has(event.cpu) && !has(target) {
            return None;
        }
        let mut kind = event.kind;
        match &mut kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                let is_idle = *prev == TaskId::NONE && *next == TaskId::NONE;
                (*prev, *next) = (self.number(*prev), self.number(*next));
                // Of two tasks that are left out nothing is left.
                if !is_idle && *prev == TaskId::NONE && *next == TaskId::NONE {
                    return None;
                }
            }
            EventKind::SchedProcessFork { parent, child } => {
                *parent = self.number(*parent);
                *child = self.own(*child)?;
            }
            EventKind::ContentionBegin { task, owner, .. } => {
                *task = self.own(*task)?;
                *owner = self.number(*owner);
            }
            EventKind::SchedWaking { task, .. }
            | EventKind::SchedWakeup { task, .. }
            | EventKind::SchedWakeupNew { task, .. }
            | EventKind::SchedProcessExec { task }
            | EventKind::SchedProcessExit { task }
            | EventKind::SchedMigrateTask { task, .. }
            | EventKind::SchedPiSetprio { task, .. }
            | EventKind::JobRelease { task }
            | EventKind::JobComplete { task, .. } => *task = self.own(*task)?,
            EventKind::Overhead { task, .. } if *task == TaskId::NONE => {}
            EventKind::Overhead { task, .. } => *task = self.own(*task)?,
        }
        let time = Time(event.time.0.saturating_sub(self.window.from.0));
        Some(Event { time, cpu: event.cpu, kind })
    }

    /// The new number of a task; the idle task's if it is left out.
    fn number(&mut self, task: TaskId) -> TaskId {
        self.own(task).unwrap_or(TaskId::NONE)
    }

    /// The new number of a task that is left.
    fn own(&mut self, task: TaskId) -> Option<TaskId> {
        let is_left = |tasks: &Vec<bool>| tasks.get(task.index()).is_some_and(|&left| left);
        if task == TaskId::NONE || !self.tasks.as_ref().is_none_or(is_left) {
            return None;
        }
        if task.index() >= self.numbers.len() {
            self.numbers.resize(task.index().saturating_add(1), None);
        }
        let next = TaskId(u32::try_from(self.left.len()).ok()?);
        Some(*self.numbers[task.index()].get_or_insert_with(|| {
            self.left.push(task);
            next
        }))
    }
}

/// Reads a part of a recording; `read` reads all of it. Its tasks and its duration are those of the
/// part, the counts of its report those of the whole file. Calls are left out: what a task does in the
/// middle of a program is no program.
///
/// # Errors
/// If it cannot be read, or nothing is selected.
pub fn read(
    selection: &Selection,
    observers: Vec<&mut dyn Observer>,
    read: impl Fn(Vec<&mut dyn Observer>) -> Result<Recording, Error>,
) -> Result<Recording, Error> {
    if selection.is_all() {
        return read(observers);
    }
    let tasks = if selection.names_tasks() {
        selection.tasks(read(vec![])?.tasks.iter().map(|task| task.name.as_str()))?
    } else {
        None
    };
    let mut selected = Selected::new(selection, tasks, observers);
    let mut recording = read(vec![&mut selected])?;
    let events = selected.events;
    let part = selected.finish(Time(recording.duration.0))?;
    let of_part = part.tasks.iter().filter_map(|task| recording.tasks.get(task.index()).cloned());
    recording.tasks = of_part.collect();
    recording.duration = Nanos(part.end.0);
    recording.report.warnings.push(format!(
        "a part of the recording is shown, {events} events; the counts above are of the whole file"
    ));
    Ok(recording)
}

/// What is left of a trace.
pub struct Part {
    /// The numbers that its tasks had before, by their new number.
    pub tasks: Vec<TaskId>,
    /// Its end.
    pub end: Time,
}

impl Observer for Selected<'_> {
    fn events(&mut self, events: &[Event]) {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        chunk.extend(events.iter().filter_map(|event| self.part(event)));
        self.events = self.events.saturating_add(chunk.len().try_into().unwrap_or(u64::MAX));
        if !chunk.is_empty() {
            self.observers.iter_mut().for_each(|observer| observer.events(&chunk));
        }
        self.chunk = chunk;
    }
}
