//! A sandbox for untrusted programs: a process without network, without files but those it is
//! given, without other processes, with bounded memory and output.
//!
//! Four walls, of which none is optional. *Namespaces*: it sees no process, network, mount or
//! message queue but its own. *Landlock*: it opens only the given files. *seccomp*: system calls
//! that are not on a list fail. *Limits*: address space, file size, open files, no core
//! dump. Its environment is empty, and its command line says nothing about its caller. Where a
//! kernel lacks a wall, [`Sandbox::start`] refuses by the wall's name.
//!
//! It can still use the CPU until it is killed, and read the clock. It can learn whether a path
//! exists and how large the file is.

mod calls;
mod child;

use calls::Processes;
use child::{Plan, Wall};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr,
};
use program::Error;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An untrusted program, and all that it may use.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub folder: PathBuf,
    /// The files and folders that it may read and execute; a path that does not exist is left out.
    pub reads: Vec<PathBuf>,
    /// The folders whose names it may list.
    pub lists: Vec<PathBuf>,
    /// The folders in which it may write.
    pub writes: Vec<PathBuf>,
    /// Its address space in bytes.
    pub memory: u64,
    /// The longest file that it may write, in bytes; the sum of both outputs is one.
    pub output: u64,
    /// Whether it may start processes and threads, as a compiler does.
    pub may_fork: bool,
}

/// A running program in its sandbox. It is killed when this is dropped.
#[derive(Debug)]
pub struct Confined {
    pid: Pid,
    handle: OwnedFd,
    output: File,
    end: Option<End>,
}

/// How a confined program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// What programs read on every Linux: libraries, and the table by which the linker finds them.
pub const LIBRARIES: [&str; 6] =
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/null"];

/// What Landlock must be able to refuse. This is Linux 6.2.
const FILES: ABI = ABI::V3;

impl Sandbox {
    /// A sandbox for `program`, which may read its own file and the system's libraries.
    pub fn of(program: &Path, folder: &Path, memory: u64) -> Sandbox {
        let reads = LIBRARIES.iter().map(PathBuf::from).chain([program.to_path_buf()]).collect();
        Sandbox {
            program: program.to_path_buf(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: folder.to_path_buf(),
            reads,
            lists: Vec::new(),
            writes: Vec::new(),
            memory,
            output: 64 << 10,
            may_fork: false,
        }
    }

    /// Starts the program. It gets `channel` as file 3.
    ///
    /// # Errors
    /// [`Error::Missing`] if this machine lacks a wall: the message names it. [`Error::Internal`]
    /// if the program cannot be executed.
    pub fn start(&self, channel: Option<OwnedFd>) -> Result<Confined, Error> {
        let broken = |what: &str, error: io::Error| {
            Error::Internal(format!("sandbox for {}: {what}: {error}", self.program.display()))
        };
        let output = tempfile::tempfile().map_err(|error| broken("its output", error))?;
        let nothing = File::options().read(true).write(true).open("/dev/null");
        let nothing = nothing.map_err(|error| broken("/dev/null", error))?;
        let (said, says) = io::pipe().map_err(|error| broken("a pipe", error))?;
        let files = self.files()?;
        let filter = calls::filter(if self.may_fork { Processes::Many } else { Processes::One })?;
        let words = std::iter::once(OsString::from("program")).chain(self.arguments.clone());
        let variable = |(name, value): &(OsString, OsString)| {
            let mut both = name.clone();
            both.push("=");
            both.push(value);
            both
        };
        let plan = Plan {
            program: text(self.program.as_os_str())?,
            words: words.map(|word| text(&word)).collect::<Result<_, _>>()?,
            variables: self
                .environment
                .iter()
                .map(|pair| text(&variable(pair)))
                .collect::<Result<_, _>>()?,
            folder: text(self.folder.as_os_str())?,
            input: high(&nothing)?,
            output: high(&output)?,
            channel: channel.as_ref().map(high).transpose()?,
            says: high(&says)?,
            files: high(&files)?,
            filter: &filter,
            limits: [
                (libc::RLIMIT_AS, self.memory),
                (libc::RLIMIT_FSIZE, self.output),
                (libc::RLIMIT_CORE, 0),
                (libc::RLIMIT_NOFILE, if self.may_fork { 1024 } else { 64 }),
            ],
        };
        let pid = plan.start().map_err(|error| missing(Wall::Namespaces, &error))?;
        drop((plan, says, channel));
        let pid = Pid::from_raw(pid)
            .ok_or_else(|| Error::Internal("a process has no number".to_string()))?;
        let handle = pidfd_open(pid, PidfdFlags::empty());
        let handle = handle.map_err(|error| missing(Wall::Namespaces, &error.into()))?;
        let mut confined = Confined { pid, handle, output, end: None };
        let mut failed = Vec::new();
        (&said).read_to_end(&mut failed).map_err(|error| broken("a pipe", error))?;
        let Some((wall, error)) = child::failure(&failed) else { return Ok(confined) };
        confined.kill();
        match wall {
            Wall::Program => Err(broken("it cannot be executed", error)),
            wall => Err(missing(wall, &error)),
        }
    }

    /// Landlock's rules.
    fn files(&self) -> Result<OwnedFd, Error> {
        let refused = |error: &dyn std::fmt::Display| {
            Error::Missing(format!(
                "this kernel lacks {}, a wall of the sandbox ({error}): it takes Linux 6.2 with \
                 CONFIG_SECURITY_LANDLOCK, and lsm=landlock,… on the kernel's command line",
                Wall::Landlock.name()
            ))
        };
        let all = AccessFs::from_all(FILES);
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)
            .and_then(Ruleset::create)
            .map_err(|error| refused(&error))?;
        let read = AccessFs::from_read(FILES);
        let lists: BitFlags<AccessFs> = AccessFs::ReadDir.into();
        let mut rules = rules;
        for (paths, access) in [(&self.reads, read), (&self.lists, lists), (&self.writes, all)] {
            for path in paths.iter().filter(|path| path.exists()) {
                rules = with(rules, path, access).map_err(|error| refused(&error))?;
            }
        }
        let file: Option<OwnedFd> = rules.into();
        file.ok_or_else(|| refused(&"it made no rules"))
    }
}

