//! One boot of a guest: starts QEMU, follows the runner's reports, and finds out what went wrong.

use super::initramfs::{self, GuestFile};
use super::monitor::{self, Monitor};
use super::qemu::{Limits, Loaded, Machine, Plugin};
use super::reports::Reports;
use super::shape::Shape;
use super::{Kernel, Lockstep, Qemu, sha256, unpack};
use program::{Error, Scratch};
use rustix::process::Signal;
use schedlab_runner::event::Event;
use schedlab_runner::session::Session;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A guest: what is booted and what it is to do.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The emulator.
    pub qemu: Qemu,
    /// The kernel.
    pub kernel: Kernel,
    /// How many CPUs are online.
    pub cpus: u16,
    /// Whether they run in lockstep, once the guest has booted: what several need for time to mean
    /// anything.
    pub lockstep: Option<Lockstep>,
    /// Memory in MiB.
    pub memory: u32,
    /// Into how many NUMA nodes CPUs and memory are cut, evenly: artificial, as memory is as fast
    /// from everywhere.
    pub nodes: u16,
    /// How its CPUs lie, if that is described; CPUs and nodes are then those of the shape.
    pub shape: Option<Shape>,
    /// What the runner does.
    pub session: Session,
    /// What else lies in the guest.
    pub files: Vec<GuestFile>,
    /// How long it may take on the clock of this machine. What takes long in the guest's time is
    /// ended by its watchdog.
    pub wall_limit: Duration,
}

/// What a guest said.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Transcript {
    /// The runner's lines, as they came.
    pub lines: Vec<String>,
    /// The same, read.
    pub events: Vec<Event>,
    /// What QEMU's plugin counted, if it was asked to: lines of a window's number, an address in
    /// hexadecimal, and a count.
    pub counts: Option<String>,
    /// What QEMU's plugin says of CPUs in lockstep: how many, and how far apart at most. Also a
    /// hash of who ran how far in each turn but the last few.
    pub turns: Option<String>,
    /// The last lines of its console, each after a line break; empty if it had nothing to say.
    pub console: String,
}

/// Boots `guest` and hands each event to `follow` as it comes.
///
/// # Errors
/// [`Error::Input`] if the guest panics, hangs, or its runner fails, with the last lines of its
/// console; [`Error::Missing`] if QEMU cannot be run.
pub fn boot(guest: &Guest, follow: &mut dyn FnMut(&Event)) -> Result<Transcript, Error> {
    Files::of(guest)?.run(guest, Start::Boot, Vec::new(), follow)
}

/// What QEMU needs of a guest, in a directory of its own.
pub(super) struct Files {
    directory: Scratch,
    kernel: PathBuf,
}

/// How a guest starts.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    /// With its kernel, and runs until it switches itself off.
    Boot,
    /// With its kernel, and runs until it pauses; its state is kept beside its files.
    Keep,
    /// With its kernel, and continues with these jobs, a list in JSON, where it pauses.
    Unsaved(&'a [u8]),
    /// With the state that was kept, and these jobs to do.
    Restored {
        /// A list of jobs in JSON.
        jobs: &'a [u8],
        /// Whether to count, and calls of the functions at these addresses, too.
        counts: Option<&'a [u64]>,
        /// By how many instructions CPUs in lockstep are interleaved, if not as the guest says.
        interleave: Option<u32>,
    },
}

