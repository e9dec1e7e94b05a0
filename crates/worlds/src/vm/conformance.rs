//! Compares the order in which the kernel ran the workload's tasks with the order of the simulated
//! policy.
//!
//! It compares which task runs next, not when. Tasks outside the workload (kernel threads, the
//! scheduler's program) are left out, so a task that continues after one of them has had one run.
//! The runs are events as well, so `schedlab diff` can show the first that differs. The longest
//! common subsequence aligns the two orders (Myers' algorithm); the other runs are counted by
//! class.

use schedsim::trace::{Event, EventKind, Observer, PrevState};
use schedsim::{CpuId, Nanos, TaskId, Ticks, Time};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeMap;

/// Collects all events.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// In order of time.
    pub events: Vec<Event>,
}

impl Observer for Collector {
    fn events(&mut self, chunk: &[Event]) {
        self.events.extend(chunk);
    }
}

impl Collector {
    /// The runs of the workload's tasks; `number` maps tasks to their numbers.
    pub fn turns(&self, number: impl Fn(TaskId) -> Option<u32>) -> Turns {
        let own = |task| number(task).map(TaskId);
        let (mut last, mut events) = (BTreeMap::new(), Vec::new());
        for event in &self.events {
            let kind = match event.kind {
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    if let Some(prev) = own(prev) {
                        last.insert(event.cpu, (prev, prev_state));
                    }
                    let (prev, prev_state) = last
                        .get(&event.cpu)
                        .copied()
                        .unwrap_or((TaskId::NONE, PrevState::Runnable));
                    own(next).filter(|&next| next != prev).map(|next| EventKind::SchedSwitch {
                        prev,
                        next,
                        prev_state,
                    })
                }
                EventKind::SchedWaking { task, target, context } => {
                    own(task).map(|task| EventKind::SchedWaking { task, target, context })
                }
                EventKind::SchedWakeupNew { task, target } => {
                    own(task).map(|task| EventKind::SchedWakeupNew { task, target })
                }
                _ => None,
            };
            events.extend(kind.map(|kind| Event { kind, ..*event }));
        }
        Turns { events }
    }

    /// The ticks, a `period` apart. The kernel checks at ticks whether a slice is over, so they are
    /// where runs end that lasted a period or longer. Their cost is not visible.
    pub fn ticks(&self, number: impl Fn(TaskId) -> Option<u32>, period: Nanos) -> Ticks {
        const ENOUGH: usize = 200;
        let begin = self.turns(&number).events.first().map_or(Time::ZERO, |event| event.time);
        let (mut since, mut ends) = (BTreeMap::new(), Vec::new());
        for event in self.events.iter().filter(|event| event.time >= begin) {
            let EventKind::SchedSwitch { prev, prev_state, .. } = event.kind else { continue };
            let since = since.insert(event.cpu, event.time).unwrap_or(begin);
            if number(prev).is_some()
                && prev_state == PrevState::Runnable
                && event.time.since(since) >= period
            {
                ends.push(event.time.0 % period.0);
            }
        }
        ends.truncate(ENOUGH);
        // On a circle: 0 and the period are the same.
        let apart = |a: u64, b: u64| a.abs_diff(b).min(period.0 - a.abs_diff(b));
        let usual = ends
            .iter()
            .min_by_key(|&&end| ends.iter().map(|&other| apart(end, other)).sum::<u64>())
            .copied()
            .unwrap_or(0);
        if self.events.iter().all(|event| event.cpu == CpuId(0)) {
            return Ticks::new(period, Time(usual));
        }
        // CPUs do not reach their ticks at the same time; the difference lies between the tenths at
        // both ends.
        let half = period.0 / 2;
        let mut around: Vec<u64> =
            ends.iter().map(|end| (end + period.0 + half - usual) % period.0).collect();
        around.sort_unstable();
        let [early, late] =
            [1, 9].map(|tenth| around.get(around.len() * tenth / 10).copied().unwrap_or(half));
        Ticks {
            lateness: Nanos(late - early),
            ..Ticks::new(period, Time((usual + period.0 + early - half) % period.0))
        }
    }
}

