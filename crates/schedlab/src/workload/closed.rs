//! A closed workload, wherever it was described: tasks that go through phases.
#![deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::arithmetic_side_effects)]

mod names;

use crate::Error;
use crate::toml_file::TomlFile;
use schedsim::workload::{self, Closed, Invalid, LoopPhase, Phase};
use schedsim::{Nanos, Time};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The number of CPUs of a workload that does not say.
const CPUS: u16 = 4;
/// Any machine has fewer: what a workload names is there on some machine.
const MOST_CPUS: u16 = 4096;

/// A description, and where it comes from.
#[derive(Clone, Debug)]
pub struct ClosedWorkload {
    name: String,
    closed: Closed,
    origin: Origin,
    notes: Vec<String>,
}

/// To what an error points.
#[derive(Clone, Debug)]
enum Origin {
    Toml(TomlFile),
    /// The lines of a file by key.
    Lines {
        file: String,
        lines: BTreeMap<String, usize>,
    },
    BuiltIn,
}

impl ClosedWorkload {
    /// The workload in a file with `[[task]]`s.
    ///
    /// # Errors
    /// If it has keys or values that no workload has.
    pub fn read(file: TomlFile) -> Result<ClosedWorkload, Error> {
        let closed: Closed = file.parse()?;
        let stem = file.name().rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        let name = closed.name.clone().unwrap_or_else(|| stem.to_string());
        let mut workload = ClosedWorkload { name, closed, origin: Origin::Toml(file), notes: Vec::new() };
        workload.scripts(workload.cpus().max(MOST_CPUS))?;
        names::slip(&workload.closed).map_or(Ok(()), |invalid| Err(workload.refuse(&invalid)))?;
        // A table that only declares says nothing to who runs the tasks.
        workload.closed.devices.retain(|_, options| *options != Default::default());
        Ok(workload)
    }

    /// One that came with the program.
    pub fn built_in(name: String, closed: Closed) -> ClosedWorkload {
        ClosedWorkload { name, closed, origin: Origin::BuiltIn, notes: Vec::new() }
    }

    /// One that was translated: `lines` has the lines of the file by the keys of `closed`, and `notes` say what is not as the file means it.
    pub fn translated(name: String, closed: Closed, file: &str, lines: BTreeMap<String, usize>, notes: Vec<String>) -> ClosedWorkload {
        ClosedWorkload { name, closed, origin: Origin::Lines { file: file.to_string(), lines }, notes }
    }

    /// What to call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is in it. As JSON it tells real threads what to do.
    pub fn description(&self) -> &Closed {
        &self.closed
    }

    /// The same where each call (all phases but `run`, `loop` and `exec`) takes the tasks of each `[[task]]` so much CPU time; in lists that they go on with calls take none.
    pub fn with_calls(&self, costs: &[Nanos]) -> ClosedWorkload {
        let mut workload = self.clone();
        for (tasks, &cost) in workload.closed.tasks.iter_mut().zip(costs) {
            tasks.phases = with_calls(std::mem::take(&mut tasks.phases), cost);
        }
        workload
    }

    /// The same after a change of what its tasks are.
    #[must_use]
    pub fn changed(&self, change: impl FnOnce(&mut Closed)) -> ClosedWorkload {
        let mut workload = self.clone();
        change(&mut workload.closed);
        workload
    }

