//! Estimates the scheduling costs of a recorded machine from its events.

mod calls;
mod latency;

pub use calls::{CallCost, CallCostEstimator, CallEstimates, Unknown};
pub use latency::LatencyEstimates;

use crate::machine::Spread;
use crate::metrics::Histogram;
use crate::trace::{Event, EventKind, Observer, PrevState};
use crate::{CpuId, Nanos, TaskId, Time};
use latency::LatencySamples;
use std::fmt;

/// Estimates the costs of a [`Machine`](crate::Machine). Memory grows with tasks and CPUs, not with
/// events.
///
/// - *A switch*: the tracepoint fires before the switch is done, so each recorded run contains the
///   switch that began it. The shortest runs from a switch-in to a block contain little else; their
///   1st percentile is an upper bound. It includes the cost of recording one event. A run that ends
///   in a preemption is as long as a slice and gives no information. If even the shortest runs are
///   longer than [`LONGEST_SWITCH`], they are work, and there is no estimate.
/// - *Leaving idle*: the median time from a waking on one CPU to the switch from idle to the woken
///   task on another. The switch itself comes after that event, so nothing is subtracted.
/// - *A waking*: the same if the waking was on the CPU itself, which was awake. An interrupt had
///   ended its idleness, or it switched, without another event in between, from a task that was
///   still runnable. The median; it includes preemptions that waited for the next tick.
/// - *A migration*: the CPU burst of a task after it woke on another CPU. The mean of its bursts
///   before and after, where it stayed, is subtracted. The median, or zero if the sign of the
///   differences may be chance. The cost of migrating a runnable task is not visible, and bursts
///   vary for other reasons, so this estimate is the least certain.
#[derive(Clone, Debug, Default)]
pub struct CostEstimator {
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    empty_runs: Histogram,
    idle_exits: Histogram,
    wakings: Histogram,
    wakings_when_idle: Histogram,
    latencies: LatencySamples,
    /// How much bursts after a migration were longer than their neighbours, and how much shorter.
    longer: Histogram,
    shorter: Histogram,
}

/// The costs of scheduling, each an upper bound or a median, with the number of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// Of going from one task to another.
    pub switch: Estimate,
    /// Of running on another CPU than before.
    pub migration: Estimate,
    /// Of leaving idle.
    pub idle_exit: Estimate,
    /// Of a waking on a CPU that is awake.
    pub waking: Estimate,
    /// The same without preemptions: if a policy lets a woken task wait for a tick, that wait is
    /// no cost.
    pub waking_when_idle: Estimate,
}

/// An estimated duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// The estimate; `None` if the recording does not allow one.
    pub value: Option<Nanos>,
    /// The 95 % interval, by order statistics; `None` where there is none.
    pub interval: Option<(Nanos, Nanos)>,
    /// The number of samples.
    pub samples: u64,
}

#[derive(Clone, Debug)]
struct Task {
    state: State,
    /// Its last CPU.
    cpu: Option<CpuId>,
    /// Its run time since it woke.
    burst: Nanos,
    /// Whether this burst began on another CPU than the one before.
    migrated: bool,
    /// Whether it changed CPUs within this burst.
    astray: bool,
    /// The last burst, if it began where the one before had ended.
    stayed: Option<Nanos>,
    /// A burst after a migration and the one before it, until the one after it is known.
    moved: Option<(Nanos, Nanos)>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Unknown,
    Asleep,
    /// Woken, when and from which CPU.
    Woken(Time, CpuId),
    Ready,
    Running(Time),
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// When it became idle, if it is.
    idle_since: Option<Time>,
    /// When it last switched.
    switched: Time,
    /// When it switched to the task that it runs, if nothing has happened on it since.
    quiet_since: Option<Time>,
    /// The time of its last event, if that was a waking (or the wakeup that follows it).
    last_waking: Option<Time>,
}

/// The minimum number of samples for an estimate.
const ENOUGH: u64 = 30;

/// The longest plausible switch: longer runs are work of the task.
pub const LONGEST_SWITCH: Nanos = Nanos(20_000);

/// The default cost of a switch where the recording allows no estimate. It is the usual time on a
/// current Linux, as of an empty run of `perf bench sched pipe`.
pub const USUAL_SWITCH: Nanos = Nanos(1_500);

impl Observer for CostEstimator {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            self.event(event);
        }
    }
}

impl CostEstimator {
    /// An estimator without events.
    pub fn new() -> CostEstimator {
        CostEstimator::default()
    }

    /// How late CPUs chose after wakings, so far.
    pub fn latencies(&self) -> LatencyEstimates {
        self.latencies.finish()
    }

    /// The estimates.
    pub fn finish(self) -> Costs {
        let estimate = Estimate::of_percentile;
        Costs {
            switch: estimate(&self.empty_runs, 1.0).at_most(LONGEST_SWITCH),
            migration: self.migration(),
            idle_exit: estimate(&self.idle_exits, 50.0),
            waking: estimate(&self.wakings, 50.0),
            waking_when_idle: estimate(&self.wakings_when_idle, 50.0),
        }
    }

