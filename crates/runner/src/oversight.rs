//! The overseer of a job. It does the job's steps at their times, above all tasks that the guest's
//! scheduler schedules. It reports what the kernel says of that scheduler.

use crate::service::Service;
use crate::stage::Stage;
use crate::{attributes, clock, machine, sched_ext};
use schedlab_runner::class::Class;
use schedlab_runner::event::{Event, SchedExt};
use schedlab_runner::step::{Act, Step};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How often to look whether a scheduler is gone, and how long to wait for an end.
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(10);
/// The argument with which the runner, started as a program, does nothing.
pub const NOTHING: &str = "--nothing";
/// The most lines of the kernel's log that are reported.
const LINES: usize = 60;

/// The steps of a job that are left, and what was done.
pub struct Oversight<'a> {
    steps: &'a [Step],
    services: &'a [Service],
    next: usize,
    /// A report for each step that was done.
    pub done: Vec<Event>,
}

impl<'a> Oversight<'a> {
    /// Of a job with these steps. The calling thread comes before all ordinary tasks from here on.
    pub fn begin(steps: &'a [Step], services: &'a [Service]) -> Oversight<'a> {
        attributes::become_experimenter();
        Oversight { steps, services, next: 0, done: Vec::new() }
    }

    /// When the next step is due, in nanoseconds after the release of the tasks.
    pub fn due(&self) -> Option<u64> {
        self.steps.get(self.next).map(|step| step.at_ns)
    }

    /// Does the next step.
    pub fn step(&mut self, stage: &Stage, job: usize) {
        let Some(step) = self.steps.get(self.next) else { return };
        let ns = clock::now();
        let error = self.act(stage, &step.act).err();
        let took_ns = clock::now() - ns;
        self.done.push(Event::Act { job, step: self.next, ns, took_ns, error });
        self.next += 1;
    }

    fn act(&self, stage: &Stage, act: &Act) -> Result<(), String> {
        match act {
            Act::Offline(cpu) => machine::switch(*cpu, false),
            Act::Online(cpu) => machine::switch(*cpu, true),
            Act::Stop(task) => each(stage, task, |tid| signal(tid, libc::SIGSTOP)),
            Act::Continue(task) => each(stage, task, |tid| signal(tid, libc::SIGCONT)),
            Act::Affinity { task, cpus } => {
                each(stage, task, |tid| attributes::set_affinity_of(tid, cpus))
            }
            Act::KernelWork => fs::write("/proc/sys/vm/stat_refresh", "1")
                .map_err(|error| format!("/proc/sys/vm/stat_refresh: {error}")),
            Act::GracePeriod => grace_period(),
            Act::Execs(count) => execs(*count),
            Act::Unload => unload(self.services),
        }
    }
}

/// Does something to each task of a name that lives.
fn each(stage: &Stage, name: &str, act: impl Fn(i32) -> bool) -> Result<(), String> {
    let templates = stage.program.templates.iter().filter(|template| template.name == name);
    let tids = templates.flat_map(|template| stage.places_of(template)).filter_map(|instance| {
        let (tid, ended) = (instance.tid.load(SeqCst), instance.ended_ns.load(SeqCst));
        (tid > 0 && ended == 0).then_some(tid.cast_signed())
    });
    let tids: Vec<i32> = tids.collect();
    if tids.is_empty() {
        return Err(format!("no task `{name}` lives"));
    }
    match tids.into_iter().all(act) {
        true => Ok(()),
        false => Err(format!("task `{name}`: {}", io::Error::last_os_error())),
    }
}

fn signal(process: i32, signal: i32) -> bool {
    // SAFETY: two numbers; the process is a child of this one.
    unsafe { libc::kill(process, signal) == 0 }
}

fn grace_period() -> Result<(), String> {
    /// `MEMBARRIER_CMD_GLOBAL` of linux/include/uapi/linux/membarrier.h: `synchronize_rcu()`.
    const GLOBAL: i32 = 1;
    // SAFETY: three numbers.
    match unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) } {
        0 => Ok(()),
        _ => Err(format!("membarrier(2): {}", io::Error::last_os_error())),
    }
}

