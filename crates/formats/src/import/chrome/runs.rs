//! The events behind the runs of tasks that `schedlab export` writes, and behind its instants.
//!
//! A run is written where it ends. What the file does not say follows from what comes next. A task
//! that is woken next was blocked, one that runs next was runnable. A wakeup is for the CPU on
//! which the task runs next.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use schedsim::trace::{PrevState, WakeContext};
use schedsim::{CpuId, Nanos};

use super::damaged;
use crate::import::error::{Place, Problem};
use crate::import::record::{self, NamedTask, Record, Sched};
use crate::import::recorder::Recorder;

/// The most events of a file: each takes 36 bytes of memory until all are known, 450 MB in all.
const MOST: usize = 12 << 20;

/// What a file has, as far as it is read.
#[derive(Default)]
pub(super) struct Runs {
    moments: Vec<Moment>,
    names: HashMap<u32, String>,
    /// By CPU: when the last run ended, and the place of that moment.
    last: Vec<Option<(u64, usize)>>,
    /// By task: the last moment that concerns it, as time and order.
    seen: HashMap<u32, (u64, u32)>,
    exited: HashSet<u32>,
    latest: u64,
    overlaps: u64,
    skipped: HashMap<String, u64>,
}

/// A run as written.
#[derive(Clone, Copy)]
struct Run {
    task: u32,
    start: u64,
    end: u64,
}

/// Something that happened, with its place in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    time: u64,
    /// Twice the place of the event, and one more for what follows from it.
    order: u32,
    cpu: u16,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// From a task to another one; 0 is the idle task.
    Switch {
        from: u32,
        to: u32,
    },
    Waking(u32),
    Wakeup(u32),
    WakeupNew(u32),
    Fork(u32),
    Exec(u32),
    Exit(u32),
    Migrate(u32),
}

impl What {
    fn instant(name: &str, task: u32) -> Option<Self> {
        Some(match name {
            "sched_waking" => What::Waking(task),
            "sched_wakeup" => What::Wakeup(task),
            "sched_wakeup_new" => What::WakeupNew(task),
            "sched_process_fork" => What::Fork(task),
            "sched_process_exec" => What::Exec(task),
            "sched_process_exit" => What::Exit(task),
            "sched_migrate_task" => What::Migrate(task),
            _ => return None,
        })
    }
}

/// An event as `schedlab export` writes it.
#[derive(serde::Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    ph: Cow<'a, str>,
    pid: u32,
    tid: Option<u64>,
    ts: Option<f64>,
    dur: Option<f64>,
    #[serde(borrow, default)]
    cat: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, serde::Deserialize)]
struct Arguments {
    task: Option<u64>,
}

impl Runs {
    /// Takes the next event.
    pub fn take(&mut self, json: &[u8]) -> Result<(), Problem> {
        let written =
            serde_json::from_slice(json).map_err(|error| damaged(&format!("an event: {error}")))?;
        self.event(written)
    }

