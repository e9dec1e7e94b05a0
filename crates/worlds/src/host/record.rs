//! Records what this machine's scheduler does while a command runs, with perf.
//!
//! It records the eight tracepoints that an import reads, on all CPUs, with interrupt flags. On
//! request it also records the system calls that may block or that change descriptors. It leaves
//! out names and libraries of programs that were running before: the events have all names.

use super::tracefs::Tracefs;
use formats::import::calls_used;
use program::ending::Handover;
use program::{Error, Scratch, Whole};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

/// The tracepoints that an import reads.
pub const EVENTS: [&str; 8] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
    "sched:sched_migrate_task",
];

/// The tracepoints of system calls.
const CALLS: [&str; 2] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];

/// Closes what the command would have open beside its input, output and errors. An import has to
/// know which descriptors are free, and perf leaves some files of its own open.
const BEGINNING: [&str; 4] = ["sh", "-c", "exec \"$@\" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-", "sh"];

/// What perf records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Scheduling events.
    Scheduling,
    /// System calls, too.
    Calls,
}

/// Runs `command` and records all CPUs into `file` until it ends. Returns the command's exit
/// status.
///
/// An interrupt ends the recording, which is kept. `file` exists only when it is complete.
///
/// # Errors
/// [`Error::Missing`] if perf or a permission is missing, [`Error::Usage`] if the command cannot be
/// started or the file not be written.
pub fn record(command: &[OsString], file: &Path, detail: Detail) -> Result<ExitStatus, Error> {
    run_recorded(command, file, detail, Stdio::inherit()).map(|output| output.status)
}

/// The same, and returns what the command writes to its standard output.
///
/// # Errors
/// As of [`record`].
pub fn record_into(command: &[OsString], file: &Path) -> Result<Vec<u8>, Error> {
    run_recorded(command, file, Detail::Scheduling, Stdio::piped()).map(|output| output.stdout)
}

fn run_recorded(
    command: &[OsString],
    file: &Path,
    detail: Detail,
    stdout: Stdio,
) -> Result<Output, Error> {
    let program = command.first().ok_or_else(|| {
        Error::Usage("say which command to record, as in: schedlab record -- make -j8".to_string())
    })?;
    find_command(program, "record")?;
    let perf = find_in_path(OsStr::new("perf")).ok_or_else(perf_is_missing)?;
    // For perf's partial file, and its backup of the empty one.
    let folder = Scratch::within(folder(file)).map_err(|error| match error {
        Error::Output { source, .. } => Error::Output { path: file.display().to_string(), source },
        other => other,
    })?;
    let unfinished = folder.path().join("perf.data");
    fs::write(&unfinished, b"").map_err(|error| Error::output(file, error))?;
    let output = record_with(&perf, (command, detail), &unfinished, stdout)?;
    keep(&unfinished, file, output.status)?;
    Ok(output)
}

fn record_with(
    perf: &Path,
    (command, detail): (&[OsString], Detail),
    file: &Path,
    stdout: Stdio,
) -> Result<Output, Error> {
    let _tracefs = Tracefs::mount()?;
    probe(perf, file, detail)?;
    let mut perf = arguments(perf, file, detail);
    perf.arg("--");
    if detail == Detail::Calls {
        perf.args(BEGINNING);
    }
    supervise(perf.args(command).stdout(stdout), "perf")
}

/// Runs what records until it ends; an interrupt reaches it and lets this program live.
///
/// # Errors
/// [`Error::Internal`] if it cannot be run.
pub(super) fn supervise(recorder: &mut Command, name: &str) -> Result<Output, Error> {
    let failed = |error: std::io::Error| Error::Internal(format!("{name} cannot be run: {error}"));
    let parent = getpid();
    let follow = move || {
        set_parent_process_death_signal(Some(Signal::INT))?;
        // The parent may have ended before that.
        if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
    };
    // If this program is killed, the recorder ends as by an interrupt, and its command with it.
    // SAFETY: between fork and exec it makes two system calls and takes no memory.
    unsafe { recorder.pre_exec(follow) };
    let child = recorder.spawn().map_err(failed)?;
    // Ctrl-C ends the recorder, and lets this program finish the recording and unmount what it
    // mounted.
    let _handover = Handover::to(child.id());
    child.wait_with_output().map_err(failed)
}

