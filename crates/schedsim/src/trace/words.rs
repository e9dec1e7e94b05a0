//! An event as three words, for hashes and files; equal on every machine.
//!
//! `time | kind (8 bits), detail (8), cpu (16), task (32) | argument`.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use super::{Event, EventKind, Observer, OverheadKind, PrevState, WakeContext};
use crate::{CpuId, Nanos, TaskId, Time};

impl Event {
    /// Encodes this event in three words.
    pub fn to_words(&self) -> [u64; 3] {
        let cpus = |from: CpuId, to: CpuId| u64::from(from.0) << 16 | u64::from(to.0);
        let (kind, detail, task, argument) = match self.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                (0, prev_state as u8, prev, u64::from(next.0))
            }
            EventKind::SchedWaking { task, target, context } => {
                (1, context as u8, task, u64::from(target.0))
            }
            EventKind::SchedWakeup { task, target } => (2, 0, task, u64::from(target.0)),
            EventKind::SchedWakeupNew { task, target } => (3, 0, task, u64::from(target.0)),
            EventKind::SchedProcessFork { parent, child } => (4, 0, parent, u64::from(child.0)),
            EventKind::SchedProcessExec { task } => (5, 0, task, 0),
            EventKind::SchedProcessExit { task } => (6, 0, task, 0),
            EventKind::SchedMigrateTask { task, from, to } => (7, 0, task, cpus(from, to)),
            EventKind::JobRelease { task } => (8, 0, task, 0),
            EventKind::JobComplete { task, demand } => (9, 0, task, demand.0),
            EventKind::Overhead { task, kind, spent } => (10, kind as u8, task, spent.0),
            EventKind::SchedPiSetprio { task, old, new } => {
                (11, 0, task, u64::from(old) << 8 | u64::from(new))
            }
            EventKind::ContentionBegin { task, owner, mutex } => {
                (12, 0, task, u64::from(mutex) << 32 | u64::from(owner.0))
            }
        };
        [
            self.time.0,
            kind << 56 | u64::from(detail) << 48 | u64::from(self.cpu.0) << 32 | u64::from(task.0),
            argument,
        ]
    }

    /// Decodes an event from the words of [`to_words`](Self::to_words); `None` if they are not
    /// valid.
    pub fn from_words([time, head, argument]: [u64; 3]) -> Option<Event> {
        let [t0, t1, t2, t3, c0, c1, detail, kind] = head.to_le_bytes();
        let [a0, a1, a2, a3, a4, a5, a6, a7] = argument.to_le_bytes();
        let (task, detail) = (TaskId(u32::from_le_bytes([t0, t1, t2, t3])), usize::from(detail));
        let other = TaskId(u32::from_le_bytes([a0, a1, a2, a3]));
        let target = CpuId(u16::from_le_bytes([a0, a1]));
        let kind = match kind {
            0 => {
                let prev_state =
                    *[PrevState::Runnable, PrevState::Blocked, PrevState::Dead].get(detail)?;
                EventKind::SchedSwitch { prev: task, next: other, prev_state }
            }
            1 => {
                let context = *[
                    WakeContext::Task,
                    WakeContext::Softirq,
                    WakeContext::Hardirq,
                    WakeContext::Unknown,
                ]
                .get(detail)?;
                EventKind::SchedWaking { task, target, context }
            }
            2 => EventKind::SchedWakeup { task, target },
            3 => EventKind::SchedWakeupNew { task, target },
            4 => EventKind::SchedProcessFork { parent: task, child: other },
            5 => EventKind::SchedProcessExec { task },
            6 => EventKind::SchedProcessExit { task },
            7 => EventKind::SchedMigrateTask {
                task,
                from: CpuId(u16::from_le_bytes([a2, a3])),
                to: target,
            },
            8 => EventKind::JobRelease { task },
            9 => EventKind::JobComplete { task, demand: Nanos(argument) },
            10 => {
                let kind = *OverheadKind::ALL.get(detail)?;
                EventKind::Overhead { task, kind, spent: Nanos(argument) }
            }
            11 => EventKind::SchedPiSetprio { task, old: a1, new: a0 },
            12 => EventKind::ContentionBegin {
                task,
                owner: other,
                mutex: u32::from_le_bytes([a4, a5, a6, a7]),
            },
            _ => return None,
        };
        let event = Event { time: Time(time), cpu: CpuId(u16::from_le_bytes([c0, c1])), kind };
        // Unused bits must be zero.
        (event.to_words() == [time, head, argument]).then_some(event)
    }
}

