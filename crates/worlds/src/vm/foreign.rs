//! Any scheduler of sched_ext as the guest's: an unmodified program, `scx:PATH` or
//! `scx:'PATH ARGUMENTS…'`.
//!
//! It is started before the guest settles. It schedules when the kernel says so, in
//! `/sys/kernel/sched_ext`, and must do so until the end. `scx:FILE.bpf.o` and `scx:FILE.bpf.c` are
//! schedulers without a program, which ours loads; their arguments are constants, `NAME=VALUE`.
//! `scx:NAME@VERSION` is a published one, from the cache.

use super::bare_scheduler::{self, BareScheduler};
use super::elf::{self, Start};
use super::initramfs::Kind;
use super::published::Published;
use super::{Guest, GuestFile, Kernel, kernel, scheduler};
use crate::host::record;
use program::Error;
use schedlab_runner::event::{Event, SchedExt};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A program that loads a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// As it was named, after `scx:`.
    name: String,
    program: PathBuf,
    /// What the program is given, or our loader beside the object.
    arguments: Vec<String>,
    /// The object that the program loads, if it is ours.
    object: Option<PathBuf>,
}

/// Those that were found, by their names: one that is compiled is so once.
static FOUND: Mutex<BTreeMap<String, Foreign>> = Mutex::new(BTreeMap::new());
/// Where a guest has the object.
const OBJECT: &str = "/lib/scheduler.bpf.o";
/// What lets our loader write what the kernel keeps of tasks into its trace.
const WITNESS: &str = "--witness";

/// What a name of one begins with.
pub const PREFIX: &str = "scx:";

