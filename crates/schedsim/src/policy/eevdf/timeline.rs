//! One CPU's waiting tasks: the earliest virtual deadline among those who have not been served more than the mean.
//!
//! Two rankings. Who was eligible when last looked at stands in one, by deadline; who was not stands in the other, by virtual run time. As the mean advances, the
//! next ones of the second become eligible and change over; if it goes back, because somebody joins who was served little or leaves who was served much, those who are
//! not eligible any more change back as soon as they come first. So a task changes over about once between two turns, and nobody else is looked at. The kernel asks one
//! tree that knows the smallest virtual run time below each node, in which each insertion and removal goes the whole way and each search another time.

use super::super::ranking::{Entry, Ranking};
use super::super::weights::Weight;
use crate::TaskId;
use std::collections::BTreeMap;

/// The waiting tasks of one CPU, and what their average is made of.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// By virtual deadline, who was eligible by `mean`, and a few who were before it went back.
    eligible: Ranking,
    /// By virtual run time, all others. Nobody here is eligible by `mean`.
    others: Ranking,
    /// The mean when it was last looked at.
    mean: Mean,
    /// Virtual times enter `sum` as distances from here, so that it stays small.
    zero: i64,
    /// Σ weight × (virtual run time − zero).
    sum: i128,
    /// Σ weight.
    weight: u64,
    /// How many of those who wait or run request how much CPU time at a time.
    requests: BTreeMap<u32, u32>,
}

/// What a task is sorted by. Virtual times are nanoseconds of a task of nice 0.
#[derive(Clone, Copy, Default, Debug)]
pub struct Key {
    /// When its request is due.
    pub deadline: i64,
    /// How much it was served, divided by its weight.
    pub vruntime: i64,
    /// How much CPU time it requests at a time, in ns.
    pub request: u32,
    /// Its share.
    pub weight: Weight,
    /// When it began to wait, if it waits.
    pub turn: u32,
}

/// The weighted mean of virtual run times, as a fraction: what they were served on average.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mean {
    zero: i64,
    sum: i128,
    weight: u64,
}

/// In all that follows, `key` is the key of a task.
impl Timeline {
    /// Lets `task` wait, whose turn has been noted.
    #[inline]
    pub fn insert<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, task: TaskId) {
        let Key { weight, vruntime, .. } = *key(task);
        self.sum += i128::from(weight.get()) * i128::from(vruntime - self.zero);
        self.weight += u64::from(weight.get());
        let is_eligible = self.mean.is_eligible(vruntime);
        self.rank(key, task, is_eligible);
    }

    /// Takes out `task`, which has been noted as one that does not wait.
    #[inline]
    pub fn remove<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, task: TaskId) {
        self.eligible.settle(|task| key(task).turn);
        self.others.settle(|task| key(task).turn);
        let Key { weight, vruntime, .. } = *key(task);
        self.sum -= i128::from(weight.get()) * i128::from(vruntime - self.zero);
        self.weight -= u64::from(weight.get());
    }

    /// The earliest deadline among those who are eligible by `mean`.
    pub fn first_eligible<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, mean: &Mean) -> Option<TaskId> {
        self.mean = *mean;
        while let Some(Entry { task, .. }) = self.eligible.first()
            && !mean.is_eligible(key(task).vruntime)
        {
            self.eligible.pop(|task| key(task).turn);
            self.rank(&key, task, false);
        }
        while let Some(Entry { time, task, .. }) = self.others.first()
            && mean.is_eligible(time)
        {
            self.others.pop(|task| key(task).turn);
            self.rank(&key, task, true);
        }
        self.eligible.first().map(|entry| entry.task)
    }

    #[inline]
    fn rank<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, task: TaskId, is_eligible: bool) {
        let Key { vruntime, deadline, turn, .. } = *key(task);
        if is_eligible {
            self.eligible.insert(|task| key(task).turn, Entry { time: deadline, turn, task });
        } else {
            self.others.insert(|task| key(task).turn, Entry { time: vruntime, turn, task });
        }
    }

    /// Somebody who is alone here.
    pub fn only(&self) -> Option<TaskId> {
        self.eligible.first().or(self.others.first()).map(|entry| entry.task)
    }

    /// Somebody who requests so much takes part, waiting or running.
    pub fn note_request(&mut self, request: u32) {
        *self.requests.entry(request).or_default() += 1;
    }

    /// And does no longer.
    pub fn forget_request(&mut self, request: u32) {
        if let Some(count) = self.requests.get_mut(&request) {
            *count -= 1;
            if *count == 0 {
                self.requests.remove(&request);
            }
        }
    }

    /// The smallest request of a task that takes part.
    pub fn least_request(&self) -> u32 {
        self.requests.first_key_value().map_or(u32::MAX, |(&request, _)| request)
    }

    /// The mean of those who wait and of `running`.
    #[inline]
    pub fn mean(&self, running: Option<&Key>) -> Mean {
        let mut mean = Mean { zero: self.zero, sum: self.sum, weight: self.weight };
        if let Some(running) = running {
            mean.sum += i128::from(running.weight.get()) * i128::from(running.vruntime - self.zero);
            mean.weight += u64::from(running.weight.get());
        }
        mean
    }

    /// Measures from `zero` on.
    pub fn rebase(&mut self, zero: i64) {
        self.sum -= i128::from(self.weight) * i128::from(zero - self.zero);
        self.zero = zero;
    }
}

