//! Reads the file of schedlab's own recorder: scheduling events and calls, in the order of the file.
//!
//! Names come in events of their own. Settings and calls are counted as skipped unless an observer
//! wants them.

mod calls;
mod causes;
mod measured;
mod settings;

use super::error::{Place, Problem};
use super::record::{self, Current, NamedTask, Record, Sched};
use super::recorder::{Lost, Recorder};
use ::recording::{Counts, Damage, Event, Machine, Outcome, Reader, What};
use schedsim::trace::{PrevState, WakeContext};
use schedsim::{CpuId, Nanos};
use settings::Settings;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

pub(super) use calls::Ended;
pub(super) use causes::Causes;

/// Reads all records into `recorder`.
pub(super) fn read(file: impl Read, recorder: &mut Recorder<'_>) -> Result<(), (Place, Problem)> {
    let mut reader = Reader::new(file).map_err(Failure::from)?;
    let machine = reader.machine().clone();
    recorder.cpus_online = cpu(u64::from(machine.cpus.saturating_sub(1)), 0)?
        .0
        .saturating_add(u16::from(machine.cpus > 0));
    if machine.start > 0 {
        recorder.begin(machine.start);
    }
    let mut causes = Causes::new(&machine.architecture, recorder);
    causes.is_simulated(machine.release == "simulated");
    recorder.report.measured = measured::lines(&machine);
    recorder.measurements = measured::numbers(&machine);
    recorder.calibrations.clone_from(&machine.conditions.calibrations);
    let cost = machine.overhead.map_or(Nanos::ZERO, |overhead| cost_of(overhead.call_ns));
    let locks = machine.overhead.and_then(|overhead| overhead.lock_ns);
    causes.cost(cost, locks.map_or(cost, cost_of));
    let mut reading = Reading {
        recorder,
        causes,
        names: HashMap::new(),
        counts: BTreeMap::new(),
        settings: Settings::default(),
    };
    let outcome = reader.try_read(|at, event| reading.take(at, event))?;
    reading.finish(&machine, outcome)?;
    Ok(())
}

/// A place and what is wrong there.
struct Failure(Place, Problem);

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Failure(damage.at().map_or(Place::File, Place::Byte), Problem::Recording(damage))
    }
}

impl From<Failure> for (Place, Problem) {
    fn from(Failure(place, problem): Failure) -> Self {
        (place, problem)
    }
}

struct Reading<'r, 'a> {
    recorder: &'r mut Recorder<'a>,
    causes: Causes,
    /// The name of each task, filled up with zeros.
    names: HashMap<u32, [u8; 16]>,
    settings: Settings,
    /// The events in the file, by kind.
    counts: BTreeMap<&'static str, u64>,
}

