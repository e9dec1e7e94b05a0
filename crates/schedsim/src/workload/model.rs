//! Stochastic workloads: tasks that arrive, alternate CPU bursts and pauses, and leave, drawn from
//! distributions during a run.
//!
//! The model of Curran & Stumm 1990, §3.1. A task has a class and a priority, a number of CPU
//! bursts, and one pause between two bursts. A task's own stream, seeded by the run's seed and the
//! task's number, draws all of these. So all policies run the same tasks (common random numbers). A
//! later task reuses the id of a task that has left: memory grows with the live tasks only.
//!
//! ```
//! use schedsim::workload::Unix1990;
//!
//! let baseline = Unix1990 { load: 0.7, ..Unix1990::default() };
//! let model = baseline.model().unwrap();
//! assert!((model.offered_load(4) - 0.7).abs() < 1e-9);
//! assert_eq!(baseline.machine().cpus, 4);
//! ```

mod distribution;
mod population;
mod stream;
mod unix1990;

pub use distribution::{Bin, Distribution};
pub(crate) use population::Population;
pub use stream::Stream;
pub use unix1990::{Bursts, Counts, Histogram, Priorities, Unix1990};

use super::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use crate::trace::TaskInfo;
use crate::{CpuId, Nanos, Time};
use distribution::{Choice, expect_sum_of_one};
use phases::Invalid;

/// The arrival process and the classes of tasks. [`Model::new`] checks them.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name.
    pub name: String,
    arrivals: Distribution,
    classes: Vec<Class>,
    choice: Choice,
    /// The kind of all tasks, if there is only one.
    only: Option<Kind>,
    length: RunLength,
}

/// Tasks of one kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its share of the tasks, at most one.
    pub share: f64,
    /// Whether its tasks are known on arrival as processor-intensive.
    pub intensive: bool,
    /// Linux's kernel priorities, each with its share of the tasks.
    pub priorities: Vec<(u8, f64)>,
    /// The number of CPU bursts of a task; rounded, at least one.
    pub bursts: Distribution,
    /// The length of a CPU burst, in nanoseconds on a processor of speed 1.
    pub burst: Distribution,
    /// The length of a pause, in nanoseconds.
    pub pause: Distribution,
}

/// Which tasks a run measures, and when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunLength {
    /// The number of unmeasured tasks at the start.
    pub warm_up: u64,
    /// The number of measured tasks; with `u64::MAX`, [`Options::until`](crate::engine::Options)
    /// ends the run.
    pub measured: u64,
    /// What happens while the last of them finish.
    pub after: After,
    /// The run ends as saturated if more tasks than this are alive.
    pub population_limit: u32,
}

/// What happens when the last measured task has arrived. The paper does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum After {
    /// Arrivals stop, and the live tasks run to their ends. Load falls towards the end.
    #[default]
    Drain,
    /// Arrivals continue until the last measured task has left, so that it meets the same load as
    /// the others.
    GoOn,
}

/// The class and priority of a task, equal in every run with the same seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The index of its class.
    pub class: u8,
    /// Linux's kernel priority.
    pub prio: u8,
}

impl Model {
    /// A model of tasks of `classes` that arrive with gaps drawn from `arrivals` (nanoseconds).
    ///
    /// # Errors
    /// If shares do not sum to one, there is no class, or there are more than 256.
    pub fn new(
        name: &str,
        arrivals: Distribution,
        classes: Vec<Class>,
        length: RunLength,
    ) -> Result<Model, Invalid> {
        let invalid = |key: String| move |message| Invalid { key, message };
        if classes.is_empty() || classes.len() > 256 {
            return Err(invalid("class".to_string())(format!(
                "a workload has 1 to 256 classes, not {}",
                classes.len()
            )));
        }
        let shares: Vec<f64> = classes.iter().map(|class| class.share).collect();
        expect_sum_of_one(&shares).map_err(invalid("class.share".to_string()))?;
        let choice = Choice::new(&shares).map_err(invalid("class.share".to_string()))?;
        for (index, class) in classes.iter().enumerate() {
            let key = format!("class[{index}].priorities");
            let shares: Vec<f64> = class.priorities.iter().map(|&(_, share)| share).collect();
            expect_sum_of_one(&shares)
                .and_then(|()| Choice::new(&shares).map(drop))
                .map_err(invalid(key.clone()))?;
            if let Some((prio, _)) = class.priorities.iter().find(|&&(prio, _)| prio > 139) {
                return Err(invalid(key)(format!("priorities go from 0 to 139, not to {prio}")));
            }
        }
        if length.measured == 0 {
            return Err(invalid("run.tasks".to_string())(
                "at least one task must be measured".to_string(),
            ));
        }
        let only = match &classes[..] {
            [Class { priorities, .. }] if priorities.len() == 1 => {
                Some(Kind { class: 0, prio: priorities[0].0 })
            }
            _ => None,
        };
        Ok(Model { name: name.to_string(), arrivals, classes, choice, only, length })
    }

    /// This model with another run length.
    pub fn with_length(mut self, length: RunLength) -> Model {
        self.length = length;
        self
    }

    /// The run length.
    pub fn length(&self) -> RunLength {
        self.length
    }

    /// The classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Mean gap between two arrivals, in nanoseconds.
    pub fn gap(&self) -> f64 {
        self.arrivals.mean()
    }