    /// The median of the differences, or zero if a sign test is not significant at 1 in 40.
    fn migration(&self) -> Estimate {
        let (longer, shorter) = (self.longer.count(), self.shorter.count());
        let samples = longer + shorter;
        if samples < ENOUGH {
            return Estimate { samples, ..Estimate::default() };
        }
        let excess = longer.saturating_sub(shorter) as f64;
        let significant = excess > 2.0 * (samples as f64).sqrt();
        // The median of all is the percentile of the positive ones with half of all samples above
        // it.
        let percent = 100.0 * (0.5 * samples as f64 - shorter as f64) / longer as f64;
        let median =
            if significant { self.longer.percentile(percent.clamp(0.0, 100.0)) } else { None };
        Estimate { value: Some(median.unwrap_or(Nanos::ZERO)), interval: None, samples }
    }

    fn event(&mut self, event: &Event) {
        let Event { time, cpu, kind } = *event;
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        match kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                if let Some(since) = self.cpus[cpu.index()]
                    .quiet_since
                    .filter(|_| prev != TaskId::NONE && prev_state == PrevState::Blocked)
                {
                    self.empty_runs.record(time.since(since));
                }
                if let Some(task) = self.task(prev) {
                    let done = task.switched_out(prev_state, time);
                    if let Some(difference) = done.and_then(|burst| task.compare(burst)) {
                        let (histogram, by) = match difference {
                            0.. => (&mut self.longer, difference),
                            _ => (&mut self.shorter, -difference),
                        };
                        histogram.record(Nanos(by as u64));
                    }
                }
                let Cpu { idle_since, last_waking, switched, .. } = self.cpus[cpu.index()];
                let preempts = prev != TaskId::NONE && prev_state == PrevState::Runnable;
                if let Some(task) = self.task(next) {
                    let woken = task.switched_in(cpu, time);
                    if let Some((since, waker_cpu)) = woken {
                        let idle_since = idle_since
                            .filter(|&idle_since| prev == TaskId::NONE && since >= idle_since);
                        let was_idle = idle_since.is_some();
                        let (is_here, after) = (waker_cpu == cpu, time.since(since));
                        if let Some(idle_since) = idle_since {
                            self.latencies.left_idle(is_here, since.since(idle_since), after);
                        } else if preempts && since >= switched {
                            self.latencies.when_busy(is_here, after);
                        }
                        if was_idle && waker_cpu != cpu {
                            self.idle_exits.record(time.since(since));
                        } else if was_idle || preempts && last_waking == Some(since) {
                            self.wakings.record(time.since(since));
                            if was_idle {
                                self.wakings_when_idle.record(time.since(since));
                            }
                        }
                    }
                }
                let is_idle = next == TaskId::NONE;
                self.cpus[cpu.index()] = Cpu {
                    switched: time,
                    idle_since: is_idle.then_some(time),
                    quiet_since: (!is_idle).then_some(time),
                    last_waking: None,
                };
            }
            EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                let state = &mut self.cpus[cpu.index()];
                (state.quiet_since, state.last_waking) = (None, Some(time));
                if let Some(task) = self.task(task)
                    && matches!(task.state, State::Unknown | State::Asleep)
                {
                    task.state = State::Woken(time, cpu);
                }
            }
            EventKind::SchedWakeup { .. } => self.cpus[cpu.index()].quiet_since = None,
            _ => {
                let state = &mut self.cpus[cpu.index()];
                (state.quiet_since, state.last_waking) = (None, None);
            }
        }
    }

    fn task(&mut self, task: TaskId) -> Option<&mut Task> {
        if task == TaskId::NONE {
            return None;
        }
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, Task::NEW);
        }
        self.tasks.get_mut(task.index())
    }
}

impl Task {
    const NEW: Task = Task {
        state: State::Unknown,
        cpu: None,
        burst: Nanos::ZERO,
        migrated: false,
        astray: false,
        stayed: None,
        moved: None,
    };

    /// Returns when and where it was woken, if this is its first run since.
    fn switched_in(&mut self, cpu: CpuId, now: Time) -> Option<(Time, CpuId)> {
        let before = std::mem::replace(&mut self.state, State::Running(now));
        let moves = self.cpu.replace(cpu).is_some_and(|last| last != cpu);
        match before {
            State::Woken(since, waker_cpu) => {
                (self.burst, self.migrated, self.astray) = (Nanos::ZERO, moves, false);
                Some((since, waker_cpu))
            }
            State::Unknown | State::Asleep | State::Ready | State::Running(_) => {
                self.astray |= moves || !matches!(before, State::Ready);
                None
            }
        }
    }

    /// Returns the burst, if it is over and was recorded completely.
    fn switched_out(&mut self, prev_state: PrevState, now: Time) -> Option<Nanos> {
        let before = std::mem::replace(
            &mut self.state,
            if prev_state == PrevState::Runnable { State::Ready } else { State::Asleep },
        );
        match before {
            State::Running(since) => self.burst += now.since(since),
            _ => self.astray = true,
        }
        (prev_state == PrevState::Blocked).then_some(self.burst)
    }