/// The history of a workload's tasks, by the workload's numbers: a switch for each run, and the
/// wakeups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turns {
    /// In order of time.
    pub events: Vec<Event>,
}

impl Turns {
    /// The runs that begin before `end`. When a workload is stopped, the kernel continues until the
    /// runner runs.
    pub fn until(mut self, end: Time) -> Turns {
        self.events.retain(|event| event.time < end);
        self
    }

    /// The task of each run.
    pub fn order(&self) -> Vec<u32> {
        let task = |event: &Event| {
            if let EventKind::SchedSwitch { next, .. } = event.kind { Some(next.0) } else { None }
        };
        self.events.iter().filter_map(task).collect()
    }
}

/// The classes of differences, in the order in which they are tested.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Difference {
    /// Before every task has run in both: real tasks leave the gate one after another.
    Begin,
    /// One of the orders ends first.
    End,
    /// The task runs in both, a few runs apart.
    Order,
    /// A run in the kernel only: a task was interrupted in its run, or woke earlier.
    KernelOnly,
    /// A run in the simulator only.
    SimulatorOnly,
}

impl Difference {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Difference::Begin => "begin",
            Difference::End => "end",
            Difference::Order => "order",
            Difference::KernelOnly => "kernel only",
            Difference::SimulatorOnly => "simulator only",
        }
    }
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conformance {
    /// The number of runs in the kernel.
    pub real: usize,
    /// The number of runs in the simulator.
    pub simulated: usize,
    /// The number of common runs.
    pub equal: usize,
    /// The number of other runs of each class. A run that is in both orders counts once.
    pub differences: BTreeMap<Difference, usize>,
}

/// A run that the other order lacks at its place.
#[derive(Clone, Copy)]
struct Odd {
    task: u32,
    /// Its place, or where it would be, in either order.
    at: (usize, usize),
    in_kernel: bool,
}

/// Two runs of a task that are at most this far apart are the same run.
const NEAR: usize = 16;

impl Conformance {
    /// Compares two orders.
    pub fn of(real: &[u32], simulated: &[u32]) -> Conformance {
        let operations = capture_diff_slices(Algorithm::Myers, real, simulated);
        let equal = operations
            .iter()
            .map(|operation| if let DiffOp::Equal { len, .. } = operation { *len } else { 0 })
            .sum();
        let mut odd: Vec<Odd> =
            operations.iter().flat_map(|operation| odd_turns(operation, real, simulated)).collect();
        let begun = (begun(real), begun(simulated));
        let ends = operations.last().map_or((0, 0), |operation| match operation {
            DiffOp::Equal { .. } => (real.len(), simulated.len()),
            _ => (operation.old_range().start, operation.new_range().start),
        });
        let mut differences = BTreeMap::new();
        while let Some(turn) = odd.pop() {
            let twin = odd.iter().rposition(|other| {
                other.task == turn.task
                    && other.in_kernel != turn.in_kernel
                    && other.at.0.abs_diff(turn.at.0) <= NEAR
            });
            let class = match twin {
                _ if turn.at.0 < begun.0 && turn.at.1 < begun.1 => Difference::Begin,
                _ if turn.at.0 >= ends.0 && turn.at.1 >= ends.1 => Difference::End,
                Some(_) => Difference::Order,
                None if turn.in_kernel => Difference::KernelOnly,
                None => Difference::SimulatorOnly,
            };
            if let Some(twin) = twin {
                odd.remove(twin);
            }
            *differences.entry(class).or_default() += 1;
        }
        Conformance { real: real.len(), simulated: simulated.len(), equal, differences }
    }

    /// The share of equal runs in the longer order.
    pub fn share(&self) -> f64 {
        self.equal as f64 / self.real.max(self.simulated).max(1) as f64
    }
}

