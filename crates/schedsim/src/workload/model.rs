//! A stochastic workload: tasks of alternating CPU bursts and pauses that arrive, live and leave, drawn from distributions as a run goes on.
//!
//! The model of Curran & Stumm 1990, §3.1. A task has a class and a priority, a number of CPU bursts, and one pause between two bursts. All that is drawn
//! from a stream of its own, seeded by the run's seed and the task's number, so that policies meet the same tasks (common random numbers). A task that has
//! left gives its id to a later one: memory grows with the tasks that are alive.
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
pub use unix1990::{Bursts, Priorities, Unix1990};

use super::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use crate::trace::TaskInfo;
use crate::{CpuId, Nanos, Time};
use distribution::{Choice, expect_sum_of_one};
use phases::Invalid;

/// What arrives, and for how long. Made by [`Model::new`], which checks it.
#[derive(Clone, Debug)]
pub struct Model {
    /// What to call it.
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
    /// What to call it.
    pub name: String,
    /// How many of the tasks are of this class: a share of one.
    pub share: f64,
    /// Whether its tasks are known, when they arrive, to need the CPU all the time.
    pub intensive: bool,
    /// Linux's kernel priorities and the share of the tasks that has each.
    pub priorities: Vec<(u8, f64)>,
    /// How many CPU bursts a task has; rounded, at least one.
    pub bursts: Distribution,
    /// How long a CPU burst is, in nanoseconds on a processor of speed 1.
    pub burst: Distribution,
    /// How long a pause is, in nanoseconds.
    pub pause: Distribution,
}

/// Which tasks a run is about, and when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunLength {
    /// So many tasks come first and are not measured.
    pub warm_up: u64,
    /// So many tasks are measured; `u64::MAX` leaves the end to [`Options::until`](crate::engine::Options).
    pub measured: u64,
    /// What happens while the last of them finish.
    pub after: After,
    /// With more tasks alive than this, the run ends: the system is saturated.
    pub population_limit: u32,
}

/// What happens when the last measured task has arrived. The paper does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum After {
    /// Nobody arrives any more, and the tasks that are there run to their ends. Load falls towards the end.
    #[default]
    Drain,
    /// Tasks go on arriving until the last measured one has left, so that it meets the same load as the others.
    GoOn,
}

/// Who a task is; the same in every run with the same seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Index of its class.
    pub class: u8,
    /// Linux's kernel priority.
    pub prio: u8,
}

impl Model {
    /// Tasks of `classes` that come with gaps drawn from `arrivals` (nanoseconds).
    ///
    /// # Errors
    /// If shares do not sum to one, there is no class, or there are more than 256.
    pub fn new(name: &str, arrivals: Distribution, classes: Vec<Class>, length: RunLength) -> Result<Model, Invalid> {
        let invalid = |key: String| move |message| Invalid { key, message };
        if classes.is_empty() || classes.len() > 256 {
            return Err(invalid("class".to_string())(format!("a workload has 1 to 256 classes, not {}", classes.len())));
        }
        let shares: Vec<f64> = classes.iter().map(|class| class.share).collect();
        expect_sum_of_one(&shares).map_err(invalid("class.share".to_string()))?;
        let choice = Choice::new(&shares).map_err(invalid("class.share".to_string()))?;
        for (index, class) in classes.iter().enumerate() {
            let key = format!("class[{index}].priorities");
            let shares: Vec<f64> = class.priorities.iter().map(|&(_, share)| share).collect();
            expect_sum_of_one(&shares).and_then(|()| Choice::new(&shares).map(drop)).map_err(invalid(key.clone()))?;
            if let Some((prio, _)) = class.priorities.iter().find(|&&(prio, _)| prio > 139) {
                return Err(invalid(key)(format!("priorities go from 0 to 139, not to {prio}")));
            }
        }
        if length.measured == 0 {
            return Err(invalid("run.tasks".to_string())("at least one task must be measured".to_string()));
        }
        let only = match &classes[..] {
            [Class { priorities, .. }] if priorities.len() == 1 => Some(Kind { class: 0, prio: priorities[0].0 }),
            _ => None,
        };
        Ok(Model { name: name.to_string(), arrivals, classes, choice, only, length })
    }

    /// The same for another number of tasks.
    pub fn with_length(mut self, length: RunLength) -> Model {
        self.length = length;
        self
    }

    /// Which tasks a run is about.
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

    /// CPU time of a mean task, in nanoseconds, before any overhead.
    pub fn mean_cpu_time(&self) -> f64 {
        self.choice.mean(self.classes.iter().map(Class::cpu_time))
    }

    /// CPU time and pauses of a mean task, in nanoseconds: what it would take alone.
    pub fn mean_task_time(&self) -> f64 {
        self.choice.mean(self.classes.iter().map(|class| class.cpu_time() + (class.bursts.mean() - 1.0) * class.pause.mean()))
    }

    /// Curran & Stumm's Offered Load: mean burst × bursts per task × arrival rate / processors.
    pub fn offered_load(&self, cpus: u16) -> f64 {
        self.mean_cpu_time() / (self.gap() * f64::from(cpus))
    }

    /// Who task `number` is in the run with `seed`.
    #[inline]
    pub fn kind(&self, seed: u64, number: u64) -> Kind {
        self.only.unwrap_or_else(|| self.draw_kind(&mut Stream::new(seed, number)))
    }

    /// The first draws of a task's stream, unless all are of one kind.
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
        Kind { class: class as u8, prio: found.or(priorities.last()).map_or(120, |&(prio, _)| prio) }
    }

    /// The first `tasks` tasks of the run with `seed`, written out as scripts: the same arrivals, bursts and pauses, for checks and for a closer look.
    pub fn scripts(&self, seed: u64, tasks: usize) -> Workload {
        let length = RunLength { warm_up: 0, measured: tasks as u64, after: After::Drain, population_limit: u32::MAX };
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
            let info = TaskInfo { name, pid: arrival.task.0, tgid: arrival.task.0, prio: arrival.kind.prio };
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
}

impl RunLength {
    /// Whether task `number` is measured.
    #[inline]
    pub fn measures(&self, number: u64) -> bool {
        number >= self.warm_up && number - self.warm_up < self.measured
    }
}

/// A drawn duration as whole nanoseconds, at least one. At most 292 years: there is an instruction that makes signed numbers of doubles.
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
