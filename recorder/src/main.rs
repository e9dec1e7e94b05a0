//! Records what this machine's scheduler does while a command runs, and why its tasks wait.

mod budget;
mod calibration;
mod calls;
mod command;
mod error;
mod exercise;
mod light;
mod locks;
mod log;
mod machine;
mod probe;
mod ring;
mod trigger;

use budget::Budget;
use clap::Parser;
use command::Command;
use error::Error;
use log::Log;
use machine::snapshot;
use probe::{Probe, Scope, Wanted};
use recording::{Calibration, Counts, End, Event, Machine, Writer};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trigger::Trigger;

/// Records the scheduling events of all CPUs, and the calls of the command's tasks
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// The file to write
    #[arg(short, value_name = "FILE", required_unless_present_any = ["check", "exercise"])]
    output: Option<PathBuf>,
    /// Only say whether this machine can record; exit code 77 if not
    #[arg(long)]
    check: bool,
    /// The calls of this process, too, and of all that it starts from now on
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// The calls of all tasks in this control group (version 2) and below, too: its path below the
    /// root of the groups
    #[arg(long, value_name = "GROUP")]
    cgroup: Option<PathBuf>,
    /// The calls of all tasks
    #[arg(long)]
    all: bool,
    /// Leave out detail, by name, to stay below this share of the CPU time of all CPUs: 3%
    #[arg(long, value_name = "SHARE", value_parser = percent)]
    budget: Option<f64>,
    /// Keep only this last while, such as 10s, and write it when --when happens or the command ends
    #[arg(long, value_name = "TIME", value_parser = duration)]
    snapshot: Option<Duration>,
    /// What to write the snapshot for: SIGUSR1, SIGUSR2 or SIGHUP to the recorder, or a command of
    /// the shell, run once a second, that succeeds
    #[arg(long, value_name = "SIGNAL|COMMAND", requires = "snapshot")]
    when: Option<String>,
    /// The calls of the C library's locks, too: they make no system call if nothing has to wait. Each
    /// costs microseconds
    #[arg(long)]
    uprobes: bool,
    /// Write program-N instead of the names of tasks
    #[arg(long)]
    hide_names: bool,
    /// Write the paths of the files that are open at the beginning
    #[arg(long)]
    paths: bool,
    /// Write the costs of scheduling that this file has: JSON, `calibrations` of a recording
    #[arg(long, value_name = "FILE", hide = true)]
    costs: Option<PathBuf>,
    /// Record nothing: do what shows the costs of scheduling to another recorder
    #[arg(long, hide = true)]
    exercise: bool,
    /// First run the command N times without the recorder and N times with it, and write what
    /// recording does to its time
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "6", value_parser = clap::value_parser!(u32).range(1..=1000),
          conflicts_with_all = ["pid", "cgroup", "snapshot"])]
    light_run: Option<u32>,
    /// Drop every nth sched_waking behind the counters' back: the recording must be refused
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    canary: u32,
    /// Record no calls: only reach the programs on them. The cost of a recorded call is its floor
    #[arg(long, hide = true)]
    empty_calls: bool,
    /// The bytes that hold events until they are read: a power of two
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 25, hide = true,
          value_parser = power_of_two)]
    buffer: u32,
    /// The most tasks whose calls are recorded at a time: a power of two
    #[arg(long, value_name = "N", default_value_t = 1 << 17, hide = true,
          value_parser = power_of_two)]
    places: u32,
    /// The command, with its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["check", "exercise"])]
    command: Vec<OsString>,
}

static ENDED: AtomicBool = AtomicBool::new(false);

/// How often the buffer is emptied. Its 32 MiB hold 700,000 events.
const PAUSE: Duration = Duration::from_millis(20);

