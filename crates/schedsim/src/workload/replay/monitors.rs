//! What tasks wait for under a mutex: condition variables as counters.
//!
//! A task waits for a signal only if it does not find what it needs, and that depends on the order
//! of the tasks. A critical section that signals makes something there for another to take: it adds
//! one to the condition's counter. A section that waits takes one. So does every section that
//! begins at the same place of the program, or signals the same conditions. It takes one also where
//! it did not have to wait. A broadcast lets all pass that wait then, or all that ever come.
//!
//! That is a reading of the recording, and the recording is held against it. No section may have
//! taken what was not there. Tasks must have waited only while there was nothing. A condition for
//! which that is not so explains nothing, and neither does its mutex.

use super::ReplayBuilder;
use crate::workload::{Eventfd, Operation, Shared};
use crate::{TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Of a hundred waits, this many may have begun while there was something to take.
const MOST_ODD: usize = 5;
/// The most kinds of critical sections of a mutex.
const MOST_CLASSES: usize = 1000;
/// What a broadcast adds until the end of the recording says how much it was.
pub(super) const BROADCAST: u64 = u32::MAX as u64;

/// The site of a section that continues one in which a wait was over by its time.
pub(super) const SAME: u64 = u64::MAX;

/// What a task did to a mutex, or to a condition, and where in its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub time: Time,
    pub task: TaskId,
    pub place: u32,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Locked {
        mutex: u32,
        /// Where in the program; [`SAME`]: where the last section of the task began.
        site: u64,
    },
    Unlocked(u32),
    /// Has unlocked it in a wait for a signal that was over by its time.
    GaveUp(u32),
    /// Begins to wait for a signal, and unlocks the mutex.
    Waits {
        condition: u32,
        mutex: u32,
    },
    /// Has received it, and has locked the mutex again.
    Received {
        condition: u32,
        mutex: u32,
    },
    Signalled {
        condition: u32,
        all: bool,
    },
    /// Begins to take from a semaphore, and has to wait.
    AwaitsPost(u32),
    /// Begins to take from it, without a wait.
    Takes(u32),
    Took {
        semaphore: u32,
        waited: bool,
    },
    Posts(u32),
    Posted(u32),
}

impl What {
    /// The counter of a condition that is waited for, or of a semaphore.
    fn counter(self) -> Option<u32> {
        match self {
            What::Received { condition, .. } => Some(condition),
            What::Took { semaphore, .. } | What::Posted(semaphore) => Some(semaphore),
            _ => None,
        }
    }
}

/// What the operations of a log become.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    /// By the place of a lock: what the section takes before it.
    pub taken: BTreeMap<(TaskId, u32), Vec<u32>>,
    /// What is left out: waits, which are taken care of by that, and what cannot have been.
    pub left_out: BTreeSet<(TaskId, u32)>,
    /// What a broadcast adds, and to which counter.
    pub broadcasts: BTreeMap<(TaskId, u32), (u32, u64)>,
    /// The mutexes that explain nothing.
    pub doubted_mutexes: BTreeSet<u32>,
    /// The conditions and semaphores that explain nothing, by their counters.
    pub doubted: BTreeSet<u32>,
}

impl Monitors {
    /// The operations that a task does in place of `operation`, which its log has at `place`.
    pub fn done(&self, task: TaskId, place: u32, operation: Operation) -> Vec<Operation> {
        let key = (task, place);
        match operation {
            Operation::Take(_) if self.left_out.contains(&key) => Vec::new(),
            Operation::Post { .. } if self.broadcasts.contains_key(&key) => {
                let (eventfd, count) = self.broadcasts[&key];
                if count == 0 { Vec::new() } else { vec![Operation::Post { eventfd, count }] }
            }
            Operation::Lock(_) => {
                let taken = self.taken.get(&key).into_iter().flatten().copied();
                taken.map(Operation::Take).chain([operation]).collect()
            }
            _ => vec![operation],
        }
    }
}

