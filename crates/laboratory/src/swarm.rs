//! Runs random workloads under policies with all checks on. Reduces the first failure to a small
//! case, with the commands that repeat it.

use indicatif::ProgressBar;
use program::{Error, shell_word};
use rayon::prelude::*;
use schedsim::policy::PolicySpec;
use schedsim::swarm::{Case, Failure};
use schedsim::workload::SchedulingPolicy;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use worlds::compiled::Compiled;
use worlds::experiment::Candidate;
use worlds::experiment::panics::{caught, last};

/// A policy that is checked.
#[derive(Clone)]
pub enum Examined {
    /// One of this program.
    Policy(PolicySpec),
    /// A compiled scheduler of sched_ext.
    Compiled(Arc<Compiled>),
}

impl Examined {
    fn verify(&self, case: &Case) -> Result<(), Failure> {
        match self {
            Examined::Policy(policy) => case.verify(policy),
            Examined::Compiled(compiled) => {
                let promises = compiled.promises(case.machine.cpus);
                case.verify_with(promises, |source, machine, options, trace| {
                    compiled.run(source, machine, options, trace)
                })
            }
        }
    }

    /// The case of `seed`. A compiled scheduler gets no real-time tasks: in a kernel they are of
    /// another class.
    pub fn case(&self, seed: u64) -> Case {
        let mut case = Case::draw(seed);
        for task in case.workload.tasks.iter_mut().filter(|_| self.is_compiled()) {
            if matches!(task.policy, SchedulingPolicy::Fifo | SchedulingPolicy::Rr) {
                (task.policy, task.priority) = (SchedulingPolicy::Other, None);
            }
        }
        case
    }

    /// Whether it is a compiled scheduler.
    pub fn is_compiled(&self) -> bool {
        matches!(self, Examined::Compiled(_))
    }
}

impl fmt::Display for Examined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Examined::Policy(policy) => policy.fmt(f),
            Examined::Compiled(compiled) => compiled.fmt(f),
        }
    }
}

impl fmt::Debug for Examined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Examined({self})")
    }
}

/// The first case that a policy failed.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed of the case.
    pub seed: u64,
    /// The policy that failed.
    pub policy: Examined,
    /// The failure in the reduced case.
    pub failure: Failure,
    /// The reduced case.
    pub case: Case,
}

/// The result of a policy.
#[derive(Clone, Debug)]
pub struct Stood {
    /// The policy.
    pub policy: Examined,
    /// The number of failed cases.
    pub failed: u32,
    /// The first failure, reduced.
    pub first: Option<Finding>,
}

/// Runs the case of each of the `seeds` under each of the `policies`, on all cores.
pub fn swarm(seeds: Range<u64>, policies: &[Examined], progress: &ProgressBar) -> Vec<Stood> {
    swarm_with(seeds, policies, progress, |case, policy| {
        caught(|| policy.verify(case))
            .unwrap_or_else(|_| Err(Failure { rule: None, message: last() }))
    })
}

/// The same with another check than [`Examined::verify`].
fn swarm_with<J>(
    seeds: Range<u64>,
    policies: &[Examined],
    progress: &ProgressBar,
    judge: J,
) -> Vec<Stood>
where
    J: Fn(&Case, &Examined) -> Result<(), Failure> + Sync,
{
    progress.set_length(seeds.end - seeds.start);
    let failed = |seed: u64| {
        let failures = policies.iter().map(|policy| judge(&policy.case(seed), policy).err());
        let failures = failures.collect::<Vec<_>>();
        progress.inc(1);
        failures
    };
    let failures: Vec<(u64, Vec<Option<Failure>>)> =
        seeds.into_par_iter().map(|seed| (seed, failed(seed))).collect();
    let stood = |(index, policy): (usize, &Examined)| {
        let mut of_policy = failures
            .iter()
            .filter_map(|(seed, failures)| Some((*seed, failures[index].as_ref()?)))
            .peekable();
        let first =
            of_policy.peek().map(|&(seed, failure)| make_smaller(seed, policy, failure, &judge));
        Stood { policy: policy.clone(), failed: of_policy.count() as u32, first }
    };
    policies.par_iter().enumerate().map(stood).collect()
}

/// The smallest case that breaks the same rule, or in which a scheduler is ejected for the same
/// reason.
fn make_smaller(
    seed: u64,
    policy: &Examined,
    failure: &Failure,
    judge: impl Fn(&Case, &Examined) -> Result<(), Failure>,
) -> Finding {
    let reason = ejection(&failure.message);
    let is_it = |other: &Failure| other.rule == failure.rule && ejection(&other.message) == reason;
    let case =
        policy.case(seed).shrink(|case| judge(case, policy).is_err_and(|other| is_it(&other)));
    let failure = judge(&case, policy).err().unwrap_or_else(|| failure.clone());
    Finding { seed, policy: policy.clone(), failure, case }
}

