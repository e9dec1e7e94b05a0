//! What a recorded task's calls have shown since the last one ended.

use super::log::Kind;
use crate::{CpuId, Nanos, TaskId, Time};

/// The calls of a task, since the last one ended.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Whether any call of it was recorded.
    pub traced: bool,
    /// The object of the call in which it sleeps.
    pub asleep_on: Option<u32>,
    /// Its sleeps since its last call ended.
    pub sleeps: Vec<Sleep>,
    /// Where the wakings and sleeps in calls since then are in its log, and when they were.
    pub places: Vec<(u32, Time)>,
    /// Sleeps in calls that sleep for a time.
    pub timed: u64,
    /// The last task that it created, and when, if no call has begun since.
    pub forked: Option<(TaskId, Time)>,
    /// The last task of those that it created that has ended, since the last signal.
    pub ended: Option<TaskId>,
    /// The CPU of the waking that ends the sleep, and the one on which the task ran last. Only of
    /// the sleep that is put in next.
    pub on: Option<(CpuId, CpuId)>,
}

/// A sleep that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub at: u32,
    pub start: Time,
    /// How long it was, without the time that the waker waited for a CPU in it.
    pub length: Nanos,
    pub waker: TaskId,
    /// The waking in the log of the waker.
    pub woken_at: u32,
    /// What it was woken by.
    pub by: By,
    /// Whether its call is about an object.
    pub is_on_object: bool,
    /// Whether a softirq ended it.
    pub is_by_softirq: bool,
    /// The CPU of the waking, and the one on which the task ran last.
    pub woken_on: CpuId,
    pub ran_on: CpuId,
}

/// The relation between what a sleeper waits for and what woke it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// A call about the same object.
    SameObject,
    /// A call about another object: a set of objects may contain it.
    OtherObject,
    /// A softirq that ran in the waker: a packet over the loopback.
    Softirq,
    /// A task that was in no call about an object: a thread that ends is in none.
    NoObject,
    /// A task that was in no call about an object, and neither was the sleeper.
    Task,
    /// Anything else.
    Other,
}

/// The most sleeps that are kept of a task of which no call was seen, and of one with calls. More
/// in one call are not explained.
const MOST_SLEEPS: [usize; 2] = [64, 1 << 20];
/// The most that is kept after a futex call, for a library's call around it.
const MOST_AROUND: usize = 16;
/// The first place in a call is what counts.
const MOST_PLACES: usize = 4 * MOST_AROUND;

impl Calls {
    /// The task sleeps no more. `at` and `woken_at` are the places in both logs, `object` is what the
    /// waker's call is about.
    pub fn slept(
        &mut self,
        at: u32,
        (start, length): (Time, Nanos),
        by: (TaskId, u32, Kind),
        object: Option<u32>,
    ) {
        let asleep_on = self.asleep_on.take();
        if asleep_on.is_some() {
            self.is_at(at, start);
            self.traced = true;
        }
        if self.sleeps.len() >= MOST_SLEEPS[usize::from(self.traced)] {
            self.sleeps.clear();
        }
        let (waker, woken_at, kind) = by;
        let by = match (asleep_on, object) {
            (Some(on), Some(object)) if on == object => By::SameObject,
            (_, Some(_)) => By::OtherObject,
            (_, None) if waker != TaskId::NONE && kind == Kind::Softirq => By::Softirq,
            (Some(_), None) if waker != TaskId::NONE && kind == Kind::Task => By::NoObject,
            (None, None) if waker != TaskId::NONE && kind == Kind::Task => By::Task,
            _ => By::Other,
        };
        let (woken_on, ran_on) = self.on.take().unwrap_or_default();
        self.sleeps.push(Sleep {
            at,
            start,
            length,
            waker,
            woken_at,
            by,
            is_on_object: asleep_on.is_some(),
            is_by_softirq: kind == Kind::Softirq,
            woken_on,
            ran_on,
        });
    }

    /// The task has woken another in a call.
    pub fn woke(&mut self, at: u32, now: Time) {
        self.is_at(at, now);
    }

    fn is_at(&mut self, at: u32, time: Time) {
        if self.places.len() < MOST_PLACES {
            self.places.push((at, time));
        }
    }

    /// The place of the first waking or sleep since `begun`.
    pub fn first(&self, begun: Time) -> Option<u32> {
        self.places.iter().find(|(_, time)| *time >= begun).map(|(at, _)| *at)
    }

    /// A call has ended, and none is around it.
    pub fn clear(&mut self) {
        self.sleeps.clear();
        self.places.clear();
    }

    /// A futex call has ended: a library's call may be around it.
    pub fn keep_latest(&mut self) {
        self.sleeps.drain(..self.sleeps.len().saturating_sub(MOST_AROUND));
        self.places.drain(..self.places.len().saturating_sub(MOST_AROUND));
    }
}
