//! A bundle of ftrace events of one CPU: plain ones, and the columns of the compact form.

use std::collections::BTreeMap;

use schedsim::CpuId;
use schedsim::trace::WakeContext;

use super::wire::{Field, Fields, numbers};
use crate::import::record::{self, NamedTask, Sched, count};
use crate::import::tracepoint::{StateLetters, context};

/// Fields of `FtraceEventBundle`.
const CPU: u64 = 1;
const EVENT: u64 = 2;
const LOST: u64 = 3;
const COMPACT: u64 = 4;
const CLOCK: u64 = 5;
/// Of `FtraceEvent`: its time, its flags, and the scheduling events.
const TIME: u64 = 1;
const FLAGS: u64 = 5;
const SWITCH: u64 = 4;
const WAKEUP: u64 = 17;
const WAKING: u64 = 20;
const WAKEUP_NEW: u64 = 114;
const EXEC: u64 = 237;
const EXIT: u64 = 238;
const FORK: u64 = 239;
const MIGRATE: u64 = 491;
const FREQUENCY: u64 = 11;
const SCHEDULING: [u64; 9] =
    [SWITCH, WAKEUP, WAKING, WAKEUP_NEW, EXEC, EXIT, FORK, MIGRATE, FREQUENCY];
/// The flag of a switch that was not recorded: our exporter inferred it. The kernel's flags have eight
/// bits.
pub(crate) const INFERRED: u64 = 0x100;
/// What stands beside an event in its message.
const BESIDE: [u64; 3] = [TIME, 2, FLAGS];

/// What a first pass needs to know.
pub(super) struct Peeked {
    pub cpu: u16,
    pub lost: bool,
    pub has_scheduling: bool,
    /// The number of its clock; 0 is the usual one.
    pub clock: u64,
}

/// A bundle that is read, from its next event on.
#[derive(Default)]
pub(super) struct Bundle {
    /// Times and where the events lie, the last one first.
    events: Vec<(u64, Event)>,
    bytes: Vec<u8>,
    compact: Compact,
    letters: Option<StateLetters>,
    /// Events that are not imported, by number.
    pub skipped: BTreeMap<u64, u64>,
}

/// Where an event stands.
#[derive(Clone, Copy)]
enum Event {
    /// Its message, from where to where in the bundle.
    Plain(usize, usize),
    /// Its place in the columns.
    Switch(usize),
    Waking(usize),
}

/// The columns of the compact form.
#[derive(Default)]
struct Compact {
    names: Vec<Vec<u8>>,
    switches: [Vec<u64>; 5],
    wakings: [Vec<u64>; 6],
}

/// Who runs on a CPU, as the compact form only says who comes.
#[derive(Default)]
pub(super) struct Running {
    task: Option<(Vec<u8>, u32, i32)>,
    previous: (Vec<u8>, u32, i32),
    /// Switches before which no task was known.
    pub starts: u64,
}

impl Bundle {
    /// Looks at a bundle without its events.
    pub fn peek(bytes: &[u8]) -> Option<Peeked> {
        let mut peeked = Peeked { cpu: 0, lost: false, has_scheduling: false, clock: 0 };
        for field in Fields::new(bytes) {
            match field.ok()? {
                (CPU, Field::Number(number)) => peeked.cpu = record::cpu(number)?.0,
                (LOST, Field::Number(number)) => peeked.lost = number != 0,
                (CLOCK, Field::Number(number)) => peeked.clock = number,
                (COMPACT | EVENT, _) => peeked.has_scheduling = true,
                _ => {}
            }
        }
        Some(peeked)
    }