impl Files {
    /// Lays them out.
    ///
    /// # Errors
    /// If there is no room for them, or something cannot be read.
    pub fn of(guest: &Guest) -> Result<Files, Error> {
        let directory = Scratch::new()?;
        let at = |name: &str| directory.path().join(name);
        let instruction_ns = guest.lockstep.map_or(0, |lockstep| lockstep.instruction().0);
        let domains = guest.shape.is_some();
        let offline = guest.shape.as_ref().map_or(Vec::new(), |shape| shape.offline().to_vec());
        let session = Session { instruction_ns, domains, offline, ..guest.session.clone() };
        let session =
            serde_json::to_vec(&session).map_err(|error| Error::Internal(error.to_string()))?;
        let archive = initramfs::archive(&session, &guest.files)?;
        expect_room(archive.len(), guest.memory)?;
        let mut files = vec![("initramfs", archive)];
        files.extend(guest.qemu.plugin.map(|plugin| (PLUGIN, plugin.library().to_vec())));
        for (name, bytes) in files {
            fs::write(at(name), bytes).map_err(|error| Error::output(&at(name), error))?;
        }
        let kernel = bootable(&guest.kernel, at("kernel"))?;
        Ok(Files { directory, kernel })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the guest from `start` to its end. `said` is what it has said before.
    ///
    /// # Errors
    /// As of [`boot()`].
    pub fn run(
        &self,
        guest: &Guest,
        start: Start<'_>,
        said: Vec<String>,
        follow: &mut dyn FnMut(&Event),
    ) -> Result<Transcript, Error> {
        let scratch = tempfile::tempdir_in(self.directory.path())
            .map_err(|error| Error::output(self.directory.path(), error))?;
        let beside = |name: &str| scratch.path().join(name);
        let (console, monitor, jobs, counts) =
            (beside("console"), beside("monitor"), beside("jobs"), beside("counts"));
        let reports = beside("reports");
        let (orders, calls): (&[u8], Option<&[u64]>) = match start {
            Start::Restored { jobs, counts, .. } => (jobs, counts),
            Start::Unsaved(jobs) => (jobs, None),
            Start::Boot | Start::Keep => (b"[]", None),
        };
        let is_restored = matches!(start, Start::Restored { .. });
        for (file, bytes) in [(&jobs, orders), (&reports, b"")] {
            fs::write(file, bytes).map_err(|error| Error::output(file, error))?;
        }
        if guest.qemu.plugin.is_none() && calls.is_some() {
            return Err(no_counter(&guest.qemu));
        }
        let library = self.at(PLUGIN);
        let report = beside("lockstep");
        // QEMU does not keep the state of a guest whose time a plugin may set.
        let lockstep = guest.lockstep.filter(|_| !matches!(start, Start::Keep));
        let lockstep = lockstep.map(|lockstep| match start {
            Start::Restored { interleave: Some(interleave), .. } => {
                Lockstep { interleave, ..lockstep }
            }
            _ => lockstep,
        });
        if lockstep.is_some() && !guest.qemu.plugin.is_some_and(Plugin::has_lockstep) {
            return Err(no_lockstep(&guest.qemu));
        }
        let machine = Machine {
            kernel: &self.kernel,
            initramfs: &self.at("initramfs"),
            console: &console,
            reports: &reports,
            monitor: &monitor,
            cpus: guest.cpus,
            shift: guest.lockstep.map_or(0, Lockstep::shift),
            arguments: &guest.session.tuning.arguments,
            memory: guest.memory,
            nodes: guest.nodes,
            shape: guest.shape.as_ref(),
            plugin: guest.qemu.plugin.map(|_| Loaded {
                library: &library,
                counts: calls.map(|calls| (counts.as_path(), calls)),
                lockstep: lockstep.map(|lockstep| (lockstep.interleave, report.as_path())),
            }),
            jobs: &jobs,
            state: is_restored.then_some(STATE),
        };
        let mut command = guest.qemu.command(&machine);
        command.current_dir(self.directory.path());
        let child = command
            .spawn()
            .map_err(|error| Error::Missing(format!("QEMU cannot be started: {error}")))?;
        let mut running = Running { child, transcript: said, events: Vec::new(), state: None };
        running.read_what_was_said();
        let followed = Reports::follow(&reports, &running.child);
        let mut reports = BufReader::new(followed.map_err(|error| Error::output(&reports, error))?);
        let stuck = backstop(guest.wall_limit, &monitor, running.child.id(), || {
            if is_restored {
                running.go_on(&monitor);
            }
            let mut line = Vec::new();
            while reports.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_string();
                line.clear();
                let Ok(event) = serde_json::from_str::<Event>(&text) else { continue };
                follow(&event);
                running.transcript.push(text);
                match (&event, start) {
                    (Event::Paused { .. }, Start::Keep) => running.keep(&monitor),
                    (Event::Paused { .. }, Start::Unsaved(_)) => running.go_on(&monitor),
                    _ => {}
                }
                running.events.push(event);
            }
        });
        let console = running.judge(guest, &console, stuck)?;
        if let Some(shape) = &guest.shape {
            shape.judge(&running.events)?;
        }
        let turns = lockstep.map(|_| fs::read_to_string(&report).unwrap_or_default());
        if let (Some(lockstep), Some(turns)) = (lockstep, &turns) {
            lockstep.judge(turns)?;
        }
        let (lines, events) =
            (std::mem::take(&mut running.transcript), std::mem::take(&mut running.events));
        let counts = if calls.is_some() {
            Some(fs::read_to_string(&counts).map_err(|error| uncounted(&error))?)
        } else {
            None
        };
        Ok(Transcript { lines, events, counts, turns, console })
    }
}

