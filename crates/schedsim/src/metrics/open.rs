//! Metrics of an open system: a stochastic workload, whose tasks arrive, live and leave.
//!
//! Differs from [`Metrics`](super::Metrics), which keeps a table of all tasks. Here a later task
//! reuses an id, warm-up and later tasks are separated from the measured ones, and a million tasks
//! take 20 bytes each. Response ratios are over the measured tasks that have left. Rates and shares
//! of time are over the *window*, from the arrival of the first measured task to that of the last
//! one.

mod catalogue;

pub use catalogue::{OPEN_CATALOGUE, OpenMetric};

use super::Slowdowns;
use crate::trace::{Event, EventKind, Observer, PrevState};
use crate::workload::{Kind, Model};
use crate::{Nanos, TaskId, Time};

/// Observes a run of a [`Model`].
#[derive(Clone, Debug)]
pub struct OpenSystem<'m> {
    model: &'m Model,
    seed: u64,
    cpus: u32,
    now: Time,
    /// The number of the next task to arrive.
    born: u64,
    alive: u32,
    lives: Vec<Life>,
    waiting: u32,
    idle: u32,
    counts: Counts,
    /// The counts at the start and at the end of the window.
    opened: Option<Counts>,
    closed: Option<Counts>,
    groups: Vec<Group>,
    slowdowns: Slowdowns,
    drift: Drift,
}

/// A live task, without padding.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Life {
    released: Time,
    overhead: Nanos,
    /// Index into `groups`, or `UNMEASURED`.
    group: u32,
}

const UNMEASURED: u32 = u32::MAX;

const _: () = assert!(size_of::<Life>() == 20);

/// The counts since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    now: Time,
    /// CPU time idled.
    idle: u64,
    /// CPU time idled while some task waited.
    waste: u64,
    /// The same, with at most as many idle CPUs as waiting tasks.
    waste_min: u64,
    dispatches: u64,
    migrations: u64,
}

/// Response ratios of tasks of one kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Group {
    /// Their class and priority.
    pub kind: Kind,
    /// How many measured tasks have left.
    pub tasks: u64,
    /// Σ of their times from arrival to end.
    pub elapsed: Nanos,
    /// Σ of their bursts and pauses.
    pub task_time: Nanos,
    /// Σ of elapsed time over task time.
    pub ratios: f64,
    /// Σ of scheduling overhead on their account.
    pub overhead: Nanos,
}

/// The result of a run of a model.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenSummary {
    /// The measured tasks by class and priority, in order of both.
    pub groups: Vec<Group>,
    /// Slowdowns of the measured tasks (elapsed time over bursts and pauses), by the size of the
    /// latter.
    pub slowdowns: Slowdowns,
    /// How long the window was.
    pub window: Nanos,
    /// Share of the CPU time in the window in which a CPU ran a task.
    pub utilisation: f64,
    /// Share of it in which CPUs idled while any task waited.
    pub idle_waste: f64,
    /// The same, with at most as many idle CPUs as waiting tasks.
    pub idle_waste_min: f64,
    /// Switches to a task in the window.
    pub dispatches: u64,
    /// Those on another CPU than the one where the task last ran.
    pub migrations: u64,
    /// The mean number of live tasks when a measured one arrives.
    pub population: f64,
    /// The growth of the number of live tasks during the window, by linear regression; `None` if
    /// there are too few measured tasks.
    pub growth: Option<f64>,
    /// Whether the system has no steady state.
    pub saturated: Option<Saturation>,
}

/// The sign of saturation. Response ratios of a saturated system mean nothing: they grow with the
/// length of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saturation {
    /// More tasks were alive than the limit of the run.
    Limit,
    /// The number of tasks alive grew throughout the window.
    Drift,
}

