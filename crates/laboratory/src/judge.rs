//! The judge: scores generated or tuned policies on a suite of workloads.
//!
//! A score says how many times better a candidate is than the suite's baseline. It is the weighted
//! geometric mean of that over the metrics and the training workloads of the suite. Held-out
//! workloads make a second score. A candidate is judged alone: nothing that it gets depends on the
//! others, on their order, on the machine or on its speed. Whatever ends without numbers is a typed
//! verdict.

mod rule;
mod score;
mod suite;

pub use suite::{Case, Cases};

use crate::samples::{Fidelity, location};
use crate::sweep::Key;
use indicatif::ProgressBar;
use program::Error;
use rayon::prelude::*;
use results::judge::{Constraint, Judged, Judgement, Set, Suite};
use results::{Metric, Row};
use rule::Bound;
use score::{Ratio, Weighted};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use worlds::examinee::{Attempt, Examinee, Failure, Limits, late};
use worlds::{Candidate, Determinism, Observed, Program, Run, Session, Trial, World};

/// Makes the world in which candidates run, for each run one.
pub type MakeWorld = Box<dyn Fn() -> Box<dyn World> + Send + Sync>;

/// A suite that is ready to judge.
pub struct Judge {
    suite: Suite,
    /// The hash of the suite and of all that it names.
    hash: Key,
    world: MakeWorld,
    /// Whether runs are of guests, which one call of the world makes together.
    in_guests: bool,
    /// The hashes of what the guests of the baseline were made of.
    made_of: OnceLock<Vec<String>>,
    parts: Vec<Weighted>,
    bounds: Vec<Bound>,
    cases: Vec<Base>,
}

/// A workload, with the numbers of the baseline.
struct Base {
    case: Case,
    runs: Vec<Run>,
    rows: Vec<(u64, Row)>,
    fidelity: Vec<Fidelity>,
}

/// A candidate, or why there is none.
pub struct Entry<'e> {
    /// Its name.
    pub id: String,
    /// It in words.
    pub candidate: String,
    /// The policy, or why there is none.
    pub examinee: Result<&'e Examinee, Failure>,
    /// How long its compilation took.
    pub compile: Option<Duration>,
    /// Whether it must be shown that it repeats itself: it is a stranger's.
    pub is_doubted: bool,
}

impl Judge {
    /// Prepares `cases`: runs the baseline on them.
    ///
    /// # Errors
    /// If the suite asks for what its workloads do not have, or the baseline fails: the message
    /// points at the line of the suite.
    pub fn new(cases: Cases, baseline: &Examinee, world: MakeWorld) -> Result<Judge, Error> {
        let parts = score::parts(&cases)?;
        let bounds = rule::bounds(&cases)?;
        let Cases { file, suite, cases, hash } = cases;
        let limits = limits_from_now(&suite);
        let in_guests = world().capabilities().determinism == Determinism::Chaotic;
        let mut judge = Judge {
            suite,
            hash,
            world,
            in_guests,
            made_of: OnceLock::new(),
            parts,
            bounds,
            cases: Vec::new(),
        };
        for case in cases {
            let key = case.key.clone();
            let wrong = |message: String| file.wrong(&key, &message);
            let attempt = Attempt::new(baseline, limits);
            let candidate = judge.candidate(&attempt);
            let candidate = candidate.map_err(|failure| wrong(failure.reason().to_string()))?;
            (judge.world)()
                .admit(&case.trial(candidate))
                .map_err(|error| wrong(error.to_string()))?;
            let seeds: Vec<u64> = judge.seeds(case.set).collect();
            let runs = judge.runs(&[(&case, &seeds)], baseline, limits)?;
            let runs = runs.map_err(|failure| {
                wrong(format!("the baseline {baseline} has no numbers here: {}", failure.reason()))
            })?;
            let runs: Vec<Run> = runs.into_iter().flatten().collect();
            let fidelity = Fidelity::of(&case.program, &runs, None);
            let rows = rows(&case, baseline, &seeds, &runs);
            let base = Base { case, runs, rows, fidelity };
            for part in &judge.parts {
                part.expect_in(&base, &file)?;
            }
            judge.cases.push(base);
        }
        for bound in &judge.bounds {
            bound.expect_somewhere(&judge.cases, &file)?;
        }
        if let Some(inputs) = judge.made_of.get() {
            let all = [vec![judge.hash.to_string()], inputs.clone()].concat();
            judge.hash = Key::of_all(all.iter().map(String::as_str));
        }
        Ok(judge)
    }

    /// The suite.
    pub fn suite(&self) -> &Suite {
        &self.suite
    }

    /// The hash of the suite and of all files that it names.
    pub fn hash(&self) -> Key {
        self.hash
    }