/// What programs say that get no more memory.
const OUT_OF_MEMORY: [&str; 2] = ["allocate", "memory exhausted"];
const PLUGIN: &str = "plugin.so";
/// Where the state of a guest that has paused is kept.
const STATE: &str = "state";

/// Checks that a guest with this `memory` in MiB can unpack an archive of `bytes`. Both it and the
/// files that come of it lie in memory then, beside the kernel.
fn expect_room(bytes: usize, memory: u32) -> Result<(), Error> {
    /// What a kernel and its own data take, in MiB.
    const KERNEL: u64 = 64;
    let files = (bytes as u64).div_ceil(1 << 20);
    let needed = 2 * files + KERNEL;
    if needed <= memory.into() {
        return Ok(());
    }
    Err(Error::Input(format!(
        "the files of the guest take {files} MiB, for which it needs {needed} MiB of memory while it \
         boots, and it has {memory}; give it fewer or smaller files"
    )))
}

/// What QEMU is to boot: the kernel's image, or, where it can be unpacked, that in the file
/// `unpacked`.
fn bootable(kernel: &Kernel, unpacked: PathBuf) -> Result<PathBuf, Error> {
    let image = fs::read(&kernel.image)
        .map_err(|error| Error::Input(format!("{}: {error}", kernel.image.display())))?;
    if sha256([image.as_slice()]) != kernel.sha256 {
        return Err(Error::Input(format!(
            "{}: the kernel was replaced while this program ran; run it again",
            kernel.image.display()
        )));
    }
    let Some(elf) = unpack::unpacked(&image) else {
        return std::path::absolute(&kernel.image)
            .map_err(|error| Error::Input(format!("{}: {error}", kernel.image.display())));
    };
    fs::write(&unpacked, elf).map_err(|error| Error::output(&unpacked, error))?;
    Ok(unpacked)
}

fn no_counter(qemu: &Qemu) -> Error {
    let version = &qemu.version;
    Error::Missing(format!(
        "QEMU {version} loads none of our plugins, which would count: 7.2 to 8.2, 9.1 to 9.2 and \
         10.0 do, if they are built with plugins"
    ))
}

fn no_lockstep(qemu: &Qemu) -> Error {
    Error::Missing(format!(
        "QEMU {} does not run several CPUs in lockstep; 11.1 and later do",
        qemu.version
    ))
}

fn uncounted(error: &std::io::Error) -> Error {
    Error::Missing(format!("QEMU's plugin left no counts: {error}"))
}

/// QEMU while it runs; it does not outlive this.
struct Running {
    child: Child,
    transcript: Vec<String>,
    events: Vec<Event>,
    /// How it went to keep or to restore its state, if that was to be done.
    state: Option<Result<Monitor, String>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Saves the state of a guest that pauses, and ends it.
    fn keep(&mut self, monitor: &Path) {
        let kept = Monitor::keep(monitor, STATE);
        if kept.is_err() {
            // It would wait for ever.
            let _ = self.child.kill();
        }
        self.state = Some(kept);
    }

    /// Lets a paused guest continue.
    fn go_on(&mut self, monitor: &Path) {
        let child = &mut self.child;
        let has_ended = || child.try_wait().is_ok_and(|status| status.is_some());
        self.state = Some(Monitor::go_on(monitor, has_ended));
    }

    /// What a guest has said whose state was restored is read again.
    fn read_what_was_said(&mut self) {
        self.events =
            self.transcript.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    }

