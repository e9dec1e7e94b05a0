//! What happens next: one time per CPU in a tournament, and a heap of timers.

use crate::{CpuId, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The next event of each CPU. A tournament: `tree[1]` is the CPU whose event is earliest, the lower number among equals.
pub struct CpuTimes {
    times: Vec<Time>,
    /// `tree[n]` wins over `tree[2n]` and `tree[2n + 1]`; the leaves are the CPUs themselves, at `leaves + cpu`.
    tree: Vec<u16>,
    leaves: usize,
}

impl CpuTimes {
    pub fn new(cpus: u16) -> CpuTimes {
        let leaves = usize::from(cpus).next_power_of_two();
        // Absent CPUs lose every match: their number is higher and their time is never.
        let times = vec![Time::NEVER; leaves];
        let mut tree = vec![0; 2 * leaves];
        for node in (1..2 * leaves).rev() {
            tree[node] = if node >= leaves { (node - leaves) as u16 } else { tree[2 * node] };
        }
        CpuTimes { times, tree, leaves }
    }

    #[inline]
    pub fn earliest(&self) -> (Time, CpuId) {
        let cpu = self.tree[1];
        (self.times[usize::from(cpu)], CpuId(cpu))
    }

    #[inline]
    pub fn set(&mut self, cpu: CpuId, time: Time) {
        self.times[cpu.index()] = time;
        let mut node = (self.leaves + cpu.index()) / 2;
        while node > 0 {
            let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
            self.tree[node] = if self.times[usize::from(right)] < self.times[usize::from(left)] { right } else { left };
            node /= 2;
        }
    }
}

/// Starts and ends of sleeps, earliest first, equal times in order of task id. A task is in here at most once.
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, TaskId)>>,
}

impl Timers {
    pub fn new() -> Timers {
        Timers { heap: BinaryHeap::new() }
    }

    #[inline]
    pub fn insert(&mut self, time: Time, task: TaskId) {
        self.heap.push(Reverse((time, task)));
    }

    #[inline]
    pub fn earliest(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((time, _))| *time)
    }

    /// Takes out the task whose time comes first; there must be one.
    #[inline]
    pub fn pop(&mut self) -> TaskId {
        self.heap.pop().map_or(TaskId::NONE, |Reverse((_, task))| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tournament_agrees_with_a_scan(cpus in 1u16..70, sets in proptest::collection::vec((0u16..70, 0u64..20), 1..200)) {
            let mut times = CpuTimes::new(cpus);
            let mut scan = vec![Time::NEVER; usize::from(cpus)];
            for (cpu, time) in sets {
                let cpu = CpuId(cpu % cpus);
                times.set(cpu, Time(time));
                scan[cpu.index()] = Time(time);
                let first = scan.iter().enumerate().min_by_key(|&(index, time)| (time, index)).map(|(index, time)| (*time, CpuId(index as u16)));
                prop_assert_eq!(Some(times.earliest()), first);
            }
        }
    }
}
