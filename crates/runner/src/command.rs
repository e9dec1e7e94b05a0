//! Runs any program as a job: to its end, in a class, with a nice value.

use crate::usage::{Migrations, Usage};
use crate::{attributes, clock};
use schedlab_runner::event::{Event, Stream};
use schedlab_runner::session::Host;
use std::fs::File;
use std::io::{Error, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};

/// Runs the program and reports what it used. Called in a process of its own: the class is set for
/// this process, and the program inherits it.
pub fn run(host: &Host, report: &dyn Fn(&Event)) -> Result<(), String> {
    let (program, arguments) = host.command.split_first().ok_or("there is no command")?;
    let mut errors = Kept::new()?;
    let mut output = host.keeps_output.then(Kept::new).transpose()?;
    let stdout = output.as_ref().map_or(Ok(Stdio::null()), Kept::end)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(errors.end()?);
    if !attributes::set_class(host.class, host.nice, 0) {
        return Err(format!("{}: {}", crate::failure::REFUSED_CLASS, Error::last_os_error()));
    }
    let migrations = if host.bare { None } else { Migrations::count() };
    report(&Event::JobStart { job: 0, name: program.clone(), ns: clock::now() });
    let begin = clock::now();
    let status =
        command.status().map_err(|error| format!("{program} cannot be started: {error}"))?;
    let ns = clock::now() - begin;
    let used = Usage::of_children();
    report(&Event::Usage {
        job: 0,
        pid: std::process::id(),
        user_ns: used.user_ns,
        system_ns: used.system_ns,
        voluntary: used.voluntary,
        involuntary: used.involuntary,
        migrations: migrations.and_then(|migrations| migrations.read()),
        run_delay_ns: None,
    });
    let said = errors.read()?;
    let output = output.as_mut().map(Kept::read).transpose()?;
    if !status.success() {
        let said = String::from_utf8_lossy(&said)
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .map_or(String::new(), |line| format!("; its output ends: {}", line.trim()));
        return Err(format!("{program} ended with {status}{said}"));
    }
    if let Some(output) = output {
        for (stream, bytes) in [(Stream::Stdout, output), (Stream::Stderr, said)] {
            let bytes = bytes.into_iter().map(char::from).collect();
            report(&Event::Output { job: 0, stream, bytes });
        }
    }
    report(&Event::JobEnd { job: 0, ns, tasks: Vec::new() });
    Ok(())
}

/// What a command writes to one of its outputs: a file without a name. It is not read while the
/// command runs, and takes no more than [`MOST`].
struct Kept(File);

/// The most bytes of an output.
const MOST: u64 = 64 << 20;

impl Kept {
    fn new() -> Result<Kept, String> {
        let failed = |error: Error| format!("no memory for what the command says: {error}");
        // SAFETY: a new descriptor that this function alone has.
        let file = unsafe {
            libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if file < 0 {
            return Err(failed(Error::last_os_error()));
        }
        // SAFETY: it is open, and ours.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(MOST).map_err(failed)?;
        // SAFETY: it takes no memory of ours. A write beyond the end fails from now on.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) } {
            0 => Ok(Kept(file)),
            _ => Err(failed(Error::last_os_error())),
        }
    }

    /// The end that a command writes to.
    fn end(&self) -> Result<Stdio, String> {
        self.0.try_clone().map(Stdio::from).map_err(|error| error.to_string())
    }

    /// What it wrote: all before the place at which the next would stand.
    fn read(&mut self) -> Result<Vec<u8>, String> {
        let failed = |error: Error| format!("what the command said cannot be read: {error}");
        let end = self.0.stream_position().map_err(failed)?;
        if end >= MOST {
            return Err(format!("the command writes more than {} MiB of output", MOST >> 20));
        }
        self.0.rewind().map_err(failed)?;
        let mut bytes = Vec::new();
        (&self.0).take(end).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}