/// Why a scheduler of sched_ext was ejected, without the numbers in the text.
fn ejection(message: &str) -> Option<String> {
    let (_, reason) = message.split_once("the scheduler was ejected: ")?;
    let has_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = reason.split_whitespace().filter(|word| !has_digit(word)).collect();
    Some(words.join(" "))
}

impl Finding {
    /// The file name for the reduced case, without a directory.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name = self.policy.to_string();
        // Of a scheduler in a file, that without its folders.
        let name = name.rsplit('/').next().unwrap_or_default();
        format!("swarm-{}-{}.toml", self.seed, name.chars().map(plain).collect::<String>())
    }

    /// The reduced case as a workload file.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(&self.case.workload)
            .map_err(|error| Error::Internal(format!("cannot write a workload: {error}")))
    }

    /// The command that draws the original case and fails again.
    pub fn again(&self) -> String {
        format!(
            "{} check --swarm 1 --seed {} --policy {}",
            program::name(),
            self.seed,
            shell_word(&self.policy.to_string())
        )
    }

    /// The command that runs the reduced case from `file`.
    pub fn run_command(&self, file: &str) -> String {
        let machine = &self.case.machine;
        let costs = [
            ("switch-cost", machine.switch_cost),
            ("migration-cost", machine.migration_cost),
            ("idle-exit", machine.idle_exit),
            ("wake-cost", machine.wake_cost),
        ];
        let costs: String = costs
            .iter()
            .filter(|(_, cost)| cost.0 > 0)
            .map(|(name, cost)| format!(" --{name} {}", cost.exact()))
            .collect();
        let policy = shell_word(&self.policy.to_string());
        format!(
            "{} run {file} --policy {policy} --cpus {}{costs} --check",
            program::name(),
            machine.cpus
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::toml_file::TomlFile;
    use formats::workload::ClosedWorkload;
    use schedsim::workload::{Closed, Phase};

    /// Fails if there are two CPUs and a task yields, like a policy with such a bug.
    fn faulty(case: &Case, policy: &Examined) -> Result<(), Failure> {
        let yields = case
            .workload
            .tasks
            .iter()
            .flat_map(|task| &task.phases)
            .any(|phase| *phase == Phase::Yield);
        let fails = yields && case.machine.cpus > 1 && policy.to_string() == "fifo";
        if fails {
            Err(Failure { rule: None, message: "a yield on two CPUs".into() })
        } else {
            policy.verify(case)
        }
    }

    #[test]
    fn ejections_are_told_apart_by_their_words() {
        let of = |reason: &str| ejection(&format!("at 2ms: the scheduler was ejected: {reason}"));
        assert_eq!(
            of("non-existent DSQ 0x63 for task[1]"),
            of("non-existent DSQ 0x7 for task[12]")
        );
        assert_ne!(of("invalid CPU 7 from ops"), of("non-existent DSQ 0x63 for task[1]"));
        assert_eq!(ejection("the policy lost task 3"), None);
    }

    #[test]
    fn a_failure_is_reduced_and_its_file_reads_back_unchanged() {
        let policies = ["eevdf", "fifo"]
            .map(|name| Examined::Policy(PolicySpec::parse(name).expect("a policy")));
        let stood = swarm_with(0..60, &policies, &ProgressBar::hidden(), faulty);
        assert_eq!((stood[0].failed, stood[0].first.is_none()), (0, true));
        let finding = stood[1].first.as_ref().expect("a finding");
        // One task with one phase on two CPUs: nothing more can be removed.
        assert_eq!(
            (finding.case.workload.tasks.len(), &finding.case.workload.tasks[0].phases[..]),
            (1, &[Phase::Yield][..])
        );
        assert_eq!(
            finding.run_command("x.toml"),
            "schedlab run x.toml --policy fifo --cpus 2 --check"
        );
        assert_eq!(
            finding.again(),
            format!("schedlab check --swarm 1 --seed {} --policy fifo", finding.seed)
        );
        assert!(faulty(&Case::draw(finding.seed), &policies[1]).is_err());
        for seed in 0..60 {
            let finding = Finding { case: Case::draw(seed), ..finding.clone() };
            let text = finding.to_toml().expect("TOML");
            let read = ClosedWorkload::read(TomlFile::of("x.toml", &text))
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            // A device's table that sets nothing is dropped when it is read.
            let drawn = Closed { devices: Default::default(), ..finding.case.workload };
            assert_eq!(read.description(), &drawn);
        }
    }
}
