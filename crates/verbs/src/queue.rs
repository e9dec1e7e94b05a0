//! `schedlab queue`: the cost atlas of ready queues.

use crate::output::Format;
use atlas::callgrind::{Callgrind, child};
use atlas::measure::{Plan, Source, select};
use atlas::mix::Mix;
use atlas::structure::{STRUCTURES, StrideRule};
use atlas::{advice, crossover, text};
use clap::{Args, ValueEnum};
use laboratory::results_directory::ResultsDirectory;
use program::{Error, print};
use results::{Align, Answer, InputKind, Metric, Results, Row, Table, World};
use schedsim::admission::Seed;
use std::path::PathBuf;
use worlds::vm::pins;

/// Measures the cost of one scheduling operation in each ready queue
///
/// An operation is the work at the end of a slice: insert the task that ran, remove the next one.
/// Tasks only yield, so that nothing else is measured. Valgrind counts the instructions of this
/// program; list elements, schedule entries, tree levels and waits do not depend on the machine.
/// Every structure gets the same tasks at the same levels. Random mixes are drawn several times,
/// which gives the intervals.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab queue\n  schedlab queue --queues ruler,multilist2 \
                        --tasks 1,10,100,1000 --levels 8 --mix one:H\n  schedlab queue --queues \
                        sorted-list,rbtree --crossover rbtree,sorted-list --count instructions\n  \
                        schedlab queue --queues rbtree,wheel --strides powers --levels 6 --cache \
                        --format csv\n  schedlab queue --queues rr,rbtree --tasks 10,100 \
                        --threads")]