    /// Mean CPU time of a task, in nanoseconds, without overhead.
    pub fn mean_cpu_time(&self) -> f64 {
        self.choice.mean(self.classes.iter().map(Class::cpu_time))
    }

    /// Mean CPU time and pauses of a task, in nanoseconds: its time alone on a machine.
    pub fn mean_task_time(&self) -> f64 {
        self.choice.mean(self.classes.iter().map(Class::task_time))
    }

    /// Curran & Stumm's Offered Load: mean burst × bursts per task × arrival rate / processors.
    pub fn offered_load(&self, cpus: u16) -> f64 {
        self.mean_cpu_time() / (self.gap() * f64::from(cpus))
    }

    /// The number of warm-up tasks after which a system of `cpus` CPUs has forgotten its empty
    /// start, if bursts are longer by the share `slowdown`. They are the tasks that arrive in ten
    /// times the time that a task takes alone and a queue takes to settle. They are at least 1,000
    /// and at most 20,000.
    ///
    /// A queue of M/M/1 settles in b/(1 − √ρ)² ≤ 4b/(1 − ρ)² (Morse 1955), one of M/G/1 in about (1
    /// + c²)/2 times that. No policy settles more slowly than one queue for each CPU.
    pub fn settling(&self, cpus: u16, slowdown: f64) -> u64 {
        let load = (self.offered_load(cpus) * (1.0 + slowdown)).min(0.95);
        let bursts: f64 = self.classes.iter().map(|class| class.share * class.bursts.mean()).sum();
        let square =
            |burst: &Distribution| burst.mean().powi(2) * (1.0 + burst.variation_squared());
        let squares: f64 = self
            .classes
            .iter()
            .map(|class| class.share * class.bursts.mean() * square(&class.burst))
            .sum();
        let queue = 2.0 * squares / bursts / (self.mean_cpu_time() / bursts) / (1.0 - load).powi(2);
        let task = self.classes.iter().map(Class::task_time).fold(0.0, f64::max);
        (10.0 * (task + queue) / self.gap()).clamp(1_000.0, 20_000.0).ceil() as u64
    }

    /// The kind of task `number` in the run with `seed`.
    #[inline]
    pub fn kind(&self, seed: u64, number: u64) -> Kind {
        self.only.unwrap_or_else(|| self.draw_kind(&mut Stream::new(seed, number)))
    }

    /// The first draws of a task's stream, unless all tasks are of one kind.
    #[inline]
    fn begin(&self, stream: &mut Stream) -> Kind {
        self.only.unwrap_or_else(|| self.draw_kind(stream))
    }

    fn draw_kind(&self, stream: &mut Stream) -> Kind {
        let class = self.choice.draw(stream);
        let (priorities, place) = (&self.classes[class].priorities, stream.unit());
        let mut sum = 0.0;
        let found = priorities.iter().find(|&&(_, share)| {
            sum += share;
            place < sum
        });
        Kind {
            class: class as u8,
            prio: found.or(priorities.last()).map_or(120, |&(prio, _)| prio),
        }
    }

    /// The first `tasks` tasks of the run with `seed` as scripts: the same arrivals, bursts and
    /// pauses, for checks and inspection.
    pub fn scripts(&self, seed: u64, tasks: usize) -> Workload {
        let length = RunLength {
            warm_up: 0,
            measured: tasks as u64,
            after: After::Drain,
            population_limit: u32::MAX,
        };
        let model = self.clone().with_length(length);
        let mut population = Population::new(&model, seed);
        let mut workload = Workload::default();
        while let Some(arrival) = population.arrive() {
            let mut script = Script::new();
            loop {
                let (burst, pause) = population.next_burst(arrival.task);
                script.push(burst, pause.map_or(Action::Exit, Action::Sleep));
                if pause.is_none() {
                    break;
                }
            }
            let name = self.classes[usize::from(arrival.kind.class)].name.clone();
            let info = TaskInfo {
                name,
                pid: arrival.task.0,
                tgid: arrival.task.0,
                prio: arrival.kind.prio,
            };
            workload.tasks.push(TaskSpec {
                info,
                attributes: Attributes::default(),
                affinity: Affinity::Any,
                cpu: CpuId(0),
                start: Start::At(arrival.time),
                script,
            });
        }
        workload
    }
}

impl Class {
    /// Mean CPU time of a task of this class, in nanoseconds.
    pub fn cpu_time(&self) -> f64 {
        self.bursts.mean() * self.burst.mean()
    }

    /// Mean time of a task of this class alone on a machine, in nanoseconds.
    fn task_time(&self) -> f64 {
        self.cpu_time() + (self.bursts.mean() - 1.0) * self.pause.mean()
    }
}

impl RunLength {
    /// Whether task `number` is measured.
    #[inline]
    pub fn measures(&self, number: u64) -> bool {
        number >= self.warm_up && number - self.warm_up < self.measured
    }
}

/// A drawn duration in whole nanoseconds, at least one and at most 292 years. Signed, because the
/// processor converts doubles to signed integers in one instruction.
#[inline(always)]
fn duration(drawn: f64) -> Nanos {
    Nanos((drawn as i64).max(1) as u64)
}

/// A drawn number of bursts, at least one.
#[inline]
fn count(drawn: f64) -> u32 {
    ((drawn + 0.5) as u32).max(1)
}

/// `time` plus a drawn gap.
#[inline]
fn after(time: Time, drawn: f64) -> Time {
    time + duration(drawn)
}