    /// Takes the next event if this is one, whole; whether it is.
    pub fn takes(&mut self, json: &[u8]) -> Result<bool, Problem> {
        if is_counter(json) {
            return Ok(true);
        }
        match serde_json::from_slice(json) {
            Ok(written) => self.event(written).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn event(&mut self, written: Written<'_>) -> Result<(), Problem> {
        let Written { ph, pid, tid, ts, dur, cat, name, args } = written;
        if ph == "M" || ph == "C" || pid != 0 || !(ph == "i" || cat == "run") {
            if ph != "M" && ph != "C" {
                self.skip(&name);
            }
            return Ok(());
        }
        let lacks = |what: &str| damaged(&format!("an event has no {what}, or a wrong one"));
        let cpu = tid.and_then(record::cpu).ok_or_else(|| lacks("CPU"))?;
        let task = args.task.and_then(record::pid).filter(|&task| task > 0);
        let task = task.ok_or_else(|| lacks("task"))?;
        let time = ts.and_then(ns).ok_or_else(|| lacks("time"))?;
        if self.moments.len() >= MOST {
            return Err(Problem::Damaged(format!(
                "it has more than {MOST} events; export the trace to Perfetto's protobuf or to \
                 text, which are read as streams"
            )));
        }
        // Each place is used twice; there are fewer than 2³⁰.
        let order = u32::try_from(self.moments.len().saturating_mul(2)).unwrap_or(u32::MAX);
        if ph == "i" {
            self.pass(time)?;
            match What::instant(&name, task) {
                Some(what) => {
                    if what == What::Exit(task) {
                        self.exited.insert(task);
                    }
                    self.seen.insert(task, (time, order));
                    self.moments.push(Moment { time, order, cpu: cpu.0, what });
                }
                None => self.skip(&name),
            }
            return Ok(());
        }
        let end = dur.and_then(ns).and_then(|length| time.checked_add(length));
        let end = end.ok_or_else(|| lacks("duration"))?;
        self.pass(end)?;
        self.names.entry(task).or_insert_with(|| name.into_owned());
        self.run(cpu, Run { task, start: time, end }, order);
        Ok(())
    }

    fn skip(&mut self, name: &str) {
        match self.skipped.get_mut(name) {
            Some(count) => record::count(count),
            None => drop(self.skipped.insert(name.to_owned(), 1)),
        }
    }

    fn pass(&mut self, time: u64) -> Result<(), Problem> {
        if time < self.latest {
            let by = Nanos(self.latest.saturating_sub(time));
            return Err(Problem::TimeBackwards { by });
        }
        self.latest = time;
        Ok(())
    }

    /// The switch to the task of a run, and the one from it, which says later who came.
    fn run(&mut self, cpu: CpuId, Run { task, start, end }: Run, order: u32) {
        if cpu.index() >= self.last.len() {
            self.last.resize(cpu.index().saturating_add(1), None);
        }
        let before = self.last[cpu.index()];
        let since = before.map_or(0, |(end, _)| end);
        if start < since {
            record::count(&mut self.overlaps);
        }
        let start = start.max(since);
        match before.and_then(|(end, place)| self.moments.get_mut(place).filter(|_| end == start)) {
            Some(Moment { what: What::Switch { to, .. }, .. }) => *to = task,
            _ => {
                // After what woke the task at this time, or took it off another CPU.
                let seen = self.seen.get(&task).filter(|(time, _)| *time == start);
                let order = seen.map_or(0, |(_, order)| order.saturating_add(1));
                let what = What::Switch { from: 0, to: task };
                self.moments.push(Moment { time: start, order, cpu: cpu.0, what });
            }
        }
        self.last[cpu.index()] = Some((end, self.moments.len()));
        self.seen.insert(task, (end, order));
        let what = What::Switch { from: task, to: 0 };
        self.moments.push(Moment { time: end, order, cpu: cpu.0, what });
    }

    /// Passes on all events.
    pub fn finish(mut self, recorder: &mut Recorder<'_>) -> Result<(), (Place, Problem)> {
        self.moments.sort_unstable();
        let found = self.look_ahead();
        let Runs { moments, names, overlaps, skipped, .. } = self;
        for (name, count) in skipped {
            recorder.skip(name.as_bytes(), count);
        }
        let task = |pid: u32| {
            let name = names.get(&pid).map_or("", String::as_str);
            NamedTask { comm: name.as_bytes(), pid, prio: 120 }
        };
        let mut running: HashMap<u16, u32> = HashMap::new();
        let mut place: HashMap<u32, CpuId> = HashMap::new();
        for (moment, found) in moments.into_iter().zip(found) {
            let cpu = CpuId(moment.cpu);
            let target = CpuId(found.cpu);
            let what = match moment.what {
                What::Switch { from, to } => {
                    running.insert(moment.cpu, to);
                    place.insert(to, cpu);
                    let (prev, next) = (task(from), task(to));
                    Sched::Switch { prev, prev_state: found.state, next }
                }
                What::Waking(of) => Sched::Waking { task: task(of), target },
                What::Wakeup(of) => Sched::Wakeup { task: task(of), target },
                What::WakeupNew(of) => Sched::WakeupNew { task: task(of), target },
                What::Fork(child) => {
                    let parent = running.get(&moment.cpu).copied().unwrap_or(0);
                    Sched::Fork { parent, child, comm: task(child).comm }
                }
                What::Exec(pid) => Sched::Exec { pid, old_pid: pid },
                What::Exit(of) => Sched::Exit { task: task(of) },
                What::Migrate(of) => {
                    let from = place.insert(of, target).unwrap_or(cpu);
                    Sched::Migrate { task: task(of), from, to: target }
                }
            };
            let context = WakeContext::Unknown;
            let record = Record { time: moment.time, cpu, context, current: None, what };
            recorder.record(&record).map_err(|problem| (Place::File, problem))?;
        }
        recorder.report.is_inferred = true;
        recorder.report.warnings.push(
            "this export says neither priorities nor processes, nor what woke a task. Why a task \
             stopped, and for which CPU it was woken, follow from what it does next: one that does \
             nothing more is blocked, and one that runs at the end runnable"
                .to_owned(),
        );
        if overlaps > 0 {
            recorder.report.warnings.push(format!(
                "{overlaps} runs begin before the one before them on their CPU ends: they begin at \
                 its end"
            ));
        }
        Ok(())
    }

    /// What each moment lacks, from those after it.
    fn look_ahead(&self) -> Vec<Found> {
        /// What a task does next.
        enum Next {
            IsWoken,
            Runs,
        }
        let mut next: HashMap<u32, Next> = HashMap::new();
        let mut runs_on: HashMap<u32, u16> = HashMap::new();
        let mut found = Vec::with_capacity(self.moments.len());
        for moment in self.moments.iter().rev() {
            let mut state = PrevState::Runnable;
            let mut cpu = moment.cpu;
            match moment.what {
                What::Switch { from, to } => {
                    state = match next.get(&from) {
                        _ if from == 0 => PrevState::Runnable,
                        Some(Next::IsWoken) => PrevState::Blocked,
                        Some(Next::Runs) => PrevState::Runnable,
                        None if self.exited.contains(&from) => PrevState::Dead,
                        None if moment.time == self.latest => PrevState::Runnable,
                        None => PrevState::Blocked,
                    };
                    next.insert(to, Next::Runs);
                    runs_on.insert(to, moment.cpu);
                }
                What::Waking(of) | What::Wakeup(of) | What::WakeupNew(of) => {
                    next.insert(of, Next::IsWoken);
                    cpu = runs_on.get(&of).copied().unwrap_or(cpu);
                }
                What::Migrate(of) => cpu = runs_on.get(&of).copied().unwrap_or(cpu),
                What::Fork(_) | What::Exec(_) | What::Exit(_) => {}
            }
            found.push(Found { cpu, state });
        }
        found.reverse();
        found
    }
}

/// What a moment lacks.
struct Found {
    /// Where the task of a wakeup runs next.
    cpu: u16,
    /// Why the task stopped that a switch takes off.
    state: PrevState,
}

/// Whether this is the length of a ready queue as we write it: two fifths of a file, and nothing of it
/// is read. No other event can follow in it.
fn is_counter(json: &[u8]) -> bool {
    json.starts_with(br#"{"ph":"C","#)
        && json.ends_with(b"}}")
        && memchr::memchr_iter(b'{', json).count() == 2
        && memchr::memchr(b'\\', json).is_none()
}

/// Nanoseconds of microseconds with three decimals: exact up to 104 days.
fn ns(microseconds: f64) -> Option<u64> {
    const MOST: f64 = 9e15;
    let ns = (microseconds * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
    (0.0..=MOST).contains(&ns).then_some(ns as u64)
}