    /// The end of the console if all went well; otherwise what did not.
    fn judge(
        &mut self,
        guest: &Guest,
        console: &Path,
        stuck: Option<String>,
    ) -> Result<String, Error> {
        let name = format!("kernel {} ({})", guest.kernel.name, guest.kernel.release);
        let status = self
            .child
            .wait()
            .map_err(|error| Error::Internal(format!("QEMU was lost: {error}")))?;
        let console = fs::read(console)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let tail = last_lines(&console);
        if let Some(registers) = stuck {
            let limit = guest.wall_limit.as_secs();
            return Err(Error::Input(format!(
                "{name} was not done after {limit} s; last report: {}; {registers}{tail}",
                self.last_report()
            )));
        }
        let failed = self.events.iter().find_map(|event| match event {
            Event::Failed { message } => Some(message),
            _ => None,
        });
        if let Some(message) = failed {
            return Err(Error::Input(format!("{name}: {message}")));
        }
        let mut said = String::new();
        let _ = self.child.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
        match (&self.state, self.events.last()) {
            (Some(Ok(_)), Some(Event::Paused { .. })) | (_, Some(Event::PowerOff { .. }))
                if status.success() =>
            {
                return Ok(tail);
            }
            (Some(Err(message)), _) => {
                let said = said.trim();
                return Err(Error::Input(format!(
                    "the state of {name} can be neither kept nor restored: {message}; QEMU says: \
                     {said}"
                )));
            }
            _ => {}
        }
        let limits = Limits::of(guest.memory);
        Err(Error::Input(if status.signal() == Some(Signal::XFSZ.as_raw()) {
            let console = console.len() >> 20;
            format!(
                "{name} was ended: one of its files grew beyond {} MiB (its console has {console} \
                 MiB); last report: {}{tail}",
                limits.file,
                self.last_report()
            )
        } else if OUT_OF_MEMORY.iter().any(|words| said.contains(words)) {
            let said = said.trim();
            format!("{name} was ended: QEMU needs more than {} MiB: {said}", limits.memory)
        } else if console.contains("NMI: Not continuing") {
            let silence = guest.session.silence().as_secs();
            format!(
                "{name} hung: no report for {silence} s of its time; last report: {}; what was \
                 running:{tail}",
                self.last_report()
            )
        } else if console.contains("Unable to mount root fs") {
            format!("{name} does not read an initramfs (CONFIG_BLK_DEV_INITRD):{tail}")
        } else if console.contains("Kernel panic") {
            let what = match self.job() {
                Some(job) if console.contains("Attempted to kill init") => {
                    format!("`{job}` killed the init of {name}, which panicked")
                }
                Some(job) => format!("{name} panicked while `{job}` ran"),
                None => format!("{name} panicked"),
            };
            format!("{what}; last report: {}; its last lines:{tail}", self.last_report())
        } else if self.events.is_empty() {
            format!(
                "{name} did not start the runner; has it a serial console \
                 (CONFIG_SERIAL_8250_CONSOLE)? QEMU says: {}{tail}",
                said.trim()
            )
        } else if let Some(job) = self.job() {
            let said = said.trim();
            format!(
                "{name} was switched off or restarted while `{job}` ran; QEMU says: {said}; its \
                 last lines:{tail}"
            )
        } else {
            format!(
                "{name} ended too early; last report: {}; QEMU says: {}{tail}",
                self.last_report(),
                said.trim()
            )
        }))
    }

    /// The name of the job that was running.
    fn job(&self) -> Option<&str> {
        let latest = self.events.iter().rev().find_map(|event| match event {
            Event::JobStart { name, .. } => Some(Some(name.as_str())),
            Event::JobEnd { .. } | Event::CommandEnd { .. } | Event::Limit { .. } => Some(None),
            _ => None,
        });
        latest.flatten()
    }

    fn last_report(&self) -> &str {
        self.transcript.last().map_or("none", String::as_str)
    }
}

/// The end of the console, without the clutter of the firmware.
fn last_lines(console: &str) -> String {
    const LINES: usize = 30;
    let readable: String = console.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    let lines: Vec<&str> =
        readable.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    // A panic is what is looked for: from its begin, if there is one.
    let begin = lines.iter().position(|line| {
        line.contains("NMI: ") || line.contains("Kernel panic") || line.contains("BUG: ")
    });
    let begin = begin.unwrap_or_else(|| lines.len().saturating_sub(LINES));
    lines[begin..].iter().take(LINES).map(|line| format!("\n    {line}")).collect()
}

/// Runs `body`, which ends when QEMU does. If that takes longer than `limit`, asks QEMU where its
/// CPUs are, ends it, and gives the answer.
fn backstop(limit: Duration, monitor: &Path, child: u32, body: impl FnOnce()) -> Option<String> {
    let (done, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let expired = waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            expired.then(|| {
                let answer = monitor::where_cpus_are(monitor);
                if let Some(child) = rustix::process::Pid::from_raw(child.cast_signed()) {
                    let _ = rustix::process::kill_process(child, Signal::KILL);
                }
                answer
            })
        });
        body();
        drop(done);
        watch.join().ok().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_for_which_there_is_no_room_are_refused_with_both_sizes() {
        assert!(expect_room(224 << 20, 512).is_ok());
        let error = expect_room((224 << 20) + 1, 512).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        for word in ["take 225 MiB", "needs 514 MiB", "it has 512"] {
            assert!(error.to_string().contains(word), "{word:?} is not in {error}");
        }
    }
}