impl Foreign {
    /// The scheduler of this name, whose program must be one for this architecture.
    ///
    /// # Errors
    /// What it is instead, and what to give.
    pub fn find(name: &str) -> Result<Foreign, Error> {
        let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name) {
            return Ok(found.clone());
        }
        let found = Foreign::look_for(name)?;
        known().insert(name.to_string(), found.clone());
        Ok(found)
    }

    fn look_for(name: &str) -> Result<Foreign, Error> {
        let rest = name.strip_prefix(PREFIX).unwrap_or(name);
        let mut words = rest.split_whitespace().map(str::to_string);
        let Some(program) = words.next() else {
            return Err(Error::Usage(
                "`scx:` names no program: give its path, as in scx:./scx_simple or \
                 scx:'./scx_bpfland --slice-us 5000'"
                    .to_string(),
            ));
        };
        let name = rest.trim().to_string();
        if bare_scheduler::is_one(&program) {
            let settings: Vec<String> = words.collect();
            let BareScheduler { object, loader } = BareScheduler::find(&program, &settings)?;
            let set = |setting: String| ["--set".to_string(), setting];
            let arguments = settings.into_iter().flat_map(set).collect();
            return Ok(Foreign { name, program: loader, arguments, object: Some(object) });
        }
        let program = self::program(&program)?;
        let bytes = std::fs::read(&program)
            .map_err(|error| Error::Input(format!("{}: {error}", program.display())))?;
        let wrong = |what: &str| Error::Input(format!("{}: {what}", program.display()));
        if elf::is_bpf(&bytes) {
            return Err(wrong("an object in BPF; give it a name that ends in .bpf.o"));
        }
        match elf::start(&bytes) {
            Start::Kernel | Start::Loader(_) => {}
            Start::Interpreter(..) => {
                return Err(wrong("a script; give the program that loads the scheduler"));
            }
            Start::Foreign => return Err(wrong("a program for another architecture than x86-64")),
            Start::Nothing => return Err(wrong("no program")),
        }
        Ok(Foreign { name, program, arguments: words.collect(), object: None })
    }

    /// The name of its tasks, as the kernel keeps it.
    pub fn task_name(&self) -> String {
        scheduler::task_name(&self.program)
    }

    /// Checks that a kernel has what it needs.
    ///
    /// # Errors
    /// As of [`Kernel::require`].
    pub fn require(&self, kernel: &Kernel) -> Result<(), Error> {
        kernel.require(&kernel::SCHED_EXT)
    }

    /// Puts it into a guest, with what such programs read of a machine.
    ///
    /// # Errors
    /// If the program or a shared library of it cannot be read.
    pub fn install(&self, guest: &mut Guest, witness: bool) -> Result<(), Error> {
        guest.files.extend(GuestFile::program(&self.program)?);
        guest.files.extend(guest.kernel.configuration_file(""));
        if let Some(object) = &self.object {
            let read = std::fs::read(object);
            let bytes =
                read.map_err(|error| Error::Input(format!("{}: {error}", object.display())))?;
            guest.files.push(GuestFile { path: OBJECT.to_string(), bytes, kind: Kind::Data });
        }
        let program = format!("/bin/{}", scheduler::file_name(&self.program));
        guest.session.scheduler = self.started_by(program, OBJECT);
        guest
            .session
            .scheduler
            .extend(self.object.iter().filter(|_| witness).map(|_| WITNESS.into()));
        Ok(())
    }

    /// What starts it on this machine.
    pub fn command(&self) -> Vec<String> {
        let object = self.object.as_deref().unwrap_or(Path::new("")).to_string_lossy();
        self.started_by(self.program.to_string_lossy().into_owned(), &object)
    }

    fn started_by(&self, program: String, object: &str) -> Vec<String> {
        let own = self.object.iter().flat_map(|_| ["--object", object, "--this-machine"]);
        let own = own.map(str::to_string);
        std::iter::once(program).chain(own).chain(self.arguments.iter().cloned()).collect()
    }

    /// The SHA-256 of its program, and of the object that it loads.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn sha256(&self) -> Result<String, Error> {
        let files: Vec<&Path> =
            std::iter::once(self.program.as_path()).chain(self.object.as_deref()).collect();
        scheduler::sha256_of(&files)
    }

    /// Checks that it scheduled from the first job to the last.
    ///
    /// # Errors
    /// [`Error::Check`] with what the kernel and the program say.
    pub fn judge(&self, events: &[Event], console: &str) -> Result<(), Error> {
        let mut seen: Vec<&SchedExt> = Vec::new();
        let (mut ended, mut lines) = (None, Vec::new());
        for event in events {
            match event {
                Event::SchedExt { now } => seen.push(now),
                Event::Service { line, .. } => lines.push(line.as_str()),
                Event::ServiceEnd { status, early, .. } => ended = Some((status.as_str(), *early)),
                _ => {}
            }
        }
        let why = match (ended, &seen[..]) {
            (Some((status, true)), [.., last]) if !last.is_enabled() => {
                format!("it ended by itself ({status})")
            }
            (_, [first, ..]) if !first.is_enabled() => {
                "the kernel has not enabled it: it never became ready".to_string()
            }
            (_, [first, .., last]) if last.is_enabled() && first.ops == last.ops => return Ok(()),
            (_, [first, ..]) => format!("the kernel ended its scheduler `{}`", first.ops),
            (_, []) => "the runner says nothing of sched_ext".to_string(),
        };
        Err(Error::Check(format!("{self}: {why}{}{}", said(&lines), reason(console))))
    }
}

/// The program of this name: a published one from the cache, a path, or a command.
///
/// # Errors
/// If there is none.
pub fn program(name: &str) -> Result<PathBuf, Error> {
    match Published::of(name) {
        Some(published) => published.program(),
        None => record::command_path(OsStr::new(name), "run"),
    }
}

/// The end of what the program wrote.
fn said(lines: &[&str]) -> String {
    const SHOWN: usize = 12;
    let lines: Vec<&str> = lines.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    match lines.len() {
        0 => String::new(),
        1 => format!("; it says: {}", lines[0].trim()),
        count => {
            let shown = lines[count.saturating_sub(SHOWN)..].join("\n    ");
            format!("; its output ends:\n    {shown}")
        }
    }
}

/// The lines in which the kernel writes of sched_ext.
pub(crate) fn kernels_words(console: &str) -> impl Iterator<Item = &str> {
    console.lines().filter(|line| line.contains("sched_ext:"))
}