    /// Refuses what is not done to this machine.
    ///
    /// # Errors
    /// If tasks are in control groups.
    pub fn expect_for_host(&self) -> Result<(), Error> {
        match self.closed.cgroups.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::Missing(format!(
                "{} has a control group, {name}, and this machine's groups are its administrator's: give --on vm, or leave the group out",
                self.name
            ))),
        }
    }

    /// Refuses what a scheduler in sched_ext is not told.
    ///
    /// # Errors
    /// If tasks are in control groups, or mutexes let their holders inherit priorities, which the kernel does without it.
    pub fn expect_for_sched_ext(&self, policy: &dyn std::fmt::Display) -> Result<(), Error> {
        let inherits = self.closed.inheriting().map(|name| format!("the holder of the mutex {name} inherits priorities"));
        let grouped = self.closed.cgroups.keys().next().map(|name| format!("there is a control group, {name}"));
        inherits.or(grouped).map_or(Ok(()), |what| {
            Err(Error::Missing(format!(
                "{}: {what}, of which {policy} is not told in sched_ext: take one of the kernel's own classes, as kernel:other, or leave it out",
                self.name
            )))
        })
    }

    /// What of the file is only approximated.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// On how many CPUs it runs if nobody says otherwise.
    pub fn cpus(&self) -> u16 {
        self.closed.cpus.unwrap_or(CPUS)
    }

    /// When a run is stopped.
    pub fn until(&self) -> Time {
        self.closed.duration.map_or(Time::NEVER, |Nanos(span)| Time(span))
    }

    /// The scripts for a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// If it cannot be run there; the message points at the file's line and key.
    pub fn scripts(&self, cpus: u16) -> Result<workload::Workload, Error> {
        workload::Workload::of(&self.closed, cpus).map_err(|invalid| self.refuse(&invalid))
    }

    fn refuse(&self, Invalid { key, message }: &Invalid) -> Error {
        match &self.origin {
            Origin::Toml(file) => file.wrong(key, message),
            Origin::BuiltIn => Error::Usage(format!("the workload {}: {key}: {message}", self.name)),
            Origin::Lines { file, lines } => {
                // A key that was not written down stands in one that was.
                let mut known = key.as_str();
                while !lines.contains_key(known)
                    && let Some(end) = known.rfind(['.', '['])
                {
                    known = &known[..end];
                }
                Error::Input(format!("{file}:{}: {message}", lines.get(known).copied().unwrap_or(1)))
            }
        }
    }

    /// What a reader must know first.
    pub fn headline(&self) -> String {
        let tasks: u64 = self.closed.tasks.iter().map(|tasks| u64::from(tasks.count)).sum();
        let stopped = self.closed.duration.map_or(String::new(), |span| format!(", stopped after {span}"));
        let mut text = format!("{}: {tasks} tasks{stopped}\n", self.name);
        if let Some(description) = &self.closed.description {
            let _ = writeln!(text, "{description}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "Approximated: {note}");
        }
        text
    }
}

fn with_calls(phases: Vec<Phase>, cost: Nanos) -> Vec<Phase> {
    let each = |phase| match phase {
        Phase::Run(_) | Phase::Exec(_) => vec![phase],
        Phase::Loop(inner) => vec![Phase::Loop(LoopPhase { phases: with_calls(inner.phases, cost), ..inner })],
        call => vec![Phase::Run(cost), call],
    };
    phases.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_kernel_does_is_refused_where_none_does_it() {
        let workload = |tables: &str| {
            let task = r#"{ "name": "t", "cgroup": "g", "phases": [ { "lock": "m" }, { "run": "1ms" }, { "unlock": "m" } ] }"#;
            let task = if tables.contains("cgroup") { task.to_string() } else { task.replace(r#""cgroup": "g", "#, "") };
            let closed = serde_json::from_str(&format!(r#"{{ {tables} "task": [ {task} ] }}"#)).unwrap();
            ClosedWorkload::built_in("w".to_string(), closed)
        };
        let (plain, group, inherits) =
            (workload(""), workload(r#""cgroup": { "g": {} },"#), workload(r#""mutex": { "m": { "inherit": true } },"#));
        let sched_ext = |workload: &ClosedWorkload| workload.expect_for_sched_ext(&"bpf:rr");
        assert!(sched_ext(&plain).is_ok() && plain.expect_for_host().is_ok() && inherits.expect_for_host().is_ok());
        for (refused, words) in [
            (group.expect_for_host(), ["control group, g", "give --on vm"]),
            (sched_ext(&group), ["control group, g", "bpf:rr"]),
            (sched_ext(&inherits), ["the mutex m inherits", "kernel:other"]),
        ] {
            let error = refused.expect_err("there is nobody to do it");
            assert_eq!(error.exit_code(), 77);
            assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
        }
    }
}