    /// Reads a bundle; `None` if it contradicts itself.
    pub fn fill(&mut self, bytes: &[u8]) -> Option<()> {
        self.events.clear();
        self.compact.clear();
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        for field in Fields::new(bytes) {
            if let (COMPACT, Field::Bytes(compact)) = field.ok()? {
                self.compact.read(compact)?;
            }
        }
        let mut time = 0u64;
        for (index, delta) in self.compact.switches[0].iter().enumerate() {
            time = time.wrapping_add(*delta);
            self.events.push((time, Event::Switch(index)));
        }
        time = 0;
        for (index, delta) in self.compact.wakings[0].iter().enumerate() {
            time = time.wrapping_add(*delta);
            self.events.push((time, Event::Waking(index)));
        }
        for field in Fields::new(bytes) {
            let (EVENT, Field::Bytes(event)) = field.ok()? else { continue };
            let mut time = 0;
            let mut other = None;
            for field in Fields::new(event) {
                match field.ok()? {
                    (TIME, field) => time = field.number()?,
                    (id, _) if !BESIDE.contains(&id) => other = Some(id),
                    _ => {}
                }
            }
            let Some(id) = other else { continue };
            if !SCHEDULING.contains(&id) {
                count(self.skipped.entry(id).or_default());
                continue;
            }
            let from = event.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
            let to = from.checked_add(event.len())?;
            self.events.push((time, Event::Plain(from, to)));
        }
        // Of one time the order is that of Perfetto: switches, wakings, and then the plain ones.
        self.events.reverse();
        self.events.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        Some(())
    }

    /// The time of the next event.
    pub fn time(&self) -> Option<u64> {
        self.events.last().map(|(time, _)| *time)
    }

    /// Takes the next event: nothing if it only says who runs; in it nothing if it is damaged.
    pub fn take<'b>(
        &'b mut self,
        running: &'b mut Running,
    ) -> Option<(WakeContext, Option<Sched<'b>>)> {
        let (_, event) = self.events.pop()?;
        let letters = self.letters.get_or_insert_with(|| StateLetters::parse(""));
        match event {
            Event::Plain(from, to) => {
                let event = self.bytes.get(from..to).unwrap_or_default();
                let (flags, what) = plain(event, letters);
                if let Some(Sched::Switch { next, .. }) = what {
                    running.task = Some((next.comm.to_vec(), next.pid, next.prio));
                }
                if flags.is_some_and(|flags| flags & INFERRED != 0) {
                    return None;
                }
                Some((flags.map_or(WakeContext::Unknown, context), what))
            }
            Event::Switch(index) => match self.compact.switch(index, letters, running) {
                Some(None) => None,
                Some(what) => Some((WakeContext::Unknown, what)),
                None => Some((WakeContext::Unknown, None)),
            },
            Event::Waking(index) => {
                let flags = self.compact.wakings[5].get(index);
                let context = flags.map_or(WakeContext::Unknown, |&flags| context(flags));
                Some((context, self.compact.waking(index)))
            }
        }
    }
}

impl Compact {
    fn clear(&mut self) {
        self.names.clear();
        self.switches.iter_mut().chain(&mut self.wakings).for_each(Vec::clear);
    }

    fn read(&mut self, compact: &[u8]) -> Option<()> {
        for field in Fields::new(compact) {
            let (id, field) = field.ok()?;
            match id {
                1 => numbers(field, &mut self.switches[0])?,
                2 => numbers(field, &mut self.switches[1])?,
                3 => numbers(field, &mut self.switches[2])?,
                4 => numbers(field, &mut self.switches[3])?,
                5 => self.names.push(field.bytes()?.to_vec()),
                6 => numbers(field, &mut self.switches[4])?,
                7 => numbers(field, &mut self.wakings[0])?,
                8 => numbers(field, &mut self.wakings[1])?,
                9 => numbers(field, &mut self.wakings[2])?,
                10 => numbers(field, &mut self.wakings[3])?,
                11 => numbers(field, &mut self.wakings[4])?,
                12 => numbers(field, &mut self.wakings[5])?,
                _ => {}
            }
        }
        Some(())
    }

    fn name(&self, index: Option<&u64>) -> Option<&[u8]> {
        Some(self.names.get(usize::try_from(*index?).ok()?)?)
    }

