//! A closed workload from any source: tasks that go through phases.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod names;

use crate::toml_file::TomlFile;
use program::Error;
use schedsim::workload::{self, Closed, EventLoopPhase, Invalid, LoopPhase, Phase, ServePhase};
use schedsim::{Nanos, Time};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The default number of CPUs.
const CPUS: u16 = 4;
/// The limit on CPU numbers in a workload: every machine has fewer CPUs.
const MOST_CPUS: u16 = 4096;

/// A description and its source.
#[derive(Clone, Debug)]
pub struct ClosedWorkload {
    name: String,
    closed: Closed,
    origin: Origin,
    notes: Vec<String>,
}

/// The position for an error message.
#[derive(Clone, Debug)]
enum Origin {
    Toml(TomlFile),
    /// The lines of a file, by key.
    Lines {
        file: String,
        lines: BTreeMap<String, usize>,
    },
    BuiltIn,
}

impl ClosedWorkload {
    /// Reads the workload in a file with `[[task]]`s.
    ///
    /// # Errors
    /// If it has unknown keys or invalid values.
    pub fn read(file: TomlFile) -> Result<ClosedWorkload, Error> {
        let closed: Closed = file.parse()?;
        let stem = file.name().rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        let name = closed.name.clone().unwrap_or_else(|| stem.to_string());
        let mut workload =
            ClosedWorkload { name, closed, origin: Origin::Toml(file), notes: Vec::new() };
        workload.scripts(workload.cpus().max(MOST_CPUS))?;
        names::slip(&workload.closed).map_or(Ok(()), |invalid| Err(workload.refuse(&invalid)))?;
        // A table with only defaults means nothing to the runner.
        workload.closed.devices.retain(|_, options| *options != Default::default());
        Ok(workload)
    }

    /// A built-in workload.
    pub fn built_in(name: String, closed: Closed) -> ClosedWorkload {
        ClosedWorkload { name, closed, origin: Origin::BuiltIn, notes: Vec::new() }
    }

    /// A translated workload. `lines` maps the keys of `closed` to lines of the file; `notes` list
    /// what differs from the file's meaning.
    pub fn translated(
        name: String,
        closed: Closed,
        file: &str,
        lines: BTreeMap<String, usize>,
        notes: Vec<String>,
    ) -> ClosedWorkload {
        ClosedWorkload {
            name,
            closed,
            origin: Origin::Lines { file: file.to_string(), lines },
            notes,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description. As JSON it is the input of the runner.
    pub fn description(&self) -> &Closed {
        &self.closed
    }

    /// Adds a CPU cost to each call (all phases but `run`, `loop` and `exec`). `cost` is that of
    /// the phase in this `[[task]]`, by number; or in no task, but in a list.
    pub fn with_calls(&self, cost: impl Fn(Option<usize>, &Phase) -> Nanos) -> ClosedWorkload {
        let mut workload = self.clone();
        for (number, tasks) in workload.closed.tasks.iter_mut().enumerate() {
            let phases = std::mem::take(&mut tasks.phases);
            tasks.phases = with_calls(phases, &|phase| cost(Some(number), phase));
        }
        for phases in workload.closed.lists.values_mut() {
            *phases = with_calls(std::mem::take(phases), &|phase| cost(None, phase));
        }
        workload
    }

    /// The same workload with changed tasks.
    #[must_use]
    pub fn changed(&self, change: impl FnOnce(&mut Closed)) -> ClosedWorkload {
        let mut workload = self.clone();
        change(&mut workload.closed);
        workload
    }

    /// Refuses what must not be done to this machine.
    ///
    /// # Errors
    /// If tasks have control groups.
    pub fn expect_for_host(&self) -> Result<(), Error> {
        match self.closed.cgroups.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::Missing(format!(
                "{} has a control group, {name}, and this machine's groups are its \
                 administrator's: give --on vm, or leave the group out",
                self.name
            ))),
        }
    }

    /// Refuses what sched_ext does not report to a scheduler.
    ///
    /// # Errors
    /// If tasks have control groups, or mutexes with priority inheritance: the kernel handles both
    /// without the scheduler.
    pub fn expect_for_sched_ext(&self, policy: &dyn std::fmt::Display) -> Result<(), Error> {
        let inherits = self
            .closed
            .inheriting()
            .map(|name| format!("the holder of the mutex {name} inherits priorities"));
        let grouped = self
            .closed
            .cgroups
            .keys()
            .next()
            .map(|name| format!("there is a control group, {name}"));
        inherits.or(grouped).map_or(Ok(()), |what| {
            Err(Error::Missing(format!(
                "{}: {what}, which sched_ext does not report to {policy}: use one of the kernel's \
                 own classes, as kernel:other, or leave it out",
                self.name
            )))
        })
    }

