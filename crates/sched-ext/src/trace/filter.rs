//! What of a scheduler is traced.

use crate::callbacks::Callback;
use schedsim::{CpuId, TaskId, Time};
use std::collections::BTreeSet;

/// How much is shown of a callback. Each shows what those before it do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Depth {
    /// Its arguments and its result.
    Callbacks,
    /// What it calls, what that gives, and what it prints.
    Calls,
    /// What it writes into variables, maps and structures.
    #[default]
    Writes,
    /// The lines of source that are executed.
    Lines,
}

/// A task as a user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// All of a name.
    Named(String),
    /// The one that the scheduler knows by this `pid`.
    Pid(u32),
}

/// What is traced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// These callbacks; if there are none, all.
    pub callbacks: Vec<Callback>,
    /// Callbacks that have to do with one of these tasks; if there are none, all.
    pub tasks: Vec<Task>,
    /// Callbacks on these CPUs, if not on all.
    pub cpus: Option<BTreeSet<u16>>,
    /// Callbacks from this time on.
    pub from: Time,
    /// Callbacks before this time.
    pub to: Time,
    /// How much of each is shown.
    pub depth: Depth,
    /// Whether the maps are shown after it that it has used, and which maps and variables besides.
    pub maps: Option<Vec<String>>,
    /// Whether its instructions are shown after it.
    pub costs: bool,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            callbacks: Vec::new(),
            tasks: Vec::new(),
            cpus: None,
            from: Time::ZERO,
            to: Time::NEVER,
            depth: Depth::default(),
            maps: None,
            costs: false,
        }
    }
}

impl Filter {
    /// Whether a callback is wanted, as far as is known before it runs.
    pub fn wants(&self, callback: Callback, cpu: CpuId, now: Time) -> bool {
        self.from <= now
            && now < self.to
            && (self.callbacks.is_empty() || self.callbacks.contains(&callback))
            && self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0))
    }

    /// Whether it is a wanted task.
    pub fn is_wanted(&self, task: TaskId, name: &str) -> bool {
        self.tasks.iter().any(|wanted| match wanted {
            Task::Named(wanted) => wanted == name,
            Task::Pid(pid) => task.0.checked_add(1) == Some(*pid),
        })
    }
}
