//! What is changed, in the real kernel and in the simulator.

use results::counted;
use schedlab_runner::class::Class;
use schedsim::admission::Cpus;
use schedsim::policy::PolicySpec;
use schedsim::workload::Setting;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use worlds::Candidate;
use worlds::compiled;
use worlds::experiment::parse_policy;
use worlds::setting::{Assignment, Deployment, Text};
use worlds::vm::release::fair_model;
use worlds::vm::scheduler::twin;

/// What is changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// Nothing: the error of the prediction itself.
    Nothing,
    /// The number of CPUs.
    Cpus(u16),
    /// Settings of programs.
    Applied(Deployment),
    /// The kernel.
    Kernel(String),
    /// A scheduler of sched_ext, or a policy that decides in user space there; and the simulator's
    /// policy that stands for it. None stands for an object, `scx:`: the simulator runs it.
    Scheduler(String, Option<PolicySpec>),
    /// A setting of the second half of the workload's programs: for all it would change nothing.
    Half(Setting),
}

/// Where tasks run, as far as the costs of a kernel depend on it.
#[derive(Clone)]
pub struct Ground {
    /// The kernel; that without a change if absent.
    pub kernel: Option<String>,
    /// What schedules the tasks.
    pub candidate: Candidate<'static>,
    /// The number of CPUs.
    pub cpus: u16,
}

impl Change {
    pub(super) fn cpus(&self, unchanged: u16) -> u16 {
        if let Change::Cpus(cpus) = self { *cpus } else { unchanged }
    }

    /// The kernel, if it is changed.
    pub(super) fn kernel(&self) -> Option<&str> {
        if let Change::Kernel(name) = self { Some(name) } else { None }
    }

    /// The policy that is simulated instead, if the change brings one.
    pub(super) fn policy(&self) -> Option<PolicySpec> {
        match self {
            Change::Scheduler(_, twin) => twin.clone(),
            Change::Kernel(name) => parse_policy(fair_model(name)).ok(),
            _ => None,
        }
    }

    /// Where the tasks run with this change, and on `unchanged` CPUs if it changes no number.
    /// Settings of single programs, weights and slices change no costs.
    pub fn ground(&self, unchanged: u16) -> Ground {
        let usual = || Candidate::Class(Class::Other);
        let candidate = match self {
            Change::Scheduler(name, twin) => scheduler(name, twin),
            Change::Applied(deployment) => class_of_all(deployment)
                .map_or_else(usual, |deployment| Candidate::Applied(Arc::new(deployment))),
            _ => usual(),
        };
        let kernel = self.kernel().map(str::to_string);
        Ground { kernel, candidate, cpus: self.cpus(unchanged) }
    }

    /// The candidate for the real tasks.
    pub(super) fn real(&self, later: &[String]) -> Candidate<'static> {
        if let Change::Scheduler(name, twin) = self {
            return scheduler(name, twin);
        }
        self.deployment(later).map_or(Candidate::Class(Class::Other), |deployment| {
            Candidate::Applied(Arc::new(deployment))
        })
    }

    /// The candidate for the simulated tasks; `policy` models the kernel's scheduler without a
    /// change.
    pub(super) fn predicted(&self, policy: &PolicySpec, later: &[String]) -> Candidate<'static> {
        if let Change::Scheduler(name, None) = self {
            return Candidate::Bpf(name.clone());
        }
        if let Some(policy) = self.policy() {
            return Candidate::Policy(policy);
        }
        self.deployment(later).map_or(Candidate::Policy(policy.clone()), |deployment| {
            Candidate::Applied(Arc::new(Deployment { under: Some(policy.clone()), ..deployment }))
        })
    }

    /// What is set, if anything.
    pub(super) fn deployment(&self, later: &[String]) -> Option<Deployment> {
        match self {
            Change::Nothing | Change::Cpus(_) | Change::Kernel(_) | Change::Scheduler(..) => None,
            Change::Applied(deployment) => Some(deployment.clone()),
            Change::Half(setting) => {
                let assignment = |name: &String| Assignment {
                    program: name.clone(),
                    settings: vec![setting.clone()],
                };
                let assignments: Vec<Assignment> = later.iter().map(assignment).collect();
                (!assignments.is_empty()).then_some(Deployment { assignments, under: None })
            }
        }
    }
}

/// `cpus=1`; `kernel=6.1`; `policy=bpf:rr` or `policy=scx:FILE.bpf.o`; what `--apply` takes, as in `xz: batch`; or a setting
/// alone, as in `fifo=50`. That concerns all tasks, or where it would change nothing, as `nice=10`,
/// the second half of the programs.
impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        if let Some(cpus) = text.trim().strip_prefix("cpus=").filter(|_| !text.contains(':')) {
            return Cpus::parse(cpus).map(Change::Cpus).map_err(|error| error.to_string());
        }
        if let Some(kernel) = text.trim().strip_prefix("kernel=") {
            return match kernel {
                "" => Err("give a kernel, kernel=NAME, as in kernel=6.1".to_string()),
                kernel => Ok(Change::Kernel(kernel.to_string())),
            };
        }
        if let Some(name) = text.trim().strip_prefix("policy=") {
            let twin = match compiled::is_one(name) {
                true => None,
                false => Some(twin(name).map_err(|error| error.to_string())?),
            };
            return Ok(Change::Scheduler(name.to_string(), twin));
        }
        if text.contains(':') {
            return text.parse().map(Change::Applied);
        }
        let all: Assignment = format!("*: {text}").parse()?;
        Ok(match all.settings.as_slice() {
            [half @ (Setting::Nice(_) | Setting::Weight(_))] => Change::Half(half.clone()),
            _ => Change::Applied(Deployment { assignments: vec![all], under: None }),
        })
    }
}

/// As a heading, and as users write it.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Nothing => write!(f, "no change"),
            Change::Cpus(cpus) => write!(f, "cpus={cpus}"),
            Change::Kernel(name) => write!(f, "kernel={name}"),
            Change::Scheduler(name, _) => write!(f, "policy={name}"),
            Change::Applied(deployment) => {
                let text = deployment.to_string();
                f.write_str(
                    text.strip_prefix("*: ").filter(|one| !one.contains(':')).unwrap_or(&text),
                )
            }
            Change::Half(setting) => Text(setting).fmt(f),
        }
    }
}

/// The scheduler of this name in a guest: one in BPF, or the policy itself.
fn scheduler(name: &str, twin: &Option<PolicySpec>) -> Candidate<'static> {
    match twin {
        Some(policy) if !name.starts_with("bpf:") => Candidate::Policy(policy.clone()),
        _ => Candidate::Bpf(name.to_string()),
    }
}

/// The scheduling class that settings give all tasks, if they do, without anything else.
fn class_of_all(deployment: &Deployment) -> Option<Deployment> {
    let [all] = deployment.assignments.as_slice() else { return None };
    let settings: Vec<Setting> =
        all.settings.iter().filter(|setting| setting.class().is_some()).cloned().collect();
    let assignment = Assignment { program: all.program.clone(), settings };
    (all.program == "*" && !assignment.settings.is_empty())
        .then(|| Deployment { assignments: vec![assignment], under: None })
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.candidate)?;
        self.kernel.as_ref().map_or(Ok(()), |kernel| write!(f, ", kernel {kernel}"))?;
        match self.cpus {
            1 => Ok(()),
            cpus => write!(f, ", {}", counted(cpus.into(), "CPU")),
        }
    }
}
