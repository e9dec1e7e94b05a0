//! Runs any program in a guest as a job: in a file system of its own, within limits, to its end.
//!
//! The init itself watches it, and no process of a job: a program can kill every other process. Its
//! outputs go to files and are reported at its end, so that no reader disturbs the measurement.

use crate::limits::Limits;
use crate::service::Service;
use crate::tracing::Tracing;
use crate::{attributes, clock, failure, guest};
use schedlab_runner::event::{Event, Limit, Stream};
use schedlab_runner::session::{Command, DIRECTORY, Job, PATH, ROOT};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process;
use std::time::Duration;

/// The program may still have to reach its gate.
const ARRIVAL: Duration = Duration::from_millis(20);
/// A process that has reported its end takes less to leave its CPU.
const EXIT: Duration = Duration::from_micros(300);
/// How long killed processes may take to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often to look whether there is room for output; nothing reports that.
const LOOK: Duration = Duration::from_secs(1);
/// The most that a program may write to its outputs.
const OUTPUT: u64 = 8 << 20;
/// Where its outputs are kept, outside its file system.
const OUTPUTS: &CStr = c"/output";
/// The file systems that any program expects.
const MOUNTS: [(&CStr, &str); 4] =
    [(c"proc", "proc"), (c"sysfs", "sys"), (c"devtmpfs", "dev"), (c"tmpfs", "dev/shm")];
/// What distributions mount beside them. A kernel may lack one; a program that needs it says so.
/// Control groups are not among them: there a program could undo its limits.
const FURTHER: [(&CStr, &str); 4] = [
    (c"devpts", "dev/pts"),
    (c"bpf", "sys/fs/bpf"),
    (c"debugfs", "sys/kernel/debug"),
    (c"tracefs", "sys/kernel/tracing"),
];

/// Runs the program of a job and reports how it ended, or which limit it reached.
pub fn run(
    number: usize,
    job: &Job,
    command: &Command,
    services: &mut [Service],
    report: &dyn Fn(&Event),
) -> Result<(), String> {
    lay_out()?;
    let limits = Limits::new(number)?;
    let tracing = job.trace.then(Tracing::prepare).transpose()?;
    let ends = Ends::watch()?;
    let mut child = Child::prepare(job, command, &limits)?;
    std::thread::sleep(ARRIVAL + Duration::from_nanos(job.nudge.start_ns));
    clock::run_instructions(job.nudge.span.into());
    report(&Event::JobStart { job: number, name: job.name.clone(), ns: clock::now() });
    tracing.as_ref().map_or(Ok(()), Tracing::start)?;
    services.iter().for_each(Service::announce_job);
    let begin = clock::now();
    child.release()?;
    let is_late = child.wait(&ends, &limits, begin + command.limit_ns, services);
    let ns = clock::now() - begin;
    std::thread::sleep(EXIT);
    tracing.as_ref().map_or(Ok(()), Tracing::stop)?;
    end_the_rest(&limits, services, &mut child)?;
    child.expect_started(command)?;
    let is_full = are_full();
    report_outputs(number, report)?;
    let limit = limits
        .reached()
        .or_else(|| is_full.then_some((Limit::Output, OUTPUT)))
        .or_else(|| is_late.then_some((Limit::Time, command.limit_ns)));
    if let Some(tracing) = tracing {
        match tracing.lost()? {
            0 => {}
            events => report(&Event::TraceLost { job: number, events }),
        }
        tracing.lines(|line| report(&Event::Trace { job: number, line: line.to_string() }))?;
    }
    report(&match limit {
        Some((limit, most)) => Event::Limit { job: number, limit, most },
        None => Event::CommandEnd {
            job: number,
            ns,
            pid: child.pid.cast_unsigned(),
            wait_status: child.status.unwrap_or(0),
        },
    });
    Ok(())
}

