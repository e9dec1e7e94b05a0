//! The new process, from its birth to the stranger's program.
//!
//! `unsafe`: between the birth and the program only calls are made that are safe after a fork of a
//! process with threads. All memory is prepared before.

use seccompiler::BpfProgram;
use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

/// A wall of the sandbox, or another step on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wall {
    Namespaces,
    Files,
    Landlock,
    Limits,
    Seccomp,
    Program,
}

impl Wall {
    const ALL: [Wall; 6] =
        [Wall::Namespaces, Wall::Files, Wall::Landlock, Wall::Limits, Wall::Seccomp, Wall::Program];

    pub fn name(self) -> &'static str {
        match self {
            Wall::Namespaces => "namespaces (user, mount, process, network, IPC)",
            Wall::Files => "its own input and output",
            Wall::Landlock => "Landlock",
            Wall::Limits => "limits (setrlimit)",
            Wall::Seccomp => "seccomp",
            Wall::Program => "the program",
        }
    }
}

/// Everything that the new process needs, made before its birth.
pub struct Plan<'a> {
    pub program: CString,
    pub words: Vec<CString>,
    pub variables: Vec<CString>,
    pub folder: CString,
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub channel: Option<OwnedFd>,
    /// Where a failure is reported.
    pub says: OwnedFd,
    pub files: OwnedFd,
    pub filter: &'a BpfProgram,
    pub limits: [(libc::__rlimit_resource_t, u64); 4],
}

/// The namespaces of its own.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC;

/// The file that tells a failure; it is closed when the program starts.
const SAYS: RawFd = 4;

impl Plan<'_> {
    /// Starts the process, and returns its number.
    ///
    /// # Errors
    /// If there are no such namespaces.
    pub fn start(&self) -> io::Result<i32> {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (words, variables) = (pointers(&self.words), pointers(&self.variables));
        let flags = (NAMESPACES | libc::SIGCHLD) as libc::c_ulong;
        // SAFETY: as fork: without a stack of its own, the child goes on with a copy of this one.
        match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
            0 => self.become_program(&words, &variables),
            pid if pid > 0 => Ok(pid as i32),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Continues as the untrusted program; it never returns.
    fn become_program(&self, words: &[*const c_char], variables: &[*const c_char]) -> ! {
        let channel = self.channel.as_ref().unwrap_or(&self.input).as_raw_fd();
        let (input, output) = (self.input.as_raw_fd(), self.output.as_raw_fd());
        // SAFETY: system calls with memory that was made before; nothing is allocated.
        unsafe {
            let mut wall = Wall::Files;
            let is_walled = libc::dup2(self.says.as_raw_fd(), SAYS) >= 0
                && libc::fcntl(SAYS, libc::F_SETFD, libc::FD_CLOEXEC) == 0
                && libc::dup2(input, 0) >= 0
                && libc::dup2(output, 1) >= 0
                && libc::dup2(output, 2) >= 0
                && libc::dup2(channel, 3) >= 0
                && libc::setsid() >= 0
                && libc::chdir(self.folder.as_ptr()) == 0
                && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                && {
                    wall = Wall::Landlock;
                    libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                        && libc::syscall(
                            libc::SYS_landlock_restrict_self,
                            self.files.as_raw_fd(),
                            0,
                        ) == 0
                }
                && {
                    wall = Wall::Limits;
                    libc::syscall(libc::SYS_close_range, SAYS + 1, libc::c_uint::MAX, 0) == 0
                        && self.limits.iter().all(|&(resource, most)| {
                            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
                            libc::setrlimit(resource, &raw const limit) == 0
                        })
                }
                && {
                    wall = Wall::Seccomp;
                    let filter = libc::sock_fprog {
                        len: self.filter.len() as u16,
                        filter: self.filter.as_ptr().cast_mut().cast(),
                    };
                    libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
                        == 0
                };
            if is_walled {
                wall = Wall::Program;
                libc::execve(self.program.as_ptr(), words.as_ptr(), variables.as_ptr());
            }
            let error = *libc::__errno_location();
            let failed = [wall as u8, error as u8];
            libc::write(SAYS, failed.as_ptr().cast(), failed.len());
            libc::_exit(127)
        }
    }
}

/// What the new process tells of a failure, if it failed.
pub fn failure(said: &[u8]) -> Option<(Wall, io::Error)> {
    let (&wall, &error) = (said.first()?, said.get(1)?);
    let wall = Wall::ALL.get(usize::from(wall)).copied().unwrap_or(Wall::Program);
    Some((wall, io::Error::from_raw_os_error(error.into())))
}
