//! The command: it is held until everything records, and then let go.

use crate::error::Error;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{Error as SystemError, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The command's process.
pub struct Command {
    pid: libc::pid_t,
    gate: File,
    /// Readable once the process has ended; kernels before 5.3 have none.
    end: Option<OwnedFd>,
    status: Option<i32>,
    /// CPU time of the process and of the children it waited for, in nanoseconds.
    cpu: u64,
}

/// What the process ends with if there is no such command.
const NOT_STARTED: i32 = 127;

impl Command {
    /// Forks; the child waits before it starts the command.
    ///
    /// # Errors
    /// If the system refuses, or an argument has a zero in it.
    pub fn hold(command: &[OsString]) -> Result<Command, Error> {
        let arguments: Vec<CString> = command
            .iter()
            .map(|argument| CString::new(argument.as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|_| Error::Usage("an argument of the command has a zero in it".into()))?;
        let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let mut gate = [0; 2];
        // SAFETY: the array has room for two descriptors.
        if unsafe { libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(failed("pipe"));
        }
        // SAFETY: between fork and exec the child makes system calls only; all it needs is there.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(failed("fork")),
            0 => {
                let mut byte = 0_u8;
                // SAFETY: the byte outlives the call, and the pointers end with null.
                unsafe {
                    libc::close(gate[1]);
                    if libc::read(gate[0], (&raw mut byte).cast(), 1) == 1 {
                        libc::execvp(pointers[0], pointers.as_ptr());
                    }
                    libc::_exit(NOT_STARTED)
                }
            }
            _ => {
                // SAFETY: both ends are ours; one is closed, and the other has one owner.
                let gate = unsafe {
                    libc::close(gate[0]);
                    File::from_raw_fd(gate[1])
                };
                // SAFETY: numbers in, a new descriptor or an error out.
                let end = unsafe {
                    let end = libc::syscall(libc::SYS_pidfd_open, pid, 0) as libc::c_int;
                    (end >= 0).then(|| OwnedFd::from_raw_fd(end))
                };
                Ok(Command { pid, gate, end, status: None, cpu: 0 })
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn release(&mut self) -> Result<(), Error> {
        self.gate.write_all(&[1]).map_err(|_| failed("the command is gone: write"))
    }

    /// Its wait status, once it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        self.reap(libc::WNOHANG)
    }

    /// The same, after it ended or after this while.
    pub fn ended_within(&mut self, time: Duration) -> Option<i32> {
        match &self.end {
            Some(end) => {
                let mut end =
                    libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                let time = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
                // SAFETY: one entry, which outlives the call.
                unsafe { libc::poll(&raw mut end, 1, time) };
            }
            None => std::thread::sleep(time),
        }
        self.ended()
    }

    /// The CPU time that it took with the children it waited for, once it has ended: nanoseconds.
    pub fn cpu_time(&self) -> u64 {
        self.cpu
    }

    /// Interrupts it, and waits for its end.
    pub fn interrupt(&mut self) -> Option<i32> {
        if self.status.is_none() {
            // SAFETY: it is a child that was not waited for.
            unsafe { libc::kill(self.pid, libc::SIGINT) };
        }
        self.reap(0)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Option<i32> {
        self.reap(0)
    }

    fn reap(&mut self, flags: libc::c_int) -> Option<i32> {
        let mut status = 0;
        // SAFETY: zeros are a value of it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: status and usage outlive the call.
        if self.status.is_none()
            && unsafe { libc::wait4(self.pid, &raw mut status, flags, &raw mut usage) } == self.pid
        {
            self.status = Some(status);
            let us =
                [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec * 1_000_000 + time.tv_usec);
            self.cpu = us.iter().sum::<i64>().cast_unsigned() * 1_000;
        }
        self.status
    }
}

fn failed(what: &str) -> Error {
    Error::Internal(format!("{what}: {}", SystemError::last_os_error()))
}