    /// Judges a candidate, on all cores.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the caller stops the work; whatever a candidate does is a verdict.
    pub fn examine(&self, entry: Entry<'_>) -> Result<Judged, Error> {
        let mut judged = Judged {
            id: entry.id,
            suite: self.hash.to_string(),
            version: program::build().to_string(),
            candidate: entry.candidate,
            verdict: Judgement::Score,
            reason: None,
            score: None,
            held_out: None,
            gap: None,
            overfits: None,
            constraints: Vec::new(),
            metrics: Vec::new(),
            compile_seconds: entry.compile.map(|time| time.as_secs_f64()),
        };
        let limits = limits_from_now(&self.suite);
        let failed = |mut judged: Judged, (verdict, reason): (Judgement, String)| {
            (judged.verdict, judged.reason) = (verdict, Some(reason));
            Ok(judged)
        };
        let examinee = match entry.examinee {
            Ok(examinee) => examinee,
            Err(failure) => return failed(judged, of_failure(&failure)),
        };
        if entry.is_doubted
            && let Some(doubt) = self.doubt(examinee, limits)?
        {
            return failed(judged, doubt);
        }
        let seeds = self.cases.iter().map(|base| self.seeds(base.case.set).collect::<Vec<u64>>());
        let seeds: Vec<Vec<u64>> = seeds.collect();
        let cases: Vec<(&Case, &[u64])> =
            self.cases.iter().zip(&seeds).map(|(base, seeds)| (&base.case, &seeds[..])).collect();
        let runs = match self.runs(&cases, examinee, limits)? {
            Ok(runs) => runs,
            Err(failure) => return failed(judged, of_failure(&failure)),
        };
        let mut ratios = Vec::new();
        for ((base, runs), seeds) in self.cases.iter().zip(&runs).zip(&seeds) {
            let rows = rows(&base.case, examinee, seeds, runs);
            ratios.extend(score::ratios(base, &rows, runs, &self.parts));
        }
        judged.constraints = self.constraints(&runs);
        judged.metrics = ratios.iter().map(|ratio| ratio.measured.clone()).collect();
        if let Some(reason) = self.less_work(&runs) {
            return failed(judged, (Judgement::LessWork, reason));
        }
        if let Some(broken) = judged.constraints.iter().find(|constraint| !constraint.holds) {
            let reason = format!(
                "{}: {} in {}",
                broken.rule,
                broken.worst.map_or("no value".to_string(), |worst| worst.to_string()),
                broken.workload.as_deref().unwrap_or("no workload")
            );
            return failed(judged, (Judgement::Constraint, reason));
        }
        if let Some(Ratio { measured, .. }) =
            ratios.iter().find(|ratio| ratio.measured.ratio.is_none())
        {
            let reason = format!("{} has no value in {}", measured.metric, measured.workload);
            return failed(judged, (Judgement::NoValue, reason));
        }
        judged.score = score::of(&ratios, Set::Training);
        judged.held_out = score::of(&ratios, Set::HeldOut);
        judged.gap =
            judged.score.zip(judged.held_out).map(|(score, held_out)| score / held_out - 1.0);
        judged.overfits = judged.gap.map(|gap| gap > GAP);
        Ok(judged)
    }

    /// What differs between two runs of one session, if anything does; also what fails in it.
    fn doubt(
        &self,
        examinee: &Examinee,
        limits: Limits,
    ) -> Result<Option<(Judgement, String)>, Error> {
        let Some(base) = self.cases.first() else { return Ok(None) };
        let seed = [self.suite.first_seed];
        let both = [(&base.case, &seed[..]), (&base.case, &seed[..])];
        let runs = match self.runs(&both, examinee, limits)? {
            Ok(runs) => runs,
            Err(failure) => return Ok(Some(of_failure(&failure))),
        };
        Ok(runs[0][0].difference(&runs[1][0]).map(|differs| {
            let name = base.case.program.name();
            (Judgement::NotRepeatable, format!("{name}, twice with one seed: {differs}"))
        }))
    }

    /// The seeds of a set's runs.
    fn seeds(&self, set: Set) -> impl Iterator<Item = u64> + use<> {
        let apart = if set == Set::HeldOut { HELD_OUT_SEEDS } else { 0 };
        let first = self.suite.first_seed.wrapping_add(apart);
        (0..u64::from(self.suite.seeds)).map(move |member| first.wrapping_add(member))
    }

    /// A candidate as the world takes it.
    fn candidate<'a>(&self, attempt: &'a Attempt<'a>) -> Result<Candidate<'a>, Failure> {
        if !self.in_guests {
            return Ok(Candidate::Own(attempt));
        }
        attempt.in_guest().ok_or_else(|| {
            Failure::Refused("in a guest's kernel a stranger's code has no sandbox".to_string())
        })
    }

