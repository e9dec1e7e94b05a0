//! What the rows of a comparison can be about. It is known before the run, so that references to
//! its rows can be checked.

use super::Compare;
use crate::{Caller, PolicyName};
use formats::workload::{Parameters, Template, Workload, list_parameters};
use program::{Error, no_such};
use results::SubjectKind;
use std::sync::Arc;
use worlds::experiment::{all_policies, parse_policy};
use worlds::simulator::POLICIES;
use worlds::vm::foreign::PREFIX;
use worlds::{Baseline, Candidate, Program};

/// What the rows of a comparison can be about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// The workloads, by their names in rows.
    pub workloads: Vec<String>,
    /// The policies.
    pub candidates: Vec<String>,
    /// The worlds.
    pub worlds: Vec<String>,
    /// The numbers of CPUs; empty if the workload or the machine sets it.
    pub cpus: Vec<u16>,
    /// The names of tasks; empty if only a run shows them.
    pub tasks: Vec<String>,
    /// The names of coordinates.
    pub coordinates: Vec<String>,
    /// The metrics that commands print.
    pub printed: Vec<String>,
}

/// Coordinates that rows of any comparison can have, besides the kind of their subject.
const COORDINATES: [&str; 13] = [
    "affinity",
    "instruction_ns",
    "interleave",
    "kernel_arguments",
    "kernel_modules",
    "load",
    "machine",
    "member",
    "nice",
    "number",
    "numa_nodes",
    "sched_features",
    "sysctl",
];

impl Coverage {
    /// Adds what another run's rows can be about.
    pub fn add(&mut self, other: Coverage) {
        let Coverage { workloads, candidates, worlds, cpus, tasks, coordinates, printed } = other;
        self.workloads.extend(workloads);
        self.candidates.extend(candidates);
        self.worlds.extend(worlds);
        self.cpus.extend(cpus);
        self.tasks.extend(tasks);
        self.coordinates.extend(coordinates);
        self.printed.extend(printed);
        for names in [
            &mut self.workloads,
            &mut self.candidates,
            &mut self.worlds,
            &mut self.tasks,
            &mut self.coordinates,
            &mut self.printed,
        ] {
            names.sort();
            names.dedup();
        }
    }
}

impl Compare {
    /// What its rows can be about; `resolve` finds a workload by name.
    ///
    /// # Errors
    /// If a workload, a scheduler or a kernel does not exist.
    pub fn coverage(
        &self,
        resolve: &dyn Fn(&str) -> Result<Workload, Error>,
    ) -> Result<Coverage, Error> {
        let printed = self.command.printed();
        let printed = printed.iter().map(|reader| reader.metric().to_string()).collect();
        let mut coverage = Coverage { cpus: self.cpus.clone(), printed, ..Coverage::default() };
        coverage.coordinates = SubjectKind::ALL
            .iter()
            .map(|kind| kind.word())
            .chain(COORDINATES)
            .map(str::to_string)
            .collect();
        let stochastic = self.cover_workloads(&mut coverage, resolve)?;
        self.policies().try_for_each(PolicyName::require_original)?;
        let mut candidates: Vec<String> = self.policies().flat_map(PolicyName::names).collect();
        let kind = match stochastic {
            Some(template) => Program::Open(Arc::new(template.with(&Parameters::default())?)),
            None => Program::Command(Vec::new()),
        };
        let uses_defaults = self.policy.is_empty() && self.setting.is_empty();
        for world in self.worlds(&Caller::default())? {
            coverage.worlds.push(world.name().to_string());
            let defaults = world.defaults(&kind)?;
            if uses_defaults {
                candidates.extend(defaults.candidates.iter().map(Candidate::to_string));
            }
            if let Baseline::Named(usual) = defaults.baseline {
                candidates
                    .push(self.baseline.as_ref().map_or(usual.to_string(), ToString::to_string));
            }
        }
        candidates.extend(self.setting.names());
        candidates.sort();
        candidates.dedup();
        Ok(Coverage { candidates, ..coverage })
    }

    /// Adds the workloads and their tasks; returns the last stochastic one.
    fn cover_workloads(
        &self,
        coverage: &mut Coverage,
        resolve: &dyn Fn(&str) -> Result<Workload, Error>,
    ) -> Result<Option<Template>, Error> {
        if !self.command.command.is_empty() {
            coverage.workloads.push(self.command.command.join(" "));
        }
        let mut stochastic = None;
        for name in self.workload.iter().chain(&self.then).map(|name| name.to_string_lossy()) {
            // A yield workload can have several numbers of tasks.
            let counts = name
                .strip_prefix("yield:")
                .filter(|counts| counts.contains(',') && !counts.contains('?'));
            let each: Vec<String> = counts.map_or_else(
                || vec![name.to_string()],
                |counts| counts.split(',').map(|count| format!("yield:{count}")).collect(),
            );
            for name in each {
                match resolve(&name)? {
                    Workload::Closed(workload) => {
                        coverage.workloads.push(workload.name().to_string());
                        coverage.tasks.extend(
                            workload.description().tasks.iter().map(|tasks| tasks.name.clone()),
                        );
                    }
                    Workload::Stochastic(template) => {
                        coverage.workloads.push(template.name().to_string());
                        coverage
                            .coordinates
                            .extend(list_parameters().into_iter().map(|(name, _)| name));
                        stochastic = Some(template);
                    }
                    Workload::Recording(path) => {
                        coverage.workloads.push(path.display().to_string())
                    }
                }
            }
        }
        Ok(stochastic)
    }
}

impl PolicyName {
    /// The names in rows.
    fn names(&self) -> Vec<String> {
        match self {
            PolicyName::All => all_policies().iter().map(ToString::to_string).collect(),
            PolicyName::Classic => POLICIES.map(str::to_string).to_vec(),
            PolicyName::Ours(policy) => vec![policy.to_string()],
            PolicyName::Kernel(class) => vec![format!("kernel:{class}")],
            PolicyName::Bpf(name) => vec![name.clone()],
        }
    }

    /// Checks that a scheduler in BPF has a policy with the same algorithm here. The program with
    /// all BPF schedulers may not be installed.
    fn require_original(&self) -> Result<(), Error> {
        let PolicyName::Bpf(name) = self else { return Ok(()) };
        if name.starts_with(PREFIX) {
            return Ok(());
        }
        let order = name.trim_start_matches("bpf:");
        if order == "pslist" || parse_policy(&format!("central:{order}")).is_ok() {
            return Ok(());
        }
        let orders = readyq::catalog::ENTRIES.iter().map(|entry| format!("bpf:{}", entry.name));
        let names: Vec<String> = orders.chain(["bpf:pslist".to_string()]).collect();
        Err(Error::Input(no_such(
            "scheduler in BPF",
            name,
            &names,
            "`schedlab-scx --list` shows them.",
        )))
    }
}