    /// A switch; within it nothing if no task was known before it.
    fn switch<'b>(
        &'b self,
        index: usize,
        letters: &StateLetters,
        running: &'b mut Running,
    ) -> Option<Option<Sched<'b>>> {
        let [_, states, pids, prios, names] = &self.switches;
        let (pid, prio) = (record::pid(*pids.get(index)?)?, prio(*prios.get(index)?)?);
        let comm = self.name(names.get(index))?;
        let state = letters.read(*states.get(index)?);
        let Some(previous) = running.task.replace((comm.to_vec(), pid, prio)) else {
            count(&mut running.starts);
            return Some(None);
        };
        running.previous = previous;
        let (name, from, level) = &running.previous;
        let prev = NamedTask { comm: name, pid: *from, prio: *level };
        let next = NamedTask { comm, pid, prio };
        Some(Some(Sched::Switch { prev, prev_state: state, next }))
    }

    fn waking(&self, index: usize) -> Option<Sched<'_>> {
        let [_, pids, targets, prios, names, _] = &self.wakings;
        let task = NamedTask {
            comm: self.name(names.get(index))?,
            pid: record::pid(*pids.get(index)?)?,
            prio: prio(*prios.get(index)?)?,
        };
        Some(Sched::Waking { task, target: record::cpu(*targets.get(index)?)? })
    }
}

/// An event in the plain form.
fn plain<'b>(event: &'b [u8], letters: &StateLetters) -> (Option<u64>, Option<Sched<'b>>) {
    let (mut flags, mut what) = (None, None);
    for field in Fields::new(event).flatten() {
        match field {
            (FLAGS, Field::Number(number)) => flags = Some(number),
            (id, Field::Bytes(bytes)) if SCHEDULING.contains(&id) => {
                what = of_event(id, bytes, letters);
            }
            _ => {}
        }
    }
    (flags, what)
}

fn of_event<'b>(id: u64, event: &'b [u8], letters: &StateLetters) -> Option<Sched<'b>> {
    // By field number: the fields that proto2 leaves out are 0 or empty.
    let mut values = [0u64; 8];
    let mut texts: [&[u8]; 8] = [b""; 8];
    for field in Fields::new(event) {
        let (field, value) = field.ok()?;
        let Some(at) = usize::try_from(field).ok().filter(|&at| at < values.len()) else {
            continue;
        };
        match value {
            Field::Number(number) => values[at] = number,
            Field::Bytes(bytes) => texts[at] = bytes,
        }
    }
    let task = |comm: usize, of: usize, level: usize| -> Option<NamedTask<'b>> {
        Some(NamedTask {
            comm: texts[comm],
            pid: record::pid(values[of])?,
            prio: prio(values[level])?,
        })
    };
    let cpu = |at: usize| -> Option<CpuId> { record::cpu(values[at]) };
    Some(match id {
        SWITCH => Sched::Switch {
            prev: task(1, 2, 3)?,
            prev_state: letters.read(values[4]),
            next: task(5, 6, 7)?,
        },
        WAKEUP => Sched::Wakeup { task: task(1, 2, 3)?, target: cpu(5)? },
        WAKING => Sched::Waking { task: task(1, 2, 3)?, target: cpu(5)? },
        WAKEUP_NEW => Sched::WakeupNew { task: task(1, 2, 3)?, target: cpu(5)? },
        EXEC => Sched::Exec { pid: record::pid(values[2])?, old_pid: record::pid(values[3])? },
        EXIT => Sched::Exit { task: task(1, 2, 4)? },
        FORK => Sched::Fork {
            parent: record::pid(values[2])?,
            child: record::pid(values[4])?,
            comm: texts[3],
        },
        FREQUENCY => Sched::Frequency { of: cpu(2)?, khz: values[1] },
        MIGRATE => Sched::Migrate { task: task(1, 2, 3)?, from: cpu(4)?, to: cpu(5)? },
        _ => return None,
    })
}

/// Numbers of 32 bits with a sign are written with 64.
fn prio(number: u64) -> Option<i32> {
    i32::try_from(number.cast_signed()).ok()
}
