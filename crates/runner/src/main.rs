//! The runner: executes a session and reports in lines of JSON.
//!
//! As the init of a guest kernel it reads the session from `/session.json`, reports to QEMU and
//! switches the machine off. On a running machine its argument is the session's file, or `-` for
//! standard input, and it reports on standard output. With `--guard` it is the guard of such a
//! machine.

mod any_program;
mod attributes;
mod cgroups;
mod clock;
mod code;
mod command;
mod device_file;
mod epoll;
mod event_loop;
mod failure;
mod guard;
mod guest;
mod job;
mod kind;
mod leftovers;
mod limits;
mod lockstep;
mod machine;
mod outcome;
mod oversight;
mod pipe;
mod program;
mod sched_ext;
mod service;
mod shared;
mod stage;
mod sync;
mod task;
mod tracing;
mod tuned;
mod usage;

use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Host, Session};
use service::Service;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    if std::process::id() == 1 {
        let done = guest::set_up().and_then(|()| session("/session.json", &guest::report));
        guest::report(&match done {
            Ok(()) => Event::PowerOff { ns: clock::now() },
            Err(message) => Event::Failed { message },
        });
        guest::power_off()
    }
    let mut arguments = std::env::args().skip(1);
    let (Some(file), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: schedlab-runner SESSION.json|-|--guard");
        return ExitCode::from(2);
    };
    match file.as_str() {
        "--guard" => return guard::stand(),
        oversight::NOTHING => return ExitCode::SUCCESS,
        _ => {}
    }
    match session(&file, &print) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            print(&Event::Failed { message });
            ExitCode::from(3)
        }
    }
}

fn print(event: &Event) {
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    // The reader of the output has ended, so an error cannot be reported.
    let _ = std::io::stdout().write_all(&line);
}

fn session(file: &str, report: &dyn Fn(&Event)) -> Result<(), String> {
    let text = if file == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| format!("{file}: {error}"))?;
    let session: Session =
        serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    guest::set_silence(session.silence());
    machine::switch_off(&session.offline)?;
    clock::set_instruction(session.instruction_ns);
    report(&Event::Boot {
        kernel: machine::kernel(),
        cpus: machine::cpus(),
        nodes: machine::nodes(),
        ns: clock::now(),
    });
    tuned::tune(&session.tuning, report)?;
    if session.host.is_some() {
        // SAFETY: it has no arguments. A guard can end a session of its own.
        unsafe { libc::setsid() };
    }
    if guest::is_guest() || session.host.is_some() {
        // The thread that measures runs at once when a job is over, also beside real-time tasks.
        attributes::become_experimenter();
    }
    if guest::is_guest() && (session.leftovers || !session.scheduler.is_empty()) {
        sched_ext::set_up()?;
    }
    let before = session.leftovers.then(leftovers::now);
    let log = oversight::Log::open();
    let mut services = Service::start_all(&session.services)?;
    if !session.scheduler.is_empty() {
        services.push(Service::foreign(services.len(), &session.scheduler)?);
    }
    std::thread::sleep(Duration::from_millis(session.settle_ms));
    services.iter_mut().try_for_each(|service| service.expect_ready(report))?;
    if let Some(host) = &session.host {
        restrict(host)?;
    }
    report(&Event::Settled { ns: clock::now() });
    if session.domains {
        report(&Event::Domains { cpus: machine::domains() });
    }
    if session.symbols {
        code::symbols(report)?;
    }
    let (host, limit) = (
        session.host.as_ref(),
        session.host.as_ref().map(|host| Duration::from_millis(host.limit_ms)),
    );
    if let Some(host) = host.filter(|host| !host.command.is_empty()) {
        in_a_process(|| command::run(host, report), limit, report)?;
    }
    let jobs = if session.pauses {
        report(&Event::Paused { ns: clock::now() });
        guest::pause();
        guest::orders()?
    } else {
        session.jobs
    };
    if session.instruction_ns > 0 {
        lockstep::begin(&machine::online()?);
    }
    for (number, job) in jobs.iter().enumerate() {
        if let Some(command) = &job.command {
            any_program::run(number, job, command, &mut services, report)?;
            continue;
        }
        let run = || {
            let done = job::run(number, job, host, &services, report);
            match (done, &job.overseen) {
                (done, None) => return done,
                (Ok(()), Some(_)) => {}
                (Err(message), Some(_)) => report(&Event::JobFailed { job: number, message }),
            }
            report(&log.overseen(number));
            Ok(())
        };
        let done = in_a_process(run, limit, report);
        cgroups::remove(number, job.workload.cgroups.len());
        done?;
    }
    if session.scheduler_code {
        report(&code::of_scheduler()?);
    }
    let has_scheduler = session.host.is_some() && !services.is_empty();
    services.into_iter().for_each(|service| service.end(report));
    if let Some(before) = before {
        report(&Event::Left { after: leftovers::after(&before), before });
    }
    if has_scheduler { sched_ext::wait_for_none() } else { Ok(()) }
}

