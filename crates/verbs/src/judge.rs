//! `schedlab judge`: scores generated or tuned policies on a suite of workloads.

mod candidate;
mod kept;

use crate::guests::GuestArguments;
use crate::programs::Programs;
use crate::{Caller, CommonArguments, MachineArguments};
use candidate::{Makers, Wanted, named};
use clap::Args;
use formats::toml_file::TomlFile;
use kept::Kept;
use laboratory::judge::{Cases, Entry, Judge as Referee, MakeWorld};
use program::{Error, print_data};
use results::judge::{Judged, Suite};
use schedsim::Nanos;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use worlds::examinee::Examinee;
use worlds::experiment::ReplayOf;
use worlds::guest::{GuestSettings, GuestWorld};
use worlds::simulator::Simulator;
use worlds::{Program, World};

/// Scores generated or tuned policies on a suite of workloads
///
/// Reads candidates, one a line of JSON, and prints what it says of each, one a line of JSON, in
/// the same order. A candidate that hangs, crashes, breaks the contract of a policy or does not
/// compile has a verdict that says so. The next one follows. Candidates in Rust and Python run in a
/// sandbox, each run in a process of its own. It answers callbacks and sees neither workload nor
/// seed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab judge suite.toml candidates.jsonl -o judged\n  \
                        schedlab judge suite.toml candidates.jsonl -o judged --resume\n  schedlab \
                        judge suite.toml --serve\n\nCandidates:\n  {\"id\": \"a\", \"policy\": \
                        \"eevdf?slice=1ms\"}   a policy with its options\n  {\"crate\": \
                        \"candidates/7\"}                a crate in Rust, as `schedlab new \
                        policy` makes one\n  {\"python\": \"candidates/8.py\"}            a file \
                        with a subclass of schedlab.Policy\n  {\"bpf\": \"mine.bpf.c\"}                     a scheduler of sched_ext, where the suite has a kernel\n\ndocs/judge.md describes suites, \
                        verdicts and the sandbox.")]
pub struct Judge {
    /// The suite: a file that says on what candidates are judged
    suite: PathBuf,
    /// The candidates, one a line of JSON; - is the standard input
    #[arg(required_unless_present = "serve")]
    candidates: Option<PathBuf>,
    /// Answer each line of the standard input at once, until it ends
    #[arg(long, conflicts_with_all = ["candidates", "output"])]
    serve: bool,
    /// Also keep each answer in DIR/judged.jsonl as soon as it is known
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Continue an interrupted batch in the directory
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    makers: MakerArguments,
}

/// What strangers' policies are made with.
#[derive(Args, Clone, Debug, Default)]
pub struct MakerArguments {
    /// Compile candidates in Rust against the sources of schedlab in this folder [default: the
    /// published crates]
    #[arg(long, value_name = "CHECKOUT")]
    pub sources: Option<PathBuf>,
    /// The interpreter of candidates in Python, which has the package schedlab [default: python3]
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
}

/// The longest line of a candidate in bytes.
const LONGEST_LINE: u64 = 1 << 20;

impl Judge {
    /// Judges the candidates and prints what is said of each.
    pub fn run(self) -> Result<(), Error> {
        let bench = Bench::open(&self.suite, self.makers.clone())?;
        let mut kept = match &self.output {
            Some(dir) => Some(Kept::open(dir, &bench.referee, self.resume)?),
            None => None,
        };
        let mut lines = lines(self.candidates.as_deref())?;
        let mut number = 0;
        while let Some(line) = lines.next()? {
            number += 1;
            if line.trim().is_empty() {
                continue;
            }
            let wanted = Wanted::read(&line, number);
            let known = kept.as_mut().map_or(Ok(None), |kept| kept.next(wanted.id()))?;
            let said = match known {
                Some(said) => said,
                None => {
                    let said = text(&bench.judge(wanted)?)?;
                    kept.as_mut().map_or(Ok(()), |kept| kept.add(&said))?;
                    said
                }
            };
            print_data(&format!("{said}\n"))?;
        }
        kept.map_or(Ok(()), Kept::expect_no_more)
    }
}

/// A suite with its judge, and what strangers' policies are made with.
pub struct Bench {
    referee: Referee,
    makers: Makers,
}

impl Bench {
    /// Reads the suite at `path` and prepares its judge.
    ///
    /// # Errors
    /// If it cannot be read, or asks for what there is not.
    pub fn open(path: &Path, makers: MakerArguments) -> Result<Bench, Error> {
        let file = TomlFile::read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let cases = Cases::read(file, |suite, name| programs(suite, name, folder))?;
        let baseline =
            named(&cases.suite.baseline).map_err(|error| cases.file.wrong("baseline", &error))?;
        let limits = cases.suite.limits.clone();
        let hidden = hidden(path, &cases.suite, folder);
        let makers = Makers::new(makers, limits, cases.hash.bits(), hidden);
        let guests =
            guests(&cases.suite).map_err(|error| cases.file.wrong("kernel", &error.to_string()))?;
        let world: MakeWorld = match guests {
            Some(guests) => Box::new(move || Box::new(GuestWorld::new(guests.clone()))),
            None => Box::new(|| Box::new(Simulator::new())),
        };
        let referee = Referee::new(cases, &baseline, world)?;
        Ok(Bench { referee, makers })
    }

