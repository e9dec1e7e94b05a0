//! Porter's rig: tasks that yield for ever, one per slice.
//!
//! The loop is compiled once per structure, with nothing in it that the structure does not need but one look at the level of the
//! task that ran. The same loop around an [`EmptyLoop`](super::subject::EmptyLoop) is what has to be subtracted.

use super::mix::Mix;
use super::structure::{self, Examined, Service, Setup, StrideRule, Visitor};
use super::subject::{EmptyLoop, Subject};
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
}

/// The name under which the empty loop is measured.
pub const EMPTY_LOOP: &str = "loop";

impl Cell {
    /// The level of each task.
    pub fn assign(&self) -> Vec<u16> {
        self.mix.assign(self.tasks, self.levels, self.seed, self.assignment)
    }

    /// How many slices to measure: whole periods of the schedule where they are short enough, else enough of them.
    pub fn slices(&self, levels: &[u16]) -> u64 {
        if let Some(slices) = self.slices {
            return slices;
        }
        let most = if self.walks_lists() { 20_000 } else { 120_000 };
        let per_period = self.slices_in(self.rule().period(self.levels), levels);
        if per_period > most { most } else { per_period * 4_000u64.div_ceil(per_period) }
    }

    /// How many slices `levels` get in so much virtual time, at least 1.
    pub fn slices_in(&self, virtual_time: u64, levels: &[u16]) -> u64 {
        let rule = self.rule();
        let slices: f64 = levels.iter().map(|&level| virtual_time as f64 / rule.stride(level) as f64).sum();
        (slices.round() as u64).max(1)
    }

    /// How many slices to run before measuring: until every task had its turns, and whole periods.
    pub fn warm_up(&self, slices: u64) -> u64 {
        slices.max(20 * u64::from(self.tasks))
    }

    /// How levels become rates in this structure.
    pub fn rule(&self) -> StrideRule {
        match structure::find(&self.structure) {
            Some(found) if found.service == Service::HalvingRates => StrideRule::Powers,
            _ => self.strides,
        }
    }

    /// Whether its operations take the longer the more tasks wait.
    pub fn walks_lists(&self) -> bool {
        structure::find(&self.structure).is_some_and(|found| found.examined == Examined::ListElements)
    }

    /// Builds the structure and gives it to `visitor`, counting its steps or not.
    pub fn build<V: Visitor>(&self, counting: bool, visitor: V) -> Result<V::Out, String> {
        let setup = Setup { tasks: self.tasks, levels: self.levels, strides: self.strides.into(), counting };
        if self.structure == EMPTY_LOOP {
            return Ok(visitor.visit(EmptyLoop));
        }
        let structure = structure::find(&self.structure).ok_or_else(|| format!("there is no structure `{}`", self.structure))?;
        structure.build(setup, visitor)
    }
}

/// A structure with its tasks, one of which runs.
pub struct Rig<S> {
    subject: S,
    slab: Vec<Node>,
    levels: Vec<Level>,
    running: TaskId,
}

impl<S: Subject> Rig<S> {
    /// All tasks arrive in the order of their ids; then the first one runs.
    pub fn new(mut subject: S, levels: &[u16]) -> Rig<S> {
        // One node more than tasks: for the idle task of the structures that keep it in the tree.
        let mut slab = vec![Node::NEW; levels.len() + 1];
        let levels: Vec<Level> = levels.iter().map(|&level| Level(level)).collect();
        let nodes = Nodes::from_mut(&mut slab);
        for (task, &level) in levels.iter().enumerate() {
            subject.arrive(nodes, TaskId(task as u32), level);
        }
        let running = subject.first(nodes);
        Rig { subject, slab, levels, running }
    }

    /// The task that runs.
    pub fn running(&self) -> TaskId {
        self.running
    }

    /// Its level, or that of any other.
    pub fn level(&self, task: TaskId) -> u16 {
        self.levels[task.index()].0
    }

    /// What the operations examined so far.
    pub fn steps(&self) -> u64 {
        self.subject.steps()
    }

    /// `slices` times: the running task yields, the next one runs.
    pub fn run(&mut self, slices: u64) {
        self.running = yield_for_ever(&mut self.subject, Nodes::from_mut(&mut self.slab), &self.levels, self.running, slices);
    }
}

/// The measured loop.
#[inline(never)]
fn yield_for_ever<S: Subject>(subject: &mut S, nodes: &mut Nodes, levels: &[Level], mut running: TaskId, slices: u64) -> TaskId {
    for _ in 0..slices {
        running = subject.next(nodes, running, levels[running.index()]);
    }
    running
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
