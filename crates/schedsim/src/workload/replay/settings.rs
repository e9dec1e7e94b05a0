//! What was set for a task: where it may run, and its scheduling policy.
//!
//! A task of a workload has one setting. If it changed in the recording, that for most of the task's
//! CPU time counts. Its priority is in the events.

use crate::trace::Set;
use crate::workload::{Affinity, TaskClass};
use crate::{CpuId, CpuSet, Nanos};

/// What holds for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    /// The CPUs, if they were set.
    cpus: Option<u64>,
    class: TaskClass,
    resets: bool,
}

/// What has held for a task.
#[derive(Debug, Default)]
pub(super) struct Settings {
    now: Held,
    /// Its CPU time when this began to hold.
    since: Nanos,
    /// What held before, and for how much CPU time.
    before: Vec<(Held, Nanos)>,
}

/// The first CPUs, which a setting names.
const CPUS: u16 = 64;

impl Settings {
    /// Something changes when the task has run for `ran`.
    pub fn change(&mut self, set: Set, ran: Nanos) {
        let mut new = self.now;
        match set {
            Set::Cpus(cpus) => new.cpus = Some(cpus),
            Set::Class { class, resets } => (new.class, new.resets) = (class, resets),
        }
        let held = ran.saturating_sub(self.since);
        if held > Nanos::ZERO && new != self.now {
            let known = self.before.iter_mut().find(|(before, _)| *before == self.now);
            match known {
                Some((_, time)) => *time += held,
                None => self.before.push((self.now, held)),
            }
        }
        if new != self.now {
            (self.now, self.since) = (new, ran);
        }
    }

    /// Those of a task that this one creates.
    pub fn inherited(&self) -> Settings {
        let mut now = self.now;
        if now.resets {
            now = Held { cpus: now.cpus, ..Held::default() };
        }
        Settings { now, ..Settings::default() }
    }

    /// What held for most of `ran`, the later of equals, and whether anything else held for more than
    /// a hundredth.
    pub fn usual(&self, ran: Nanos) -> (Held, bool) {
        let last = (self.now, ran.saturating_sub(self.since));
        let all = self.before.iter().chain([&last]);
        let usual = all.clone().max_by_key(|(_, time)| *time).map_or(self.now, |(held, _)| *held);
        let others = all.filter(|(held, _)| *held != usual).map(|(_, time)| *time).sum::<Nanos>();
        (usual, others.0.saturating_mul(100) > ran.0)
    }
}

impl Held {
    /// The policy of a task with this priority. Only real-time tasks have a real-time one.
    pub fn class(&self, prio: u8) -> TaskClass {
        match self.class {
            TaskClass::Fifo | TaskClass::RoundRobin if prio > 99 => TaskClass::ByPriority,
            TaskClass::Batch | TaskClass::Idle if prio <= 99 => TaskClass::ByPriority,
            class => class,
        }
    }

    /// The affinity on a machine with `cpus` CPUs, if any was set; new sets are added to `sets`.
    pub fn affinity(&self, cpus: u16, sets: &mut Vec<CpuSet>) -> Option<Affinity> {
        let mask = self.cpus.filter(|_| (1..=CPUS).contains(&cpus))?;
        let allowed: Vec<CpuId> = (0..cpus).filter(|cpu| mask >> cpu & 1 == 1).map(CpuId).collect();
        Some(match allowed.as_slice() {
            [] => return None,
            [only] => Affinity::Pinned(*only),
            some if some.len() == usize::from(cpus) => Affinity::Any,
            some => {
                let set: CpuSet = some.iter().copied().collect();
                let known = sets.iter().position(|known| *known == set);
                let index = known.unwrap_or_else(|| {
                    sets.push(set);
                    sets.len() - 1
                });
                Affinity::Set(index as u32)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_held_for_most_of_the_cpu_time_counts() {
        let mut settings = Settings::default();
        settings.change(Set::Cpus(0b01), Nanos(0));
        assert_eq!(settings.usual(Nanos(9)), (Held { cpus: Some(1), ..Held::default() }, false));
        settings.change(Set::Cpus(0b10), Nanos(10));
        assert_eq!(settings.usual(Nanos(15)), (Held { cpus: Some(1), ..Held::default() }, true));
        assert_eq!(settings.usual(Nanos(21)), (Held { cpus: Some(2), ..Held::default() }, true));
        settings.change(Set::Cpus(0b01), Nanos(15));
        settings.change(Set::Cpus(0b10), Nanos(19));
        assert_eq!(settings.usual(Nanos(25)), (Held { cpus: Some(1), ..Held::default() }, true));
    }

    #[test]
    fn a_child_inherits_all_but_a_policy_that_is_reset() {
        let mut settings = Settings::default();
        settings.change(Set::Cpus(0b11), Nanos(0));
        settings.change(Set::Class { class: TaskClass::Fifo, resets: false }, Nanos(0));
        let held = settings.inherited().usual(Nanos(1)).0;
        assert_eq!((held.class(50), held.class(120)), (TaskClass::Fifo, TaskClass::ByPriority));
        settings.change(Set::Class { class: TaskClass::Fifo, resets: true }, Nanos(0));
        let held = settings.inherited().usual(Nanos(1)).0;
        assert_eq!(held.class(50), TaskClass::ByPriority);
        let mut sets = Vec::new();
        assert_eq!(held.affinity(2, &mut sets), Some(Affinity::Any));
        assert_eq!(held.affinity(4, &mut sets), Some(Affinity::Set(0)));
        assert_eq!(held.affinity(1, &mut sets), Some(Affinity::Pinned(CpuId(0))));
        assert_eq!((held.affinity(65, &mut sets), sets.len()), (None, 1));
    }
}