    /// All runs in guests. A guest's boot serves all runs of a candidate.
    fn runs_in_guests(
        &self,
        cases: &[(&Case, &[u64])],
        examinee: &Examinee,
        limits: Limits,
    ) -> Result<Result<Vec<Vec<Run>>, Failure>, Error> {
        let attempt = Attempt::new(examinee, limits);
        let candidate = match self.candidate(&attempt) {
            Ok(candidate) => candidate,
            Err(failure) => return Ok(Err(failure)),
        };
        let trials: Vec<Trial<'_>> =
            cases.iter().map(|(case, _)| case.trial(candidate.clone())).collect();
        let mut sessions = Vec::new();
        for ((_, seeds), trial) in cases.iter().zip(&trials) {
            for (&seed, member) in seeds.iter().zip(1..) {
                sessions.push(session(trial.clone(), seed, member));
            }
        }
        let mut world = (self.world)();
        let mut made = || {
            trials.iter().try_for_each(|trial| world.admit(trial))?;
            world.prepare(&trials)?;
            world.run(&sessions, &ProgressBar::hidden())?.into_iter().collect::<Result<Vec<_>, _>>()
        };
        let runs = match made() {
            Ok(runs) if Instant::now() <= limits.deadline => runs,
            Ok(_) => return Ok(Err(late())),
            Err(Error::Stopped) => return Err(Error::Stopped),
            Err(error) => return Ok(Err(in_kernel(error))),
        };
        self.made_of
            .get_or_init(|| world.made_of().into_iter().map(|input| input.sha256).collect());
        Ok(Ok(by_case(cases, runs)))
    }

    /// The runs of each case with its seeds, or the failure of the first run that has one.
    fn runs(
        &self,
        cases: &[(&Case, &[u64])],
        examinee: &Examinee,
        limits: Limits,
    ) -> Result<Result<Vec<Vec<Run>>, Failure>, Error> {
        if self.in_guests {
            return self.runs_in_guests(cases, examinee, limits);
        }
        let all: Vec<(&Case, u64)> = cases
            .iter()
            .flat_map(|(case, seeds)| seeds.iter().map(move |&seed| (*case, seed)))
            .collect();
        // A run after one that failed is not needed; the first failure is the same in any order.
        let failed = AtomicUsize::new(usize::MAX);
        let run = |(index, (case, seed)): (usize, &(&Case, u64))| {
            if index > failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let run = self.run(case, *seed, examinee, limits)?;
            if run.is_err() {
                failed.fetch_min(index, Ordering::Relaxed);
            }
            Ok(Some(run))
        };
        let runs = all.par_iter().enumerate().map(run);
        let runs = runs.collect::<Result<Vec<Option<Result<Run, Failure>>>, Error>>()?;
        let runs: Result<Vec<Run>, Failure> = runs.into_iter().flatten().collect();
        Ok(runs.map(|runs| by_case(cases, runs)))
    }

    fn run(
        &self,
        case: &Case,
        seed: u64,
        examinee: &Examinee,
        limits: Limits,
    ) -> Result<Result<Run, Failure>, Error> {
        let with_quantum;
        let examinee = match (examinee, &case.program) {
            (Examinee::Named(policy), Program::Open(workload)) => match workload.policy(policy) {
                Ok(policy) => {
                    with_quantum = Examinee::Named(policy);
                    &with_quantum
                }
                Err(error) => return Ok(Err(Failure::Refused(error.to_string()))),
            },
            _ => examinee,
        };
        let attempt = Attempt::new(examinee, limits);
        let session = session(case.trial(Candidate::Own(&attempt)), seed, seed);
        let made = (self.world)().run(&[session], &ProgressBar::hidden());
        let made = made.and_then(|mut runs| {
            runs.pop().unwrap_or_else(|| Err(Error::Internal("a world made no run".to_string())))
        });
        match (made, attempt.failure()) {
            (Ok(run), _) => Ok(Ok(run)),
            (Err(Error::Stopped), _) => Err(Error::Stopped),
            (Err(_), Some(failure)) => Ok(Err(failure)),
            (Err(error), None) => Ok(Err(Failure::Refused(error.to_string()))),
        }
    }