impl Reading<'_, '_> {
    fn take(&mut self, at: u64, event: &Event) -> Result<(), Failure> {
        record::count(self.counts.entry(event.what.name()).or_default());
        let (tid, mut current) = (pid(event.tid, at)?, None);
        let named = |task: u32, prio: u16| -> Result<NamedTask<'_>, Failure> {
            let comm = self
                .names
                .get(&task)
                .map_or(&b""[..], |name| name.split(|byte| *byte == 0).next().unwrap_or_default());
            Ok(NamedTask { comm, pid: pid(task, at)?, prio: i32::from(prio.cast_signed()) })
        };
        let on = |number: u16| cpu(u64::from(number), at);
        let what = match event.what {
            What::Switch { state, prev_prio, next, next_prio, prev_tgid, .. } => {
                current = Some(Current { tgid: pid(prev_tgid, at)?, pid: tid });
                let prev_state = match state {
                    0 => PrevState::Runnable,
                    1 => PrevState::Blocked,
                    _ => PrevState::Dead,
                };
                let (prev, next) = (named(tid, prev_prio)?, named(next, next_prio)?);
                Sched::Switch { prev, prev_state, next }
            }
            What::Waking { task, target, prio, .. } => {
                Sched::Waking { task: named(task, prio)?, target: on(target)? }
            }
            What::Wakeup { task, target, prio } => {
                Sched::Wakeup { task: named(task, prio)?, target: on(target)? }
            }
            What::WakeupNew { task, target, prio } => {
                Sched::WakeupNew { task: named(task, prio)?, target: on(target)? }
            }
            What::Fork { parent, child, number, namespace, .. } => {
                self.causes.born(parent, child, number, namespace);
                let comm = named(parent, 0)?.comm;
                Sched::Fork { parent: pid(parent, at)?, child: pid(child, at)?, comm }
            }
            What::Exec { task, old } => {
                self.causes.continues(old, task);
                Sched::Exec { pid: pid(task, at)?, old_pid: pid(old, at)? }
            }
            What::Exit { task, prio } => Sched::Exit { task: named(task, prio)? },
            What::Migrate { task, prio, from, to } => {
                Sched::Migrate { task: named(task, prio)?, from: on(from)?, to: on(to)? }
            }
            What::Task { comm, .. } => {
                self.names.insert(tid, comm);
                return Ok(());
            }
            What::Call { object, result, number, op, duration } => {
                if !self.recorder.wants_calls() {
                    self.recorder.skip(b"call", 1);
                    return Ok(());
                }
                let entered = event.time.saturating_sub(duration);
                let since = schedsim::Time::ZERO;
                let ended = Ended { tid, entered, since, object, result, number, op };
                self.causes.end(self.recorder, (event.time, on(event.cpu)?), ended);
                return Ok(());
            }
            What::Object { .. } | What::Member { .. } | What::Timer { .. }
                if self.recorder.wants_calls() =>
            {
                self.causes.take(self.recorder, tid, &event.what);
                return Ok(());
            }
            What::Setting { task, which, value } if self.recorder.wants_calls() => {
                self.recorder.report.count_cause();
                let Some(task) = self.causes.meant(tid, task) else { return Ok(()) };
                self.settings.take(on(event.cpu)?, task, which, value);
                self.settings_hold(event.time, &[task]);
                return Ok(());
            }
            _ => {
                self.recorder.skip(event.what.name().as_bytes(), 1);
                return Ok(());
            }
        };
        if let What::Switch { object, .. } | What::Waking { object, .. } = event.what {
            self.causes.within(self.recorder, (event.time, on(event.cpu)?), tid, object);
        }
        let context = match event.context {
            0 => WakeContext::Task,
            1 => WakeContext::Softirq,
            _ => WakeContext::Hardirq,
        };
        let record = Record { time: event.time, cpu: on(event.cpu)?, context, current, what };
        self.recorder.record(&record).map_err(|problem| Failure(Place::Byte(at), problem))?;
        match event.what {
            What::Switch { next, .. } => self.settings_hold(event.time, &[tid, next]),
            What::Fork { parent, .. } => self.settings_hold(event.time, &[parent]),
            _ => {}
        }
        Ok(())
    }

    /// Holds the file against the recorder's own counters.
    fn finish(self, machine: &Machine, outcome: Outcome) -> Result<(), Failure> {
        self.causes.finish(self.recorder);
        let warnings = &mut self.recorder.report.warnings;
        let counts = match outcome {
            Outcome::Complete(end) => {
                agree(&self.counts, &end.counts)?;
                Some(end.counts)
            }
            Outcome::Cut { at, counts } => {
                warnings.push(format!(
                    "the recording ends at byte {at} without its last chunk: the recorder was \
                     killed, or the file was cut; what is before is read"
                ));
                counts
            }
        };
        let Some(counts) = counts else { return Ok(()) };
        if counts.late > 0 {
            warnings.push(format!(
                "{} events came too late to be put in order and have a later time",
                counts.late
            ));
        }
        for (what, count) in &counts.unresolved {
            warnings.push(format!("{count} {what} (release {})", machine.release));
        }
        for (what, from) in &counts.shed {
            warnings.push(format!(
                "from {:.1} s on it leaves out {what}, to stay within its budget",
                *from as f64 / 1e9
            ));
        }
        self.recorder.lose(Lost::Records(counts.lost()));
        Ok(())
    }
}