pub struct Queue {
    /// Structures, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    queues: Vec<String>,
    /// Numbers of yielding tasks, separated by commas; 1 to 1000000 [default: 1,10,100; for a
    /// crossover 10,20,…,200]
    #[arg(long, value_delimiter = ',', value_name = "N,…",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: Vec<u32>,
    /// Number of levels; 1 to 4095
    #[arg(long, default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=4095))]
    levels: u16,
    /// Distribution of tasks over levels: random, one:LEVEL, FIRST-LAST, mostly-low, mostly-high,
    /// default-middle, each, or A to N of Porter's table 3
    #[arg(long, default_value = "random", value_parser = |text: &str| text.parse::<Mix>())]
    mix: Mix,
    /// How a level becomes a rate in structures that allow several rules
    #[arg(long, value_enum, default_value_t)]
    strides: StrideRule,
    /// What to count, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    count: Vec<Count>,
    /// Number of random assignments of levels
    #[arg(long, default_value_t = 5, value_name = "K",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    assignments: u32,
    /// Number of timed runs
    #[arg(long, default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u32).range(2..=1000))]
    runs: u32,
    /// Seed of random levels
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = Seed::parse)]
    seed: u64,
    /// Number of slices to count [default: complete periods of the schedule, or enough of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    slices: Option<u64>,
    /// The number of tasks at which one structure becomes cheaper than the other
    #[arg(long, value_name = "A,B")]
    crossover: Vec<String>,
    /// Also simulate caches: accesses and misses per operation
    #[arg(long)]
    cache: bool,
    /// Also switch real user-level threads: the cost of a slice besides the queue
    #[arg(long)]
    threads: bool,
    /// The counter of instructions
    #[arg(long, value_enum, default_value_t)]
    source: SourceName,
    /// Count in another build of schedlab, for example from `cargo build --profile o1 -p schedlab`
    /// in target/o1
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Also count in that build, beside this one
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    /// Number of counting processes at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Only list the structures
    #[arg(long)]
    list: bool,
    /// Print what --format json wrote to FILE before, instead of measuring
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write results (JSON, CSV, Parquet) and report.html to this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Count {
    /// Instructions per operation.
    Instructions,
    /// Nanoseconds per operation.
    Time,
    /// What operations examine, and how long tasks wait: the same on every machine.
    Steps,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
enum SourceName {
    /// Valgrind's simulated CPU.
    #[default]
    Callgrind,
    /// The hardware counter of the CPU.
    Hardware,
}

impl Queue {
    /// Measures and prints the result.
    pub fn run(self) -> Result<(), Error> {
        if self.list {
            return list();
        }
        let mut shown = 0;
        let mut show = |tables: &str| {
            shown += tables.len();
            print(tables)
        };
        let answer = match self.format {
            Format::Text => self.measured(&mut show)?,
            Format::Json | Format::Csv => self.answer()?,
        };
        let rest = answer.text[shown..].to_string();
        self.format.answer(Answer { text: rest, ..answer })
    }

    /// The result.
    pub fn answer(&self) -> Result<Answer, Error> {
        self.measured(&mut |_| Ok(()))
    }

    /// The result. Its text begins with what `show` gets, table by table as they are measured.
    fn measured(&self, show: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<Answer, Error> {
        if let Some(file) = &self.record {
            let results = Results::read(file)?;
            let text = text::render(&results.rows);
            return Ok(Answer::new(results, text));
        }
        let source = self.source(self.binary.as_ref())?;
        let plan = self.plan()?;
        let crossings = self.crossings()?;
        self.source(self.beside.as_ref())?;
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let wants = |count| self.count.is_empty() || self.count.contains(&count);
        if atlas::OPT_LEVEL == "0"
            && self.binary.is_none()
            && (wants(Count::Instructions) || wants(Count::Time))
        {
            program::complain!(
                "schedlab: this build is not optimised: its instructions and times are not those \
                 of the queues in use. Build with: cargo build --release -p schedlab"
            );
        }
        let mut rows = Vec::new();
        let mut add = |stage: Vec<Row>| {
            show(&text::tables(&stage))?;
            rows.extend(stage);
            Ok::<_, Error>(())
        };
        // What takes least comes first.
        if wants(Count::Steps) {
            add(plan.steps())?;
        }
        let mut counted =
            if wants(Count::Instructions) { plan.instructions(&source) } else { Vec::new() };
        if let Some(binary) = &self.beside {
            let build = binary
                .parent()
                .and_then(|dir| dir.file_name())
                .map_or("other".to_string(), |dir| dir.to_string_lossy().into_owned());
            counted.extend(
                plan.instructions(&self.source(Some(binary))?)
                    .into_iter()
                    .map(|row| row.at("build", &build)),
            );
        }
        add(counted)?;
        if wants(Count::Time) {
            add(plan.times())?;
        }
        if self.threads {
            add(plan.threads(&source))?;
        }
        rows.extend(advice::advise(&rows, self.strides));
        if !crossings.is_empty() {
            let tasks =
                if self.tasks.len() < 3 { crossover::GRID.to_vec() } else { plan.tasks.clone() };
            let plan = Plan { tasks, ..plan };
            rows.extend(crossings.iter().map(|&(a, b)| crossover::find(&plan, &source, a, b)));
        }
        let results = counted_again(Results::new(rows));
        let text = text::render(&results.rows);
        let mut answer = Answer::new(results, text);
        if let Some(why) = self.uncounted(&answer.results.rows) {
            answer.end = Err(Error::Missing(format!("instructions were not counted: {why}")));
        }
        if let Some(directory) = &directory {
            directory.write(&answer.results, Vec::new())?;
        }
        let builds = self.binary.iter().chain(&self.beside);
        let builds = builds.filter_map(|file| pins::named_file(InputKind::Build, file));
        let answer = crate::output::pinned(answer, builds, self.output.as_deref())?;
        directory.map_or(Ok(()), crate::output::finish)?;
        Ok(answer)
    }

    fn plan(&self) -> Result<Plan, Error> {
        let mut tasks = if self.tasks.is_empty() { vec![1, 10, 100] } else { self.tasks.clone() };
        tasks.sort_unstable();
        tasks.dedup();
        Ok(Plan {
            structures: select(&self.queues).map_err(Error::Usage)?,
            tasks,
            mix: self.mix.clone(),
            levels: self.mix.levels(self.levels).map_err(Error::Usage)?,
            strides: self.strides,
            seed: self.seed,
            assignments: self.assignments,
            runs: self.runs,
            slices: self.slices,
        })
    }

    /// Why nothing was counted of the instructions that were asked for by name.
    fn uncounted<'r>(&self, rows: &'r [Row]) -> Option<&'r str> {
        if let Some(why) = rows.iter().find_map(crossover::unmeasured) {
            return Some(why);
        }
        let mut counts = rows.iter().filter(|row| row.metric == Metric::instructions_per_op);
        let asked = self.count.contains(&Count::Instructions);
        let first = counts.clone().find_map(|row| row.note.as_deref());
        first.filter(|_| asked && !counts.any(|row| row.value.is_some()))
    }

    fn source(&self, build: Option<&PathBuf>) -> Result<Source, Error> {
        if self.source == SourceName::Hardware {
            Ok(Source::Hardware)
        } else {
            callgrind(build, self.cache, self.jobs)
        }
    }

    fn crossings(
        &self,
    ) -> Result<
        Vec<(&'static atlas::structure::Structure, &'static atlas::structure::Structure)>,
        Error,
    > {
        let pair = |text: &String| {
            let (a, b) = text.split_once(',').ok_or_else(|| {
                Error::Usage(format!(
                    "--crossover {text}: write two structures, as in rbtree,sorted-list"
                ))
            })?;
            let both = select(&[a.to_string(), b.to_string()]).map_err(Error::Usage)?;
            Ok((both[0], both[1]))
        };
        self.crossover.iter().map(pair).collect()
    }
}

