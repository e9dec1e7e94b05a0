//! Background load: tasks beside the program, as stationary processes that each run draws anew.
//!
//! A task of the background sleeps and runs in turns. How long is drawn from what was recorded of
//! it, for each member of an ensemble by its seed. It ends when the program has.

use super::{Action, Nudge, Start, Workload};
use crate::machine::Spread;
use crate::metrics::Histogram;
use crate::{Nanos, TaskId, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The background load of a workload; its tasks have no script.
#[derive(Clone, Debug, Default)]
pub struct Background {
    /// Its tasks, in order of id.
    pub noise: Vec<Noise>,
    /// The tasks of the program that end. The background ends with the last of them.
    pub awaited: Vec<TaskId>,
    /// When the background ends at the latest.
    pub until: Time,
}

/// A task that sleeps and runs in turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noise {
    /// The task.
    pub task: TaskId,
    /// What it is.
    pub class: NoiseClass,
    /// From the end of a burst to the next waking.
    pub pause: Spread,
    /// The CPU time between two sleeps.
    pub burst: Spread,
}

/// The classes of background load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NoiseClass {
    /// A kernel thread.
    KernelThread,
    /// Another program.
    Program,
}

/// Background load in a run.
#[derive(Debug)]
pub(crate) struct Noises<'w> {
    background: &'w Background,
    seed: u64,
    /// By its tasks: the random numbers and the time drawn so far, once it has begun.
    drawn: Vec<Option<(SplitMix64, Time)>>,
    /// How many tasks of the program have still to end.
    left: usize,
}

/// The number of values of a distribution.
const VALUES: u64 = 64;
/// A task sleeps at least this long if it does not run.
const SHORTEST: Nanos = Nanos(100_000);
/// With fewer bursts, only the mean of the pauses is known.
const ENOUGH: u64 = 8;

impl Noise {
    /// The fit to the pauses and bursts of a task. One that never pauses is always ready.
    pub(crate) fn fit(
        task: TaskId,
        class: NoiseClass,
        (pauses, bursts): (&Histogram, &Histogram),
    ) -> Noise {
        let pause = if pauses.count() >= ENOUGH {
            in_groups(pauses)
        } else {
            exponential(pauses.mean().unwrap_or(0.0))
        };
        Noise { task, class, pause, burst: in_groups(bursts) }
    }
}

/// The means of equally large groups of the sorted samples: their mean is that of all.
fn in_groups(samples: &Histogram) -> Spread {
    let count = samples.count();
    let groups = VALUES.min(count);
    let mut values = Vec::with_capacity(groups as usize);
    let (mut sum, mut held, mut passed) = (0u128, 0u64, 0u64);
    for bucket in samples.buckets() {
        let middle = bucket.low.0.midpoint(bucket.high.0);
        let mut left = bucket.count;
        while left > 0 {
            let end = (values.len() as u64 + 1) * count / groups;
            let part = left.min(end - passed);
            sum += u128::from(middle) * u128::from(part);
            (held, passed, left) = (held + part, passed + part, left - part);
            if passed == end {
                values.push(Nanos((sum / u128::from(held.max(1))) as u64));
                (sum, held) = (0, 0);
            }
        }
    }
    Spread::of(values)
}

/// An exponential distribution of this mean.
fn exponential(mean: f64) -> Spread {
    let value = |place: u64| -libm::log(1.0 - (place as f64 + 0.5) / VALUES as f64);
    let sum: f64 = (0..VALUES).map(value).sum();
    let scale = mean * VALUES as f64 / sum;
    Spread::of((0..VALUES).map(|place| Nanos((value(place) * scale) as u64)).collect())
}