/// The CPU time that recording a call took. No recorder needs a hundred microseconds.
fn cost_of(call_ns: f64) -> Nanos {
    const MOST: f64 = 100_000.0;
    let is_plausible = (0.0..MOST).contains(&call_ns);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    let cost = if is_plausible { Nanos(call_ns.round() as u64) } else { Nanos::ZERO };
    cost
}

/// Refuses a file of which the recorder counted other events than there are.
fn agree(read: &BTreeMap<&'static str, u64>, counts: &Counts) -> Result<(), Failure> {
    let damaged = |what: String| Err(Failure(Place::File, Problem::Damaged(what)));
    if let Some((kind, emitted, arrived)) = counts.disagreement() {
        return damaged(format!(
            "the kernel handed over {emitted} events of kind {kind}, and the recorder received \
             {arrived}; record it again"
        ));
    }
    for (kind, written) in &counts.written {
        let read = read.get(kind.as_str()).copied().unwrap_or(0);
        if read != *written {
            return damaged(format!(
                "the recorder wrote {written} events of kind {kind}, and the file has {read}; \
                 copy or record it again"
            ));
        }
    }
    Ok(())
}

fn pid(number: u32, at: u64) -> Result<u32, Failure> {
    record::pid(u64::from(number)).ok_or_else(|| out_of_range("task", u64::from(number), at))
}

fn cpu(number: u64, at: u64) -> Result<CpuId, Failure> {
    record::cpu(number).ok_or_else(|| out_of_range("CPU", number, at))
}