    /// Each constraint with its worst run, of the workloads in which its metric has a value.
    fn constraints(&self, runs: &[Vec<Run>]) -> Vec<Constraint> {
        let of = |bound: &Bound| {
            let own = self.cases.iter().zip(runs).filter(|(base, _)| bound.is_about(base));
            let values = own.flat_map(|(base, runs)| {
                runs.iter().map(|run| (base.case.program.name(), run.value(bound.metric)))
            });
            let mut worst: Option<(String, Option<f64>)> = None;
            for (name, value) in values {
                if worst.as_ref().is_none_or(|(_, old)| bound.is_worse(value, *old)) {
                    worst = Some((name, value));
                }
            }
            let (workload, value) = worst.unzip();
            let value = value.flatten();
            let holds = value.is_some_and(|value| bound.holds(value));
            Constraint { rule: bound.text.clone(), holds, worst: value, workload }
        };
        self.bounds.iter().map(of).collect()
    }

    /// Where the candidate did less work in its time than the suite demands, if anywhere.
    fn less_work(&self, runs: &[Vec<Run>]) -> Option<String> {
        self.cases.iter().zip(runs).find_map(|(base, runs)| {
            let share = rate(runs)? / rate(&base.runs)?;
            (share < self.suite.least_work).then(|| {
                format!(
                    "in {} its tasks get {:.3} times the CPU time per time that they get under the \
                     baseline, and the suite demands {}",
                    base.case.program.name(),
                    share,
                    self.suite.least_work
                )
            })
        })
    }
}

/// Held-out workloads have other seeds.
const HELD_OUT_SEEDS: u64 = 1_000_000;
/// A larger gap is marked: a difference of 2 % matters, as in comparisons.
const GAP: f64 = 0.02;

/// CPU time of tasks per time of the run, over all runs.
fn rate(runs: &[Run]) -> Option<f64> {
    let sum = |metric| runs.iter().map(|run| run.value(metric)).sum::<Option<f64>>();
    sum(Metric::cpu_time_ns).zip(sum(Metric::makespan_ns)).map(|(work, time)| work / time.max(1.0))
}

/// The rows of runs by member.
fn rows(case: &Case, of: &Examinee, seeds: &[u64], runs: &[Run]) -> Vec<(u64, Row)> {
    let stamped = |(member, (seed, run)): (usize, (&u64, &Run))| {
        let rows = run.rows.iter().filter(|row| row.subject.is_none());
        let row = |row: &Row| Row {
            workload: case.program.name(),
            candidate: of.to_string(),
            cpus: case.cpus,
            seed: Some(*seed),
            runs: 1,
            ..row.clone()
        };
        rows.map(|one| (member as u64, row(one))).collect::<Vec<_>>()
    };
    seeds.iter().zip(runs).enumerate().flat_map(stamped).collect()
}

/// The value of a metric over runs.
fn value(metric: Metric, runs: &[Run]) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| run.value(metric)).collect();
    location(metric, values?).map(|(value, _)| value)
}

/// The limits of a candidate that is judged now.
fn limits_from_now(suite: &Suite) -> Limits {
    Limits {
        events: suite.limits.events,
        deadline: Instant::now() + Duration::from_secs(suite.limits.seconds),
    }
}

/// A session of a judged run.
fn session(trial: Trial<'_>, seed: u64, member: u64) -> Session<'_> {
    let (member, observed) = (Some(member), Observed::Measured);
    Session { trial, seed, member, check: false, observed, trace: None }
}

/// Runs in the order of the cases and their seeds, apart by case.
fn by_case(cases: &[(&Case, &[u64])], runs: Vec<Run>) -> Vec<Vec<Run>> {
    let mut runs = runs.into_iter();
    cases.iter().map(|(_, seeds)| runs.by_ref().take(seeds.len()).collect()).collect()
}

/// Why a kernel gave no numbers.
fn in_kernel(error: Error) -> Failure {
    let why = error.to_string();
    match error {
        Error::Missing(_) => Failure::Missing(why),
        Error::Usage(_) => Failure::Refused(why),
        Error::Input(_) if why.contains("does not compile") => Failure::CompileError(why),
        Error::Input(_) => Failure::NotAPolicy(why),
        Error::Policy(_) | Error::Check(_) => Failure::Contract(why),
        Error::Inconclusive(_) => Failure::Timeout(why),
        _ => Failure::Crash(why),
    }
}

fn of_failure(failure: &Failure) -> (Judgement, String) {
    let verdict = match failure {
        Failure::Limit(_) => Judgement::Limit,
        Failure::Timeout(_) => Judgement::Timeout,
        Failure::Contract(_) => Judgement::Contract,
        Failure::Crash(_) => Judgement::Crash,
        Failure::OutOfMemory(_) => Judgement::OutOfMemory,
        Failure::CompileError(_) => Judgement::CompileError,
        Failure::NotAPolicy(_) => Judgement::NotAPolicy,
        Failure::Refused(_) => Judgement::Refused,
        Failure::Missing(_) => Judgement::Missing,
    };
    (verdict, failure.reason().to_string())
}
