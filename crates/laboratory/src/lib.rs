//! The laboratory: runs workloads × worlds × candidates × points with enough repetitions, and makes
//! one table of the results.
//!
//! It repeats, compares and decides. It knows no world by name and no file format.
//! [`Experiment::run`] is the single pipeline behind every command and the Python package.

pub mod agreement;
mod answer;
pub mod bisect;
pub mod conform;
mod failed;
pub mod gate;
pub mod judge;
mod plan;
pub mod prediction;
mod provenance;
pub mod regression;
mod replication;
pub mod results_directory;
mod rounds;
mod samples;
mod section;
mod starving;
pub mod swarm;
pub mod sweep;
mod text;
mod unfinished;
pub mod vectors;
mod yields;

pub use plan::Refusal;
pub use replication::Goal;
pub use rounds::{Precision, RoundSettings, Stopping};
pub use samples::{Fidelity, Summed, settle, sum_up};
use section::Section;
pub use text::programs::{OF_DEMANDS, OF_TASKS};

use crate::results_directory::{Distribution, ResultsDirectory, distributions};
use formats::trace_source::TraceSource;
use plan::{Asked, Plan};
use program::{Error, progress, write_whole};
use results::fidelity::Replays;
use results::{Answer, Input, Results, Row};
use std::path::PathBuf;
use std::time::Duration;
use worlds::setting::Focus;
use worlds::{By, Candidate, Determinism, Observed, Program, Run, Session, Trial, World};

/// An experiment: the question and where to answer it.
pub struct Experiment<'a> {
    /// The workloads.
    pub programs: Vec<Program>,
    /// The worlds; each workload runs in every world that can run it.
    pub worlds: Vec<Box<dyn World + 'a>>,
    /// The schedulers and policies; if empty, the default of each world.
    pub candidates: Vec<Candidate<'a>>,
    /// The baseline.
    pub against: Against,
    /// The numbers of CPUs; if empty, the default of the workload.
    pub cpus: Vec<u16>,
    /// The settings.
    pub settings: Settings,
}

/// The baseline of a comparison.
#[derive(Clone, Debug)]
pub enum Against {
    /// The default of each world.
    Usual,
    /// This candidate, if anything is compared.
    Named(Candidate<'static>),
    /// No baseline.
    Nothing,
}

/// The settings of an experiment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first seed.
    pub seed: u64,
    /// The number of members of an ensemble; if absent, the default of each world.
    pub ensemble: Option<u32>,
    /// The required width of intervals, if any.
    pub goal: Option<Goal>,
    /// The time limit.
    pub max_time: Option<Duration>,
    /// The number of repetitions in worlds where no two runs are equal.
    pub rounds: RoundSettings,
    /// Whether runs are checked against all rules, and repeated once to check that they repeat
    /// themselves.
    pub check: bool,
    /// Whether each candidate runs once more with all its events, in worlds where not every run has
    /// them.
    pub events: bool,
    /// The parts by which numbers are also split, if any.
    pub by: Option<By>,
    /// The number of parts of a split number in text.
    pub parts: usize,
    /// The directory for results, traces and the report, if any.
    pub output: Option<PathBuf>,
    /// The program of interest, if there is one.
    pub focus: Option<Focus>,
}

/// The data that every part of an experiment needs.
pub(crate) struct Context<'a> {
    pub settings: &'a Settings,
    directory: Option<&'a ResultsDirectory>,
    several_programs: bool,
    several_worlds: bool,
}

impl Context<'_> {
    /// The path for the events of a trial's first run, if any.
    pub fn trace(&self, world: &dyn World, trial: &Trial<'_>) -> Result<Option<PathBuf>, Error> {
        let Some(directory) = self.directory.filter(|_| !trial.program.is_drawn()) else {
            return Ok(None);
        };
        let program = self.several_programs.then(|| trial.program.name());
        let world = self.several_worlds.then(|| world.name().to_string());
        let name: Vec<String> =
            program.into_iter().chain(world).chain([trial.candidate.to_string()]).collect();
        directory.trace(&name.join("-"), trial.cpus).map(Some)
    }
}