    /// What is only an approximation of the file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The default number of CPUs for this workload.
    pub fn cpus(&self) -> u16 {
        self.closed.cpus.unwrap_or(CPUS)
    }

    /// The time at which a run is stopped.
    pub fn until(&self) -> Time {
        self.closed.duration.map_or(Time::NEVER, |Nanos(span)| Time(span))
    }

    /// Builds the scripts for a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// If the workload cannot run there; the message points at the file's line and key.
    pub fn scripts(&self, cpus: u16) -> Result<workload::Workload, Error> {
        workload::Workload::of(&self.closed, cpus).map_err(|invalid| self.refuse(&invalid))
    }

    fn refuse(&self, Invalid { key, message }: &Invalid) -> Error {
        match &self.origin {
            Origin::Toml(file) => file.wrong(key, message),
            Origin::BuiltIn => {
                Error::Usage(format!("the workload {}: {key}: {message}", self.name))
            }
            Origin::Lines { file, lines } => {
                // A key without a line belongs to a parent key with one.
                let mut known = key.as_str();
                while !lines.contains_key(known)
                    && let Some(end) = known.rfind(['.', '['])
                {
                    known = &known[..end];
                }
                Error::Input(format!(
                    "{file}:{}: {message}",
                    lines.get(known).copied().unwrap_or(1)
                ))
            }
        }
    }

    /// The description for the head of the output.
    pub fn headline(&self) -> String {
        let tasks: u64 = self.closed.tasks.iter().map(|tasks| u64::from(tasks.count)).sum();
        let stopped =
            self.closed.duration.map_or(String::new(), |span| format!(", stopped after {span}"));
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

fn with_calls(phases: Vec<Phase>, cost: &dyn Fn(&Phase) -> Nanos) -> Vec<Phase> {
    let each = |phase| {
        let own = cost(&phase);
        match phase {
            Phase::Run(_) | Phase::Exec(_) => vec![phase],
            Phase::Loop(inner) => {
                vec![Phase::Loop(LoopPhase { phases: with_calls(inner.phases, cost), ..inner })]
            }
            Phase::Serve(serve) => {
                let handle =
                    serve.handle.into_iter().map(|phases| with_calls(phases, cost)).collect();
                vec![Phase::Run(own), Phase::Serve(ServePhase { handle, ..serve })]
            }
            Phase::EventLoop(event_loop) => {
                let round = event_loop.round.saturating_add(own);
                let cost_of = |rounds: Vec<Vec<Phase>>| {
                    rounds.into_iter().map(|phases| with_calls(phases, cost)).collect()
                };
                let handle = event_loop.handle.into_iter().map(cost_of).collect();
                vec![Phase::EventLoop(EventLoopPhase { handle, round, ..event_loop })]
            }
            call => vec![Phase::Run(own), call],
        }
    };
    phases.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_kernel_supports_is_refused_elsewhere() {
        let workload = |tables: &str| {
            let task = r#"{ "name": "t", "cgroup": "g", "phases": [
                { "lock": "m" }, { "run": "1ms" }, { "unlock": "m" } ] }"#;
            let task = if tables.contains("cgroup") {
                task.to_string()
            } else {
                task.replace(r#""cgroup": "g", "#, "")
            };
            let closed =
                serde_json::from_str(&format!(r#"{{ {tables} "task": [ {task} ] }}"#)).unwrap();
            ClosedWorkload::built_in("w".to_string(), closed)
        };
        let (plain, group, inherits) = (
            workload(""),
            workload(r#""cgroup": { "g": {} },"#),
            workload(r#""mutex": { "m": { "inherit": true } },"#),
        );
        let sched_ext = |workload: &ClosedWorkload| workload.expect_for_sched_ext(&"bpf:rr");
        assert!(
            sched_ext(&plain).is_ok()
                && plain.expect_for_host().is_ok()
                && inherits.expect_for_host().is_ok()
        );
        for (refused, words) in [
            (group.expect_for_host(), ["control group, g", "give --on vm"]),
            (sched_ext(&group), ["control group, g", "bpf:rr"]),
            (sched_ext(&inherits), ["the mutex m inherits", "kernel:other"]),
        ] {
            let error = refused.expect_err("nothing here supports it");
            assert_eq!(error.exit_code(), 77);
            assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
        }
    }
}
