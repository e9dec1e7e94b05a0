//! Porter's rig: tasks that yield for ever, one per slice.
//!
//! The loop is compiled once per structure, with nothing in it that the structure does not need but one look at the level of the
//! task that ran. The same loop around an [`EmptyLoop`] is what has to be subtracted.

use super::mix::Mix;
use super::structure::{self, Examined, Service, Setup, StrideRule, Visitor};
use super::subject::{Called, EmptyLoop, Subject};
use super::threads::{Part, Threads};
use readyq::{Level, Node, Nodes, TaskId};
use serde::{Deserialize, Serialize};

/// One place of the atlas: a structure under a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Its name, of [`structure::STRUCTURES`], or [`EMPTY_LOOP`].
    pub structure: String,
    /// How many tasks yield.
    pub tasks: u32,
    /// Their levels.
    pub mix: Mix,
    /// How many levels there are.
    pub levels: u16,
    /// How a level becomes a rate, where the structure leaves a choice.
    pub strides: StrideRule,
    /// What random mixes are drawn from.
    pub seed: u64,
    /// Which drawing.
    pub assignment: u32,
    /// How many slices to measure, if not as many as [`Cell::slices`] thinks right.
    pub slices: Option<u64>,
    /// What runs in a slice.
    pub body: Body,
}

/// What runs in a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Body {
    /// Nothing: the loop goes from one operation to the next.
    #[default]
    Nothing,
    /// Nothing, and the structure is called instead of inlined: as between threads.
    Called,
    /// A user-level thread.
    Thread {
        /// What happens between two of them.
        part: Part,
        /// How many rounds of work a thread does.
        work: u32,
    },
}

/// The name under which the empty loop is measured.
pub const EMPTY_LOOP: &str = "loop";

/// How many tasks a structure gets at most that walks past a good part of them at every operation.
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

    /// How many slices to measure: whole periods of the schedule where they are short enough, else so many.
    pub fn slices(&self, levels: &[u16]) -> u64 {
        let walks = structure::find(&self.structure).is_some_and(|found| found.examined == Examined::ListElements);
        self.slices_up_to(if walks { 20_000 } else { 120_000 }, levels)
    }

    /// How many slices to watch where that is cheap, the same for every structure.
    pub fn slices_to_watch(&self, levels: &[u16]) -> u64 {
        self.slices_up_to(120_000, levels)
    }

    fn slices_up_to(&self, most: u64, levels: &[u16]) -> u64 {
        let per_period = self.slices_in(self.rule().period(self.levels), levels);
        let periods = 4_000u64.div_ceil(per_period);
        self.slices.unwrap_or(if per_period > most { most } else { per_period * periods })
    }

    /// How many slices `levels` get in so much virtual time, at least 1.
    pub fn slices_in(&self, virtual_time: u64, levels: &[u16]) -> u64 {
        let rule = self.rule();
        let slices: f64 = levels.iter().map(|&level| virtual_time as f64 / rule.stride(level) as f64).sum();
        (slices.round() as u64).max(1)
    }

    /// How many slices to run before measuring: until every task had its turns, and whole periods.
    pub fn warm_up(&self, slices: u64) -> u64 {
        slices.max((20 * u64::from(self.tasks)).min(2_000_000))
    }

    /// How levels become rates in this structure.
    pub fn rule(&self) -> StrideRule {
        match structure::find(&self.structure) {
            Some(found) if found.service == Service::HalvingRates => StrideRule::Powers,
            _ => self.strides,
        }
    }

    /// What runs so many slices of this cell with `subject`.
    pub fn runner<'s, S: Subject + 's>(&self, subject: S, levels: &[u16]) -> Result<Box<dyn FnMut(u64) + 's>, String> {
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
                let mut threads = threads.map_err(|error| format!("cannot make {} threads: {error}", levels.len()))?;
                Box::new(move |slices| threads.run(part, slices))
            }
        })
    }

    /// Builds the structure and gives it to `visitor`, counting its steps or not.
    pub fn build<V: Visitor>(&self, counting: bool, visitor: V) -> Result<V::Out, String> {
        let setup = Setup { tasks: self.tasks, levels: self.levels, strides: self.strides.into(), counting };
        if self.structure == EMPTY_LOOP {
            return Ok(visitor.visit(EmptyLoop));
        }
        let structure = structure::find(&self.structure).ok_or_else(|| format!("there is no structure `{}`", self.structure))?;
        if structure.examined == Examined::ListElements && self.tasks > LONGEST_WALK {
            return Err(format!("{} is not measured with more than {LONGEST_WALK} tasks: walking would take hours", structure.name));
        }
        structure.build(setup, visitor)
    }
}

/// A structure with its tasks, all of which wait.
pub struct Rig<S> {
    subject: S,
    slab: Vec<Node>,
    levels: Vec<Level>,
}

impl<S: Subject> Rig<S> {
    /// All tasks arrive in the order of their ids.
    pub fn new(mut subject: S, levels: &[u16]) -> Rig<S> {
        // One node more than tasks: for the idle task of the structures that keep it in the tree.
        let mut slab = vec![Node::NEW; levels.len() + 1];
        let levels: Vec<Level> = levels.iter().map(|&level| Level(level)).collect();
        let nodes = Nodes::from_mut(&mut slab);
        for (task, &level) in levels.iter().enumerate() {
            subject.arrive(nodes, TaskId(task as u32), level);
        }
        Rig { subject, slab, levels }
    }

    /// What the operations examined so far.
    pub fn steps(&self) -> u64 {
        self.subject.steps()
    }

    /// `slices` times: the next task runs and yields.
    pub fn run(&mut self, slices: u64) {
        yield_for_ever(&mut self.subject, Nodes::from_mut(&mut self.slab), &self.levels, slices);
    }

    /// Once, and which task it was.
    pub fn step(&mut self) -> TaskId {
        let nodes = Nodes::from_mut(&mut self.slab);
        let task = self.subject.take(nodes).unwrap_or(TaskId(0));
        self.subject.put(nodes, task, self.levels[task.index()]);
        task
    }
}

/// The measured loop. It begins with the task that is taken: what a scheduler does, insert and then take, is the same sequence of operations one step
/// earlier, but here no variable has to carry a task from one round to the next.
#[inline(never)]
fn yield_for_ever<S: Subject>(subject: &mut S, nodes: &mut Nodes, levels: &[Level], slices: u64) {
    for _ in 0..slices {
        let Some(task) = subject.take(nodes) else { return };
        subject.put(nodes, task, levels[task.index()]);
    }
}

/// `value`, by no instruction at all, but the compiler does not know that it is the same.
#[inline(always)]
pub(super) fn opaque(mut value: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: there is nothing in it but a comment.
    unsafe {
        std::arch::asm!("/* {0:e} */", inout(reg) value, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        value = std::hint::black_box(value);
    }
    value
}
