//! The laboratory: workloads × worlds × candidates × points, run as often as it takes, and what comes of them as one table.
//!
//! It repeats, compares and decides; it knows no world by name and no file format. [`Experiment::run`] is the one pipeline, of which every verb and the Python package are callers.

mod answer;
mod plan;
mod provenance;
mod replication;
mod rounds;
mod samples;
mod section;
mod starving;
mod text;
mod yields;

pub use plan::Refusal;
pub use replication::Goal;
pub use rounds::{Precision, RoundSettings, Stopping};
pub use samples::{Fidelity, Summed, settle, sum_up};
pub(crate) use section::Section;

use crate::output::{Answer, Results, write_whole};
use crate::results_directory::ResultsDirectory;
use crate::setting::Focus;
use crate::trace_source::TraceSource;
use crate::world::{By, Candidate, Determinism, Observed, Program, Run, Session, Trial, World};
use crate::{Error, progress};
use plan::{Asked, Plan};
use results::Row;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be found out, and where.
pub struct Experiment<'a> {
    /// The workloads.
    pub programs: Vec<Program>,
    /// Where each of them runs, if it can.
    pub worlds: Vec<Box<dyn World + 'a>>,
    /// What schedules them; each world's own choice if there is none here.
    pub candidates: Vec<Candidate<'a>>,
    /// What they are compared with.
    pub against: Against,
    /// On so many CPUs each; as many as the workload has there if there is none here.
    pub cpus: Vec<u16>,
    /// How it is done.
    pub settings: Settings,
}

/// What candidates are compared with.
#[derive(Clone, Debug)]
pub enum Against {
    /// What is usual in each world.
    Usual,
    /// This one, where anything is compared.
    Named(Candidate<'static>),
    /// Nothing.
    Nothing,
}

/// How an experiment is done.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first seed.
    pub seed: u64,
    /// How many members an ensemble has; each world's own number if there is none here.
    pub ensemble: Option<u32>,
    /// How narrow intervals are to be, if that matters.
    pub goal: Option<Goal>,
    /// When it ends, complete or not.
    pub max_time: Option<Duration>,
    /// How often runs are repeated that are never the same.
    pub rounds: RoundSettings,
    /// Whether runs are held against all rules, and repeated once to see that they repeat themselves.
    pub check: bool,
    /// Whether each candidate runs once more with all its events where these are not seen in every run.
    pub events: bool,
    /// By what numbers are split as well, if at all.
    pub by: Option<By>,
    /// How many parts of a number are shown in text, if it is split.
    pub parts: usize,
    /// Where results, traces and the report go, if anywhere.
    pub output: Option<PathBuf>,
    /// The program that it is about, if it is about one.
    pub focus: Option<Focus>,
}

/// What every part of an experiment knows.
pub(crate) struct Context<'a> {
    pub settings: &'a Settings,
    directory: Option<&'a ResultsDirectory>,
    several_programs: bool,
    several_worlds: bool,
}

impl Context<'_> {
    /// Where the events of a trial's first run go, if anywhere.
    pub fn trace(&self, world: &dyn World, trial: &Trial<'_>) -> Result<Option<PathBuf>, Error> {
        let Some(directory) = self.directory.filter(|_| !trial.program.is_drawn()) else { return Ok(None) };
        let program = self.several_programs.then(|| trial.program.name());
        let world = self.several_worlds.then(|| world.name().to_string());
        let name: Vec<String> = program.into_iter().chain(world).chain([trial.candidate.to_string()]).collect();
        directory.trace(&name.join("-"), trial.cpus).map(Some)
    }
}