/// How often the counters are written.
const COUNTERS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("schedlab-recorder: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    if arguments.exercise {
        return exercise::run();
    }
    let wanted = Wanted {
        scope: scope(arguments)?,
        places: arguments.places,
        buffer: arguments.buffer,
        locks: arguments.uprobes,
        empty_calls: arguments.empty_calls,
        canary: arguments.canary,
    };
    if arguments.check {
        return Probe::load(wanted).map(drop);
    }
    ctrlc::set_handler(|| ENDED.store(true, Relaxed))
        .map_err(|error| Error::Internal(error.to_string()))?;
    let path = arguments.output.as_deref().unwrap_or(Path::new("recording.rec"));
    let output =
        |error: io::Error| Error::Usage(format!("{}: cannot write it: {error}", path.display()));
    let light = arguments
        .light_run
        .map(|count| light::pairs(count, wanted, &arguments.command))
        .transpose()?;
    let calibrations = arguments.costs.as_deref().map(calibrations).transpose()?;
    let before = calibration::batches();
    let mut probe = Probe::load(wanted)?;
    let file = own(path).map_err(output)?;
    // The lock lasts as long as any of the two.
    let _lock = file.try_clone().map_err(output)?;
    let mut trigger = arguments.when.as_deref().map(Trigger::new).transpose()?;
    let mut command = Command::hold(&arguments.command)?;
    probe.attach()?;
    let overhead = calibration::overhead(&before, &probe, arguments.uprobes)?;
    let mut log = match arguments.snapshot {
        Some(length) => {
            let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
            Log::of_the_last(length, arguments.hide_names)
        }
        None => Log::new(arguments.hide_names),
    };
    let buffer = probe.buffer()?;
    buffer.consume(&mut log)?;
    let processes: Vec<u32> = arguments.pid.into_iter().chain([command.pid()]).collect();
    for pid in &processes {
        machine::threads(*pid).try_for_each(|tid| probe.trace(tid))?;
    }
    let _measured = arguments.budget.map(|_| Probe::measure()).transpose()?;
    let start = machine::now();
    let mut machine = machine::machine(start, causes_of(arguments), overhead);
    let cpus = machine.cpus;
    machine.light = light;
    machine.conditions = snapshot::conditions(&machine.release, cpus, &processes, arguments.paths);
    machine.conditions.calibrations = calibrations.unwrap_or_default();
    let mut writer = Writer::new(file, &machine).map_err(output)?;
    let mut tasks: Vec<Event> = machine::tasks(start);
    tasks.extend(snapshot::settings(start, &tasks));
    log.begin(start, tasks);
    let mut budget = arguments.budget.map(|percent| Budget::new(percent, &probe, start));
    command.release()?;
    let mut counted = Instant::now();
    let (mut status, mut triggered) = (None, false);
    while status.is_none() && !triggered && !ENDED.load(Relaxed) {
        status = command.ended_within(PAUSE);
        triggered = trigger.as_mut().map_or(Ok(false), Trigger::happened)?;
        let until = machine::now();
        buffer.consume(&mut log)?;
        budget.as_mut().map_or(Ok(()), |budget| budget.keep(&probe))?;
        if arguments.snapshot.is_some() {
            log.keep(until, until);
            continue;
        }
        log.write(until, &mut writer).map_err(output)?;
        if counted.elapsed() > COUNTERS {
            counted = Instant::now();
            let counts = counts(&log, &probe, budget.as_ref())?;
            writer.counts(&counts).map_err(output)?;
        }
    }
    probe.detach();
    // What runs on another CPU now still writes its event.
    std::thread::sleep(PAUSE);
    buffer.consume(&mut log)?;
    if arguments.snapshot.is_some() {
        let now = machine::now();
        log.keep(u64::MAX, now);
        writer = begin_again(path, &mut machine, log.first(now)).map_err(output)?;
        log.save(machine.start, &mut writer).map_err(output)?;
    } else {
        log.write(u64::MAX, &mut writer).map_err(output)?;
    }
    if !triggered {
        status = status.or_else(|| command.interrupt());
    }
    let counts = counts(&log, &probe, budget.as_ref())?;
    writer.end(&End { counts, status }).map_err(output)?;
    if triggered {
        // The command is the program, or the time for which others were to be recorded.
        if causes_of(arguments) == "command" {
            command.wait()
        } else {
            command.interrupt()
        };
    }
    Ok(())
}

/// The costs that a file has.
fn calibrations(path: &Path) -> Result<Vec<Calibration>, Error> {
    let wrong = |why: String| Error::Usage(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Calibration::of_json(&text).map_err(wrong)
}

/// An empty file that no other recorder writes to.
fn own(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(io::Error::other("another recorder is writing it; give another name with -o"));
    }
    // Only a file has a length.
    if file.metadata()?.is_file() {
        file.set_len(0)?
    }
    Ok(file)
}

/// A snapshot's file begins when its first event is known.
fn begin_again(path: &Path, machine: &mut Machine, start: u64) -> io::Result<Writer<File>> {
    machine.start = start;
    Writer::new(File::create(path)?, machine)
}

fn counts(log: &Log, probe: &Probe, budget: Option<&Budget>) -> Result<Counts, Error> {
    let mut counts = log.counts(probe.counts()?);
    if let Some(budget) = budget {
        counts.shed.clone_from(&budget.shed);
        if budget.exceeded > 0 {
            let what =
                "windows of 100 ms with recording above its budget, and nothing to leave out";
            counts.unresolved.insert(what.to_string(), budget.exceeded);
        }
    }
    Ok(counts)
}

fn causes_of(arguments: &Arguments) -> &'static str {
    match (arguments.all, &arguments.cgroup, arguments.pid) {
        (true, ..) => "all",
        (false, Some(_), _) => "cgroup",
        (false, None, Some(_)) => "pid",
        (false, None, None) => "command",
    }
}

fn scope(arguments: &Arguments) -> Result<Scope, Error> {
    let Some(group) = arguments.cgroup.as_ref().filter(|_| !arguments.all) else {
        return Ok(if arguments.all { Scope::All } else { Scope::Traced });
    };
    let root = snapshot::cgroup_root().ok_or_else(|| {
        Error::Missing(
            "--cgroup needs control groups of version 2: mount -t cgroup2 none FOLDER".into(),
        )
    })?;
    let relative: PathBuf = group
        .strip_prefix(&root)
        .unwrap_or(group)
        .components()
        .filter(|part| matches!(part, std::path::Component::Normal(_)))
        .collect();
    let folder = root.join(&relative);
    let id = fs::metadata(folder.join("cgroup.procs"))
        .and_then(|_| fs::metadata(&folder))
        .map_err(|_| Error::Usage(format!("{}: there is no such group", folder.display())))?
        .ino();
    Ok(Scope::Cgroup { id, level: relative.components().count() as u32 })
}

/// `3%`, of a number above zero.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
    number
        .filter(|number| *number > 0.0 && *number <= 100.0)
        .ok_or_else(|| "a share is a number above 0 and up to 100 with its sign, as in 3%".into())
}

fn power_of_two(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number: &u32| number.is_power_of_two());
    number.ok_or_else(|| "this is no power of two".into())
}

/// `10s`, `500ms`, `2min`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().unwrap_or(0);
    let ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        _ => 0,
    };
    let time = number.checked_mul(ms).filter(|time| *time > 0).map(Duration::from_millis);
    time.ok_or_else(|| "a time is a number above 0 with a unit, as in 10s, 500ms or 2min".into())
}