/// Makes an empty recording, to find what is missing before the command runs.
fn probe(perf: &Path, file: &Path, detail: Detail) -> Result<(), Error> {
    let output = arguments(perf, file, detail)
        .args(["--", "true"])
        .output()
        .map_err(|_| perf_is_missing())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said =
        said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing").to_string();
    let is_root = rustix::process::geteuid().is_root();
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let help = if is_root {
        "this system does not let root record (a container, or a kernel without tracepoints); \
         record on the machine itself"
            .to_string()
    } else {
        format!(
            "recording all CPUs takes root (kernel.perf_event_paranoid is {}): sudo schedlab \
             record -- COMMAND",
            paranoid.trim()
        )
    };
    let what = match detail {
        Detail::Scheduling => "the scheduler's events",
        Detail::Calls => "the scheduler's events and system calls",
    };
    Err(Error::Missing(format!("perf may not record {what}: {help}\nperf reported: {said}")))
}

/// The command line of perf without the command.
fn arguments(perf: &Path, file: &Path, detail: Detail) -> Command {
    let mut command = Command::new(perf);
    command.args([
        "record",
        "--quiet",
        "--all-cpus",
        "--no-buildid",
        "--no-buildid-cache",
        "--synth=no",
    ]);
    command.args(["--mmap-pages=4M", "--event"]).arg(EVENTS.join(","));
    if detail == Detail::Calls {
        let numbers = calls_used(std::env::consts::ARCH).map(|number| format!("id == {number}"));
        let filter = numbers.collect::<Vec<_>>().join(" || ");
        for event in CALLS {
            command.args(["--event", event, "--filter", &filter]);
        }
    }
    command.arg("--output").arg(file);
    command
}

/// Moves the recording to its place, compressed if its name requests it.
fn keep(unfinished: &Path, file: &Path, status: ExitStatus) -> Result<(), Error> {
    let failed = |error| Error::output(file, error);
    // The number of bytes of its records, which perf writes last into the header.
    let mut records = [0; 8];
    let header = fs::File::open(unfinished).and_then(|file| file.read_exact_at(&mut records, 48));
    if header.is_ok() && records == [0; 8] {
        return Err(Error::Input(format!(
            "perf did not finish the recording ({status}), and nothing of it is kept; if its \
             message above does not say why, it was killed: record again"
        )));
    }
    if fs::metadata(unfinished).map_err(failed)?.len() == 0 {
        return Err(Error::Internal(
            "perf wrote nothing; run it by hand to see why: perf record -a -e 'sched:sched_*' -- \
             COMMAND"
                .to_string(),
        ));
    }
    if file.extension().is_none_or(|extension| extension != "zst") {
        return fs::rename(unfinished, file).map_err(failed);
    }
    let compress = || {
        let mut compressed = Whole::create(file)?;
        zstd::stream::copy_encode(fs::File::open(unfinished)?, &mut compressed, 9)?;
        compressed.finish()
    };
    compress().map_err(failed)
}

/// The folder of a file.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn perf_is_missing() -> Error {
    let distribution = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let of =
        |word: &str| distribution.lines().any(|line| line.starts_with("ID") && line.contains(word));
    let install = match () {
        () if of("ubuntu") => "sudo apt-get install linux-tools-common linux-tools-$(uname -r)",
        () if of("debian") => "sudo apt-get install linux-perf",
        () if of("fedora") || of("rhel") || of("suse") => {
            "install the package perf, as in: sudo dnf install perf"
        }
        () if of("arch") => "sudo pacman -S perf",
        () => {
            "install your distribution's package of Linux's perf (linux-perf, linux-tools or perf)"
        }
    };
    Error::Missing(format!("perf is missing; install it: {install}"))
}

/// Checks that the command can be started, before anything else happens; `verb` is for the message.
///
/// # Errors
/// [`Error::Usage`] if there is no such command.
pub fn find_command(program: &OsStr, verb: &str) -> Result<(), Error> {
    command_path(program, verb).map(drop)
}

/// The same, with the path of the command.
///
/// # Errors
/// [`Error::Usage`] if there is no such command.
pub fn command_path(program: &OsStr, verb: &str) -> Result<PathBuf, Error> {
    let name = program.to_string_lossy();
    if name.contains('/') {
        let path = Path::new(program);
        return match () {
            () if !path.exists() => {
                Err(Error::Usage(format!("cannot {verb} {name}: there is no such file")))
            }
            () if !is_executable(path) => {
                Err(Error::Usage(format!("cannot {verb} {name}: it is not an executable file")))
            }
            () => Ok(path.to_path_buf()),
        };
    }
    find_in_path(program)
        .ok_or_else(|| Error::Usage(format!("cannot {verb} {name}: there is no such command")))
}

fn find_in_path(program: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
