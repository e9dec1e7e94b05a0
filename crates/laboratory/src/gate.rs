//! The gate of verdicts: measures how often two equal candidates are called different, and how
//! often a known difference is found.
//!
//! A workload under a policy is compared with itself after a change. *Null* changes make no
//! relevant difference: other seeds, other CPU numbers, costs half a percent higher or lower, a
//! slice one microsecond longer. A verdict of better or worse on one of these is false. *Growing*
//! changes lengthen the slice step by step. *Known* changes make differences that the rule should
//! find. The true effect of a change comes from many runs with separate seeds that no verdict uses.
//! which no verdict has seen.

mod change;
pub mod coverage;
mod judged;
mod picture;
mod tally;

pub use change::{Change, Kind};
pub use judged::{Judged, Rule, product_rule};
pub use picture::picture;
pub use tally::{Assessment, CURVE_HEADER, Line, Tally};

use crate::Fidelity;
use change::Variant;
use indicatif::ProgressBar;
use program::{Error, progress};
use schedsim::policy::PolicySpec;
use worlds::simulator::Simulator;
use worlds::{Candidate, Observed, Program, Run, Session, Trial, World};

/// The comparisons to make.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The policies, each compared with itself.
    pub policies: Vec<PolicySpec>,
    /// The changes.
    pub changes: Vec<Change>,
    /// The number of members of an ensemble.
    pub ensemble: u32,
    /// The number of runs behind the true effect.
    pub truth: u32,
    /// The first seed.
    pub seed: u64,
    /// The decision rule.
    pub rule: Rule,
}

/// The distance between the seeds of two ensembles under one verdict. It exceeds the number of
/// runs.
const OTHER_SEEDS: u64 = 1_000_000;
/// The first seed for the true effect.
const TRUE_SEEDS: u64 = 2_000_000;

/// The runs of one variant, by member.
struct Ensemble {
    /// The runs for the verdict.
    seen: Vec<Run>,
    /// The runs for the true effect.
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

    fn test_one(
        &self,
        program: &Program,
        policy: &PolicySpec,
        tally: &mut Tally,
        bar: &ProgressBar,
    ) -> Result<(), Error> {
        let cpus = Simulator::new().cpus(program, None)?;
        let unchanged =
            Variant { program: program.clone(), policy: policy.clone(), cpus, seeds: 0 };
        let needs_truth = self.changes.iter().any(|change| change.kind() != Kind::Null);
        let base = self.ensemble(&unchanged, needs_truth, bar)?;
        let [fidelity, true_fidelity] =
            [&base.seen, &base.truth].map(|runs| Fidelity::of(program, runs, None));
        for change in &self.changes {
            let Some(variant) = change.of(&unchanged) else { continue };
            let other = self.ensemble(&variant, change.kind() != Kind::Null, bar)?;
            let truth = judged::Truth::of(&base.truth, &other.truth, &true_fidelity);
            let rows = judged::rows(&base.seen, &other.seen, &fidelity, &truth, self.rule);
            tally.add(&program.name(), &policy.to_string(), *change, &rows);
        }
        Ok(())
    }

    fn ensemble(
        &self,
        variant: &Variant,
        with_truth: bool,
        bar: &ProgressBar,
    ) -> Result<Ensemble, Error> {
        let first = self.seed + variant.seeds;
        let seen = first..first + u64::from(self.ensemble);
        let truth = self.seed + TRUE_SEEDS
            ..self.seed + TRUE_SEEDS + u64::from(if with_truth { self.truth } else { 0 });
        let session = |seed: u64| Session {
            trial: Trial {
                program: &variant.program,
                candidate: Candidate::Policy(variant.policy.clone()),
                cpus: variant.cpus,
            },
            seed,
            member: Some(seed),
            check: false,
            observed: Observed::Measured,
            trace: None,
        };
        let sessions: Vec<Session<'_>> = seen.chain(truth).map(session).collect();
        bar.inc_length(sessions.len() as u64);
        let runs = Simulator::new().run(&sessions, bar)?;
        let mut seen = runs.into_iter().collect::<Result<Vec<Run>, Error>>()?;
        let truth = seen.split_off(self.ensemble as usize);
        Ok(Ensemble { seen, truth })
    }
}