/// Lets a child of the ordinary class start programs. The child reports the number of those that
/// did not end well, by a pipe.
fn execs(count: u32) -> Result<(), String> {
    let (mut answer, to) = io::pipe().map_err(|error| format!("a pipe: {error}"))?;
    // SAFETY: the child uses system calls only, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => return Err(format!("fork(2): {}", io::Error::last_os_error())),
        0 => {
            attributes::set_class(Class::Other, 0, 0);
            let failed = start_programs(count);
            let answer = failed.to_ne_bytes();
            // SAFETY: it writes four bytes of its own; the pipe is this process's.
            unsafe {
                libc::write(std::os::fd::AsRawFd::as_raw_fd(&to), answer.as_ptr().cast(), 4);
                libc::_exit(0)
            }
        }
        _ => drop(to),
    }
    let mut ready = libc::pollfd {
        fd: std::os::fd::AsRawFd::as_raw_fd(&answer),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which the kernel writes to.
    if unsafe { libc::poll(&raw mut ready, 1, PATIENCE.as_millis() as i32) } != 1 {
        return Err(format!("{count} programs have not ended after {PATIENCE:?}"));
    }
    let mut failed = [0; 4];
    answer.read_exact(&mut failed).map_err(|error| format!("the process died: {error}"))?;
    match u32::from_ne_bytes(failed) {
        0 => Ok(()),
        failed => Err(format!("{failed} of {count} programs could not be started, or failed")),
    }
}

/// Starts this program with [`NOTHING`] `count` times. Returns how often that failed.
fn start_programs(count: u32) -> u32 {
    let mut failed = 0;
    let arguments = [c"schedlab-runner".as_ptr(), c"--nothing".as_ptr(), std::ptr::null()];
    // SAFETY: terminated strings and lists; the grandchild leaves by `_exit` if it cannot start.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        for _ in 0..count {
            let child = libc::fork();
            if child == 0 {
                libc::execv(c"/proc/self/exe".as_ptr(), arguments.as_ptr());
                libc::_exit(127);
            }
            let mut status = -1;
            let ended = child > 0 && libc::waitpid(child, &raw mut status, 0) == child;
            failed += u32::from(!ended || status != 0);
        }
    }
    failed
}

fn unload(services: &[Service]) -> Result<(), String> {
    services.iter().for_each(Service::ask_to_end);
    let mut waited = Duration::ZERO;
    while sched_ext::now().state != "disabled" {
        if waited >= PATIENCE {
            let state = sched_ext::now().state;
            return Err(format!("the state of sched_ext is `{state}` after {PATIENCE:?}"));
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    Ok(())
}

/// The kernel's log, from where it was opened on.
pub struct Log(Option<File>);

impl Log {
    /// Opens it at its end.
    pub fn open() -> Log {
        let mut options = OpenOptions::new();
        let mut log = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok();
        let _ = log.as_mut().map(|log| log.seek(SeekFrom::End(0)));
        Log(log)
    }

    /// The warnings since the last call, and what sched_ext says.
    fn news(&self) -> Vec<String> {
        /// Of the kernel's levels: the first that is no warning.
        const NOTICE: u32 = 5;
        let (mut news, mut record) = (Vec::new(), [0; 8192]);
        let Some(mut log) = self.0.as_ref() else { return news };
        loop {
            let length = match log.read(&mut record) {
                Ok(length @ 1..) => length,
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => continue,
                Ok(0) | Err(_) => break,
            };
            // `6,339,5140900,-;message`: the level is in the lowest three bits.
            let text = String::from_utf8_lossy(&record[..length]);
            let Some((head, message)) = text.lines().next().and_then(|line| line.split_once(';'))
            else {
                continue;
            };
            let level = head.split(',').next().and_then(|level| level.parse::<u32>().ok());
            let is_warning = level.is_some_and(|level| level % 8 < NOTICE);
            if (is_warning || message.contains("sched_ext")) && news.len() < LINES {
                news.push(message.to_string());
            }
        }
        news
    }

    /// What the kernel says of its scheduler after job number `job`, and which threads are its own.
    pub fn overseen(&self, job: usize) -> Event {
        let loads = fs::read_to_string("/sys/kernel/sched_ext/enable_seq").unwrap_or_default();
        let now: SchedExt = sched_ext::now();
        let kernel_threads = kernel_threads();
        let loads = loads.trim().parse().unwrap_or(0);
        Event::Overseen { job, now, loads, kernel_threads, log: self.news() }
    }
}

/// The kernel's own threads: the children of `kthreadd`, which has number 2.
fn kernel_threads() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_kernel = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // `7 (name) S 2 …`; a name may have brackets.
        let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
        *pid == 2 || after.split(' ').nth(1) == Some("2")
    };
    let mut own: Vec<u32> = numbers.filter(is_kernel).collect();
    own.sort_unstable();
    own
}