    /// How much the last burst after a migration was longer than its neighbours. Known when the
    /// second neighbour, `burst`, is over.
    fn compare(&mut self, burst: Nanos) -> Option<i64> {
        if self.astray {
            (self.stayed, self.moved) = (None, None);
            return None;
        }
        if self.migrated {
            self.moved = self.stayed.take().map(|before| (burst, before));
            return None;
        }
        self.stayed = Some(burst);
        let (moved, before) = self.moved.take()?;
        let usual = before.0.saturating_add(burst.0) / 2;
        i64::try_from(moved.0).ok()?.checked_sub(i64::try_from(usual).ok()?)
    }
}

impl Estimate {
    /// A percentile of `samples`, with a 95 % interval by the normal approximation of the binomial.
    fn of_percentile(samples: &Histogram, percent: f64) -> Estimate {
        Estimate::of_percentile_within(samples, percent, 196.0)
    }

    /// The same with an interval of `width` hundredths of a standard deviation to each side.
    fn of_percentile_within(samples: &Histogram, percent: f64, width: f64) -> Estimate {
        let count = samples.count();
        let Some(value) = samples.percentile(percent).filter(|_| count >= ENOUGH) else {
            return Estimate { samples: count, ..Estimate::default() };
        };
        let share = percent / 100.0;
        let spread = width * (share * (1.0 - share) / count as f64).sqrt();
        let at = |percent: f64| samples.percentile(percent.clamp(0.0, 100.0)).unwrap_or(value);
        Estimate {
            value: Some(value),
            interval: Some((at(percent - spread), at(percent + spread))),
            samples: count,
        }
    }

    /// The median of a distribution of which `samples` are known.
    pub fn of_spread(spread: &Spread, samples: u64) -> Estimate {
        let mut values = spread.values().to_vec();
        values.sort_unstable();
        let width = 0.98 / (samples.max(1) as f64).sqrt();
        let at = |share: f64| {
            let place = (share.clamp(0.0, 1.0) * values.len() as f64) as usize;
            values.get(place.min(values.len().saturating_sub(1))).copied()
        };
        Estimate {
            value: at(0.5),
            interval: at(0.5 - width).zip(at(0.5 + width)),
            samples: if values.is_empty() { 0 } else { samples },
        }
    }

    /// The estimate, if even the upper end of its interval is at most `limit`.
    fn at_most(self, limit: Nanos) -> Estimate {
        match self.interval {
            Some((_, high)) if high <= limit => self,
            _ => Estimate { samples: self.samples, ..Estimate::default() },
        }
    }
}

impl Costs {
    /// Takes from `other` what is unknown here. Returns what that is, in words.
    pub fn fill(&mut self, other: &Costs) -> Vec<&'static str> {
        let costs = [
            (&mut self.switch, other.switch, "a switch"),
            (&mut self.migration, other.migration, "a migration"),
            (&mut self.idle_exit, other.idle_exit, "leaving idle"),
            (&mut self.waking, other.waking, "a waking"),
            (&mut self.waking_when_idle, other.waking_when_idle, "a waking when idle"),
        ];
        let mut filled = Vec::new();
        for (own, other, name) in costs {
            if own.value.is_none() && other.value.is_some() {
                *own = other;
                filled.push(name);
            }
        }
        filled
    }

    /// These with what calls show better than runs: the cost of a switch.
    #[must_use]
    pub fn with_calls(mut self, calls: &CallEstimates) -> Costs {
        if calls.switch.unknown.is_none() {
            self.switch = calls.switch.median;
        }
        self
    }

    /// The cost of a switch; [`USUAL_SWITCH`] without an estimate.
    pub fn switch_cost(&self) -> Nanos {
        self.switch.value.unwrap_or(USUAL_SWITCH)
    }

    /// Of a migration; zero if unknown.
    pub fn migration_cost(&self) -> Nanos {
        self.migration.value.unwrap_or(Nanos::ZERO)
    }

    /// Of leaving idle; zero if unknown.
    pub fn idle_exit(&self) -> Nanos {
        self.idle_exit.value.unwrap_or(Nanos::ZERO)
    }

    /// Of a waking on a CPU that is awake; zero if unknown.
    pub fn wake_cost(&self) -> Nanos {
        self.waking.value.unwrap_or(Nanos::ZERO)
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Costs { switch, migration, idle_exit, waking, .. } = self;
        write!(
            f,
            "a switch costs {switch}, a migration {migration}, leaving idle {idle_exit}, a waking \
             {waking}"
        )
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => {
                let interval =
                    self.interval.map_or(String::new(), |(low, high)| format!("{low} to {high}, "));
                write!(f, "{value} ({interval}{} samples)", self.samples)
            }
            None => write!(f, "an unknown time ({} samples cannot tell)", self.samples),
        }
    }
}