impl<'w> Noises<'w> {
    /// That of `workload`, if it has any.
    pub fn of(workload: &'w Workload, nudge: Option<Nudge>) -> Option<Box<Noises<'w>>> {
        let background = &workload.background;
        (!background.noise.is_empty()).then(|| {
            Box::new(Noises {
                background,
                seed: nudge.map_or(0, |nudge| nudge.seed()),
                drawn: vec![None; background.noise.len()],
                left: background.awaited.len(),
            })
        })
    }

    /// A task has ended.
    pub fn ended(&mut self, task: TaskId) {
        self.left -= usize::from(self.background.awaited.binary_search(&task).is_ok());
    }

    /// The next step of a task that has no script: its run time and its action.
    pub fn next_step(&mut self, task: TaskId, then: &mut Action) -> Nanos {
        let Background { noise, awaited, until } = self.background;
        let is_over = self.left == 0 && !awaited.is_empty();
        *then = Action::Exit;
        let Ok(place) = noise.binary_search_by_key(&task, |noise| noise.task) else {
            return Nanos::ZERO;
        };
        let (noise, drawn) = (&noise[place], &mut self.drawn[place]);
        let begins = drawn.is_none();
        let (random, time) = drawn.get_or_insert_with(|| {
            let number = u64::from(task.0) + 1;
            let mixed = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (SplitMix64::seed_from_u64(mixed), Time::ZERO)
        });
        if is_over || *time >= *until {
            return Nanos::ZERO;
        }
        let (burst, mut pause) =
            (noise.burst.draw(random.next_u64()), noise.pause.draw(random.next_u64()));
        if begins {
            // The run begins anywhere in a pause.
            let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            pause = Nanos((pause.0 as f64 * share) as u64);
        }
        // A task that neither runs nor sleeps would stop the clock.
        let pause = pause.max(if burst == Nanos::ZERO { SHORTEST } else { Nanos(1) });
        *then = Action::Sleep(pause);
        *time += burst + pause;
        if begins { Nanos::ZERO } else { burst }
    }
}

impl Background {
    /// Whether `task` is one of it.
    pub fn has(&self, task: TaskId) -> bool {
        self.noise.binary_search_by_key(&task, |noise| noise.task).is_ok()
    }

    /// The share of the CPU time of `cpus` CPUs that a class takes, if nothing holds it up.
    pub fn share(&self, class: NoiseClass, cpus: u16) -> f64 {
        let of = |noise: &Noise| {
            let (burst, pause) = (noise.burst.mean().0 as f64, noise.pause.mean().0 as f64);
            burst / (burst + pause).max(1.0)
        };
        let all: f64 = self.noise.iter().filter(|noise| noise.class == class).map(of).sum();
        all / f64::from(cpus.max(1))
    }
}

impl Workload {
    /// This workload without its background load.
    pub fn without_background(mut self) -> Workload {
        for Noise { task, .. } in std::mem::take(&mut self.background).noise {
            self.tasks[task.index()].start = Start::Forked; // no task forks it
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_has_the_mean_of_the_samples() {
        let mut samples = Histogram::default();
        (0..1000u64).for_each(|n| samples.record(Nanos(1_000 + n * n)));
        let (exact, fit) = (samples.mean().unwrap(), in_groups(&samples).mean().0 as f64);
        assert!((fit / exact - 1.0).abs() < 0.004, "{fit} for {exact}");
        assert_eq!(in_groups(&samples).values().len(), 64);
        let mut few = Histogram::default();
        [5, 7, 9].into_iter().for_each(|n| few.record(Nanos(n)));
        assert_eq!(in_groups(&few).values(), [5, 7, 9].map(Nanos));
        assert!((exponential(1e6).mean().0 as f64 / 1e6 - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_task_that_neither_runs_nor_sleeps_does_not_stop_the_clock() {
        let still = Noise {
            task: TaskId(0),
            class: NoiseClass::Program,
            pause: Spread::of(vec![Nanos::ZERO]),
            burst: Spread::of(vec![Nanos::ZERO]),
        };
        let until = Time(1_000_000);
        let background = Background { noise: vec![still], awaited: vec![], until };
        let workload = Workload { background, ..Workload::default() };
        let mut noises = Noises::of(&workload, None).unwrap();
        let mut then = Action::Continue;
        let steps = (0..100).take_while(|_| {
            noises.next_step(TaskId(0), &mut then);
            then != Action::Exit
        });
        assert_eq!(steps.count(), 10);
    }
}