/// What the kernel wrote of it.
fn reason(console: &str) -> String {
    let lines: Vec<&str> = kernels_words(console).collect();
    if lines.is_empty() { String::new() } else { format!("\n    {}", lines.join("\n    ")) }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(events: Vec<Event>, console: &str) -> Result<(), Error> {
        let foreign = Foreign {
            name: "./x -v".to_string(),
            program: PathBuf::from("/x"),
            arguments: vec!["-v".to_string()],
            object: None,
        };
        foreign.judge(&events, console)
    }

    #[test]
    fn it_must_schedule_from_the_first_job_to_the_last() {
        let kernel = |state: &str, ops: &str| Event::SchedExt {
            now: SchedExt { state: state.to_string(), ops: ops.to_string() },
        };
        let end = |status: &str, early| Event::ServiceEnd {
            service: 0,
            status: status.to_string(),
            early,
        };
        let line = |line: &str| Event::Service { service: 0, line: line.to_string() };
        let (on, off) = (|| kernel("enabled", "x_1"), || kernel("disabled", ""));
        assert!(judged(vec![on(), on(), line("bye"), end("exit status: 0", false)], "").is_ok());
        // A program may leave its scheduler behind.
        assert!(judged(vec![on(), on(), end("exit status: 0", true)], "").is_ok());
        for (events, console, words) in [
            (
                vec![off(), off(), line("no BTF"), end("exit status: 1", true)],
                "",
                &["ended by itself (exit status: 1)", "no BTF"][..],
            ),
            (vec![off(), off(), end("signal: 2", false)], "", &["never became ready"]),
            (
                vec![on(), off(), line("EXIT"), end("exit status: 0", false)],
                "[1.0] sched_ext: BPF scheduler \"x_1\" disabled (runtime error)\n[2.0] other",
                &["the kernel ended its scheduler `x_1`", "EXIT", "runtime error"],
            ),
            (vec![on(), kernel("enabled", "y")], "", &["ended its scheduler"]),
            (vec![on(), off(), end("signal: 11", true)], "", &["ended by itself (signal: 11)"]),
            (vec![], "", &["says nothing"]),
        ] {
            let error = judged(events, console).unwrap_err();
            assert_eq!(error.exit_code(), 4);
            let text = error.to_string();
            assert!(text.starts_with("scx:./x -v: "), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            assert!(!text.contains("other"), "{text}");
        }
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "#!/bin/sh\n").unwrap();
        let path = file.path().display();
        for (name, code, word) in [
            ("scx:".to_string(), 2, "names no program"),
            ("scx:./no-such-program".to_string(), 2, "there is no such file"),
            ("scx:no-such-program".to_string(), 2, "there is no such command"),
            (format!("scx:{path}"), 2, "not an executable file"),
        ] {
            let error = Foreign::find(&name).unwrap_err();
            let text = error.to_string();
            assert!(
                error.exit_code() == code && text.contains(word),
                "{}: {text}",
                error.exit_code()
            );
        }
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        file.as_file().set_permissions(permissions).unwrap();
        let named = || Foreign::find(&format!("scx:{path}")).unwrap_err().to_string();
        assert!(named().contains("a script"), "{}", named());
        std::fs::write(file.path(), "nothing").unwrap();
        assert!(named().contains("no program"), "{}", named());
        let mut object = b"\x7fELF\x02\x01\x01".to_vec();
        std::fs::write(file.path(), &object).unwrap();
        assert!(named().contains("another architecture"), "{}", named());
        object.resize(0x12, 0);
        object[0x10] = 1;
        object.extend([0xf7, 0]);
        std::fs::write(file.path(), &object).unwrap();
        assert!(named().contains("an object in BPF"), "{}", named());
        let found = Foreign::find("scx:sh  -c exit,0").unwrap();
        assert_eq!((found.to_string().as_str(), found.arguments.len()), ("scx:sh  -c exit,0", 2));
        assert_eq!(found.task_name(), "sh");
    }
}