    /// Judges the candidate of a line.
    ///
    /// # Errors
    /// If the caller stops the work; whatever a candidate does is a verdict.
    pub fn judge_line(&self, line: &str, number: usize) -> Result<Judged, Error> {
        self.judge(Wanted::read(line, number))
    }

    fn judge(&self, wanted: Wanted) -> Result<Judged, Error> {
        let made = self.makers.make(&wanted);
        let examinee = made.examinee.as_ref().map_err(Clone::clone);
        self.referee.examine(Entry {
            id: wanted.id().to_string(),
            candidate: wanted.to_string(),
            is_doubted: matches!(examinee, Ok(Examinee::Stranger(_))),
            examinee,
            compile: made.compile,
        })
    }
}

/// One line of JSON.
///
/// # Errors
/// If it cannot be written.
pub fn text(judged: &Judged) -> Result<String, Error> {
    serde_json::to_string(judged)
        .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))
}

/// How the guests of a suite are booted, if it has a kernel.
fn guests(suite: &Suite) -> Result<Option<GuestSettings>, Error> {
    let Some(kernel) = &suite.kernel else { return Ok(None) };
    let simulated = [
        ("machine", &suite.machine),
        ("switch_cost", &suite.switch_cost),
        ("migration_cost", &suite.migration_cost),
        ("idle_exit", &suite.idle_exit),
        ("wake_cost", &suite.wake_cost),
    ];
    if let Some((key, _)) = simulated.iter().find(|(_, value)| value.is_some()) {
        return Err(Error::Usage(format!("`{key}` is of a simulated machine: leave it out")));
    }
    GuestArguments::of_kernel(kernel).map(Some)
}

/// The files of a suite, which no candidate may read.
fn hidden(path: &Path, suite: &Suite, folder: &Path) -> Vec<PathBuf> {
    let named = suite.training.iter().chain(&suite.held_out).map(|name| folder.join(name));
    std::iter::once(path.to_path_buf())
        .chain(named)
        .filter_map(|path| path.canonicalize().ok())
        .collect()
}

/// The workloads of a name, on the suite's machine.
fn programs(suite: &Suite, name: &str, folder: &Path) -> Result<Vec<(Program, u16)>, Error> {
    let cost = |key: &str, text: &Option<String>| -> Result<Option<Nanos>, Error> {
        let time = text.as_ref().map(|text| text.parse::<Nanos>()).transpose();
        time.map_err(|error| Error::Usage(format!("{key}: {error}")))
    };
    let machine_file = suite.machine.as_ref().map(|name| {
        let beside = folder.join(name);
        if beside.is_file() { beside.into_os_string() } else { name.into() }
    });
    let machine = MachineArguments {
        file: machine_file,
        switch_cost: cost("switch_cost", &suite.switch_cost)?,
        migration_cost: cost("migration_cost", &suite.migration_cost)?,
        idle_exit: cost("idle_exit", &suite.idle_exit)?,
        wake_cost: cost("wake_cost", &suite.wake_cost)?,
        costs: None,
        mips: None,
    };
    let common = CommonArguments {
        seed: 1,
        allow_lost: false,
        replay: ReplayOf::default(),
        without_background: false,
        format: crate::output::Format::default(),
    };
    let programs = Programs {
        set: &[],
        load: &[],
        cpus: suite.cpus.as_slice(),
        machine: &machine,
        common: &common,
        add_load: None,
        in_guest: suite.kernel.is_some(),
        caller: &Caller { policies: Vec::new(), directory: Some(folder) },
    };
    let on = |program: Program| {
        let asked = machine.cpus(suite.cpus.as_slice(), suite.cpus.unwrap_or(1))?.first().copied();
        let asked = asked.filter(|_| suite.cpus.is_some() || suite.machine.is_some());
        let cpus = match guests(suite)? {
            Some(guests) => GuestWorld::new(guests).cpus(&program, asked)?,
            None => Simulator::new().cpus(&program, asked)?,
        };
        Ok((program, cpus))
    };
    programs.of(OsStr::new(name))?.into_iter().map(on).collect()
}

/// Lines, each of bounded length.
struct Lines(Box<dyn BufRead>);

/// The lines of a file, or of the standard input.
fn lines(path: Option<&Path>) -> Result<Lines, Error> {
    match path.filter(|path| *path != Path::new("-")) {
        None => Ok(Lines(Box::new(BufReader::new(std::io::stdin())))),
        Some(path) => {
            let file = File::open(path).map_err(|error| {
                Error::Input(format!(
                    "{}: {error}; give a file with a candidate on each line",
                    path.display()
                ))
            })?;
            Ok(Lines(Box::new(BufReader::new(file))))
        }
    }
}

impl Lines {
    /// The next line; what is too long for a candidate ends as a line that is none.
    fn next(&mut self) -> Result<Option<String>, Error> {
        let unreadable = |error| Error::Input(format!("the candidates cannot be read: {error}"));
        let mut bytes = Vec::new();
        let read = (&mut self.0).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        if read.map_err(unreadable)? == 0 {
            return Ok(None);
        }
        if bytes.len() as u64 == LONGEST_LINE && bytes.last() != Some(&b'\n') {
            self.0.skip_until(b'\n').map_err(unreadable)?;
            bytes = format!("more than {LONGEST_LINE} bytes").into_bytes();
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
