//! Porter's rig: tasks that only yield, one in each slice.
//!
//! The loop is compiled once for each structure. Besides what the structure needs, it only reads
//! the level of the task that ran. The same loop around an [`EmptyLoop`] gives the cost to
//! subtract.

use super::mix::Mix;
use super::structure::{self, Examined, Service, Setup, StrideRule, Visitor};
use super::subject::{Called, EmptyLoop, Subject};
use super::threads::{Part, Threads};
use readyq::{Level, Node, Nodes, TaskId};
use serde::{Deserialize, Serialize};

/// One cell of the atlas: a structure under a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The name, from [`structure::STRUCTURES`], or [`EMPTY_LOOP`].
    pub structure: String,
    /// The number of yielding tasks.
    pub tasks: u32,
    /// Their levels.
    pub mix: Mix,
    /// The number of levels.
    pub levels: u16,
    /// How a level becomes a rate, if the structure allows several rules.
    pub strides: StrideRule,
    /// The seed of random mixes.
    pub seed: u64,
    /// The number of the random assignment.
    pub assignment: u32,
    /// The number of slices to measure; [`Cell::slices`] chooses if absent.
    pub slices: Option<u64>,
    /// What runs in a slice.
    pub body: Body,
}

/// What runs in a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Body {
    /// Nothing: the loop does one operation after another.
    #[default]
    Nothing,
    /// Nothing, and the structure is called instead of inlined, as between threads.
    Called,
    /// A user-level thread.
    Thread {
        /// What happens between two slices.
        part: Part,
        /// The rounds of work of a thread.
        work: u32,
    },
}

/// The name of the empty loop in measurements.
pub const EMPTY_LOOP: &str = "loop";

/// The largest number of tasks for a structure that walks past a large part of them in every
/// operation.
const LONGEST_WALK: u32 = 5_000;

impl Cell {
    /// `tasks` tasks at one level.
    pub fn new(structure: &str, tasks: u32) -> Cell {
        Cell {
            structure: structure.to_string(),
            tasks,
            mix: Mix::One(0),
            levels: 1,
            strides: StrideRule::Linear,
            seed: 1,
            assignment: 0,
            slices: None,
            body: Body::Nothing,
        }
    }

    /// The loop without a structure.
    pub fn empty_loop() -> Cell {
        Cell { slices: Some(20_000), ..Cell::new(EMPTY_LOOP, 1) }
    }

    /// The level of each task.
    pub fn assign(&self) -> Vec<u16> {
        self.mix.assign(self.tasks, self.levels, self.seed, self.assignment)
    }

    /// The number of slices to measure: complete periods of the schedule if they are short enough,
    /// else a fixed number.
    pub fn slices(&self, levels: &[u16]) -> u64 {
        let walks = structure::find(&self.structure)
            .is_some_and(|found| found.examined == Examined::ListElements);
        self.slices_up_to(if walks { 20_000 } else { 120_000 }, levels)
    }

    /// The number of slices to watch if that is cheap; equal for every structure.
    pub fn slices_to_watch(&self, levels: &[u16]) -> u64 {
        self.slices_up_to(120_000, levels)
    }

    fn slices_up_to(&self, most: u64, levels: &[u16]) -> u64 {
        let per_period = self.slices_in(self.rule().period(self.levels), levels);
        let periods = 4_000u64.div_ceil(per_period);
        self.slices.unwrap_or(if per_period > most { most } else { per_period * periods })
    }

    /// The number of slices that `levels` get in this virtual time, at least 1.
    pub fn slices_in(&self, virtual_time: u64, levels: &[u16]) -> u64 {
        let rule = self.rule();
        let slices: f64 =
            levels.iter().map(|&level| virtual_time as f64 / rule.stride(level) as f64).sum();
        (slices.round() as u64).max(1)
    }

    /// The number of slices before the measurement: every task has run, and complete periods.
    pub fn warm_up(&self, slices: u64) -> u64 {
        slices.max((20 * u64::from(self.tasks)).min(2_000_000))
    }

