//! Records what this machine's scheduler does while a command runs, and why its tasks wait.

mod calibration;
mod calls;
mod command;
mod error;
mod log;
mod machine;
mod probe;

use clap::Parser;
use command::Command;
use error::Error;
use log::Log;
use probe::Probe;
use recording::{End, Event, Writer};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Records the scheduling events of all CPUs, and the calls of the command's tasks
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// The file to write
    #[arg(short, value_name = "FILE", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// Only say whether this machine can record; exit code 77 if not
    #[arg(long)]
    check: bool,
    /// The calls of this process, too, and of all that it starts from now on
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// The calls of all tasks
    #[arg(long)]
    all: bool,
    /// Write program-N instead of the names of tasks
    #[arg(long)]
    hide_names: bool,
    /// Drop every nth sched_waking behind the counters' back: the recording must be refused
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    canary: u32,
    /// The command, with its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "check")]
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
    if arguments.check {
        return Probe::load(arguments.all, 0).map(drop);
    }
    ctrlc::set_handler(|| ENDED.store(true, Relaxed))
        .map_err(|error| Error::Internal(error.to_string()))?;
    let path = arguments.output.as_deref().unwrap_or(std::path::Path::new("recording.rec"));
    let output = |error: std::io::Error| {
        Error::Usage(format!("{}: cannot write it: {error}", path.display()))
    };
    let before = calibration::batches();
    let mut probe = Probe::load(arguments.all, arguments.canary)?;
    let file = File::create(path).map_err(output)?;
    let mut command = Command::hold(&arguments.command)?;
    probe.attach()?;
    let overhead = calibration::overhead(&before, &probe)?;
    let mut log = Log::new(arguments.hide_names);
    let buffer = probe.buffer()?;
    buffer.consume(&mut log)?;
    for pid in arguments.pid.into_iter().chain([command.pid()]) {
        machine::threads(pid).try_for_each(|tid| probe.trace(tid))?;
    }
    let start = machine::now();
    let causes_of = match (arguments.all, arguments.pid) {
        (true, _) => "all",
        (false, Some(_)) => "pid",
        (false, None) => "command",
    };
    let machine = machine::machine(start, causes_of, overhead);
    let mut writer = Writer::new(file, &machine).map_err(output)?;
    let tasks: Vec<Event> = machine::tasks(start);
    log.begin(start, tasks);
    command.release()?;
    let mut counted = Instant::now();
    let mut status = None;
    while status.is_none() && !ENDED.load(Relaxed) {
        std::thread::sleep(PAUSE);
        status = command.ended();
        let until = machine::now();
        buffer.consume(&mut log)?;
        log.write(until, &mut writer).map_err(output)?;
        if counted.elapsed() > COUNTERS {
            counted = Instant::now();
            writer.counts(&log.counts(probe.counts()?)).map_err(output)?;
        }
    }
    probe.detach();
    // What runs on another CPU now still writes its event.
    std::thread::sleep(PAUSE);
    buffer.consume(&mut log)?;
    log.write(u64::MAX, &mut writer).map_err(output)?;
    let status = status.or_else(|| command.interrupt());
    writer.end(&End { counts: log.counts(probe.counts()?), status }).map_err(output)?;
    Ok(())
}