/// Keeps this to the CPUs that it may use, and below the watchdog.
fn restrict(host: &Host) -> Result<(), String> {
    if !host.cpus.is_empty() && !attributes::set_affinity(&host.cpus) {
        return Err(format!(
            "the kernel does not let this run on CPUs {:?}: {}",
            host.cpus,
            std::io::Error::last_os_error()
        ));
    }
    // If the watchdog itself gets no CPU, the kernel ends a real-time task that never waits.
    let limit = libc::rlimit { rlim_cur: host.limit_ms * 1_000, rlim_max: host.limit_ms * 1_000 };
    // SAFETY: the kernel only reads `limit`.
    unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) };
    Ok(())
}

/// Runs `job` in a child process and ends the processes that it leaves behind. A job that takes
/// longer than `limit` is killed.
fn in_a_process(
    job: impl FnOnce() -> Result<(), String>,
    limit: Option<Duration>,
    report: &dyn Fn(&Event),
) -> Result<(), String> {
    // SAFETY: this process has one thread, so the child has all that it needs; it leaves by
    // `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(format!("a job cannot be started: {}", std::io::Error::last_os_error())),
        0 => {
            // SAFETY: a group of its own, so that its processes can be ended with it.
            unsafe { libc::setpgid(0, 0) };
            let done = job();
            if let Err(message) = &done {
                report(&Event::Failed { message: message.clone() });
            }
            // SAFETY: the threads of the job end here, in any state.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        child => {
            let in_time = limit.is_none_or(|limit| ends_within(child, limit));
            let status = bury(child, in_time, limit.is_some());
            match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
                _ if !in_time => Err(format!(
                    "it was not over after {:?} and was killed",
                    limit.unwrap_or_default()
                )),
                Some(0) => Ok(()),
                Some(1) => Err("a job failed".to_string()),
                _ => Err(format!("a job died: wait status {status:#x}")),
            }
        }
    }
}

/// Waits for the end of the child, ends its group and takes its wait status.
///
/// On a real machine this thread gives up the watchdog's priority first. To take the status, the
/// kernel clears /proc of the dead process. If this thread preempts another task in the middle of
/// that, it tries again for ever. This was seen for 340 s with Linux 6.18, all on one CPU.
fn bury(child: i32, is_in_time: bool, is_host: bool) -> i32 {
    let mut status = 0;
    // SAFETY: the kernel writes `status` and nothing else; the group is the child's.
    unsafe {
        if !is_in_time {
            libc::kill(-child, libc::SIGKILL);
        }
        if is_host {
            libc::waitid(
                libc::P_PID,
                child.cast_unsigned(),
                std::ptr::null_mut(),
                libc::WEXITED | libc::WNOWAIT,
            );
            libc::kill(-child, libc::SIGKILL);
            attributes::set_class(Class::Other, 0, 0);
        }
        libc::waitpid(child, &raw mut status, 0);
        libc::kill(-child, libc::SIGKILL);
    }
    if is_host {
        attributes::become_experimenter();
    }
    status
}

/// Whether the child ends within `limit`.
fn ends_within(child: i32, limit: Duration) -> bool {
    // SAFETY: two numbers.
    let Ok(handle) = i32::try_from(unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) }) else {
        return true;
    };
    let mut ended = libc::pollfd { fd: handle, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which the kernel writes to; this function owns the handle.
    unsafe {
        let count = libc::poll(&raw mut ended, 1, limit.as_millis().try_into().unwrap_or(i32::MAX));
        libc::close(handle);
        handle < 0 || count != 0
    }
}
