//! A swarm of random workloads under policies, all checks on: what failed, as small as it goes, and the commands that do it again.

use super::panics::{caught, last};
use crate::output::shell_word;
use crate::{Error, program};
use indicatif::ProgressBar;
use rayon::prelude::*;
use schedsim::policy::PolicySpec;
use schedsim::swarm::{Case, Failure};
use std::ops::Range;

/// The first case that a policy failed.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What draws the case.
    pub seed: u64,
    /// Who failed.
    pub policy: PolicySpec,
    /// Why, in the case as it is now.
    pub failure: Failure,
    /// What is left of the case.
    pub case: Case,
}

/// How a policy stood the swarm.
#[derive(Clone, Debug)]
pub struct Stood {
    /// The policy.
    pub policy: PolicySpec,
    /// How many cases it failed.
    pub failed: u32,
    /// The first of them, made smaller.
    pub first: Option<Finding>,
}

/// Runs the case of each of the `seeds` under each of the `policies`, on all cores.
pub fn swarm(seeds: Range<u64>, policies: &[PolicySpec], progress: &ProgressBar) -> Vec<Stood> {
    swarm_with(seeds, policies, progress, |case, policy| {
        caught(|| case.verify(policy)).unwrap_or_else(|_| Err(Failure { rule: None, message: last() }))
    })
}

/// The same by another judge than [`Case::verify`].
fn swarm_with<J>(seeds: Range<u64>, policies: &[PolicySpec], progress: &ProgressBar, judge: J) -> Vec<Stood>
where
    J: Fn(&Case, &PolicySpec) -> Result<(), Failure> + Sync,
{
    progress.set_length(seeds.end - seeds.start);
    let failed = |seed: u64| {
        let case = Case::draw(seed);
        let failures = policies.iter().map(|policy| judge(&case, policy).err()).collect::<Vec<_>>();
        progress.inc(1);
        failures
    };
    let failures: Vec<(u64, Vec<Option<Failure>>)> = seeds.into_par_iter().map(|seed| (seed, failed(seed))).collect();
    let stood = |(index, policy): (usize, &PolicySpec)| {
        let mut of_policy = failures.iter().filter_map(|(seed, failures)| Some((*seed, failures[index].as_ref()?))).peekable();
        let first = of_policy.peek().map(|&(seed, failure)| make_smaller(seed, policy, failure, &judge));
        Stood { policy: policy.clone(), failed: of_policy.count() as u32, first }
    };
    policies.par_iter().enumerate().map(stood).collect()
}

/// The smallest case in which the same rule is broken.
fn make_smaller(seed: u64, policy: &PolicySpec, failure: &Failure, judge: impl Fn(&Case, &PolicySpec) -> Result<(), Failure>) -> Finding {
    let case = Case::draw(seed).shrink(|case| judge(case, policy).is_err_and(|other| other.rule == failure.rule));
    let failure = judge(&case, policy).err().unwrap_or_else(|| failure.clone());
    Finding { seed, policy: policy.clone(), failure, case }
}

impl Finding {
    /// The file of what is left, without a folder.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        format!("swarm-{}-{}.toml", self.seed, self.policy.to_string().chars().map(plain).collect::<String>())
    }

    /// What is left as a workload file.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(&self.case.workload).map_err(|error| Error::Internal(format!("cannot write a workload: {error}")))
    }

    /// The command that draws the whole case and fails again.
    pub fn again(&self) -> String {
        format!("{} check --swarm 1 --seed {} --policy {}", program::name(), self.seed, shell_word(&self.policy.to_string()))
    }

    /// The command that runs what is left, in `file`.
    pub fn run_command(&self, file: &str) -> String {
        let machine = &self.case.machine;
        let costs = [
            ("switch-cost", machine.switch_cost),
            ("migration-cost", machine.migration_cost),
            ("idle-exit", machine.idle_exit),
            ("wake-cost", machine.wake_cost),
        ];
        let costs: String = costs.iter().filter(|(_, cost)| cost.0 > 0).map(|(name, cost)| format!(" --{name} {}", cost.exact())).collect();
        let policy = shell_word(&self.policy.to_string());
        format!("{} run {file} --policy {policy} --cpus {}{costs} --check", program::name(), machine.cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::TomlFile;
    use crate::workload::ClosedWorkload;
    use schedsim::workload::{Closed, Phase};

    /// Fails where two CPUs are and a task yields, as a policy with such a fault would.
    fn faulty(case: &Case, policy: &PolicySpec) -> Result<(), Failure> {
        let yields = case.workload.tasks.iter().flat_map(|task| &task.phases).any(|phase| *phase == Phase::Yield);
        let fails = yields && case.machine.cpus > 1 && policy.to_string() == "fifo";
        if fails { Err(Failure { rule: None, message: "a yield on two CPUs".into() }) } else { case.verify(policy) }
    }

    #[test]
    fn what_fails_is_made_smaller_and_written_to_a_file_that_reads_back_as_the_same() {
        let policies = ["eevdf", "fifo"].map(|name| PolicySpec::parse(name).expect("a policy"));
        let stood = swarm_with(0..60, &policies, &ProgressBar::hidden(), faulty);
        assert_eq!((stood[0].failed, stood[0].first.is_none()), (0, true));
        let finding = stood[1].first.as_ref().expect("a finding");
        // One task with one phase on two CPUs: nothing can be left out.
        assert_eq!((finding.case.workload.tasks.len(), &finding.case.workload.tasks[0].phases[..]), (1, &[Phase::Yield][..]));
        assert_eq!(finding.run_command("x.toml"), "schedlab run x.toml --policy fifo --cpus 2 --check");
        assert_eq!(finding.again(), format!("schedlab check --swarm 1 --seed {} --policy fifo", finding.seed));
        assert!(faulty(&Case::draw(finding.seed), &policies[1]).is_err());
        for seed in 0..60 {
            let finding = Finding { case: Case::draw(seed), ..finding.clone() };
            let text = finding.to_toml().expect("TOML");
            let read = ClosedWorkload::read(TomlFile::of("x.toml", &text)).unwrap_or_else(|error| panic!("{error}\n{text}"));
            // A device's table only declares it, and is left out when it is read.
            let drawn = Closed { devices: Default::default(), ..finding.case.workload };
            assert_eq!(read.description(), &drawn);
        }
    }
}
