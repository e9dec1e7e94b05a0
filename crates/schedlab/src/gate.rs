//! The gate of verdicts: how often two that are alike are called different, and how often a known difference is found.
//!
//! A workload under a policy is compared with itself under changes of three kinds. *Null* changes make no difference that anybody could mean: other seeds, other CPU numbers,
//! costs half a percent higher or lower, a slice one microsecond longer. A verdict of better or worse on one of these is false. *Growing* changes lengthen the slice more and
//! more. *Known* changes make differences that the rule should find. The true effect of a change comes from many runs with seeds of their own, which no verdict has seen.

mod change;
mod judged;
mod picture;
mod tally;

pub use change::{Change, Kind};
pub use judged::{Judged, Rule, product_rule};
pub use picture::picture;
pub use tally::{Assessment, CURVE_HEADER, Line, Tally};

use crate::laboratory::Fidelity;
use crate::world::simulator::Simulator;
use crate::world::{Candidate, Observed, Program, Run, Session, Trial, World};
use crate::{Error, progress};
use change::Variant;
use indicatif::ProgressBar;
use schedsim::policy::PolicySpec;

/// What is compared, and how often.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The policies, each by itself.
    pub policies: Vec<PolicySpec>,
    /// What is changed.
    pub changes: Vec<Change>,
    /// How many members an ensemble has.
    pub ensemble: u32,
    /// How many runs the true effect comes from.
    pub truth: u32,
    /// The first seed.
    pub seed: u64,
    /// What decides.
    pub rule: Rule,
}

/// Seeds of runs that a verdict sees, and that it is compared with, do not overlap below this many runs.
const OTHER_SEEDS: u64 = 1_000_000;
/// Where those begin that the truth comes from.
const TRUE_SEEDS: u64 = 2_000_000;

/// The runs of one variant, by member.
struct Ensemble {
    /// Those that the verdict sees.
    seen: Vec<Run>,
    /// Those that the truth comes from.
    truth: Vec<Run>,
}

impl Gate {
    /// Compares each of the `programs` under each policy with itself.
    ///
    /// # Errors
    /// If a run fails.
    pub fn test(&self, programs: &[Program]) -> Result<Tally, Error> {
        let bar = progress::bar("comparing", 0);
        let mut tally = Tally::default();
        for program in programs {
            for policy in &self.policies {
                self.test_one(program, policy, &mut tally, &bar)?;
            }
        }
        bar.finish_and_clear();
        Ok(tally)
    }

    fn test_one(&self, program: &Program, policy: &PolicySpec, tally: &mut Tally, bar: &ProgressBar) -> Result<(), Error> {
        let cpus = Simulator::new().cpus(program, None)?;
        let unchanged = Variant { program: program.clone(), policy: policy.clone(), cpus, seeds: 0 };
        let needs_truth = self.changes.iter().any(|change| change.kind() != Kind::Null);
        let base = self.ensemble(&unchanged, needs_truth, bar)?;
        let [fidelity, true_fidelity] = [&base.seen, &base.truth].map(|runs| Fidelity::of(program, runs, None));
        for change in &self.changes {
            let Some(variant) = change.of(&unchanged) else { continue };
            let other = self.ensemble(&variant, change.kind() != Kind::Null, bar)?;
            let truth = judged::Truth::of(&base.truth, &other.truth, &true_fidelity);
            let rows = judged::rows(&base.seen, &other.seen, &fidelity, &truth, self.rule);
            tally.add(&program.name(), &policy.to_string(), *change, &rows);
        }
        Ok(())
    }

    fn ensemble(&self, variant: &Variant, with_truth: bool, bar: &ProgressBar) -> Result<Ensemble, Error> {
        let first = self.seed + variant.seeds;
        let seen = first..first + u64::from(self.ensemble);
        let truth = self.seed + TRUE_SEEDS..self.seed + TRUE_SEEDS + u64::from(if with_truth { self.truth } else { 0 });
        let session = |seed: u64| Session {
            trial: Trial { program: &variant.program, candidate: Candidate::Policy(variant.policy.clone()), cpus: variant.cpus },
            seed,
            member: Some(seed),
            check: false,
            observed: Observed::Measured,
            trace: None,
        };
        let sessions: Vec<Session<'_>> = seen.chain(truth).map(session).collect();
        bar.inc_length(sessions.len() as u64);
        let runs = Simulator::new().run(&sessions, bar)?;
        let mut seen = runs.into_iter().collect::<Result<Vec<Run>, String>>().map_err(Error::Input)?;
        let truth = seen.split_off(self.ensemble as usize);
        Ok(Ensemble { seen, truth })
    }
}
