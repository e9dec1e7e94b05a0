//! The waiting tasks of one CPU: finds the earliest virtual deadline among the eligible ones.
//!
//! Two rankings: tasks that were eligible when last examined, by deadline; the others, by virtual
//! run time. As the mean advances, the first tasks of the second ranking become eligible and move
//! to the first. The mean may go back, because a task with little service joins or one with much
//! service leaves. Then tasks that are no longer eligible move back once they come first. So a task
//! moves about once between two slices, and no other task is examined. The kernel uses one tree
//! that stores the smallest virtual run time below each node. Each insertion and removal walks its
//! full depth, and each search walks it again.

use super::super::ranking::{Entry, Ranking};
use super::super::weights::Weight;
use crate::{Nanos, TaskId};
use std::collections::BTreeMap;

/// The waiting tasks of one CPU, and the sums for their mean.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// By virtual deadline: tasks eligible by `mean`, and a few that were so before it went back.
    eligible: Ranking,
    /// By virtual run time: all others. None of them is eligible by `mean`.
    others: Ranking,
    /// The mean when it was last computed.
    mean: Mean,
    /// The reference of the virtual times in `sum`, so that it stays small.
    zero: i64,
    /// Σ weight × (virtual run time − zero).
    sum: i128,
    /// Σ weight.
    weight: u64,
    /// The number of waiting and running tasks per request.
    requests: BTreeMap<u32, u32>,
}

/// The sort key of a task. Virtual times are nanoseconds of a task of nice 0.
#[derive(Clone, Copy, Default, Debug)]
pub struct Key {
    /// When its request is due.
    pub deadline: i64,
    /// Its service divided by its weight.
    pub vruntime: i64,
    /// The CPU time that it requests, in ns.
    pub request: u32,
    /// Its weight.
    pub weight: Weight,
    /// When it started to wait, if it waits.
    pub sequence: u32,
}

impl Key {
    /// Charges CPU time; a request that is due is followed by the next. Whether it was due.
    pub fn charge(&mut self, ran: Nanos) -> bool {
        self.vruntime += self.weight.virtual_time(ran.0);
        let is_due = self.vruntime >= self.deadline;
        if is_due {
            self.deadline = self.vruntime + self.weight.virtual_time(u64::from(self.request));
        }
        is_due
    }
}

/// The weighted mean of virtual run times, as a fraction.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mean {
    zero: i64,
    sum: i128,
    weight: u64,
}

/// In all methods, `key` returns the key of a task.
impl Timeline {
    /// Inserts `task`, whose number in the waiting order is set.
    #[inline]
    pub fn insert<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, task: TaskId) {
        let Key { weight, vruntime, .. } = *key(task);
        self.sum += i128::from(weight.get()) * i128::from(vruntime - self.zero);
        self.weight += u64::from(weight.get());
        let is_eligible = self.mean.is_eligible(vruntime);
        self.rank(key, task, is_eligible);
    }

    /// Removes `task`, which is marked as not waiting.
    #[inline]
    pub fn remove<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, task: TaskId) {
        self.eligible.settle(|task| key(task).sequence);
        self.others.settle(|task| key(task).sequence);
        let Key { weight, vruntime, .. } = *key(task);
        self.sum -= i128::from(weight.get()) * i128::from(vruntime - self.zero);
        self.weight -= u64::from(weight.get());
    }

    /// The earliest deadline among those who are eligible by `mean`.
    pub fn first_eligible<'k>(
        &mut self,
        key: impl Fn(TaskId) -> &'k Key,
        mean: &Mean,
    ) -> Option<TaskId> {
        self.mean = *mean;
        while let Some(Entry { task, .. }) = self.eligible.first()
            && !mean.is_eligible(key(task).vruntime)
        {
            self.eligible.pop(|task| key(task).sequence);
            self.rank(&key, task, false);
        }
        while let Some(Entry { time, task, .. }) = self.others.first()
            && mean.is_eligible(time)
        {
            self.others.pop(|task| key(task).sequence);
            self.rank(&key, task, true);
        }
        self.eligible.first().map(|entry| entry.task)
    }

    #[inline]
    fn rank<'k>(&mut self, key: impl Fn(TaskId) -> &'k Key, task: TaskId, is_eligible: bool) {
        let Key { vruntime, deadline, sequence, .. } = *key(task);
        if is_eligible {
            self.eligible
                .insert(|task| key(task).sequence, Entry { time: deadline, sequence, task });
        } else {
            self.others.insert(|task| key(task).sequence, Entry { time: vruntime, sequence, task });
        }
    }

    /// The only task, if there is just one.
    pub fn only(&self) -> Option<TaskId> {
        self.eligible.first().or(self.others.first()).map(|entry| entry.task)
    }

    /// A task with this request joins, waiting or running.
    pub fn note_request(&mut self, request: u32) {
        *self.requests.entry(request).or_default() += 1;
    }

    /// A task with this request leaves.
    pub fn forget_request(&mut self, request: u32) {
        if let Some(count) = self.requests.get_mut(&request) {
            *count -= 1;
            if *count == 0 {
                self.requests.remove(&request);
            }
        }
    }

    /// The smallest request of a waiting or running task.
    pub fn min_request(&self) -> u32 {
        self.requests.first_key_value().map_or(u32::MAX, |(&request, _)| request)
    }

    /// The mean of the waiting tasks and `running`.
    #[inline]
    pub fn mean(&self, running: Option<&Key>) -> Mean {
        let mut mean = Mean { zero: self.zero, sum: self.sum, weight: self.weight };
        if let Some(running) = running {
            mean.sum += i128::from(running.weight.get()) * i128::from(running.vruntime - self.zero);
            mean.weight += u64::from(running.weight.get());
        }
        mean
    }

    /// Makes `zero` the reference of `sum`.
    pub fn rebase(&mut self, zero: i64) {
        self.sum -= i128::from(self.weight) * i128::from(zero - self.zero);
        self.zero = zero;
    }
}