/// Makes the file system of the program whole, and the place for its outputs.
fn lay_out() -> Result<(), String> {
    let inside = |name: &str| format!("{ROOT}/{name}");
    for (kind, name) in MOUNTS {
        let at = inside(name);
        fs::create_dir_all(&at).map_err(|error| format!("{at}: {error}"))?;
        let at = CString::new(at).map_err(|error| error.to_string())?;
        guest::mount(kind, &at)?;
    }
    for name in ["tmp", DIRECTORY.trim_start_matches('/')] {
        let at = inside(name);
        fs::create_dir_all(&at).map_err(|error| format!("{at}: {error}"))?;
    }
    for (kind, name) in FURTHER {
        let at = inside(name);
        // Folders of sysfs are there, or the kernel has no such file system.
        let _ = fs::create_dir_all(&at);
        let _ = CString::new(at).map(|at| guest::mount(kind, &at));
    }
    let outputs = OUTPUTS.to_string_lossy();
    fs::create_dir_all(&*outputs).map_err(|error| format!("{outputs}: {error}"))?;
    guest::mount_with(c"tmpfs", OUTPUTS, &format!("size={OUTPUT}"))?;
    // A kernel may have no network; a program that needs one says so.
    guest::start_loopback();
    Ok(())
}

fn output(stream: Stream) -> String {
    let name = if stream == Stream::Stdout { "stdout" } else { "stderr" };
    format!("{}/{name}", OUTPUTS.to_string_lossy())
}

/// The program while it runs.
struct Child {
    pid: i32,
    gate: PipeWriter,
    /// What kept it from starting.
    failure: PipeReader,
    /// Its wait status, once it has ended.
    status: Option<i32>,
}

impl Child {
    /// Makes a process that waits at its gate, ready to become the program.
    fn prepare(job: &Job, command: &Command, limits: &Limits) -> Result<Child, String> {
        let pipe = || io::pipe().map_err(|error| format!("no pipe: {error}"));
        let ((entry, gate), (failure, mut said)) = (pipe()?, pipe()?);
        // SAFETY: this process has one thread, so the child has all that it needs; it leaves by
        // `exec` or `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(format!("a program cannot be started: {}", io::Error::last_os_error())),
            0 => {
                let message = become_program(job, command, limits, entry);
                let _ = said.write_all(message.as_bytes());
                // SAFETY: it ends this process.
                unsafe { libc::_exit(127) }
            }
            pid => Ok(Child { pid, gate, failure, status: None }),
        }
    }

    /// Opens its gate.
    fn release(&mut self) -> Result<(), String> {
        self.gate.write_all(b"1").map_err(|error| format!("the program did not wait: {error}"))
    }

    /// Waits for its end; true if `end` comes first. A limit that it reaches ends the wait, too.
    fn wait(&mut self, ends: &Ends, limits: &Limits, end: u64, services: &mut [Service]) -> bool {
        loop {
            self.reap(services);
            if self.status.is_some() || limits.reached().is_some() || are_full() {
                return false;
            }
            let left = Duration::from_nanos(end.saturating_sub(clock::now()));
            if left.is_zero() {
                return true;
            }
            ends.wait(limits, left.min(LOOK));
            guest::reassure();
        }
    }

    /// Takes the status of every child that has ended: of this one, of those that have lost their
    /// parents, and of services.
    fn reap(&mut self, services: &mut [Service]) {
        loop {
            services.iter_mut().for_each(|service| _ = service.ended());
            // SAFETY: the kernel writes to `about` only, for which zeros are a value.
            let pid = unsafe {
                let mut about: libc::siginfo_t = std::mem::zeroed();
                let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                match libc::waitid(libc::P_ALL, 0, &raw mut about, how) {
                    0 => about.si_pid(),
                    _ => 0,
                }
            };
            if pid == 0 {
                return;
            }
            if services.iter().any(|service| service.has_pid(pid)) {
                continue;
            }
            let mut status = 0;
            // SAFETY: the kernel writes `status`; this child has ended.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            if pid == self.pid {
                self.status = Some(status);
            }
        }
    }

    /// Fails if the process did not become the program.
    fn expect_started(&mut self, command: &Command) -> Result<(), String> {
        let mut message = String::new();
        let _ = self.failure.read_to_string(&mut message);
        match message.is_empty() {
            true => Ok(()),
            false => Err(format!("{} cannot be started: {message}", command.path)),
        }
    }
}