impl Mean {
    /// The mean, rounded down: the most that somebody may have been served who is eligible.
    #[inline]
    pub fn floor(&self) -> i64 {
        let Some(weight) = i64::try_from(self.weight).ok().filter(|&weight| weight > 0) else {
            return self.zero;
        };
        let offset = match i64::try_from(self.sum) {
            Ok(sum) => sum.div_euclid(weight),
            Err(_) => self.sum.div_euclid(i128::from(weight)) as i64,
        };
        self.zero + offset
    }

    /// The weight of all.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether someone served that much has not been served more than the mean. Exact: nothing is divided.
    #[inline(always)]
    pub fn is_eligible(&self, vruntime: i64) -> bool {
        i128::from(vruntime - self.zero) * i128::from(self.weight) <= self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ranking::{NOT_WAITING, Turns};
    use super::*;
    use crate::Random;

    fn key(vruntime: i64, deadline: i64, weight: u32) -> Key {
        Key { vruntime, deadline, weight: Weight::new(weight), request: 700_000, turn: NOT_WAITING }
    }

    #[test]
    fn the_earliest_is_found_also_when_the_mean_goes_back() {
        const TASKS: u32 = 2000;
        let mut random = Random::new(3);
        let mut draw = |limit: u64| random.below(limit) as i64;
        let mut keys: Vec<Key> = (0..TASKS).map(|n| key(draw(1_000_000), draw(1_000_000), 15 + n % 5000)).collect();
        let (mut turns, mut timeline) = (Turns::default(), Timeline::default());
        for task in (0..TASKS).map(TaskId) {
            keys[task.index()].turn = turns.next();
            timeline.insert(|task| &keys[task.index()], task);
        }
        for _ in 0..5000 {
            // The running task weighs much, and is now far ahead of the others and now far behind: the mean goes to and fro.
            let running = key(timeline.mean(None).floor() + draw(200_000) - 100_000, 0, 88_761);
            let mean = timeline.mean(Some(&running));
            let task = timeline.first_eligible(|task| &keys[task.index()], &mean).unwrap();
            let eligible = (0..TASKS).map(TaskId).filter(|task| mean.is_eligible(keys[task.index()].vruntime));
            let least = eligible.map(|task| keys[task.index()].deadline).min();
            assert_eq!(least, Some(keys[task.index()].deadline));
            keys[task.index()].turn = NOT_WAITING;
            timeline.remove(|task| &keys[task.index()], task);
            let key = &mut keys[task.index()];
            key.vruntime += draw(1_000_000) * 1024 / i64::from(key.weight.get());
            key.deadline = key.vruntime + draw(1_000_000);
            key.turn = turns.next();
            timeline.insert(|task| &keys[task.index()], task);
        }
    }

    #[test]
    fn the_mean_is_exact_where_it_decides() {
        let mut keys = [key(10, 50, 3), key(11, 40, 1)];
        let (mut turns, mut timeline) = (Turns::default(), Timeline::default());
        for task in [TaskId(0), TaskId(1)] {
            keys[task.index()].turn = turns.next();
            timeline.insert(|task| &keys[task.index()], task);
        }
        let mean = timeline.mean(None); // 41 / 4
        assert_eq!((mean.floor(), mean.is_eligible(10), mean.is_eligible(11)), (10, true, false));
        assert_eq!(timeline.first_eligible(|task| &keys[task.index()], &mean), Some(TaskId(0)));
        timeline.rebase(-1000);
        assert_eq!(timeline.mean(None).floor(), 10);
        assert_eq!(timeline.mean(Some(&key(-30, 0, 4))).floor(), -10); // (41 - 120) / 8, rounded down
    }
}