impl Experiment<'_> {
    /// Runs the complete experiment.
    ///
    /// # Errors
    /// If nothing can be run, or a run fails that must not fail. Problems with existing results are
    /// in the answer's `end`.
    pub fn run(self) -> Result<Answer, Error> {
        let Experiment { programs, mut worlds, candidates, against, cpus, settings } = self;
        let request =
            Asked { programs: &programs, candidates: &candidates, against: &against, cpus: &cpus };
        let plans = request.plans(&worlds)?;
        let directory = settings.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let context = Context {
            settings: &settings,
            directory: directory.as_ref(),
            several_programs: programs.len() > 1,
            several_worlds: worlds.len() > 1,
        };
        let mut sections: Vec<Section<'_>> = Vec::new();
        for (index, plan) in plans.iter().enumerate().filter(|(_, plan)| !plan.trials.is_empty()) {
            let world = &mut *worlds[index];
            world.prepare(&plan.trials)?;
            let made = match world.capabilities().determinism {
                Determinism::Noisy => rounds::sections(world, plan, &context),
                Determinism::Seeded | Determinism::Chaotic => {
                    replication::sections(world, plan, &context)
                }
            };
            for mut section in made? {
                provenance::fill(
                    &mut section.rows,
                    &programs[section.program],
                    &*worlds[index],
                    &candidates,
                    &settings,
                );
                sections.push(Section { world: index, ..section });
            }
        }
        sections.sort_by_key(|section| (section.program, section.world));
        settle(sections.iter_mut().map(|section| (&mut section.rows[..], &section.compared[..])));
        sections.iter_mut().for_each(starving::mark);
        sections.iter_mut().for_each(unfinished::mark);
        let answers = answer::all(&programs, &worlds, &sections, settings.focus.as_ref());
        let tables = text::ExperimentText {
            programs: &programs,
            worlds: &worlds,
            sections: &sections,
            plans: &plans,
            settings: &settings,
        };
        let text = if answers.is_empty() {
            tables.text()
        } else {
            format!("{answers}\n{}", tables.text())
        };
        let is_repeatable =
            sections.iter().all(|section| section.end.is_ok() && section.is_repeatable);
        let results = Results::new(rows(&programs, &sections, &plans, settings.by))
            .repeatable(is_repeatable)
            .answered(answers);
        if let Some(directory) = directory {
            write(&directory, &results, &programs, &sections)?;
        }
        let failed = failed::end(&sections);
        let members =
            sections.iter_mut().flat_map(|section| std::mem::take(&mut section.members)).collect();
        let ends = sections.into_iter().map(|section| section.end);
        let end = std::iter::once(failed).chain(ends).find(Result::is_err).unwrap_or(Ok(()));
        let inputs = worlds.iter().flat_map(|world| world.made_of()).collect();
        Ok(Answer { results, members, inputs, text, end })
    }

    /// A single run of the first workload under the first candidate in the first world, with its
    /// numbers. `observed` says what is recorded; the events go to `trace`.
    ///
    /// # Errors
    /// If the run is refused, fails, or breaks a rule.
    pub fn once(self, observed: Observed, trace: Option<PathBuf>) -> Result<Once, Error> {
        let Experiment { programs, mut worlds, candidates, against, cpus, settings } = self;
        let request =
            Asked { programs: &programs, candidates: &candidates, against: &against, cpus: &cpus };
        let plans = request.plans(&worlds)?;
        let nothing =
            || Error::Internal("a single run is of one workload in one world".to_string());
        let (world, plan) = worlds.first_mut().zip(plans.first()).ok_or_else(nothing)?;
        let trial = plan.trials.first().ok_or_else(nothing)?;
        world.prepare(&plan.trials)?;
        let context = Context {
            settings: &settings,
            directory: None,
            several_programs: false,
            several_worlds: false,
        };
        let session = Session {
            trial: trial.clone(),
            seed: settings.seed,
            member: None,
            check: settings.check,
            observed,
            trace,
        };
        let run = replication::once(&mut **world, session, &context)?;
        let parts = settings.by.map_or(Vec::new(), |by| run.parts(by, &world.name()));
        let all = run.rows.iter().chain(&parts);
        let mut rows: Vec<Row> = all.map(|row| trial.stamp(row, Some(settings.seed))).collect();
        provenance::fill(&mut rows, trial.program, &**world, &candidates, &settings);
        let inputs = world.made_of();
        Ok(Once { run, rows, inputs })
    }
}

