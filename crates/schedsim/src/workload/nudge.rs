//! Nudges: random values for everything that a recording or a description leaves open, drawn per
//! ensemble member.
//!
//! A schedule is a chaotic system: a burst that ends two nanoseconds later can change the order of
//! all later events. A single run says little about the workload, so an ensemble of runs varies
//! what is not known to the last digit. Members with the same seed have the same nudges under every
//! policy.

use super::{Action, Operation, Reservation, Workload};
use crate::{CallCosts, Machine, Nanos, Random, TaskId, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The nudges of one member:
///
/// | what | by how much |
/// |---|---|
/// | each cost of the machine: switch, migration, leaving idle, waking, interrupts, blocking | ±2 % |
/// | which of its possible values each blocking and waking costs | drawn anew |
/// | each CPU burst; none of tasks with a reservation, which a longer one would overrun | ±2 % |
/// | all CPU bursts together: the speed of the CPUs | ±0.5 % |
/// | each sleep (timer slack) and each request to a device | ±2 %, sleeps 50 us at most |
/// | each start or first waking; equal times end in any order | up to 50 us later (see below) |
/// | where ticks fall | anywhere in a period |
///
/// All are uniform and independent of each other. In a run with a time limit, tasks that start at
/// zero start within its first hundredth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nudge {
    seed: u64,
}

/// The share by which costs, bursts and delays vary.
const SHARE: f64 = 0.02;
/// The share by which the speed of the CPUs varies.
const SPEED: f64 = 0.005;
/// The default slack of Linux's timers.
const SLACK: f64 = 50_000.0;

impl Nudge {
    /// The nudges of `seed`.
    pub fn new(seed: u64) -> Nudge {
        Nudge { seed }
    }

    /// What seeds it.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// `machine` with varied costs.
    pub fn machine(&self, machine: &Machine) -> Machine {
        let mut random = Random::new(self.seed);
        let mut machine = machine.clone();
        let costs = [
            &mut machine.switch_cost,
            &mut machine.migration_cost,
            &mut machine.unseen,
            &mut machine.idle_exit,
            &mut machine.wake_cost,
            &mut machine.interruption,
            &mut machine.timer_cost,
            &mut machine.lock_hold,
        ];
        for cost in costs {
            *cost = scaled(*cost, 1.0 + SHARE * signed(random.bits()));
        }
        if let Some(ticks) = &mut machine.ticks {
            ticks.first.0 = ticks.first.0.saturating_add(random.below(ticks.period.0.max(1)));
        }
        if !machine.calls.are_free() {
            let calls = &mut machine.calls;
            let CallCosts { block, wake_here, wake_away, wake_idle, preempt, .. } = calls;
            for spread in [block, wake_here, wake_away, wake_idle, preempt] {
                let by = 1.0 + SHARE * signed(random.bits());
                spread.each(|cost| scaled(cost, by));
            }
            calls.seed = random.bits();
        }
        if !machine.latency.is_unknown() {
            let by = 1.0 + SHARE * signed(random.bits());
            machine.latency.spreads_mut().for_each(|spread| spread.each(|time| scaled(time, by)));
            machine.latency.seed = random.bits();
        }
        // What came last draws last: a member of an ensemble stays what it was.
        let by = 1.0 + SHARE * signed(random.bits());
        machine.calls.exit.each(|cost| scaled(cost, by));
        machine
    }

    /// The maximum delay of a task's start.
    pub(crate) fn latest_start(&self) -> Nanos {
        Nanos(SLACK as u64)
    }

    /// The maximum change of a CPU time of `demand`.
    pub(crate) fn most_of(&self, demand: Nanos) -> Nanos {
        // Rounding leaves a burst of less than 20 ns unchanged, so this is the maximum.
        Nanos(demand.0 / 16)
    }
}

/// The nudges of a member during a run: a random stream for each task. So a step of a task has the
/// same nudge under every policy.
#[derive(Debug)]
pub(crate) struct Jitter {
    speed: f64,
    tasks: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    random: SplitMix64,
    start: Nanos,
    has_reservation: bool,
}

impl Jitter {
    /// For a run of `workload` until `until`: tasks that start at zero start within the first
    /// hundredth.
    pub fn new(nudge: Nudge, workload: &Workload, until: Time) -> Jitter {
        let latest = SLACK.min(until.0 as f64 / 100.0);
        let mut seeds = SplitMix64::seed_from_u64(nudge.seed);
        let speed = 1.0 + SPEED * signed(seeds.next_u64());
        let stream = |task: usize| {
            let mut random = SplitMix64::seed_from_u64(seeds.next_u64());
            let start = Nanos((latest * unit(random.next_u64())) as u64);
            let has_reservation =
                workload.reservations.get(task).is_some_and(Option::<Reservation>::is_some);
            Stream { random, start, has_reservation }
        };
        Jitter { speed, tasks: (0..workload.tasks.len()).map(stream).collect() }
    }

