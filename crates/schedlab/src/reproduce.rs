//! `schedlab reproduce`: papers measured again, claim by claim.

use clap::{Args, ValueEnum};
use laboratory::results_directory::{FINDINGS, ResultsDirectory};
use papers::cache::{Begin, Cache};
use papers::commands::ensembles::ENSEMBLES;
use papers::{Paper, Settings, commands, folder, grids, markdown, queues, text};
use program::{Error, no_such, print, write_whole};
use results::figure::Figures;
use results::findings::AllFindings;
use results::{Results, is_of};
use schedsim::admission::Seed;
use std::path::PathBuf;
use verbs::output::{Format, finish};

/// Measures papers again: their tables and figures beside ours, and a verdict on every claim
///
/// A paper is a folder of data: the experiments, the printed numbers, and claims as comparisons
/// that can fail. A check holds if the 95 % interval of its margin lies above zero, does not hold
/// if it lies below, and is undecided otherwise; a claim holds if all its checks do. Finished
/// measurements are kept and not repeated by the same build of the program.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab reproduce --quick -o results/papers\n  schedlab \
                        reproduce curran-stumm-1990 --full --resume\n  schedlab reproduce \
                        porter-2021 --only P-TAB12,P-CLM07 --format json\n  schedlab reproduce \
                        ./my-paper")]
pub struct Reproduce {
    /// A paper's name, or a folder, with a / in it [default: all papers]
    papers: Vec<String>,
    /// Shorter runs and fewer of them: minutes, with wider intervals (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The number and length of runs in the paper's folder
    #[arg(long)]
    full: bool,
    /// With --quick: measure the first member of every ensemble in guests that is on record again,
    /// of long ones, too
    #[arg(long, conflicts_with = "full")]
    every_member: bool,
    /// Only these tables, figures and claims, separated by commas, such as P-TAB12,C-CLM07
    #[arg(long, value_delimiter = ',', value_name = "ID,…")]
    only: Vec<String>,
    /// Let a folder of your own run programs, read and write on this machine. Without it one that
    /// would is refused, with a list of what it would do
    #[arg(long)]
    trust: bool,
    /// Continue an earlier run; fails if there is none
    #[arg(long, conflicts_with = "anew")]
    resume: bool,
    /// Measure everything again, ignoring earlier measurements
    #[arg(long)]
    anew: bool,
    /// The directory for measurements [default: schedlab in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The first seed of simulations, and the seed for assignments of levels
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// Number of processes that count instructions at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Count in another build of schedlab, for example from `cargo build --profile o1 -p schedlab`
    /// in target/o1
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: PaperFormat,
    /// Also write results (JSON, CSV, Parquet), the measured numbers of commands (measured.csv), all
    /// members of ensembles in guests (PAPER/ensembles.csv), a CSV per figure and report.html to
    /// this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The numbers from commands behind the verdicts.
const MEASURED: &str = "measured.csv";

/// The output format.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
enum PaperFormat {
    /// Tables for people.
    #[default]
    Text,
    /// One object with all rows and the data to repeat the run.
    Json,
    /// The rows.
    Csv,
    /// A page: how many claims hold, the surprises, and advice.
    Markdown,
}

impl Reproduce {
    pub fn run(self) -> Result<(), Error> {
        let papers = self.papers()?;
        let settings = self.settings()?;
        let begin = match (self.resume, self.anew) {
            (true, _) => Begin::Resume,
            (_, true) => Begin::Anew,
            _ => Begin::Reuse,
        };
        let cache = self.cache_directory()?;
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let (mut rows, mut figures, mut surprises) = (Vec::new(), Vec::new(), Vec::new());
        let mut measured = Vec::new();
        for paper in &papers {
            let cache = Cache::open(&cache.join(format!("{}.jsonl", paper.name)), begin)?;
            let outcome = paper.reproduce(&self.only, &settings, &cache)?;
            program::complain!("{}: {}", paper.name, cache.summary());
            outcome.again.iter().for_each(|line| program::complain!("{}: {line}", paper.name));
            if let (Some(directory), [_, ..]) = (&directory, &outcome.ensembles[..]) {
                let folder = directory.path().join(&paper.name);
                let failed = |error| Error::output(&folder, error);
                std::fs::create_dir_all(&folder).map_err(failed)?;
                let text = Results::new(outcome.ensembles).to_csv()?;
                write_whole(&folder.join(ENSEMBLES), text.as_bytes())?;
            }
            rows.extend(outcome.rows);
            measured.extend(outcome.measured);
            figures.extend(outcome.figures);
            surprises.extend(
                outcome.surprises.into_iter().map(|surprise| format!("{}: {surprise}", paper.name)),
            );
        }
        let (results, findings) =
            (Results::new(rows), AllFindings::new(papers.iter().map(|paper| &paper.findings)));
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            let file = directory.path().join(MEASURED);
            write_whole(&file, Results::new(measured).to_csv()?.as_bytes())?;
            Figures::new(figures).write(directory.path())?;
            findings.write(&directory.path().join(FINDINGS))?;
            finish(directory)?;
        }
        let text = || papers.iter().map(|paper| text::render(paper, &results.rows)).collect();
        match self.format {
            PaperFormat::Text => Format::Text.print(&results, text)?,
            PaperFormat::Json => Format::Json.print(&results, text)?,
            PaperFormat::Csv => Format::Csv.print(&results, text)?,
            PaperFormat::Markdown => print(&markdown::summary(&results, &findings.findings))?,
        }
        if !self.full {
            for paper in &papers {
                if let ids @ [_, ..] = &paper.needs_full(&self.only)[..] {
                    let (argument, ids) = (&paper.folder.argument, ids.join(","));
                    program::complain!(
                        "{}: not all of {ids} was measured, which takes --full: schedlab \
                         reproduce {argument} --only {ids} --full",
                        paper.name
                    );
                }
            }
        }
        match surprises.as_slice() {
            [] => Ok(()),
            surprises => {
                Err(Error::Check(format!("not as on record:\n  {}", surprises.join("\n  "))))
            }
        }
    }