/// A critical section.
#[derive(Debug)]
struct Section {
    task: TaskId,
    locked: Time,
    /// The lock in the log.
    place: u32,
    /// Where in the program.
    site: u64,
    /// When it received each signal that it waited for.
    waited: BTreeMap<u32, Time>,
    /// The conditions that it signals, and whether to all.
    signals: BTreeSet<(u32, bool)>,
    is_open: bool,
    /// It takes nothing: the next one of the task does.
    gave_up: bool,
}

/// What happened to the counter of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// At the latest now there is one less.
    Takes,
    /// From now on there may be one more.
    Post,
    /// There is.
    Posted,
    /// By its place in the log.
    Broadcast(TaskId, u32),
    Waits,
    Take {
        by: (TaskId, u32),
        waited: bool,
    },
}

impl ReplayBuilder {
    /// Reads the conditions and semaphores of real programs as counters.
    pub(super) fn find_monitors(&mut self, shared: &mut Shared) -> Monitors {
        let mut acts = std::mem::take(&mut self.acts);
        let used: BTreeSet<u32> = acts.iter().filter_map(|act| act.what.counter()).collect();
        if self.options.locks_as_tokens {
            self.report.stalled_counters = used.len() as u64;
            let mutexes = acts.iter().filter_map(|act| match act.what {
                What::Received { mutex, .. } => Some(mutex),
                _ => None,
            });
            let doubted_mutexes = mutexes.collect();
            return Monitors { doubted_mutexes, doubted: used, ..Monitors::default() };
        }
        acts.sort_by_key(|act| act.time);
        let mut found = Monitors::default();
        for (mutex, (acts, conditions)) in by_mutex(&acts) {
            // A condition of several mutexes has no sections.
            let sections = mutex.and_then(|_| sections(&acts)).unwrap_or_default();
            let reading = |by_site| {
                let takes = takes(&sections, by_site)?;
                let counters = counters(&acts, &sections, &takes)?;
                Some((takes, counters))
            };
            let readings = [true, false].into_iter().filter(|_| !sections.is_empty());
            let odd = |(_, counters): &(_, BTreeMap<u32, Counter>)| -> usize {
                counters.values().map(|counter| counter.odd).sum()
            };
            let Some((takes, counters)) = readings.filter_map(reading).min_by_key(odd) else {
                found.doubted_mutexes.extend(mutex);
                found.doubted.extend(conditions);
                continue;
            };
            for (section, takes) in sections.iter().zip(takes) {
                if !takes.is_empty() {
                    found.taken.insert((section.task, section.place), takes.into_iter().collect());
                }
            }
            let waits = acts.iter().filter(|act| matches!(act.what, What::Received { .. }));
            found.left_out.extend(waits.map(|act| (act.task, act.place)));
            for (condition, counter) in counters {
                if let Some(of) = shared.eventfds.get_mut(condition as usize) {
                    of.count = counter.initial;
                }
                let broadcasts = counter.broadcasts.into_iter();
                found.broadcasts.extend(broadcasts.map(|(at, count)| (at, (condition, count))));
                let Some(opened) = counter.opened else { continue };
                // What passes then takes nothing of what is there before, in whichever order.
                let open = shared.eventfds.len() as u32;
                let name = format!("the end of condition {condition}");
                shared.eventfds.push(Eventfd::semaphore(name, 0));
                found.broadcasts.insert(opened, (open, counter.last.len() as u64));
                for place in counter.last {
                    let taken = found.taken.get_mut(&place).into_iter().flatten();
                    taken.filter(|of| **of == condition).for_each(|of| *of = open);
                }
            }
        }
        count_semaphores(&acts, shared, &mut found);
        self.report.counters = used.difference(&found.doubted).count() as u64;
        found
    }
}