impl<'m> OpenSystem<'m> {
    /// For the run of `model` with `seed` on `cpus` CPUs.
    pub fn new(model: &'m Model, seed: u64, cpus: u16) -> OpenSystem<'m> {
        OpenSystem {
            model,
            seed,
            cpus: u32::from(cpus),
            now: Time::ZERO,
            born: 0,
            alive: 0,
            lives: Vec::new(),
            waiting: 0,
            idle: u32::from(cpus),
            counts: Counts::default(),
            opened: None,
            closed: None,
            groups: Vec::new(),
            slowdowns: Slowdowns::default(),
            drift: Drift::new(model.length().measured),
        }
    }

    /// The result.
    pub fn finish(mut self) -> OpenSummary {
        let last = Counts { now: self.now, ..self.counts };
        let (from, to) = (self.opened.unwrap_or_default(), self.closed.unwrap_or(last));
        let window = to.now.since(from.now);
        let machine = f64::from(self.cpus) * window.0 as f64;
        let share = |of: fn(&Counts) -> u64| (of(&to) - of(&from)) as f64 / machine;
        self.groups.sort_by_key(|group| (group.kind.class, group.kind.prio));
        let saturated = if self.alive >= self.model.length().population_limit {
            Some(Saturation::Limit)
        } else {
            self.drift.verdict()
        };
        OpenSummary {
            groups: self.groups,
            slowdowns: self.slowdowns,
            window,
            utilisation: 1.0 - share(|counts| counts.idle),
            idle_waste: share(|counts| counts.waste),
            idle_waste_min: share(|counts| counts.waste_min),
            dispatches: to.dispatches - from.dispatches,
            migrations: to.migrations - from.migrations,
            population: self.drift.mean(),
            growth: self.drift.line().map(|line| line.growth),
            saturated,
        }
    }

    /// The first or last measured task arrives.
    #[cold]
    fn mark_window(&mut self, now: Time, opens: bool) {
        self.advance(now);
        let counts = Counts { now, ..self.counts };
        if opens {
            self.opened = Some(counts);
        }
        if !opens || self.model.length().measured == 1 {
            self.closed = Some(counts);
        }
    }

    #[inline(always)]
    fn advance(&mut self, time: Time) {
        let passed = time.since(self.now).0;
        let (idle, waiting) = (u64::from(self.idle), u64::from(self.waiting));
        self.counts.idle += passed * idle;
        self.counts.waste += if waiting > 0 { passed * idle } else { 0 };
        self.counts.waste_min += passed * idle.min(waiting);
        self.now = time;
    }

    #[inline(always)]
    fn switch(&mut self, prev: TaskId, next: TaskId, prev_state: PrevState) {
        let (from_idle, to_idle) = (prev == TaskId::NONE, next == TaskId::NONE);
        self.idle = self.idle + u32::from(to_idle) - u32::from(from_idle);
        self.waiting = self.waiting + u32::from(!from_idle & (prev_state == PrevState::Runnable))
            - u32::from(!to_idle);
        self.counts.dispatches += u64::from(!to_idle);
    }

    #[inline(always)]
    fn release(&mut self, task: TaskId, now: Time) {
        let length = self.model.length();
        let number = self.born;
        self.born += 1;
        let mut group = UNMEASURED;
        if length.measures(number) {
            group = self.group(self.model.kind(self.seed, number));
            if number == length.warm_up || number - length.warm_up == length.measured - 1 {
                self.mark_window(now, number == length.warm_up);
            }
            self.drift.arrival(self.alive);
        }
        self.alive += 1;
        let life = Life { released: now, overhead: Nanos::ZERO, group };
        match self.lives.get_mut(task.index()) {
            Some(place) => *place = life,
            None => {
                self.lives.resize(task.index(), life);
                self.lives.push(life);
            }
        }
    }

    #[inline]
    fn complete(&mut self, task: TaskId, demand: Nanos, now: Time) {
        self.alive -= 1;
        let life = self.lives[task.index()];
        if let Some(group) = self.groups.get_mut(life.group as usize) {
            let elapsed = now.since(life.released);
            group.tasks += 1;
            group.elapsed += elapsed;
            group.task_time += demand;
            // Signed, because the processor converts doubles to signed integers in one instruction.
            group.ratios += elapsed.0 as i64 as f64 / demand.0.max(1) as i64 as f64;
            group.overhead += life.overhead;
            self.slowdowns.record(elapsed, demand);
        }
    }

    /// The index of the group of tasks of `kind`.
    #[inline]
    fn group(&mut self, kind: Kind) -> u32 {
        let found = self.groups.iter().position(|group| group.kind == kind).unwrap_or_else(|| {
            self.groups.push(Group {
                kind,
                tasks: 0,
                elapsed: Nanos::ZERO,
                task_time: Nanos::ZERO,
                ratios: 0.0,
                overhead: Nanos::ZERO,
            });
            self.groups.len() - 1
        });
        found as u32
    }
}

impl Observer for OpenSystem<'_> {
    #[inline(always)]
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    self.advance(event.time);
                    self.switch(prev, next, prev_state);
                }
                EventKind::SchedWaking { .. } | EventKind::SchedWakeupNew { .. } => {
                    self.advance(event.time);
                    self.waiting += 1;
                }
                EventKind::Overhead { task, spent, .. } => {
                    if let Some(life) = self.lives.get_mut(task.index()) {
                        let so_far = life.overhead; // a packed field is not borrowed
                        life.overhead = so_far + spent;
                    }
                }
                EventKind::SchedMigrateTask { .. } => self.counts.migrations += 1,
                EventKind::JobRelease { task } => self.release(task, event.time),
                EventKind::JobComplete { task, demand } => self.complete(task, demand, event.time),
                _ => {}
            }
        }
    }
}

impl OpenSummary {
    /// Global response ratio of the groups that `choose` accepts: Σ elapsed / Σ task time. `None`
    /// if none of their tasks has left.
    pub fn grr(&self, choose: impl Fn(&Group) -> bool) -> Option<f64> {
        self.ratio(choose, |group| group.elapsed.0 as f64, |group| group.task_time.0 as f64)
    }

    /// Average per-task response ratio: the mean of elapsed / task time.
    pub fn apr(&self, choose: impl Fn(&Group) -> bool) -> Option<f64> {
        self.ratio(choose, |group| group.ratios, |group| group.tasks as f64)
    }

