//! Runs any program as a job: to its end, in a class, with a nice value.

use crate::usage::{Migrations, Usage};
use crate::{attributes, clock};
use schedlab_runner::event::Event;
use schedlab_runner::session::Host;
use std::io::{Read, Seek};
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

/// Runs the program and reports what it used. Called in a process of its own: the class is set for
/// this process, and the program inherits it.
pub fn run(host: &Host, report: &dyn Fn(&Event)) -> Result<(), String> {
    let (program, arguments) = host.command.split_first().ok_or("there is no command")?;
    let mut errors = scratch()?;
    let stderr = errors.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    if !attributes::set_class(host.class, host.nice, 0) {
        return Err(format!(
            "{}: {}",
            crate::failure::REFUSED_CLASS,
            std::io::Error::last_os_error()
        ));
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
    if !status.success() {
        let mut said = String::new();
        let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut said));
        let said = said
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .map_or(String::new(), |line| format!("; its output ends: {}", line.trim()));
        return Err(format!("{program} ended with {status}{said}"));
    }
    report(&Event::JobEnd { job: 0, ns, tasks: Vec::new() });
    Ok(())
}

/// A file without a name.
fn scratch() -> Result<std::fs::File, String> {
    // SAFETY: a new descriptor that this function alone has.
    let file = unsafe { libc::memfd_create(c"stderr".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(format!(
            "no memory for what the command says: {}",
            std::io::Error::last_os_error()
        ));
    }
    // SAFETY: it is open, and ours.
    Ok(unsafe { std::fs::File::from_raw_fd(file) })
}
