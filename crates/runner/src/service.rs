//! Programs that run beside the jobs, such as a scheduler in user space. It is one of ours, which
//! says that it is ready, or any of sched_ext, of which the kernel says so.
//!
//! Their output is kept in a file and reported at the end, so they disturb no measurement and never
//! wait for a reader.

use crate::{guest, sched_ext};
use schedlab_runner::event::Event;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A program that runs or has ended.
pub struct Service {
    number: usize,
    child: Child,
    output: String,
    /// Whether it knows nothing of this runner.
    is_foreign: bool,
}

/// How often to check whether it is ready or has ended, and the time limit for that.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
/// How long any scheduler may take to be loaded. The kernel looks at each path through its
/// programs, which takes a large one (scx_lavd) half a minute of an emulated CPU.
const TO_LOAD: Duration = Duration::from_secs(120);
/// How much of what it wrote is reported: the end.
const REPORTED: usize = 64 << 10;

impl Service {
    /// Starts all of `commands`.
    pub fn start_all(commands: &[Vec<String>]) -> Result<Vec<Service>, String> {
        commands
            .iter()
            .enumerate()
            .map(|(number, command)| Service::start(number, command))
            .collect()
    }

    fn start(number: usize, command: &[String]) -> Result<Service, String> {
        let output = output_of(number);
        let file = File::create(&output).map_err(|error| format!("{output}: {error}"))?;
        let child = spawn(command, |child| child.stdout(file))?;
        Ok(Service { number, child, output, is_foreign: false })
    }

    /// Starts a scheduler of sched_ext that knows nothing of this runner, as service `number`.
    pub fn foreign(number: usize, command: &[String]) -> Result<Service, String> {
        let output = if guest::is_guest() {
            sched_ext::output()
        } else {
            sched_ext::expect_none()?;
            output_of(number)
        };
        let file = File::create(&output).map_err(|error| format!("{output}: {error}"))?;
        let errors = file.try_clone().map_err(|error| error.to_string())?;
        let child = spawn(command, |child| child.stdout(file).stderr(errors))?;
        Ok(Service { number, child, output, is_foreign: true })
    }

    /// Waits until it is ready, or has ended: it reports that by its first line of output, or the
    /// kernel says it, which is reported.
    ///
    /// # Errors
    /// If it does neither.
    pub fn expect_ready(&mut self, report: &dyn Fn(&Event)) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        while !self.is_ready() && self.ended().is_none() {
            if self.is_foreign {
                if waited >= TO_LOAD {
                    break;
                }
                if guest::is_guest() {
                    guest::reassure();
                }
            } else if waited >= PATIENCE {
                return Err(format!(
                    "service {} has not said that it is ready {PATIENCE:?} after the wait before \
                     the first job",
                    self.number
                ));
            }
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
        if self.is_foreign {
            report(&Event::SchedExt { now: sched_ext::now() });
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        match self.is_foreign {
            true => sched_ext::now().is_enabled(),
            false => std::fs::metadata(&self.output).is_ok_and(|output| output.len() > 0),
        }
    }

    /// Signals it that a job is about to begin, if it knows that signal.
    pub fn announce_job(&self) {
        if self.is_foreign {
            return;
        }
        // SAFETY: numbers only; the child has not been waited for, so it still owns the id.
        unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGUSR1) };
    }

    /// Whether this is its process.
    pub fn has_pid(&self, pid: i32) -> bool {
        self.child.id().cast_signed() == pid
    }

    /// Terminates it, waits, kills it if it does not end, and reports its output and how it ended.
    pub fn end(mut self, report: &dyn Fn(&Event)) {
        if self.is_foreign {
            report(&Event::SchedExt { now: sched_ext::now() });
        }
        let by_itself = self.ended();
        let status = by_itself.map_or_else(|| self.terminate(), |status| status.to_string());
        let said = std::fs::read(&self.output).unwrap_or_default();
        let said = &said[said.len().saturating_sub(REPORTED)..];
        String::from_utf8_lossy(said).lines().for_each(|line| {
            report(&Event::Service { service: self.number, line: line.to_string() })
        });
        report(&Event::ServiceEnd { service: self.number, status, early: by_itself.is_some() });
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Signals it to end.
    pub fn ask_to_end(&self) {
        let signal = if self.is_foreign { libc::SIGINT } else { libc::SIGTERM };
        // SAFETY: numbers only; the child has not been waited for, so it still owns the id.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    fn terminate(&mut self) -> String {
        self.ask_to_end();
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            std::thread::sleep(LOOK);
            waited += LOOK;
            if let Some(status) = self.ended() {
                return status.to_string();
            }
        }
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

/// On any way out its program ends, and with it the scheduler that it has loaded.
impl Drop for Service {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.terminate();
        }
        let _ = std::fs::remove_file(&self.output);
    }
}

/// The file for the output of service `number`.
fn output_of(number: usize) -> String {
    let name = format!("schedlab-{}-service-{number}", std::process::id());
    std::env::temp_dir().join(name).to_string_lossy().into_owned()
}

/// Starts a program, which is killed if this runner dies.
fn spawn(
    command: &[String],
    outputs: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<Child, String> {
    let (program, arguments) = command.split_first().ok_or("a service has no name")?;
    let mut child = Command::new(program);
    // SAFETY: between fork and exec it makes one system call, which takes two numbers.
    unsafe {
        child.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    outputs(child.args(arguments).stdin(Stdio::null()));
    child.spawn().map_err(|error| format!("{program} cannot be started: {error}"))
}
