//! The command: it is held until everything records, and then let go.

use crate::error::Error;
use std::ffi::{CString, OsString};
use std::io::Error as SystemError;
use std::os::unix::ffi::OsStrExt;

/// The command's process.
pub struct Command {
    pid: libc::pid_t,
    gate: libc::c_int,
    status: Option<i32>,
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
                // SAFETY: it is ours.
                unsafe { libc::close(gate[0]) };
                Ok(Command { pid, gate: gate[1], status: None })
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
        // SAFETY: one byte is read from a byte that lives.
        let count = unsafe { libc::write(self.gate, [1_u8].as_ptr().cast(), 1) };
        if count == 1 { Ok(()) } else { Err(failed("the command is gone: write")) }
    }

    /// Its wait status, once it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        self.reap(libc::WNOHANG)
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
        // SAFETY: the status outlives the call.
        if self.status.is_none()
            && unsafe { libc::waitpid(self.pid, &raw mut status, flags) } == self.pid
        {
            self.status = Some(status);
        }
        self.status
    }
}

fn failed(what: &str) -> Error {
    Error::Internal(format!("{what}: {}", SystemError::last_os_error()))
}