/// The acts and conditions of each mutex under which tasks waited; of no mutex those of conditions
/// that have several.
fn by_mutex(acts: &[Act]) -> BTreeMap<Option<u32>, (Vec<Act>, BTreeSet<u32>)> {
    let mut mutexes: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    for act in acts {
        if let What::Received { condition, mutex } = act.what {
            let of = mutexes.entry(condition).or_insert(Some(mutex));
            *of = of.filter(|of| *of == mutex);
        }
    }
    let mut all: BTreeMap<Option<u32>, (Vec<Act>, BTreeSet<u32>)> = BTreeMap::new();
    for (condition, mutex) in &mutexes {
        all.entry(*mutex).or_default().1.insert(*condition);
    }
    for act in acts {
        let mutex = match act.what {
            What::Locked { mutex, .. }
            | What::Unlocked(mutex)
            | What::GaveUp(mutex)
            | What::Waits { mutex, .. }
            | What::Received { mutex, .. } => Some(mutex),
            What::Signalled { condition, .. } => mutexes.get(&condition).copied().flatten(),
            _ => None,
        };
        if let Some((acts, _)) = mutex.and_then(|mutex| all.get_mut(&Some(mutex))) {
            acts.push(*act);
        }
    }
    all
}

/// Semaphores have what they had when they were first seen, or what most waits say. Those that tasks
/// waited for while there was something are posted by others, too.
fn count_semaphores(acts: &[Act], shared: &mut Shared, found: &mut Monitors) {
    let mut changes: BTreeMap<u32, Vec<(Time, Change)>> = BTreeMap::new();
    let kept = kept_to_the_end(acts);
    for act in acts {
        let by = (act.task, act.place);
        if kept.contains(&by) {
            found.left_out.insert(by);
            continue;
        }
        let (semaphore, change) = match act.what {
            What::AwaitsPost(of) => (of, Change::Waits),
            What::Takes(of) => (of, Change::Takes),
            What::Took { semaphore, waited } => (semaphore, Change::Take { by, waited }),
            What::Posts(of) => (of, Change::Post),
            What::Posted(of) => (of, Change::Posted),
            _ => continue,
        };
        changes.entry(semaphore).or_default().push((act.time, change));
    }
    for (semaphore, changes) in changes {
        let Some(of) = shared.eventfds.get_mut(semaphore as usize) else { continue };
        if !of.wakes_one {
            continue;
        }
        let first = read(&changes, of.count, false);
        let by_waits = first.missing;
        let readings = [first, read(&changes, by_waits, false)];
        match readings.into_iter().find(Counter::is_right) {
            Some(counter) => {
                of.count = counter.initial;
                found.left_out.extend(counter.short);
            }
            None => _ = found.doubted.insert(semaphore),
        }
    }
}

/// Where tasks took a semaphore that they always gave back before, and then not any more: they ended,
/// or were ended, with it. In another order others would still need it.
fn kept_to_the_end(acts: &[Act]) -> BTreeSet<(TaskId, u32)> {
    #[derive(Default)]
    struct Held {
        at: Option<u32>,
        given_back: bool,
        is_odd: bool,
    }
    let mut held: BTreeMap<(TaskId, u32), Held> = BTreeMap::new();
    for act in acts {
        match act.what {
            What::Took { semaphore, .. } => {
                let of = held.entry((act.task, semaphore)).or_default();
                of.is_odd |= of.at.replace(act.place).is_some();
            }
            What::Posts(semaphore) => {
                let of = held.entry((act.task, semaphore)).or_default();
                (of.given_back, of.is_odd) = (true, of.is_odd || of.at.take().is_none());
            }
            _ => {}
        }
    }
    let kept = |((task, _), of): ((TaskId, u32), Held)| {
        of.at.filter(|_| of.given_back && !of.is_odd).map(|place| (task, place))
    };
    held.into_iter().filter_map(kept).collect()
}