impl Mean {
    /// The mean, rounded down: the largest virtual run time of an eligible task.
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

    /// The weight of all tasks.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether a task with this virtual run time is eligible. Exact, without a division.
    #[inline(always)]
    pub fn is_eligible(&self, vruntime: i64) -> bool {
        i128::from(vruntime - self.zero) * i128::from(self.weight) <= self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ranking::{NOT_WAITING, Sequences};
    use super::*;
    use crate::Random;

    fn key(vruntime: i64, deadline: i64, weight: u32) -> Key {
        Key {
            vruntime,
            deadline,
            weight: Weight::new(weight),
            request: 700_000,
            sequence: NOT_WAITING,
        }
    }

    #[test]
    fn the_earliest_is_found_after_the_mean_goes_back() {
        const TASKS: u32 = 2000;
        let mut random = Random::new(3);
        let mut draw = |limit: u64| random.below(limit) as i64;
        let mut keys: Vec<Key> =
            (0..TASKS).map(|n| key(draw(1_000_000), draw(1_000_000), 15 + n % 5000)).collect();
        let (mut sequences, mut timeline) = (Sequences::default(), Timeline::default());
        for task in (0..TASKS).map(TaskId) {
            keys[task.index()].sequence = sequences.next();
            timeline.insert(|task| &keys[task.index()], task);
        }
        for _ in 0..5000 {
            // The running task weighs much, and alternates between far ahead and far behind: the
            // mean moves up and down.
            let running = key(timeline.mean(None).floor() + draw(200_000) - 100_000, 0, 88_761);
            let mean = timeline.mean(Some(&running));
            let task = timeline.first_eligible(|task| &keys[task.index()], &mean).unwrap();
            let eligible =
                (0..TASKS).map(TaskId).filter(|task| mean.is_eligible(keys[task.index()].vruntime));
            let least = eligible.map(|task| keys[task.index()].deadline).min();
            assert_eq!(least, Some(keys[task.index()].deadline));
            keys[task.index()].sequence = NOT_WAITING;
            timeline.remove(|task| &keys[task.index()], task);
            let key = &mut keys[task.index()];
            key.vruntime += draw(1_000_000) * 1024 / i64::from(key.weight.get());
            key.deadline = key.vruntime + draw(1_000_000);
            key.sequence = sequences.next();
            timeline.insert(|task| &keys[task.index()], task);
        }
    }

    #[test]
    fn the_mean_is_exact_where_it_decides() {
        let mut keys = [key(10, 50, 3), key(11, 40, 1)];
        let (mut sequences, mut timeline) = (Sequences::default(), Timeline::default());
        for task in [TaskId(0), TaskId(1)] {
            keys[task.index()].sequence = sequences.next();
            timeline.insert(|task| &keys[task.index()], task);
        }
        let mean = timeline.mean(None); // 41 / 4
        assert_eq!((mean.floor(), mean.is_eligible(10), mean.is_eligible(11)), (10, true, false));
        assert_eq!(timeline.first_eligible(|task| &keys[task.index()], &mean), Some(TaskId(0)));
        timeline.rebase(-1000);
        assert_eq!(timeline.mean(None).floor(), 10);
        assert_eq!(timeline.mean(Some(&key(-30, 0, 4))).floor(), -10); // floor((41 - 120) / 8)
    }
}
