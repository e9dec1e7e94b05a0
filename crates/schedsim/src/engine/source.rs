//! The engine's source of tasks: scripts known in advance, or a model that is drawn during the run.

use super::Options;
use crate::workload::{
    Action, Jitter, Model, Noises, Nudge, Population, Shared, Start, Words, Workload,
};
use crate::{Nanos, TaskId, Time};

/// The input of a simulation. A `&Workload` and a `&Model` convert into it.
#[derive(Clone, Copy, Debug)]
pub enum Source<'w> {
    /// A closed set of tasks with a script each, nudged for a member of an ensemble.
    Scripts(&'w Workload, Option<Nudge>),
    /// Tasks that arrive, live and leave. Their events include `job_release` and `job_complete`,
    /// and ids are reused.
    Model(&'w Model),
}

impl<'w> From<&'w Workload> for Source<'w> {
    fn from(workload: &'w Workload) -> Self {
        Source::Scripts(workload, None)
    }
}

impl<'w> From<(&'w Workload, Option<Nudge>)> for Source<'w> {
    fn from((workload, nudge): (&'w Workload, Option<Nudge>)) -> Self {
        Source::Scripts(workload, nudge)
    }
}

impl<'w> From<&'w Model> for Source<'w> {
    fn from(model: &'w Model) -> Self {
        Source::Model(model)
    }
}

/// A source in use.
pub enum Load<'w> {
    Scripts(Scripts<'w>),
    Drawn(Population<'w>),
}

/// A closed set of tasks in use.
pub struct Scripts<'w> {
    pub workload: &'w Workload,
    /// The scripts of its tasks, which are read more often than the rest.
    words: Vec<Words<'w>>,
    jitter: Option<Jitter>,
    /// The tasks without scripts that are drawn, if there are any.
    noises: Option<Box<Noises<'w>>>,
}

impl Scripts<'_> {
    /// The actual start of a task whose start is given as `time`.
    pub fn start(&self, task: TaskId, time: Time) -> Time {
        self.jitter.as_ref().map_or(time, |jitter| time + jitter.start(task))
    }
}

impl<'w> Load<'w> {
    pub fn new(source: Source<'w>, options: Options) -> Load<'w> {
        match source {
            Source::Scripts(workload, nudge) => {
                let words = workload.tasks.iter().map(|task| task.script.words()).collect();
                Load::Scripts(Scripts {
                    workload,
                    words,
                    noises: Noises::of(workload, nudge),
                    jitter: nudge.map(|nudge| Jitter::new(nudge, workload, options.until)),
                })
            }
            Source::Model(model) => Load::Drawn(Population::new(model, options.seed)),
        }
    }

    /// The next step of `task`: its run time and its action. A script ends with an exit. `cursor`
    /// is the task's position in its script.
    #[inline(always)]
    pub fn next_step(&mut self, task: TaskId, cursor: &mut u32, then: &mut Action) -> Nanos {
        match self {
            Load::Scripts(Scripts { words, jitter, noises, .. }) => {
                let Some(step) = words[task.index()].next(cursor) else {
                    return beyond_script(noises, task, then);
                };
                *then = step.then;
                match jitter {
                    None => step.run,
                    Some(jitter) => jitter.step(task, step.run, then),
                }
            }
            Load::Drawn(population) => {
                let (burst, pause) = population.next_burst(task);
                match pause {
                    Some(pause) => *then = Action::Sleep(pause),
                    None => *then = Action::Exit,
                }
                burst
            }
        }
    }

    /// A task has ended.
    #[inline(always)]
    pub fn ended(&mut self, task: TaskId) {
        if let Load::Scripts(Scripts { noises: Some(noises), .. }) = self {
            noises.ended(task);
        }
    }

    /// Prefetches the task's next step.
    pub fn fetch(&self, task: TaskId) {
        if let Load::Drawn(population) = self {
            population.fetch(task);
        }
    }

    /// The objects that tasks share; a model's tasks share none.
    pub fn shared(&self) -> &'w Shared {
        static NOTHING: Shared = Shared::NOTHING;
        match self {
            Load::Scripts(scripts) => &scripts.workload.shared,
            Load::Drawn(_) => &NOTHING,
        }
    }

    /// Whether the task was there before the run, asleep.
    pub fn was_asleep(&self, task: TaskId) -> bool {
        matches!(self, Load::Scripts(scripts) if matches!(scripts.workload.tasks[task.index()].start, Start::Asleep(_)))
    }

    /// The task's name in messages.
    pub fn name(&self, task: TaskId) -> String {
        match self {
            Load::Scripts(scripts) => {
                format!("task {} ({})", task.0, scripts.workload.tasks[task.index()].info.name)
            }
            Load::Drawn(_) => format!("task {}", task.0),
        }
    }
}

/// A task whose script is over ends; one that has none may be drawn.
#[cold]
fn beyond_script(noises: &mut Option<Box<Noises<'_>>>, task: TaskId, then: &mut Action) -> Nanos {
    *then = Action::Exit;
    noises.as_mut().map_or(Nanos::ZERO, |noises| noises.next_step(task, then))
}