/// The critical sections of a mutex, if only one task was in one at a time. A section that is open at
/// the end of its task's acts is a wait that did not end.
fn sections(acts: &[Act]) -> Option<Vec<Section>> {
    let last: BTreeMap<TaskId, usize> =
        acts.iter().enumerate().map(|(index, act)| (act.task, index)).collect();
    let mut sections: Vec<Section> = Vec::new();
    // The last section of each task.
    let mut of: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut owner: Option<TaskId> = None;
    for (index, act) in acts.iter().enumerate() {
        let is_free = owner.is_none_or(|owner| owner == act.task || last[&owner] < index);
        let section = of.get(&act.task).copied();
        match act.what {
            What::Locked { site, .. } if is_free => {
                let earlier = section.filter(|_| site == SAME);
                of.insert(act.task, sections.len());
                sections.push(Section {
                    task: act.task,
                    locked: act.time,
                    place: act.place,
                    site: earlier.map_or(site, |earlier| sections[earlier].site),
                    waited: BTreeMap::new(),
                    signals: BTreeSet::new(),
                    is_open: true,
                    gave_up: false,
                });
                owner = Some(act.task);
            }
            // Also behind the end of the section.
            What::Signalled { condition, all } => {
                if let Some(section) = section {
                    sections[section].signals.insert((condition, all));
                }
            }
            what => {
                let section = &mut sections[section?];
                match what {
                    _ if !section.is_open => return None,
                    What::Received { condition, .. } if is_free => {
                        section.waited.insert(condition, act.time);
                        owner = Some(act.task);
                        continue;
                    }
                    What::Waits { .. } => {}
                    What::Unlocked(_) => section.is_open = false,
                    What::GaveUp(_) => (section.is_open, section.gave_up) = (false, true),
                    _ => return None,
                }
                owner = owner.filter(|owner| *owner != act.task);
            }
        }
    }
    Some(sections)
}

/// The counter of a condition or a semaphore, as the recording is read.
#[derive(Debug, Default)]
struct Counter {
    initial: u64,
    broadcasts: BTreeMap<(TaskId, u32), u64>,
    waits: usize,
    takes: usize,
    /// Waits that began while there was something to take.
    odd: usize,
    /// What it had at the beginning, if most waits began when there was nothing.
    missing: u64,
    /// The first broadcast after which all pass, and what passes then.
    opened: Option<(TaskId, u32)>,
    last: Vec<(TaskId, u32)>,
    /// What took something that was not there, by its place in the log: a call that did not return
    /// has put it in.
    short: Vec<(TaskId, u32)>,
}

impl Counter {
    fn is_right(&self) -> bool {
        let are_few = |few: usize, of: usize| few * 100 <= of * MOST_ODD;
        are_few(self.odd, self.waits) && are_few(self.short.len(), self.takes)
    }
}

/// What each section takes: what those have waited for that begin at the same place of the program.
/// If not `by_site`, it is what those have waited for that signal the same, or less.
fn takes(sections: &[Section], by_site: bool) -> Option<Vec<BTreeSet<u32>>> {
    type Class = (u64, BTreeSet<(u32, bool)>);
    let class = |section: &Section| -> Class {
        match by_site && section.site != 0 {
            true => (section.site, BTreeSet::new()),
            false => (0, section.signals.clone()),
        }
    };
    let mut own: BTreeMap<Class, BTreeSet<u32>> = BTreeMap::new();
    for section in sections {
        own.entry(class(section)).or_default().extend(section.waited.keys());
    }
    if own.len() > MOST_CLASSES {
        return None;
    }
    let of_class = |class: &Class| -> BTreeSet<u32> {
        let is_less = |(site, less): &Class| {
            *site == class.0 && (*less == class.1 || !less.is_empty() && less.is_subset(&class.1))
        };
        let of = own.iter().filter(|(other, _)| is_less(other));
        of.flat_map(|(_, takes)| takes).copied().collect()
    };
    let all: BTreeMap<&Class, BTreeSet<u32>> =
        own.keys().map(|class| (class, of_class(class))).collect();
    let takes = sections.iter().map(|section| match section.gave_up {
        true => Some(BTreeSet::new()),
        // One that waits for ever must wait for something.
        false => Some(all[&class(section)].clone()).filter(|of| !section.is_open || !of.is_empty()),
    });
    takes.collect()
}