/// A single run.
pub struct Once {
    /// The run.
    pub run: Run,
    /// Its numbers.
    pub rows: Vec<Row>,
    /// What they were made of, where that is known by its hash.
    pub inputs: Vec<Input>,
}

impl Settings {
    /// What is recorded of a run.
    fn observed(&self) -> Observed {
        if self.by.is_some() { Observed::Parts } else { Observed::Measured }
    }

    /// One run of each trial, with this seed.
    pub fn once(seed: u64) -> Settings {
        let stopping = Stopping {
            min_runs: 1,
            max_runs: 1,
            min_time: Duration::ZERO,
            max_time: None,
            precision: None,
        };
        Settings {
            seed,
            ensemble: Some(1),
            goal: None,
            max_time: None,
            rounds: RoundSettings { warm_up: 0, against_itself: false, stopping, margin: 0.0 },
            check: false,
            events: false,
            by: None,
            parts: 0,
            output: None,
            focus: None,
        }
    }
}

/// All numbers, workload by workload; for a replay, those of the recording come first.
fn rows(
    programs: &[Program],
    sections: &[Section<'_>],
    plans: &[Plan<'_>],
    by: Option<By>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let own = || sections.iter().filter(|section| section.program == index);
        let recorded =
            program.recorded().filter(|_| own().any(|section| !section.fidelity.is_empty()));
        let parts =
            by.filter(|_| recorded.is_some()).map_or(Vec::new(), |by| program.recorded_parts(by));
        let mut recorded = recorded.map(|(_, rows)| rows).unwrap_or_default();
        recorded.extend(parts);
        provenance::fill_recorded(&mut recorded, program);
        rows.extend(recorded);
        rows.extend(own().flat_map(|section| section.rows.iter().cloned()));
    }
    rows.extend(plans.iter().flat_map(|plan| &plan.refusals).map(Refusal::row));
    rows
}

/// The distributions of durations in the recording that `program` replays.
fn recorded_distributions(program: &Program) -> Vec<Distribution> {
    let Program::Replay(replay) = program else { return Vec::new() };
    let recorded = &replay.recorded;
    let case = distributions::Case {
        workload: &recorded.name,
        candidate: "recorded",
        world: "recorded",
        cpus: recorded.recording.cpus,
    };
    Distribution::of_case(case, &[&recorded.summary])
}

/// Writes results and traces. The directory stays marked as unfinished: the hash of the inputs is not
/// yet there.
fn write(
    directory: &ResultsDirectory,
    results: &Results,
    programs: &[Program],
    sections: &[Section<'_>],
) -> Result<(), Error> {
    let mut distributions: Vec<_> = programs.iter().flat_map(recorded_distributions).collect();
    distributions.extend(sections.iter().flat_map(|section| section.distributions.iter().cloned()));
    directory.write(results, distributions)?;
    let replayed: Vec<_> =
        sections.iter().filter_map(|one| one.replayed(&programs[one.program])).collect();
    if !replayed.is_empty() {
        Replays::new(replayed).write(directory.path())?;
    }
    for program in programs {
        if let Program::Replay(replay) = program {
            directory.write_recording(&TraceSource::of_recording(
                &replay.path,
                &replay.recorded.recording,
            ))?;
        }
    }
    let singles: String = sections.iter().map(|section| section.singles.as_str()).collect();
    if !singles.is_empty() {
        write_whole(
            &directory.path().join("runs.csv"),
            format!("{}{singles}", rounds::RAW_HEADER).as_bytes(),
        )?;
    }
    let bar = progress::bar("exporting", 0);
    let exported = directory.export_traces(&bar);
    bar.finish_and_clear();
    exported
}
