//! The tree of one CPU's waiting tasks: ordered by virtual deadline, with the smallest virtual run time and request below each node.
//!
//! The earliest deadline among the eligible is found on one way down, because a subtree whose smallest virtual run time is not eligible holds
//! nobody who is.

use readyq::tree::{Augment, Tree};
use readyq::{Node, Nodes, TaskId};

/// The waiting tasks of one CPU, and what their average is made of.
#[derive(Clone, Debug)]
pub struct Timeline {
    tree: Tree,
    /// Virtual times enter `sum` as distances from here, so that it stays small.
    zero: i64,
    /// Σ weight × (virtual run time − zero).
    sum: i128,
    /// Σ weight.
    weight: u64,
}

/// What a task is sorted by. Virtual times are nanoseconds of a task of nice 0. 32 bytes: the tree touches these of some fifty tasks at a time.
#[derive(Clone, Copy, Default, Debug)]
pub struct Key {
    /// When its request is due.
    pub deadline: i64,
    /// How much it was served, divided by its weight.
    pub vruntime: i64,
    /// The smallest `vruntime` of it and what stands below it in the tree.
    least_vruntime: i64,
    /// How much CPU time it requests at a time, in ns.
    pub request: u32,
    /// The smallest `request` likewise.
    least_request: u32,
}

impl Key {
    /// A task that has not been served and requests `request` ns at a time.
    pub fn new(request: u32) -> Key {
        Key { request, ..Key::default() }
    }
}

/// The weighted mean of virtual run times, as a fraction: what they were served on average.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    zero: i64,
    sum: i128,
    weight: u64,
}

impl Timeline {
    pub const EMPTY: Timeline = Timeline { tree: Tree::new(), zero: 0, sum: 0, weight: 0 };

    /// Lets `task` wait.
    pub fn insert(&mut self, nodes: &mut [Node], keys: &mut [Key], task: TaskId, weight: u32) {
        let Key { vruntime, deadline, request, .. } = keys[task.index()];
        self.sum += i128::from(weight) * i128::from(vruntime - self.zero);
        self.weight += u64::from(weight);
        let nodes = Nodes::from_mut(nodes);
        let place = self.tree.place(nodes, |_, other| {
            count_step();
            let other = &mut keys[other.index()];
            other.least_vruntime = other.least_vruntime.min(vruntime);
            other.least_request = other.least_request.min(request);
            deadline < other.deadline
        });
        self.tree.insert_at(nodes, task, place, &mut Below(keys));
    }

    /// Takes out `task`.
    pub fn remove(&mut self, nodes: &mut [Node], keys: &mut [Key], task: TaskId, weight: u32) {
        self.tree.remove_augmented(Nodes::from_mut(nodes), task, &mut Below(keys));
        self.sum -= i128::from(weight) * i128::from(keys[task.index()].vruntime - self.zero);
        self.weight -= u64::from(weight);
    }

    /// The earliest deadline.
    pub fn first(&self) -> Option<TaskId> {
        self.tree.first()
    }

    /// The smallest request of a waiting task.
    pub fn least_request(&self, keys: &[Key]) -> u32 {
        self.tree.root().map_or(u32::MAX, |root| keys[root.index()].least_request)
    }

    /// The earliest deadline among those who are eligible by `mean`.
    pub fn first_eligible(&self, nodes: &[Node], keys: &[Key], mean: &Mean) -> Option<TaskId> {
        let first = self.tree.first()?;
        if mean.is_eligible(keys[first.index()].vruntime) {
            return Some(first);
        }
        // One division here in place of a multiplication of 128 bits at every level.
        let most = mean.floor();
        let nodes = Nodes::from_ref(nodes);
        let mut next = self.tree.root();
        while let Some(task) = next {
            count_step();
            match self.tree.left(nodes, task) {
                Some(left) if keys[left.index()].least_vruntime <= most => next = Some(left),
                _ if keys[task.index()].vruntime <= most => return Some(task),
                _ => next = self.tree.right(nodes, task),
            }
        }
        None
    }