/// The counters of all conditions of a mutex, if the recording is right with them.
fn counters(
    acts: &[Act],
    sections: &[Section],
    takes: &[BTreeSet<u32>],
) -> Option<BTreeMap<u32, Counter>> {
    let mut changes: BTreeMap<u32, Vec<(Time, Change)>> = BTreeMap::new();
    for act in acts {
        let (condition, change) = match act.what {
            What::Signalled { condition, all: true } => {
                (condition, Change::Broadcast(act.task, act.place))
            }
            What::Signalled { condition, all: false } => {
                changes.entry(condition).or_default().push((act.time, Change::Post));
                (condition, Change::Posted)
            }
            What::Waits { condition, .. } => (condition, Change::Waits),
            _ => continue,
        };
        changes.entry(condition).or_default().push((act.time, change));
    }
    for (section, takes) in sections.iter().zip(takes).filter(|(section, _)| !section.is_open) {
        for condition in takes {
            let received = section.waited.get(condition).copied();
            let time = received.unwrap_or(section.locked);
            let of = changes.entry(*condition).or_default();
            if received.is_none() {
                of.push((time, Change::Takes));
            }
            let by = (section.task, section.place);
            of.push((time, Change::Take { by, waited: received.is_some() }));
        }
    }
    let best = |(condition, mut changes): (u32, Vec<(Time, Change)>)| {
        changes.sort_by_key(|(time, _)| *time);
        let readings = [true, false].map(|opens| {
            // As much as is taken.
            let missing = read(&changes, 0, opens).short.len() as u64;
            read(&changes, missing, opens)
        });
        let best = readings.into_iter().min_by_key(|counter| counter.odd)?;
        best.is_right().then_some((condition, best))
    };
    changes.into_iter().map(best).collect()
}

/// Reads the changes of a counter that has `initial` at the beginning. If a broadcast `opens`, all
/// pass that ever come; if not, those that wait then.
fn read(changes: &[(Time, Change)], initial: u64, opens: bool) -> Counter {
    // What is surely there: of a call it is not known when in it that happens.
    let mut sure = initial as i64;
    let all = changes.iter().filter(|(_, change)| matches!(change, Change::Take { .. })).count();
    let (mut count, mut waiting) = (initial, 0_u64);
    let mut counter = Counter { initial, takes: all, ..Counter::default() };
    let mut found_by_waits: BTreeMap<i64, usize> = BTreeMap::new();
    // Without what was taken and not there.
    let mut plain = 0_i64;
    for (_, change) in changes {
        match *change {
            Change::Post => (count, plain) = (count + 1, plain + 1),
            Change::Posted => sure += 1,
            Change::Takes => sure -= 1,
            Change::Broadcast(task, place) => {
                let added = if opens { 0 } else { waiting.saturating_sub(count) };
                counter.broadcasts.insert((task, place), added);
                if opens {
                    counter.opened.get_or_insert((task, place));
                }
                (count, plain, sure) = (count + added, plain + added as i64, sure + added as i64);
            }
            Change::Waits if counter.opened.is_some() => {
                (counter.waits, counter.odd) = (counter.waits + 1, counter.odd + 1);
            }
            Change::Take { by, .. } if counter.opened.is_some() => counter.last.push(by),
            Change::Waits => {
                waiting += 1;
                counter.waits += 1;
                counter.odd += usize::from(sure > 0);
                *found_by_waits.entry(plain).or_default() += 1;
            }
            Change::Take { by, waited } => {
                waiting = waiting.saturating_sub(u64::from(waited));
                if count == 0 {
                    counter.short.push(by);
                }
                (count, plain) = (count.saturating_sub(1), plain - 1);
                sure -= i64::from(waited);
            }
        }
    }
    let usual = found_by_waits.into_iter().max_by_key(|(_, times)| *times);
    counter.missing = usual.map_or(0, |(found, _)| found.saturating_neg().max(0) as u64);
    counter
}

#[cfg(test)]
mod tests;
