//! What happens next: one time per CPU in a tournament, and a heap of timers.

use crate::{CpuId, TaskId, Time};

/// The next event of each CPU. A tournament: `nodes[1]` is the CPU whose event is earliest, the lower number among equals.
pub struct CpuTimes {
    /// `nodes[n]` is the winner of `nodes[2n]` and `nodes[2n + 1]`; the leaves are the CPUs themselves, at `leaves + cpu`.
    nodes: Vec<(Time, CpuId)>,
    leaves: usize,
}

impl CpuTimes {
    pub fn new(cpus: u16) -> CpuTimes {
        let leaves = usize::from(cpus).next_power_of_two();
        // Absent CPUs lose every match: their number is higher and their time is never.
        let mut nodes = vec![(Time::NEVER, CpuId(0)); 2 * leaves];
        for node in (1..2 * leaves).rev() {
            nodes[node].1 = if node >= leaves { CpuId((node - leaves) as u16) } else { nodes[2 * node].1 };
        }
        CpuTimes { nodes, leaves }
    }

    #[inline]
    pub fn earliest(&self) -> (Time, CpuId) {
        self.nodes[1]
    }

    #[inline]
    pub fn set(&mut self, cpu: CpuId, time: Time) {
        let mut node = self.leaves + cpu.index();
        self.nodes[node].0 = time;
        while node > 1 {
            let (left, right) = (self.nodes[node & !1], self.nodes[node | 1]);
            let winner = if right.0 < left.0 { right } else { left };
            node /= 2;
            if self.nodes[node] == winner {
                return; // and nothing changes further up
            }
            self.nodes[node] = winner;
        }
    }
}

/// Starts and ends of sleeps, earliest first, equal times in order of task id. A task is in here at most once.
///
/// A heap in which a node has four children: half as deep as a binary one, and four children are 64 bytes, so that a million sleeping tasks cost few
/// cache misses.
pub struct Timers {
    heap: Vec<Timer>,
}

/// When, and whose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Timer {
    time: Time,
    task: TaskId,
}

const CHILDREN: usize = 4;

impl Timers {
    pub fn new() -> Timers {
        Timers { heap: Vec::new() }
    }

    #[inline]
    pub fn earliest(&self) -> Time {
        self.heap.first().map_or(Time::NEVER, |timer| timer.time)
    }

    #[inline]
    pub fn insert(&mut self, time: Time, task: TaskId) {
        let timer = Timer { time, task };
        let mut hole = self.heap.len();
        self.heap.push(timer);
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.heap[parent] <= timer {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = timer;
    }

    /// Takes out the task whose time comes first; there must be one.
    #[inline]
    pub fn pop(&mut self) -> TaskId {
        let Some(last) = self.heap.pop() else { return TaskId::NONE };
        let Some(first) = self.heap.first().copied() else { return last.task };
        let mut hole = 0;
        loop {
            let begin = hole * CHILDREN + 1;
            let end = (begin + CHILDREN).min(self.heap.len());
            let Some(children) = self.heap.get(begin..end) else { break };
            let Some((place, &least)) = children.iter().enumerate().min_by_key(|&(_, timer)| *timer) else { break };
            if last <= least {
                break;
            }
            self.heap[hole] = least;
            hole = begin + place;
        }
        self.heap[hole] = last;
        first.task
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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

        #[test]
        fn timers_come_out_in_order_of_time_and_task(steps in proptest::collection::vec(proptest::option::weighted(0.6, 0u64..30), 1..300)) {
            let (mut timers, mut set) = (Timers::new(), BTreeSet::new());
            for (task, step) in steps.into_iter().enumerate() {
                if let Some(time) = step {
                    timers.insert(Time(time), TaskId(task as u32));
                    set.insert((Time(time), TaskId(task as u32)));
                } else if let Some((_, task)) = set.pop_first() {
                    prop_assert_eq!(timers.pop(), task);
                }
                prop_assert_eq!(timers.earliest(), set.first().map_or(Time::NEVER, |&(time, _)| time));
            }
        }
    }
}
