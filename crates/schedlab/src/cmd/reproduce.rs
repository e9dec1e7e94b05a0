//! `schedlab reproduce`: papers measured again, claim by claim.

use crate::output::{Format, Results, print};
use crate::paper::cache::{Begin, Cache};
use crate::paper::figure::Figures;
use crate::paper::findings::AllFindings;
use crate::paper::{Paper, Settings, commands, folder, grids, is_of, markdown, queues, text};
use crate::results_directory::ResultsDirectory;
use crate::{Error, no_such};
use clap::{Args, ValueEnum};
use schedsim::admission::Seed;
use std::path::PathBuf;

/// Measures papers again: their tables and figures beside ours, and a verdict on every claim
///
/// A paper is a folder of data: what was measured, what is printed, and claims as comparisons that could fail. A claim is reproduced if the 95 % interval of the margin
/// by which it holds lies above zero, not reproduced if it lies below, else inconclusive. What was measured once is kept and not measured again by the same build of the program.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  schedlab reproduce --quick -o results/papers\n  schedlab reproduce curran-stumm-1990 --full --resume\n  \
                        schedlab reproduce porter-2021 --only P-TAB12,P-CLM07 --format json\n  schedlab reproduce ./my-paper"
)]
pub struct Reproduce {
    /// A paper's name, or a folder, which has a / in it [default: all papers]
    papers: Vec<String>,
    /// Shorter runs and fewer of them: minutes, with wider intervals (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// As many runs, and as long, as the paper's folder asks for
    #[arg(long)]
    full: bool,
    /// Only these tables, figures and claims, separated by commas, such as P-TAB12,C-CLM07
    #[arg(long, value_delimiter = ',', value_name = "ID,…")]
    only: Vec<String>,
    /// Go on with a run that was ended; fails if there is nothing to go on with
    #[arg(long, conflicts_with = "anew")]
    resume: bool,
    /// Measure everything again, whatever was measured before
    #[arg(long)]
    anew: bool,
    /// Where measurements are kept [default: schedlab in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The first seed of simulations, and what assignments of levels are drawn from
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// How many processes count instructions at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Count in another build of schedlab, such as `cargo build --profile o1 -p schedlab` gives in target/o1
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: PaperFormat,
    /// Also write results (JSON, CSV, Parquet), a CSV per figure and report.html to this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
enum PaperFormat {
    /// Tables for people.
    #[default]
    Text,
    /// One object with all rows and what is needed to repeat the run.
    Json,
    /// The rows.
    Csv,
    /// A page: how many claims hold, what surprised, and what to take for what.
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
        for paper in &papers {
            let cache = Cache::open(&cache.join(format!("{}.jsonl", paper.name)), begin)?;
            let outcome = paper.reproduce(&self.only, &settings, &cache)?;
            eprintln!("{}: {}", paper.name, cache.summary());
            rows.extend(outcome.rows);
            figures.extend(outcome.figures);
            surprises.extend(outcome.surprises.into_iter().map(|surprise| format!("{}: {surprise}", paper.name)));
        }
        let (results, findings) = (Results::new(rows), AllFindings::new(papers.iter().map(|paper| &paper.findings)));
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            directory.write_papers(Figures::new(figures), &findings)?;
            directory.finish()?;
        }
        let text = || papers.iter().map(|paper| text::render(paper, &results.rows)).collect();
        match self.format {
            PaperFormat::Text => results.print(Format::Text, text)?,
            PaperFormat::Json => results.print(Format::Json, text)?,
            PaperFormat::Csv => results.print(Format::Csv, text)?,
            PaperFormat::Markdown => print(&markdown::summary(&results, &findings.findings))?,
        }
        match surprises.as_slice() {
            [] => Ok(()),
            surprises => Err(Error::Check(format!("verdicts that are not those on record:\n  {}", surprises.join("\n  ")))),
        }
    }

    /// The papers that are asked for, and have any of the ids that are.
    fn papers(&self) -> Result<Vec<Paper>, Error> {
        let names = if self.papers.is_empty() { folder::names() } else { self.papers.clone() };
        let mut papers = names.iter().map(|name| Paper::load(name)).collect::<Result<Vec<Paper>, Error>>()?;
        let ids: Vec<String> = papers.iter().flat_map(Paper::ids).collect();
        if let Some(wrong) = self.only.iter().find(|one| !ids.iter().any(|id| is_of(id, one))) {
            let see = format!("{} have {} ids; each paper's claims.toml and experiments.toml list them.", names.join(" and "), ids.len());
            return Err(Error::Usage(no_such("table, figure or claim", wrong, &ids, &see)));
        }
        papers.retain(|paper| self.only.is_empty() || paper.ids().iter().any(|id| self.only.iter().any(|one| is_of(id, one))));
        Ok(papers)
    }

    fn settings(&self) -> Result<Settings, Error> {
        let source = super::queue::callgrind(self.binary.as_ref(), self.full, self.jobs)?;
        let (assignments, slices) = if self.full { (40, 4_000) } else { (3, 4_000) };
        Ok(Settings {
            queues: queues::Settings { source, assignments, seed: self.seed, slices },
            grids: grids::Settings { quick: !self.full, seed: self.seed },
            commands: commands::Settings { quick: !self.full, seed: self.seed },
        })
    }

    fn cache_directory(&self) -> Result<PathBuf, Error> {
        let of = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base =
            || of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache"))).map(|base| base.join("schedlab/reproduce"));
        self.cache
            .clone()
            .or_else(base)
            .ok_or_else(|| Error::Usage("there is no home directory to keep measurements in; give --cache DIR".to_string()))
    }
}