fn odd_turns(operation: &DiffOp, real: &[u32], simulated: &[u32]) -> Vec<Odd> {
    if matches!(operation, DiffOp::Equal { .. }) {
        return Vec::new();
    }
    let (old, new) = (operation.old_range(), operation.new_range());
    let in_kernel =
        old.clone().map(|at| Odd { task: real[at], at: (at, new.start), in_kernel: true });
    let in_simulator =
        new.clone().map(|at| Odd { task: simulated[at], at: (old.start, at), in_kernel: false });
    in_kernel.chain(in_simulator).collect()
}

/// The number of runs after which every task has run.
fn begun(turns: &[u32]) -> usize {
    let mut first = BTreeMap::new();
    turns.iter().enumerate().for_each(|(at, task)| {
        first.entry(*task).or_insert(at);
    });
    first.values().max().map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::CpuId;

    fn classes(real: &[u32], simulated: &[u32]) -> Vec<(&'static str, usize)> {
        Conformance::of(real, simulated)
            .differences
            .iter()
            .map(|(class, count)| (class.name(), *count))
            .collect()
    }

    #[test]
    fn runs_are_those_of_the_workload_and_a_continued_run_counts_once() {
        let chosen = [1, 9, 1, 2, 9, 2, 1];
        let switches = std::iter::once(&9).chain(&chosen).zip(&chosen).map(|(&prev, &next)| {
            EventKind::SchedSwitch {
                prev: TaskId(prev),
                next: TaskId(next),
                prev_state: PrevState::Runnable,
            }
        });
        let mut collector = Collector::default();
        collector.events(
            &switches
                .map(|kind| Event { time: Time::ZERO, cpu: CpuId(0), kind })
                .collect::<Vec<_>>(),
        );
        let turns = collector.turns(|task| (task.0 < 9).then_some(task.0 + 10));
        assert_eq!(turns.order(), [11, 12, 11]);
        assert!(matches!(
            turns.events[1].kind,
            EventKind::SchedSwitch { prev: TaskId(11), next: TaskId(12), .. }
        ));
    }

    #[test]
    fn ticks_are_where_long_runs_end() {
        let switch = |(at, prev, next)| {
            let kind = EventKind::SchedSwitch {
                prev: TaskId(prev),
                next: TaskId(next),
                prev_state: PrevState::Runnable,
            };
            Event { time: Time(at), cpu: CpuId(0), kind }
        };
        let mut collector = Collector::default();
        // Runs of 107, 100 and 99, which is too short, and one of another task.
        collector
            .events(&[(50, 9, 1), (157, 1, 2), (257, 2, 1), (356, 1, 9), (999, 9, 1)].map(switch));
        let number = |task: TaskId| (task.0 < 9).then_some(task.0);
        assert_eq!(collector.ticks(number, Nanos(100)), Ticks::new(Nanos(100), Time(57)));
    }

    #[test]
    fn equal_orders_are_equal_and_each_difference_has_its_class() {
        let round: Vec<u32> = (0..100).map(|turn| turn % 4).collect();
        assert_eq!(Conformance::of(&round, &round).share(), 1.0);
        let mut swapped = round.clone();
        swapped.swap(50, 51);
        let conformance = Conformance::of(&round, &swapped);
        assert_eq!((conformance.equal, classes(&round, &swapped)), (99, vec![("order", 1)]));
        let mut more = round.clone();
        more.insert(50, 0);
        assert_eq!(classes(&more, &round), [("kernel only", 1)]);
        assert_eq!(classes(&round, &more), [("simulator only", 1)]);
        assert_eq!(classes(&round, &round[..90]), [("end", 10)]);
        let mut early = round.clone();
        early.swap(0, 1);
        assert_eq!(classes(&early, &round), [("begin", 1)]);
        let unlike: Vec<u32> = round.iter().map(|task| task + 10).collect();
        assert_eq!(Conformance::of(&round, &unlike).share(), 0.0);
    }
}
