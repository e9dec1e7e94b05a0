//! `schedlab record`: records a real workload on this machine.

use super::read_with_progress;
use clap::Args;
use formats::import::{Options, Recording};
use program::{Error, print};
use schedsim::counted;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use worlds::host::record::{self, Detail};
use worlds::host::recorder::{Recorder, Request, Scope, has_causes};

/// Records the scheduler of this machine while a command runs
///
/// Records the scheduling events of all CPUs: other running programs are part of the load. Where
/// this machine allows it, also records why the command's tasks wait: their system calls and the
/// objects that these are about (docs/recordings.md). That needs root and the program
/// schedlab-recorder. Otherwise perf records the scheduling events and the numbers of system calls,
/// from which a part of that follows, or the scheduling events alone. The output says which.
/// Ctrl-C ends the recording and keeps it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  sudo schedlab record -- make -j8\n  sudo schedlab record -o \
                        server.rec --pid 4711 -- sleep 10\n  sudo \
                        schedlab record -o slow.rec --pid 4711 --budget 3% --snapshot 10s --when \
                        'test -e /run/slow' -- sleep 1d\n  sudo schedlab record -o \
                        build.perf.data.zst -- make -j8    # perf, without causes\n\nThen: \
                        schedlab inspect recording.rec, schedlab compare recording.rec -o \
                        results\nExit codes: 2 the command cannot be started or the file not be \
                        written, 3 nothing usable was recorded, 77 a permission is missing, or \
                        both schedlab-recorder and perf are.")]
pub struct Record {
    /// The file to write: NAME.rec has causes where possible, any other name is a recording of
    /// perf, compressed if it ends in .zst. Default: recording.rec, or perf.data without causes
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Record with this and nothing else. Default: for NAME.rec the first that works, else perf
    #[arg(long = "recorder", value_enum, value_name = "RECORDER")]
    by: Option<By>,
    /// Causes of this process and of all that it starts, too
    #[arg(long, value_name = "PID", conflicts_with = "all")]
    pid: Option<u32>,
    /// Causes of the tasks in this control group (version 2) and below, too: its path below the
    /// root of the groups
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["all", "pid"])]
    cgroup: Option<PathBuf>,
    /// Causes of all tasks
    #[arg(long)]
    all: bool,
    /// Leave out detail, by name, so that recording takes less than this share of the time of all
    /// CPUs: 3%
    #[arg(long, value_name = "SHARE")]
    budget: Option<String>,
    /// Keep only the last while, such as 10s, in memory; write it when --when happens, or the
    /// command ends
    #[arg(long, value_name = "TIME")]
    snapshot: Option<String>,
    /// Write the snapshot for this: SIGUSR1, SIGUSR2 or SIGHUP to schedlab-recorder, or a command of
    /// the shell that succeeds; it runs once a second
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
    /// First record a program of known operations, a fifth of a second long. It gives the costs of
    /// scheduling that the command's own recording does not show. Best on an idle machine
    #[arg(long)]
    calibrate: bool,
    /// First run the command N times (6 unless given) without the recorder and N times with it, in
    /// pairs. The recording then has the effect of recording on its time, with an interval
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "6", value_parser = clap::value_parser!(u32).range(1..=1000),
          conflicts_with_all = ["pid", "cgroup", "snapshot"])]
    light_run: Option<u32>,
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum By {
    /// schedlab-recorder: causes
    Bpf,
    /// perf: scheduling events and system calls; descriptors are followed from call to call
    PerfCalls,
    /// perf: scheduling events
    Perf,
}

impl Record {
    /// Records the command.
    pub fn run(self) -> Result<(), Error> {
        let file = match self.recorder()? {
            Ok(recorder) => self.with_causes(&recorder)?,
            Err(Without { reason, detail }) => self.with_perf(reason.as_deref(), detail)?,
        };
        let options = Options { allow_lost: true, ..Options::default() };
        let recording = read_with_progress(&file, options, vec![])?;
        summarize(&recording, &file)
    }

    /// What records causes, or what perf records in its place.
    fn recorder(&self) -> Result<Result<Recorder, Without>, Error> {
        let is_recording = self.output.as_deref().is_none_or(has_causes);
        match self.by {
            Some(By::Bpf) if is_recording => return Recorder::find().map(Ok),
            Some(By::Bpf) => {
                return Err(Error::Usage(
                    "--recorder bpf writes recordings with causes: name the file NAME.rec".into(),
                ));
            }
            Some(By::Perf) if self.output.as_deref().is_some_and(has_causes) => {
                return Err(Error::Usage(
                    "--recorder perf writes no causes: name the file something else than NAME.rec"
                        .into(),
                ));
            }
            Some(by @ (By::Perf | By::PerfCalls)) => {
                let (name, detail) = match by {
                    By::PerfCalls => ("perf-calls", Detail::Calls),
                    _ => ("perf", Detail::Scheduling),
                };
                return match self.only_with_causes().or(self.scope()) {
                    Some(option) => {
                        Err(Error::Usage(format!("{option} is not for --recorder {name}")))
                    }
                    None => Ok(Err(Without { reason: None, detail })),
                };
            }
            None => {}
        }
        if is_recording {
            return match Recorder::find() {
                Ok(recorder) => Ok(Ok(recorder)),
                // perf would record more than was asked for.
                Err(Error::Missing(reason)) if let Some(option) = self.only_with_causes() => {
                    // Names and other groups would be in the file that were to stay out of it.
                    let may_go = !["--hide-names", "--cgroup"].contains(&option);
                    let without = if may_go {
                        format!(". Or leave {option} out: perf records then")
                    } else {
                        String::new()
                    };
                    Err(Error::Missing(format!(
                        "{option} needs the recorder of causes: {reason}{without}"
                    )))
                }
                Err(Error::Missing(reason)) => {
                    // perf records the calls of the command only.
                    let scope = self.scope();
                    let detail = scope.map_or(Detail::Calls, |_| Detail::Scheduling);
                    Ok(Err(Without { reason: Some(reason), detail }))
                }
                Err(error) => Err(error),
            };
        }
        if let Some(option) = self.scope().or(self.only_with_causes()) {
            return Err(Error::Usage(format!(
                "{option} is for recordings with causes: name the file NAME.rec"
            )));
        }
        Ok(Err(Without { reason: None, detail: Detail::Scheduling }))
    }