    /// The delay of the start of `task`.
    pub fn start(&self, task: TaskId) -> Nanos {
        self.tasks[task.index()].start
    }

    /// The run time of a step of `task` with the script's values `run` and `then`.
    pub fn step(&mut self, task: TaskId, run: Nanos, then: &mut Action) -> Nanos {
        let stream = &mut self.tasks[task.index()];
        let mut draw = || signed(stream.random.next_u64());
        let burst = draw();
        match then {
            Action::Sleep(pause) => {
                let by = (SHARE * pause.0 as f64).min(SLACK) * draw();
                *pause = Nanos(pause.0.saturating_add_signed(by as i64));
            }
            Action::Do(Operation::Io { service, .. }) => {
                *service = scaled(*service, 1.0 + SHARE * draw())
            }
            _ => {}
        }
        if stream.has_reservation { run } else { scaled(run, self.speed * (1.0 + SHARE * burst)) }
    }
}

fn scaled(time: Nanos, by: f64) -> Nanos {
    Nanos(libm::round(time.0 as f64 * by) as u64)
}

/// A number in [0, 1].
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in [-1, 1].
fn signed(bits: u64) -> f64 {
    2.0 * unit(bits) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Ticks;

    #[test]
    fn costs_vary_by_two_percent_and_ticks_fall_anywhere() {
        let ticks = Some(Ticks::new(Nanos(4_000_000), Time(1_000)));
        let machine = Machine {
            switch_cost: Nanos(10_000),
            wake_cost: Nanos(50_000),
            ticks,
            ..Machine::ideal(2)
        };
        let members: Vec<Machine> =
            (0..200).map(|seed| Nudge::new(seed).machine(&machine)).collect();
        let costs = || members.iter().map(|member| member.switch_cost.0);
        assert!(costs().min().unwrap() >= 9_800 && costs().max().unwrap() <= 10_200);
        assert!(
            costs().min().unwrap() < 9_820 && costs().max().unwrap() > 10_180,
            "all of the range"
        );
        let mean = costs().sum::<u64>() as f64 / 200.0;
        assert!((mean - 10_000.0).abs() < 30.0, "{mean}");
        assert!(
            members
                .iter()
                .any(|member| (member.switch_cost.0 > 10_000) != (member.wake_cost.0 > 50_000)),
            "each by itself"
        );
        let firsts = || members.iter().map(|member| member.ticks.as_ref().unwrap().first.0);
        assert!(firsts().min().unwrap() < 100_000 && firsts().max().unwrap() > 3_900_000);
        assert_eq!(members[7], Nudge::new(7).machine(&machine));
        assert_eq!(
            Nudge::new(1).machine(&Machine::ideal(4)),
            Machine::ideal(4),
            "what costs nothing still does"
        );
    }

    #[test]
    fn sleeps_are_late_by_no_more_than_timers_are() {
        let mut workload = Workload::default();
        workload.tasks.push(crate::workload::TaskSpec {
            info: crate::trace::TaskInfo { pid: 1, tgid: 1, name: "a".into(), prio: 120 },
            attributes: crate::workload::Attributes::default(),
            affinity: crate::workload::Affinity::Any,
            cpu: crate::CpuId(0),
            start: crate::workload::Start::At(Time::ZERO),
            script: crate::workload::Script::new(),
        });
        let mut jitter = Jitter::new(Nudge::new(3), &workload, Time::NEVER);
        for pause in [100u64, 1_000_000, 10_000_000_000] {
            let most = (pause as f64 * SHARE).min(SLACK) as u64;
            for _ in 0..1_000 {
                let mut then = Action::Sleep(Nanos(pause));
                let run = jitter.step(TaskId(0), Nanos(1_000_000), &mut then);
                assert!(run.0.abs_diff(1_000_000) <= 25_200, "{run}");
                let Action::Sleep(nudged) = then else { panic!("{then:?}") };
                assert!(nudged.0.abs_diff(pause) <= most, "{nudged}");
            }
        }
        assert!(jitter.start(TaskId(0)) <= Nudge::new(3).latest_start());
        let mut once = Action::Wait;
        assert_eq!(jitter.step(TaskId(0), Nanos::ZERO, &mut once), Nanos::ZERO);
    }
}
