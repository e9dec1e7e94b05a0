//! Measures the cost of `sched_yield` in a kernel, in instructions, and its growth with the number
//! of tasks that only yield.
//!
//! One CPU, no idle time: the clock counts instructions. The time between two readings, divided by
//! the yields between them, is the cost of one. It includes the switch to the next task, the timer
//! interrupts and the loop around it.

use super::Transcript;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Windows};
use schedsim::workload::{Closed, Phase, Tasks};

/// The approximate number of yields of all tasks in one window.
const YIELDS: u64 = 6_000;
/// The number of windows that are kept.
const WINDOWS: u32 = 5;

/// The number of windows before them that are left out: in the first, some tasks have not run yet.
const WARM_UP: u32 = 2;

/// The job that measures `tasks` that yield. The periods of deadline tasks are multiplied by the
/// number of tasks, so that all together reserve what one would.
pub fn job(tasks: u32, class: Class) -> Job {
    let rounds = (YIELDS / u64::from(tasks)).max(10);
    let yields = Phase::forever(vec![Phase::Yield]);
    let (class, phases) = match class {
        // Real-time tasks begin together at a barrier and end by themselves.
        Class::Fifo(_) | Class::Rr(_) => {
            let all = rounds * u64::from(WARM_UP + WINDOWS + 1);
            (
                class,
                vec![Phase::Barrier("start".to_string()), Phase::repeat(all, vec![Phase::Yield])],
            )
        }
        Class::Deadline { runtime, deadline, period } => {
            let times = u64::from(tasks);
            (
                Class::Deadline { runtime, deadline: deadline * times, period: period * times },
                vec![yields],
            )
        }
        Class::Other | Class::Batch | Class::Idle => (class, vec![yields]),
    };
    let workload = Closed {
        tasks: vec![Tasks { count: tasks, ..Tasks::new("yielder", phases) }],
        ..Closed::default()
    };
    let windows = Some(Windows { count: WINDOWS, warm_up: WARM_UP, rounds });
    Job { windows, ..Job::new(format!("yield:{tasks}"), workload, class) }
}

/// The result of a yield job.
#[derive(Clone, PartialEq, Debug)]
pub struct YieldCost {
    /// Instructions per yield, over all windows.
    pub instructions: f64,
    /// The same in the cheapest and the most expensive window.
    pub range: (f64, f64),
    /// The number of yields.
    pub yields: u64,
}

impl YieldCost {
    /// Executed instructions of the same yields: fewer than the clock counts where the CPU idles.
    pub fn executed(&self, instructions: u64) -> YieldCost {
        let each = instructions as f64 / self.yields as f64;
        YieldCost { instructions: each, range: (each, each), yields: self.yields }
    }
}

/// The cost in job number `job`; `None` if it took no samples.
pub fn cost(transcript: &Transcript, job: usize) -> Option<YieldCost> {
    let samples = transcript.events.iter().filter_map(|event| match event {
        Event::Sample { job: of, ns, operations } if *of == job && *operations > 0 => {
            Some((*ns, *operations))
        }
        _ => None,
    });
    let samples: Vec<(u64, u64)> = samples.collect();
    let (instructions, yields) =
        samples.iter().fold((0, 0), |sum, sample| (sum.0 + sample.0, sum.1 + sample.1));
    let each = samples.iter().map(|&(ns, operations)| ns as f64 / operations as f64);
    let range = each.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), cost| {
        (low.min(cost), high.max(cost))
    });
    (yields > 0).then(|| YieldCost {
        instructions: instructions as f64 / yields as f64,
        range,
        yields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_tasks_reserve_together_what_one_is_given_and_count_what_they_execute() {
        let class = Class::Deadline { runtime: 50_000, deadline: 90_000, period: 100_000 };
        assert_eq!(
            job(8, class).class,
            Class::Deadline { runtime: 50_000, deadline: 720_000, period: 800_000 }
        );
        let by_clock =
            YieldCost { instructions: 100_000.0, range: (99_000.0, 101_000.0), yields: 6_000 };
        assert_eq!(
            by_clock.executed(24_000_000),
            YieldCost { instructions: 4_000.0, range: (4_000.0, 4_000.0), yields: 6_000 }
        );
    }
}
