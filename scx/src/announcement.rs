//! Handles SIGUSR1: a job is about to begin, and nothing before it may affect it.
//!
//! A real-time thread waits for the signal. None of our schedulers schedules it, and on one CPU it is
//! done before the sender of the signal continues. On several a task of the job may have begun by
//! then, which a scheduler has to bear.

use crate::error::Error;
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::thread;

/// Blocks the signal for this thread and its future children.
pub fn hold() {
    let signals = announcement();
    // SAFETY: the set is only read.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut()) };
}

/// Calls `what` at each signal, which all threads block.
///
/// # Errors
/// [`Error::Internal`] if no thread can be begun.
pub fn at_each_job(mut what: impl FnMut() + Send + 'static) -> Result<(), Error> {
    let wait = move || {
        let (least, signals, mut signal) =
            (libc::sched_param { sched_priority: 1 }, announcement(), 0);
        // SAFETY: the pointers are only read, but for `signal`. If the kernel refuses the class,
        // the thread keeps its ordinary one.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const least);
            while libc::sigwait(&raw const signals, &raw mut signal) == 0 {
                what();
            }
        }
    };
    let begun = thread::Builder::new().spawn(wait);
    begun.map(drop).map_err(|error| Error::Internal(format!("no thread can be begun: {error}")))
}

/// Runs a BPF program without arguments.
pub fn run(program: &OwnedFd) {
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as u64,
        ..bpf_test_run_opts::default()
    };
    // SAFETY: with these options nothing is read or written. It cannot fail for a loaded program.
    unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
}

/// The signal as a set.
fn announcement() -> libc::sigset_t {
    // SAFETY: a set consists of numbers, and is emptied first.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        set
    }
}