/// The hash of a trace. Equal hashes mean equal decisions at equal times.
///
/// Similar to FNV-1a, but a word at a time and in three lanes, one for each word of an event, so
/// that the multiplications overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash([u64; 3]);

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

impl TraceHash {
    /// The hash of an empty trace.
    pub fn new() -> TraceHash {
        TraceHash([0xcbf2_9ce4_8422_2325; 3])
    }

    /// The hash of the events so far.
    pub fn value(&self) -> u64 {
        self.0.iter().fold(0, |hash, &lane| mix(hash, lane))
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for TraceHash {
    fn events(&mut self, chunk: &[Event]) {
        let mut lanes = self.0;
        for event in chunk {
            for (lane, word) in lanes.iter_mut().zip(event.to_words()) {
                *lane = mix(*lane, word);
            }
        }
        self.0 = lanes;
    }
}

/// A multiplication propagates differences only upwards; the shift brings the high half down.
#[inline]
fn mix(lane: u64, word: u64) -> u64 {
    let product = (lane ^ word).wrapping_mul(PRIME);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_event_survives_and_nothing_else_is_read() {
        let (task, cpu, other) = (TaskId(3), CpuId(2), TaskId::NONE);
        let kinds = [
            EventKind::SchedSwitch { prev: task, next: other, prev_state: PrevState::Dead },
            EventKind::SchedWaking { task, target: cpu, context: WakeContext::Unknown },
            EventKind::SchedWakeup { task, target: cpu },
            EventKind::SchedWakeupNew { task, target: cpu },
            EventKind::SchedProcessFork { parent: task, child: TaskId(9) },
            EventKind::SchedProcessExec { task },
            EventKind::SchedProcessExit { task },
            EventKind::SchedMigrateTask { task, from: cpu, to: CpuId(7) },
            EventKind::JobRelease { task },
            EventKind::JobComplete { task, demand: Nanos(u64::MAX) },
            EventKind::Overhead { task: other, kind: OverheadKind::IdleExit, spent: Nanos(5) },
            EventKind::Overhead { task, kind: OverheadKind::Queue, spent: Nanos(5) },
            EventKind::SchedPiSetprio { task, old: 139, new: 3 },
            EventKind::ContentionBegin { task, owner: TaskId(9), mutex: 7 },
        ];
        for kind in kinds {
            let event = Event { time: Time(u64::MAX), cpu: CpuId(1023), kind };
            assert_eq!(Event::from_words(event.to_words()), Some(event));
        }
        assert_eq!(Event::from_words([0, 13 << 56, 0]), None);
        assert_eq!(Event::from_words([0, 3 << 48, 0]), None, "a state that there is not");
        assert_eq!(Event::from_words([0, 2 << 56, 1 << 16]), None, "a CPU number out of range");
    }

    #[test]
    fn the_hash_sees_every_field_and_the_order() {
        let event = |time, task| Event {
            time: Time(time),
            cpu: CpuId(1),
            kind: EventKind::JobRelease { task: TaskId(task) },
        };
        let hash = |events: &[Event]| {
            let mut hash = TraceHash::new();
            hash.events(events);
            hash.value()
        };
        let of = [
            hash(&[]),
            hash(&[event(1, 2)]),
            hash(&[event(2, 1)]),
            hash(&[event(1, 1), event(2, 2)]),
            hash(&[event(2, 2), event(1, 1)]),
        ];
        assert!((1..of.len()).all(|n| !of[..n].contains(&of[n])), "{of:x?}");
        assert_eq!(hash(&[event(1, 2)]), 0xce4388cb43d0160f, "pinned: the same on every machine");
    }
}