/// Waits at the gate and becomes the program. Returns only the reason why it cannot.
fn become_program(job: &Job, command: &Command, limits: &Limits, mut entry: PipeReader) -> String {
    let prepared = (|| {
        // SAFETY: two numbers.
        unsafe { libc::setpgid(0, 0) };
        limits.enter()?;
        let open = |path: &str| File::create(path).map_err(|error| format!("{path}: {error}"));
        let null = File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
        let files = [null, open(&output(Stream::Stdout))?, open(&output(Stream::Stderr))?];
        for (number, file) in (0..).zip(&files) {
            // SAFETY: both are open, or become so.
            unsafe { libc::dup2(file.as_raw_fd(), number) };
        }
        std::os::unix::fs::chroot(ROOT).map_err(|error| format!("{ROOT}: {error}"))?;
        std::env::set_current_dir(DIRECTORY).map_err(|error| format!("{DIRECTORY}: {error}"))?;
        match attributes::set_class(job.class, 0, 0) {
            true => Ok(()),
            false => Err(format!("{}: {}", failure::REFUSED_CLASS, io::Error::last_os_error())),
        }
    })();
    if let Err(message) = prepared {
        return message;
    }
    let mut program = process::Command::new(&command.path);
    if let Some((name, arguments)) = command.words.split_first() {
        program.arg0(name).args(arguments);
    }
    program.env_clear();
    program.envs([("PATH", PATH), ("HOME", "/root"), ("USER", "root"), ("LANG", "C.UTF-8")]);
    let _ = entry.read(&mut [0]);
    program.exec().to_string()
}

/// The ends of children, as events to wait for.
struct Ends(OwnedFd);

impl Ends {
    fn watch() -> Result<Ends, String> {
        // SAFETY: the set is plain memory; the descriptor is new, and this has it alone. A program
        // begins without blocked signals, because `exec` of the standard library unblocks all.
        let handle = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        match handle {
            -1 => Err(format!("no descriptor for signals: {}", io::Error::last_os_error())),
            // SAFETY: it is open, and ours.
            handle => Ok(Ends(unsafe { OwnedFd::from_raw_fd(handle) })),
        }
    }

    /// Waits until a child has ended, a limit has counted something, or the time is over.
    fn wait(&self, limits: &Limits, time: Duration) {
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let [tasks, memory] = limits.handles();
        let mut entries = [
            entry(self.0.as_raw_fd(), libc::POLLIN),
            entry(tasks, libc::POLLPRI),
            entry(memory, libc::POLLPRI),
        ];
        let time = i32::try_from(time.as_millis() + 1).unwrap_or(i32::MAX);
        let mut signal = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: three entries, which the kernel writes to, and room for one signal.
        unsafe {
            libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, time);
            libc::read(self.0.as_raw_fd(), signal.as_mut_ptr().cast(), signal.len());
        }
    }
}

/// Kills what the program left behind, and waits for its end.
fn end_the_rest(
    limits: &Limits,
    services: &mut [Service],
    child: &mut Child,
) -> Result<(), String> {
    const SHORTLY: Duration = Duration::from_millis(1);
    let begin = clock::now();
    limits.kill()?;
    loop {
        child.reap(services);
        if limits.is_empty() {
            return Ok(());
        }
        if Duration::from_nanos(clock::now() - begin) > PATIENCE {
            return Err("the processes of a program do not end".to_string());
        }
        std::thread::sleep(SHORTLY);
        guest::reassure();
    }
}

/// Whether there is no room for more output.
fn are_full() -> bool {
    const PAGE: u64 = 4096;
    let size = |stream| fs::metadata(output(stream)).map_or(0, |file| file.len());
    let pages = |stream| size(stream).next_multiple_of(PAGE);
    pages(Stream::Stdout) + pages(Stream::Stderr) >= OUTPUT
}

/// Reports both outputs.
fn report_outputs(job: usize, report: &dyn Fn(&Event)) -> Result<(), String> {
    const AT_A_TIME: usize = 4096;
    for stream in [Stream::Stdout, Stream::Stderr] {
        let path = output(stream);
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(OUTPUT).read_to_end(&mut bytes))
            .map_err(|error| format!("{path}: {error}"))?;
        for part in bytes.chunks(AT_A_TIME) {
            let bytes = part.iter().map(|&byte| char::from(byte)).collect();
            report(&Event::Output { job, stream, bytes });
        }
    }
    Ok(())
}