    /// The requested papers that have any of the requested ids.
    fn papers(&self) -> Result<Vec<Paper>, Error> {
        let names = if self.papers.is_empty() { folder::names() } else { self.papers.clone() };
        let load = if self.trust { Paper::load_trusted } else { Paper::load };
        let mut papers =
            names.iter().map(|name| load(name)).collect::<Result<Vec<Paper>, Error>>()?;
        let ids: Vec<String> = papers.iter().flat_map(Paper::ids).collect();
        if let Some(wrong) = self.only.iter().find(|one| !ids.iter().any(|id| is_of(id, one))) {
            let see = format!(
                "{} have {} ids; each paper's claims.toml and experiments.toml list them.",
                names.join(" and "),
                ids.len()
            );
            return Err(Error::Usage(no_such("table, figure or claim", wrong, &ids, &see)));
        }
        papers.retain(|paper| {
            self.only.is_empty()
                || paper.ids().iter().any(|id| self.only.iter().any(|one| is_of(id, one)))
        });
        Ok(papers)
    }

    fn settings(&self) -> Result<Settings, Error> {
        let source = verbs::queue::callgrind(self.binary.as_ref(), self.full, self.jobs)?;
        let (assignments, slices) = if self.full { (40, 4_000) } else { (3, 4_000) };
        Ok(Settings {
            queues: queues::Settings { source, assignments, seed: self.seed, slices },
            grids: grids::Settings { quick: !self.full, seed: self.seed },
            commands: commands::Settings {
                quick: !self.full,
                is_every_member: self.every_member,
                seed: self.seed,
            },
        })
    }

    fn cache_directory(&self) -> Result<PathBuf, Error> {
        let of = |variable: &str| {
            std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        let base = || {
            of("XDG_CACHE_HOME")
                .or_else(|| of("HOME").map(|home| home.join(".cache")))
                .map(|base| base.join("schedlab/reproduce"))
        };
        self.cache.clone().or_else(base).ok_or_else(|| {
            Error::Usage(
                "there is no home directory to keep measurements in; give --cache DIR".to_string(),
            )
        })
    }
}