fn out_of_range(what: &str, number: u64, at: u64) -> Failure {
    let what = format!("the number {number} of a {what}");
    Failure(Place::Byte(at), Problem::Recording(Damage::Chunk { at, what }))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, read};
    use crate::system_calls::{self, Name};
    use ::recording::{Class, Counts, End, Event, Machine, What, Writer};
    use schedsim::workload::{Recorded, ReplayBuilder, ReplayOptions, ReplayReport};
    use schedsim::{Nanos, Time};
    use std::fs;

    const TASK: What = What::Task { comm: *b"worker\0\0\0\0\0\0\0\0\0\0", tgid: 7 };
    const WAKING: What = What::Waking { task: 7, target: 1, prio: 120, call: 2, object: 1 };
    const AWAY: What =
        What::Switch { state: 1, prev_prio: 120, next: 0, next_prio: 120, prev_tgid: 7, object: 1 };
    const IN: What =
        What::Switch { state: 0, prev_prio: 120, next: 7, next_prio: 120, prev_tgid: 0, object: 0 };

    fn events() -> Vec<Event> {
        let event = |time, tid, what| Event { time, cpu: 1, context: 0, tid, what };
        vec![event(1, 7, TASK), event(2, 9, WAKING), event(3, 0, IN), event(9, 7, AWAY)]
    }

    fn counts() -> Counts {
        let of = |counts: [(&str, u64); 3]| counts.map(|(name, n)| (name.to_string(), n)).into();
        let all = of([("task", 1), ("waking", 1), ("switch", 2)]);
        Counts {
            emitted: std::collections::BTreeMap::clone(&all),
            written: all,
            ..Counts::default()
        }
    }

    fn outcome(name: &str, counts: Counts, cut: usize) -> Result<super::super::Recording, String> {
        let mut writer =
            Writer::new(Vec::new(), &Machine { cpus: 2, ..Machine::default() }).unwrap();
        writer.events(&events()).unwrap();
        let mut bytes = writer.end(&End { counts, status: None }).unwrap();
        bytes.truncate(bytes.len().saturating_sub(cut));
        let path = std::env::temp_dir().join(format!("recording-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let outcome = read(&path, &Options::default(), vec![]).map_err(|error| error.to_string());
        fs::remove_file(&path).unwrap();
        outcome
    }

    #[test]
    fn its_events_and_names_are_imported() {
        let recording = outcome("whole", counts(), 0).unwrap();
        assert_eq!((recording.cpus, recording.duration.0), (2, 7));
        assert_eq!((recording.report.events.switch, recording.report.events.waking), (2, 1));
        assert!(recording.tasks.iter().any(|task| task.name == "worker" && task.tgid == 7));
    }

    #[test]
    fn what_a_killed_recorder_leaves_is_read_with_a_warning() {
        let recording = outcome("cut", counts(), 1).unwrap();
        assert!(recording.report.warnings.iter().any(|warning| warning.contains("killed")));
    }

    #[test]
    fn what_a_budget_left_out_is_a_warning() {
        let mut counts = counts();
        counts.shed.insert("entries of polls".to_string(), 1_250_000_000);
        let recording = outcome("shed", counts, 0).unwrap();
        let warned = |warning: &String| warning.contains("from 1.2 s on it leaves out entries");
        assert!(recording.report.warnings.iter().any(warned), "{:?}", recording.report.warnings);
    }

    /// A task that arms a timer with this interval, and reads it.
    fn reads_a_timer(interval: u64) -> ReplayReport {
        let call = |number, result| What::Call { object: 1, result, number, op: 0, duration: 1 };
        let object = What::Object { id: 1, class: Class::Timerfd, inode: 1, peer: 0 };
        let timer = What::Timer { object: 1, expiry: 2_000, interval };
        let waking = What::Waking { task: 7, target: 1, prio: 120, call: 0, object: 0 };
        let event = |time, tid, what| Event { time, cpu: 1, context: 0, tid, what };
        let expires = Event { context: 2, ..event(2_000, 0, waking) };
        let settime = system_calls::number(&system_calls::X86_64, Name::TimerfdSettime);
        let events = [
            event(1, 7, TASK),
            event(2, 0, IN),
            event(100, 7, object),
            event(101, 7, timer),
            event(102, 7, call(settime, 0)),
            event(200, 7, AWAY),
            expires,
            event(2_001, 0, IN),
            Event { time: 2_010, ..event(0, 7, call(0, 8)) },
            event(2_020, 7, AWAY),
        ];
        // The read began before the task slept.
        let events = events.map(|event| match event.what {
            What::Call { object, result: 8, number, op, .. } => Event {
                what: What::Call { object, result: 8, number, op, duration: 1_850 },
                ..event
            },
            _ => event,
        });
        let machine = Machine { cpus: 2, architecture: "x86_64".to_string(), ..Machine::default() };
        let mut writer = Writer::new(Vec::new(), &machine).unwrap();
        writer.events(&events).unwrap();
        let bytes = writer.end(&End::default()).unwrap();
        let path =
            std::env::temp_dir().join(format!("recording-timer-{interval}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let mut builder = ReplayBuilder::new(ReplayOptions { program: true, ..Default::default() });
        let options = Options { allow_lost: true, ..Options::default() };
        let read = read(&path, &options, vec![&mut builder]).unwrap();
        fs::remove_file(&path).unwrap();
        builder.share(read.objects);
        let end = Time(read.duration.0);
        let recorded =
            Recorded { tasks: &read.tasks, cpus: 2, end, switch_cost: Nanos(0), recorders: &[] };
        builder.finish(recorded).1
    }

    #[test]
    fn a_timer_that_expires_again_and_again_is_an_operation() {
        let report = reads_a_timer(500);
        assert_eq!((report.operations, report.wakeups.objects), (1, 1), "{report:?}");
        let report = reads_a_timer(0);
        assert_eq!((report.operations, report.wakeups.pauses), (0, 1), "{report:?}");
    }

    #[test]
    fn a_dropped_event_is_noticed() {
        let mut dropped = counts();
        dropped.emitted.insert("waking".to_string(), 2);
        let error = outcome("dropped", dropped.clone(), 0).unwrap_err();
        assert!(error.contains("2 events of kind waking"), "{error}");
        dropped.written.insert("waking".to_string(), 2);
        let error = outcome("dropped", dropped, 0).unwrap_err();
        assert!(error.contains("the file has 1"), "{error}");
    }
}
