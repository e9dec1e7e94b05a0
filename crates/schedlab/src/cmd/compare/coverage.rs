//! What the rows of a comparison can be about: known before it runs, so that whoever reads its rows can be checked.

use super::{Backend, Compare};
use crate::cmd::PolicyName;
use crate::experiment::{all_policies, parse_policy};
use crate::output::SubjectKind;
use crate::vm::Kernel;
use crate::workload::{Workload, list_parameters};
use crate::world::host::CLASSES;
use crate::world::simulator::{BASELINE, OPEN_BASELINE, OPEN_POLICIES, POLICIES};
use crate::{Error, no_such};
use std::path::Path;

/// What the rows of a comparison can be about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// The workloads, as rows name them.
    pub workloads: Vec<String>,
    /// The policies.
    pub candidates: Vec<String>,
    /// The worlds.
    pub worlds: Vec<String>,
    /// The numbers of CPUs; empty if the workload or the machine says.
    pub cpus: Vec<u16>,
    /// The names of tasks; empty where only a run says.
    pub tasks: Vec<String>,
    /// The names of coordinates.
    pub coordinates: Vec<String>,
}

/// Coordinates that rows of comparisons can have, whatever the workload, beside the kind of their subject.
const COORDINATES: [&str; 7] = ["affinity", "load", "machine", "member", "nice", "number", "numa_nodes"];

impl Compare {
    /// What its rows can be about; `resolve` finds the workload of a name.
    ///
    /// # Errors
    /// If it names a workload, a scheduler or a kernel that there is not.
    pub fn coverage(&self, resolve: &dyn Fn(&str) -> Result<Workload, Error>) -> Result<Coverage, Error> {
        let mut coverage = Coverage { cpus: self.cpus.clone(), ..Coverage::default() };
        coverage.coordinates = SubjectKind::ALL.map(SubjectKind::word).into_iter().chain(COORDINATES).map(str::to_string).collect();
        let is_stochastic = self.cover_workloads(&mut coverage, resolve)?;
        self.policy.iter().try_for_each(PolicyName::require_original)?;
        let mut candidates: Vec<String> = self.policy.iter().flat_map(PolicyName::names).collect();
        for world in &self.on {
            match world {
                Backend::Sim => coverage.worlds.push("sim".to_string()),
                Backend::Host => coverage.worlds.push("host".to_string()),
                Backend::Vm => coverage.worlds.extend(self.kernels()?.into_iter().map(|kernel| format!("vm:{kernel}"))),
            }
            let default = || match world {
                Backend::Sim if is_stochastic => OPEN_POLICIES.map(str::to_string).to_vec(),
                Backend::Sim => POLICIES.map(str::to_string).to_vec(),
                Backend::Vm => vec!["kernel:other".to_string()],
                Backend::Host => CLASSES.iter().map(|class| format!("kernel:{class}")).collect(),
            };
            candidates.extend(if self.policy.is_empty() && self.setting.is_empty() { default() } else { Vec::new() });
            candidates.extend(self.setting.names());
        }
        if self.on.contains(&Backend::Sim) {
            let default = if is_stochastic { OPEN_BASELINE } else { BASELINE };
            candidates.push(self.baseline.as_ref().map_or(default.to_string(), ToString::to_string));
        }
        candidates.sort();
        candidates.dedup();
        Ok(Coverage { candidates, ..coverage })
    }

    /// Adds the workloads and their tasks; whether one of them is stochastic.
    fn cover_workloads(&self, coverage: &mut Coverage, resolve: &dyn Fn(&str) -> Result<Workload, Error>) -> Result<bool, Error> {
        if !self.host.command.is_empty() {
            coverage.workloads.push(self.host.command.join(" "));
        }
        let mut is_stochastic = false;
        for name in self.workload.iter().chain(&self.then).map(|name| name.to_string_lossy()) {
            // Yields take several numbers of tasks at a time.
            let counts = name.strip_prefix("yield:").filter(|counts| counts.contains(',') && !counts.contains('?'));
            let each: Vec<String> =
                counts.map_or_else(|| vec![name.to_string()], |counts| counts.split(',').map(|count| format!("yield:{count}")).collect());
            for name in each {
                match resolve(&name)? {
                    Workload::Closed(workload) => {
                        coverage.workloads.push(workload.name().to_string());
                        coverage.tasks.extend(workload.description().tasks.iter().map(|tasks| tasks.name.clone()));
                    }
                    Workload::Stochastic(template) => {
                        is_stochastic = true;
                        coverage.workloads.push(template.name().to_string());
                        coverage.coordinates.extend(list_parameters().into_iter().map(|(name, _)| name));
                    }
                    Workload::Recording(path) => coverage.workloads.push(path.display().to_string()),
                }
            }
        }
        Ok(is_stochastic)
    }

    /// The names of the kernels, of which those that are files must be there.
    fn kernels(&self) -> Result<Vec<String>, Error> {
        let name = |argument: &String| {
            let path = Path::new(argument);
            match Kernel::is_series(argument) || path.is_file() {
                true => Ok(path
                    .file_name()
                    .filter(|_| !Kernel::is_series(argument))
                    .map_or(argument.clone(), |name| name.to_string_lossy().into())),
                false => Err(Error::Input(format!(
                    "there is no kernel `{argument}`; give the number of a series, as in 6.18 (`schedlab list kernels`), or the path of a bzImage"
                ))),
            }
        };
        self.guests.kernels().iter().map(name).collect()
    }
}

impl PolicyName {
    /// As rows name it.
    fn names(&self) -> Vec<String> {
        match self {
            PolicyName::All => all_policies().iter().map(ToString::to_string).collect(),
            PolicyName::Classic => POLICIES.map(str::to_string).to_vec(),
            PolicyName::Ours(policy) => vec![policy.to_string()],
            PolicyName::Kernel(class) => vec![format!("kernel:{class}")],
            PolicyName::Bpf(name) => vec![name.clone()],
        }
    }

    /// Whether a scheduler in BPF is the twin of a policy; the program that has them all may not be there to ask.
    fn require_original(&self) -> Result<(), Error> {
        let PolicyName::Bpf(name) = self else { return Ok(()) };
        let order = name.trim_start_matches("bpf:");
        if order == "pslist" || parse_policy(&format!("central:{order}")).is_ok() {
            return Ok(());
        }
        let orders = readyq::catalog::ENTRIES.iter().map(|entry| format!("bpf:{}", entry.name));
        let names: Vec<String> = orders.chain(["bpf:pslist".to_string()]).collect();
        Err(Error::Input(no_such("scheduler in BPF", name, &names, "`schedlab-scx --list` shows them.")))
    }
}