    /// The mean over the measured tasks that have left of a sum in nanoseconds.
    fn mean(&self, of: impl Fn(&Group) -> u64) -> Option<f64> {
        self.ratio(|_| true, |group| of(group) as f64, |group| group.tasks as f64)
    }

    /// Extra CPU time over task time: how much overhead inflates tasks.
    pub fn inflation(&self) -> Option<f64> {
        self.ratio(|_| true, |group| group.overhead.0 as f64, |group| group.task_time.0 as f64)
    }

    /// Migrations per dispatch.
    pub fn migration_rate(&self) -> Option<f64> {
        (self.dispatches > 0).then(|| self.migrations as f64 / self.dispatches as f64)
    }

    /// How many measured tasks have left.
    pub fn tasks(&self) -> u64 {
        self.groups.iter().map(|group| group.tasks).sum()
    }

    fn ratio(
        &self,
        choose: impl Fn(&Group) -> bool,
        above: impl Fn(&Group) -> f64,
        below: impl Fn(&Group) -> f64,
    ) -> Option<f64> {
        let chosen = || self.groups.iter().filter(|group| choose(group));
        let below = chosen().map(below).sum::<f64>();
        (below > 0.0).then(|| chosen().map(above).sum::<f64>() / below)
    }
}

/// Detects steady growth of the number of live tasks, sampled at arrivals.
///
/// The window is divided into 20 batches. A line through their means gives the growth. A stable
/// system after warm-up fluctuates; an unstable one grows at a constant rate from a start that is
/// small against its end. Two conditions make it growth. The line explains more than 70 % of the
/// variance between batches, and rises by more than 5/4 of the mean population. The test requires
/// at least 4,000 tasks, and more the nearer the system is to saturation. It is 40,000 with a
/// migration cost 5 % above what Central Queue can sustain.
#[derive(Clone, Debug)]
struct Drift {
    batch: u64,
    seen: u64,
    /// The free places in the current batch.
    room: u64,
    sums: Vec<u64>,
}

const BATCHES: usize = 20;
const LEAST: u64 = 4_000;

impl Drift {
    fn new(measured: u64) -> Drift {
        let batch = if measured == u64::MAX || measured < LEAST {
            u64::MAX
        } else {
            measured.div_ceil(BATCHES as u64)
        };
        Drift { batch, seen: 0, room: batch, sums: vec![0] }
    }

    #[inline(always)]
    fn arrival(&mut self, alive: u32) {
        if self.room == 0 {
            self.begin_batch();
        }
        self.seen += 1;
        self.room -= 1;
        if let Some(sum) = self.sums.last_mut() {
            *sum += u64::from(alive);
        }
    }

    #[cold]
    fn begin_batch(&mut self) {
        self.sums.push(0);
        self.room = self.batch;
    }

    fn mean(&self) -> f64 {
        if self.seen == 0 { 0.0 } else { self.sums.iter().sum::<u64>() as f64 / self.seen as f64 }
    }

    fn verdict(&self) -> Option<Saturation> {
        self.line()
            .filter(|line| line.growth > 1.25 * line.mean && line.explained > 0.7)
            .map(|_| Saturation::Drift)
    }

    fn line(&self) -> Option<Line> {
        if self.sums.len() < BATCHES {
            return None;
        }
        let means: Vec<f64> =
            self.sums[..BATCHES - 1].iter().map(|&sum| sum as f64 / self.batch as f64).collect();
        let n = means.len() as f64;
        let (centre, mean) = ((n - 1.0) / 2.0, means.iter().sum::<f64>() / n);
        let places =
            || means.iter().enumerate().map(|(place, value)| (place as f64 - centre, value - mean));
        let across: f64 = places().map(|(x, _)| x * x).sum();
        let along: f64 = places().map(|(x, y)| x * y).sum();
        let total: f64 = places().map(|(_, y)| y * y).sum();
        Some(Line {
            mean,
            growth: along / across * n,
            explained: if total > 0.0 { along * along / (across * total) } else { 0.0 },
        })
    }
}

/// A regression line through the means of batches.
struct Line {
    mean: f64,
    /// From one end to the other.
    growth: f64,
    /// Its share of the variance.
    explained: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(population: impl Fn(u64) -> u32) -> Option<Saturation> {
        let mut drift = Drift::new(10_000);
        (0..10_000).for_each(|n| drift.arrival(population(n)));
        drift.verdict()
    }

    #[test]
    fn growth_is_drift_and_ups_and_downs_are_not() {
        assert_eq!(verdict(|n| 40 + (n / 10) as u32), Some(Saturation::Drift));
        assert_eq!(verdict(|n| 40 + (n / 1000 % 2) as u32 * 400), None);
        assert_eq!(verdict(|n| if n < 9_000 { 40 } else { 4_000 }), None, "a burst at the end");
        assert_eq!(verdict(|n| 1000 + (n / 100) as u32), None, "a tenth more");
        assert_eq!(verdict(|_| 40), None);
    }
}