impl Experiment<'_> {
    /// Runs all of it.
    ///
    /// # Errors
    /// If nothing of it can be run, or a run fails that must not. What is wrong with results that are there is in the answer's end.
    pub fn run(self) -> Result<Answer, Error> {
        let Experiment { programs, mut worlds, candidates, against, cpus, settings } = self;
        let asked = Asked { programs: &programs, candidates: &candidates, against: &against, cpus: &cpus };
        let plans = asked.plans(&worlds)?;
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
                Determinism::Seeded | Determinism::Chaotic => replication::sections(world, plan, &context),
            };
            for mut section in made? {
                provenance::fill(&mut section.rows, &programs[section.program], &*worlds[index], &candidates, &settings);
                sections.push(Section { world: index, ..section });
            }
        }
        sections.sort_by_key(|section| (section.program, section.world));
        settle(sections.iter_mut().map(|section| (&mut section.rows[..], &section.compared[..])));
        sections.iter_mut().for_each(starving::mark);
        let answers = answer::all(&programs, &worlds, &sections, settings.focus.as_ref());
        let told = text::Told { programs: &programs, worlds: &worlds, sections: &sections, plans: &plans, settings: &settings };
        let text = if answers.is_empty() { told.text() } else { format!("{answers}\n{}", told.text()) };
        let is_repeatable = sections.iter().all(|section| section.end.is_ok() && section.is_repeatable);
        let results = Results::new(rows(&programs, &sections, &plans, settings.by)).repeatable(is_repeatable).answered(answers);
        if let Some(directory) = directory {
            write(directory, &results, &programs, &sections)?;
        }
        let end = sections.into_iter().map(|section| section.end).find(Result::is_err).unwrap_or(Ok(()));
        Ok(Answer { results, text, end })
    }

    /// A single run of the first workload under the first candidate in the first world, `observed` so, with its numbers. Its events go to `trace`.
    ///
    /// # Errors
    /// If it is refused, fails, or breaks a rule.
    pub fn once(self, observed: Observed, trace: Option<PathBuf>) -> Result<(Run, Vec<Row>), Error> {
        let Experiment { programs, mut worlds, candidates, against, cpus, settings } = self;
        let asked = Asked { programs: &programs, candidates: &candidates, against: &against, cpus: &cpus };
        let plans = asked.plans(&worlds)?;
        let nothing = || Error::Internal("a single run is of one workload in one world".to_string());
        let (world, plan) = worlds.first_mut().zip(plans.first()).ok_or_else(nothing)?;
        let trial = plan.trials.first().ok_or_else(nothing)?;
        world.prepare(&plan.trials)?;
        let context = Context { settings: &settings, directory: None, several_programs: false, several_worlds: false };
        let session = Session { trial: trial.clone(), seed: settings.seed, member: None, check: settings.check, observed, trace };
        let run = replication::once(&mut **world, session, &context)?;
        let parts = settings.by.map_or(Vec::new(), |by| run.parts(by, &world.name()));
        let all = run.rows.iter().chain(&parts);
        let mut rows: Vec<Row> = all.map(|row| trial.stamp(row, Some(settings.seed), run.repeats)).collect();
        provenance::fill(&mut rows, trial.program, &**world, &candidates, &settings);
        Ok((run, rows))
    }
}

impl Settings {
    /// How much of a run is observed.
    fn observed(&self) -> Observed {
        if self.by.is_some() { Observed::Parts } else { Observed::Measured }
    }

    /// One run of everything, with this seed.
    pub fn once(seed: u64) -> Settings {
        let stopping = Stopping { min_runs: 1, max_runs: 1, min_time: Duration::ZERO, max_time: None, precision: None };
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

/// All numbers, workload by workload; the recording that one is a replay of first.
fn rows(programs: &[Program], sections: &[Section<'_>], plans: &[Plan<'_>], by: Option<By>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let own = || sections.iter().filter(|section| section.program == index);
        let recorded = program.recorded().filter(|_| own().any(|section| !section.fidelity.is_empty()));
        let parts = by.filter(|_| recorded.is_some()).map_or(Vec::new(), |by| program.recorded_parts(by));
        let mut recorded = recorded.map(|(_, rows)| rows).unwrap_or_default();
        recorded.extend(parts);
        provenance::fill_recorded(&mut recorded, program);
        rows.extend(recorded);
        rows.extend(own().flat_map(|section| section.rows.iter().cloned()));
    }
    rows.extend(plans.iter().flat_map(|plan| &plan.refusals).map(Refusal::row));
    rows
}

/// Writes results, traces and the report.
fn write(directory: ResultsDirectory, results: &Results, programs: &[Program], sections: &[Section<'_>]) -> Result<(), Error> {
    let mut distributions: Vec<_> = programs.iter().flat_map(Program::distributions).collect();
    distributions.extend(sections.iter().flat_map(|section| section.distributions.iter().cloned()));
    directory.write(results, distributions)?;
    for program in programs {
        if let Program::Replay(replay) = program {
            directory.write_recording(&TraceSource::of_recording(&replay.path, &replay.recorded.recording))?;
        }
    }
    let singles: String = sections.iter().map(|section| section.singles.as_str()).collect();
    if !singles.is_empty() {
        write_whole(&directory.path().join("runs.csv"), format!("{}{singles}", rounds::RAW_HEADER).as_bytes())?;
    }
    let bar = progress::bar("exporting", 0);
    let exported = directory.export_traces(&bar);
    bar.finish_and_clear();
    exported?;
    directory.finish()
}