    /// What counting this cell takes, in operations of a short structure: for progress.
    pub fn effort(&self) -> u64 {
        let levels = self.assign();
        let slices = self.slices(&levels);
        let walked = structure::find(&self.structure)
            .filter(|found| found.examined == Examined::ListElements)
            .map_or(0, |_| u64::from(self.tasks.min(LONGEST_WALK)) / 20);
        // Warming up is not counted, and that is faster.
        (self.warm_up(slices) / 8 + slices) * (1 + walked)
    }

    /// How levels become rates in this structure.
    pub fn rule(&self) -> StrideRule {
        match structure::find(&self.structure) {
            Some(found) if found.service == Service::HalvingRates => StrideRule::Powers,
            _ => self.strides,
        }
    }

    /// A runner for the slices of this cell with `subject`.
    pub fn runner<'s, S: Subject + 's>(
        &self,
        subject: S,
        levels: &[u16],
    ) -> Result<Box<dyn FnMut(u64) + 's>, String> {
        Ok(match self.body {
            Body::Nothing => {
                let mut rig = Rig::new(subject, levels);
                Box::new(move |slices| rig.run(slices))
            }
            Body::Called => {
                let mut rig = Rig::new(Called(subject), levels);
                Box::new(move |slices| rig.run(slices))
            }
            Body::Thread { part, work } => {
                let threads = Threads::new(Called(subject), levels, work);
                let mut threads = threads
                    .map_err(|error| format!("cannot make {} threads: {error}", levels.len()))?;
                Box::new(move |slices| threads.run(part, slices))
            }
        })
    }

    /// Builds the structure and passes it to `visitor`; `counting` says whether steps are counted.
    pub fn build<V: Visitor>(&self, counting: bool, visitor: V) -> Result<V::Out, String> {
        let setup = Setup {
            tasks: self.tasks,
            levels: self.levels,
            strides: self.strides.into(),
            counting,
        };
        if self.structure == EMPTY_LOOP {
            return Ok(visitor.visit(EmptyLoop));
        }
        let structure = structure::find(&self.structure)
            .ok_or_else(|| format!("there is no structure `{}`", self.structure))?;
        if structure.examined == Examined::ListElements && self.tasks > LONGEST_WALK {
            return Err(format!(
                "{} is not measured with more than {LONGEST_WALK} tasks: walking would take hours",
                structure.name
            ));
        }
        structure.build(setup, visitor)
    }
}

/// A structure with its tasks, all waiting.
pub struct Rig<S> {
    subject: S,
    slab: Vec<Node>,
    levels: Vec<Level>,
}

impl<S: Subject> Rig<S> {
    /// All tasks arrive in the order of their ids.
    pub fn new(mut subject: S, levels: &[u16]) -> Rig<S> {
        // One more node than tasks, for the idle task of the structures that keep it in the tree.
        let mut slab = vec![Node::NEW; levels.len() + 1];
        let levels: Vec<Level> = levels.iter().map(|&level| Level(level)).collect();
        let nodes = Nodes::from_mut(&mut slab);
        for (task, &level) in levels.iter().enumerate() {
            subject.arrive(nodes, TaskId(task as u32), level);
        }
        Rig { subject, slab, levels }
    }

    /// The number of elements that the operations examined so far.
    pub fn steps(&self) -> u64 {
        self.subject.steps()
    }

    /// Runs `slices` slices: in each the next task runs and yields.
    pub fn run(&mut self, slices: u64) {
        yield_for_ever(&mut self.subject, Nodes::from_mut(&mut self.slab), &self.levels, slices);
    }

    /// Runs one slice and returns its task.
    pub fn step(&mut self) -> TaskId {
        let nodes = Nodes::from_mut(&mut self.slab);
        let task = self.subject.take(nodes).unwrap_or(TaskId(0));
        self.subject.put(nodes, task, self.levels[task.index()]);
        task
    }
}

/// The measured loop. It begins with removing a task. A scheduler inserts and then removes: the
/// same sequence, shifted by one step. Here no variable has to carry a task between rounds.
#[inline(never)]
fn yield_for_ever<S: Subject>(subject: &mut S, nodes: &mut Nodes, levels: &[Level], slices: u64) {
    for _ in 0..slices {
        let Some(task) = subject.take(nodes) else { return };
        subject.put(nodes, task, levels[task.index()]);
    }
}