/// `results` with the command line that counts again what can be counted again: times of this
/// machine cannot.
fn counted_again(results: Results) -> Results {
    let is_of_machine = |row: &Row| row.world.is_of_machine();
    if !results.rows.iter().any(is_of_machine) {
        return results;
    }
    let counts = results.rows.iter().any(|row| !is_of_machine(row) && row.value.is_some());
    let (mut words, mut all) = (Vec::new(), std::env::args_os().skip(1));
    while let Some(word) = all.next() {
        match word.to_str() {
            Some("--count") => drop(all.next()),
            Some(word) if word.starts_with("--count=") => {}
            _ => words.push(word),
        }
    }
    let is_counted = |world: &World| results.rows.iter().any(|row| row.world == *world);
    let kinds = [(World::Callgrind, "instructions"), (World::Model, "steps")];
    let kinds: Vec<&str> =
        kinds.iter().filter(|(world, _)| is_counted(world)).map(|(_, kind)| *kind).collect();
    words.extend(["--count".into(), kinds.join(",").into()]);
    let command = program::command_line(words.into_iter());
    Results { reproduce: counts.then_some(command), ..results }
}

/// Callgrind for this program, or for another `build` of it.
pub fn callgrind(build: Option<&PathBuf>, cache: bool, jobs: Option<u16>) -> Result<Source, Error> {
    let binary = match build {
        Some(binary) if binary.is_file() => binary.clone(),
        Some(binary) => {
            let make = "`cargo build --profile o1 -p schedlab` makes one with less optimisation, \
                        target/o1/schedlab";
            return Err(Error::Usage(format!(
                "there is no build of schedlab at {}; {make}",
                binary.display()
            )));
        }
        None => std::env::current_exe().map_err(|error| {
            Error::Internal(format!("cannot find this program's own file: {error}"))
        })?,
    };
    let jobs = jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    Ok(Source::Callgrind(Callgrind { binary, cache, jobs }))
}

fn list() -> Result<(), Error> {
    let mut table = Table::new([("queue", Align::Left), ("description", Align::Left)]);
    STRUCTURES.iter().for_each(|structure| table.row([structure.name, structure.what]));
    print(&table.to_string())
}

/// The process that `schedlab queue` runs under valgrind.
#[derive(Args, Debug)]
pub struct QueueCells {}

impl QueueCells {
    /// Counts the cells.
    pub fn run(self) -> Result<(), Error> {
        child().map_err(Error::Usage)
    }
}