/// `rules`, by which `path` and what is in it may be accessed so.
fn with(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(FILES) };
    Ok(rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?)
}

fn missing(wall: Wall, error: &io::Error) -> Error {
    let hint = match wall {
        Wall::Namespaces => {
            "allow unprivileged user namespaces (sysctl user.max_user_namespaces, \
             kernel.apparmor_restrict_unprivileged_userns=0; in a container, its seccomp profile)"
        }
        Wall::Landlock => "it takes Linux 6.2 with CONFIG_SECURITY_LANDLOCK",
        Wall::Seccomp => "it takes CONFIG_SECCOMP_FILTER",
        Wall::Limits | Wall::Files | Wall::Program => "it takes a process that may set them",
    };
    Error::Missing(format!(
        "this machine does not allow {}, a wall of the sandbox ({error}): {hint}",
        wall.name()
    ))
}

/// A copy of a file with a number above those that the program gets.
fn high(file: &impl AsFd) -> Result<OwnedFd, Error> {
    rustix::io::fcntl_dupfd_cloexec(file, 16)
        .map_err(|error| Error::Internal(format!("sandbox: too many open files: {error}")))
}

fn text(word: &OsStr) -> Result<CString, Error> {
    CString::new(word.as_bytes())
        .map_err(|_| Error::Input(format!("{}: a path has no byte 0", word.display())))
}

impl Confined {
    /// How it ended, if it has by `deadline`.
    pub fn wait(&mut self, deadline: Instant) -> Option<End> {
        while self.end.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut poll =
                libc::pollfd { fd: self.handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let milliseconds = left.min(Duration::from_secs(60)).as_millis() as libc::c_int;
            // SAFETY: one file, which lives longer than the call.
            let ready = unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
            if ready > 0 {
                self.reap();
            } else if left.is_zero() {
                return None;
            }
        }
        self.end
    }

    /// Kills it, with all that it has started.
    pub fn kill(&mut self) {
        if self.end.is_none() {
            let _ = rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
            self.reap();
        }
    }

    /// What it wrote to its standard output and its standard error.
    pub fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self
            .output
            .seek(SeekFrom::Start(0))
            .and_then(|_| (&self.output).take(1 << 20).read_to_end(&mut bytes));
        read.map_or(String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn reap(&mut self) {
        let mut status = 0;
        // SAFETY: a child of this process, which nobody else waits for.
        let waited = unsafe { libc::waitpid(self.pid.as_raw_nonzero().get(), &raw mut status, 0) };
        let signalled = waited > 0 && libc::WIFSIGNALED(status);
        self.end = Some(match signalled {
            true => End::Signalled(libc::WTERMSIG(status)),
            false => End::Exited(libc::WEXITSTATUS(status)),
        });
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests;