    /// The mean of those who wait and of `running`.
    pub fn mean(&self, running: Option<(&Key, u32)>) -> Mean {
        let mut mean = Mean { zero: self.zero, sum: self.sum, weight: self.weight };
        if let Some((running, weight)) = running {
            mean.sum += i128::from(weight) * i128::from(running.vruntime - self.zero);
            mean.weight += u64::from(weight);
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
    #[inline]
    pub fn is_eligible(&self, vruntime: i64) -> bool {
        i128::from(vruntime - self.zero) * i128::from(self.weight) <= self.sum
    }
}

/// The smallest values below each task, kept in the keys.
struct Below<'a>(&'a mut [Key]);

impl Augment for Below<'_> {
    const TOLD_ON_THE_WAY: bool = true;

    #[inline]
    fn recompute(&mut self, _nodes: &Nodes, task: TaskId, left: Option<TaskId>, right: Option<TaskId>) -> bool {
        let own = &self.0[task.index()];
        let (mut vruntime, mut request) = (own.vruntime, own.request);
        for child in [left, right].into_iter().flatten() {
            let child = &self.0[child.index()];
            vruntime = vruntime.min(child.least_vruntime);
            request = request.min(child.least_request);
        }
        count_step();
        let own = &mut self.0[task.index()];
        let before = (own.least_vruntime, own.least_request);
        (own.least_vruntime, own.least_request) = (vruntime, request);
        before != (vruntime, request)
    }
}

/// Called for every task that an operation looks at; counts in tests.
#[inline(always)]
fn count_step() {
    #[cfg(test)]
    tests::STEPS.with(|steps| steps.set(steps.get() + 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        pub static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    fn key(vruntime: i64, deadline: i64) -> Key {
        Key { vruntime, deadline, ..Key::new(700_000) }
    }

    #[test]
    fn with_10_000_tasks_an_operation_looks_at_a_few_dozen() {
        let count = 10_000u32;
        // Deadlines and virtual run times that have nothing to do with one another make the search as hard as it gets.
        let scramble = |n: u32, factor: u64| (u64::from(n) * factor % 1_000_003) as i64;
        let weight = |task: TaskId| 15 + task.0 % 5000;
        let mut keys: Vec<Key> = (0..count).map(|n| key(scramble(n, 7919), scramble(n, 104_729))).collect();
        let mut nodes = vec![Node::NEW; count as usize];
        let mut timeline = Timeline::EMPTY;
        for task in 0..count {
            timeline.insert(&mut nodes, &mut keys, TaskId(task), weight(TaskId(task)));
        }
        let mut worst = 0;
        for round in 0..20_000 {
            STEPS.with(|steps| steps.set(0));
            let mean = timeline.mean(None);
            let task = timeline.first_eligible(&nodes, &keys, &mean).unwrap();
            if round % 500 == 0 {
                let eligible = (0..count).map(TaskId).filter(|task| mean.is_eligible(keys[task.index()].vruntime));
                let least = eligible.map(|task| keys[task.index()].deadline).min();
                assert_eq!(least, Some(keys[task.index()].deadline), "the values below are up to date");
            }
            timeline.remove(&mut nodes, &mut keys, task, weight(task));
            let key = &mut keys[task.index()];
            key.vruntime += scramble(round, 31) * 1024 / i64::from(weight(task));
            key.deadline = key.vruntime + scramble(round, 17);
            timeline.insert(&mut nodes, &mut keys, task, weight(task));
            worst = worst.max(STEPS.with(Cell::get));
        }
        // Three times the height of the tree (at most 2 log2 10,001 = 26), and two per rotation.
        assert!(worst <= 3 * 27 + 12, "{worst}");
        println!("at most {worst} steps");
    }

    #[test]
    fn the_mean_is_exact_where_it_decides() {
        let mut keys = [key(10, 50), key(11, 40)];
        let mut nodes = [Node::NEW; 2];
        let mut timeline = Timeline::EMPTY;
        timeline.insert(&mut nodes, &mut keys, TaskId(0), 3);
        timeline.insert(&mut nodes, &mut keys, TaskId(1), 1);
        let mean = timeline.mean(None); // 41 / 4
        assert_eq!((mean.floor(), mean.is_eligible(10), mean.is_eligible(11)), (10, true, false));
        assert_eq!(timeline.first_eligible(&nodes, &keys, &mean), Some(TaskId(0)));
        timeline.rebase(-1000);
        assert_eq!(timeline.mean(None).floor(), 10);
        assert_eq!(timeline.mean(Some((&key(-30, 0), 4))).floor(), -10); // (41 - 120) / 8, rounded down
    }
}