    /// An option that says whose causes are recorded.
    fn scope(&self) -> Option<&'static str> {
        let scope = [("--pid", self.pid.is_some()), ("--all", self.all)];
        scope.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// An option without which the recording would be another one.
    fn only_with_causes(&self) -> Option<&'static str> {
        let given = [
            ("--cgroup", self.cgroup.is_some()),
            ("--budget", self.budget.is_some()),
            ("--snapshot", self.snapshot.is_some()),
            ("--hide-names", self.hide_names),
            ("--paths", self.paths),
            ("--uprobes", self.uprobes),
            ("--calibrate", self.calibrate),
            ("--light-run", self.light_run.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    fn with_causes(&self, recorder: &Recorder) -> Result<PathBuf, Error> {
        let file = self.output.clone().unwrap_or_else(|| PathBuf::from("recording.rec"));
        let scope = match (self.pid, &self.cgroup) {
            (Some(pid), _) => Scope::Process(pid),
            (None, Some(group)) => Scope::Cgroup(group.clone()),
            (None, None) if self.all => Scope::All,
            (None, None) => Scope::Command,
        };
        let request = Request {
            scope,
            budget: self.budget.clone(),
            snapshot: self.snapshot.clone(),
            when: self.when.clone(),
            hide_names: self.hide_names,
            paths: self.paths,
            uprobes: self.uprobes,
            calibrations: if self.calibrate { recorder.calibrate()? } else { Vec::new() },
            light_run: self.light_run,
        };
        let status = recorder.record(&self.command, &file, &request)?;
        print("recorded with causes, by schedlab-recorder\n")?;
        report_status(status);
        Ok(file)
    }

    fn with_perf(&self, reason: Option<&str>, detail: Detail) -> Result<PathBuf, Error> {
        let file = self.output.clone().unwrap_or_else(|| PathBuf::from("perf.data"));
        let mut recorded = (record::record(&self.command, &file, detail), detail);
        // A kernel may have the scheduler's tracepoints and not those of calls.
        if let ((Err(Error::Missing(_)), Detail::Calls), Some(_)) = (&recorded, reason) {
            let detail = Detail::Scheduling;
            recorded = (record::record(&self.command, &file, detail), detail);
        }
        let (status, detail) = recorded;
        let status = status.map_err(|error| match (error, reason) {
            (Error::Missing(perf), Some(reason)) => Error::Missing(format!("{reason}\n{perf}")),
            (error, _) => error,
        })?;
        match detail {
            Detail::Calls => print(
                "recorded with system calls, by perf: descriptors are followed from call to call, \
                 and objects of the kernel are not known\n",
            )?,
            Detail::Scheduling if reason.is_some() => print("recorded without causes, by perf\n")?,
            Detail::Scheduling => {}
        }
        if let Some(reason) = reason {
            program::complain!("schedlab: the recorder of causes does not work here: {reason}");
        }
        report_status(Some(status));
        Ok(file)
    }
}

/// Why perf records, and what.
struct Without {
    /// Absent where perf was wanted: by name, or by the file's.
    reason: Option<String>,
    detail: Detail,
}

fn report_status(status: Option<ExitStatus>) {
    if let Some(status) = status.filter(|status| !status.success()) {
        program::complain!("schedlab: the command ended with {status}; its recording is kept");
    }
}

fn summarize(recording: &Recording, file: &Path) -> Result<(), Error> {
    let (report, file) = (&recording.report, file.display());
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{file}: {} on {}, {} tasks, {} events, {} lost",
        recording.duration,
        counted(recording.cpus.into(), "CPU"),
        recording.tasks.len(),
        report.events.total(),
        report.lost
    );
    report.warnings.iter().for_each(|warning| program::complain!("schedlab: {warning}"));
    if report.lost_percent() > 1.0 {
        program::complain!(
            "schedlab: more than one event in a hundred was lost: record less, or give \
             --allow-lost to the next command"
        );
    }
    let _ = writeln!(text, "Next: schedlab compare {file} -o results");
    print(&text)
}
