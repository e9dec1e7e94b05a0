//! What happens next: one time per CPU in a tournament, and a heap of timers.

use crate::{CpuId, TaskId, Time};

/// The next event of each CPU. A tournament: `nodes[1]` is the CPU whose event is earliest, the lower number among equals.
pub struct CpuTimes {
    /// Time and CPU as one number. `nodes[n]` is the lesser of `nodes[2n]` and `nodes[2n + 1]`; the leaves are the CPUs themselves, at `leaves + cpu`.
    nodes: Vec<u128>,
    leaves: usize,
}

const CPU_BITS: u32 = u16::BITS;

impl CpuTimes {
    pub fn new(cpus: u16) -> CpuTimes {
        let leaves = usize::from(cpus).next_power_of_two();
        let mut times = CpuTimes { nodes: vec![u128::MAX; 2 * leaves], leaves };
        (0..cpus).rev().for_each(|cpu| times.set(CpuId(cpu), Time::NEVER));
        times
    }

    #[inline]
    pub fn earliest(&self) -> (Time, CpuId) {
        let first = self.nodes[1];
        (Time((first >> CPU_BITS) as u64), CpuId(first as u16))
    }

    #[inline]
    pub fn set(&mut self, cpu: CpuId, time: Time) {
        let mut node = self.leaves + cpu.index();
        self.nodes[node] = u128::from(time.0) << CPU_BITS | u128::from(cpu.0);
        while node > 1 {
            let lesser = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == lesser {
                return; // and nothing changes further up
            }
            self.nodes[node] = lesser;
        }
    }
}

/// Starts and ends of sleeps, earliest first, equal times in order of task id. A task is in here at most once.
///
/// A heap in which a node has four children: half as deep as a binary one, and four children are 64 bytes, so that a million sleeping tasks cost few
/// cache misses. Time and task are one number, so that two timers are compared without a branch.
pub struct Timers {
    heap: Vec<u128>,
}

const CHILDREN: usize = 4;
const TASK_BITS: u32 = u32::BITS;

impl Timers {
    pub fn new() -> Timers {
        Timers { heap: Vec::new() }
    }

    #[inline]
    pub fn earliest(&self) -> Time {
        self.heap.first().map_or(Time::NEVER, |timer| Time((timer >> TASK_BITS) as u64))
    }

    #[inline]
    pub fn insert(&mut self, time: Time, task: TaskId) {
        let timer = u128::from(time.0) << TASK_BITS | u128::from(task.0);
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
        let Some(&first) = self.heap.first() else { return TaskId(last as u32) };
        let mut hole = 0;
        loop {
            let begin = hole * CHILDREN + 1;
            let (place, least) = match self.heap[begin.min(self.heap.len())..] {
                [a, b, c, d, ..] => {
                    let (left, right) = (lesser((0, a), (1, b)), lesser((2, c), (3, d)));
                    lesser(left, right)
                }
                [] => break,
                ref few => few.iter().enumerate().map(|(place, &timer)| (place, timer)).fold((0, u128::MAX), lesser),
            };
            if last <= least {
                break;
            }
            self.heap[hole] = least;
            hole = begin + place;
        }
        self.heap[hole] = last;
        TaskId(first as u32)
    }
}

#[inline(always)]
fn lesser(one: (usize, u128), other: (usize, u128)) -> (usize, u128) {
    let first = one.1 < other.1;
    (if first { one.0 } else { other.0 }, if first { one.1 } else { other.1 })
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
