//! SIGUSR1: a job is about to begin, and what was before it shall make no difference.
//!
//! A thread waits for it that is real-time, so that no scheduler of ours schedules it: it takes no turn, and is done before whoever sent the signal goes on.

use crate::error::Error;
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::thread;

/// Keeps the signal from this thread, and from those that it begins from now on.
pub fn hold() {
    let signals = announcement();
    // SAFETY: the set is only read.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut()) };
}

/// Does `what` whenever the signal comes, which all threads hold.
///
/// # Errors
/// [`Error::Internal`] if no thread can be begun.
pub fn at_each_job(mut what: impl FnMut() + Send + 'static) -> Result<(), Error> {
    let wait = move || {
        let (least, signals, mut signal) = (libc::sched_param { sched_priority: 1 }, announcement(), 0);
        // SAFETY: what is pointed to is read only, but for `signal`. Where the kernel refuses the class, the thread is one like others.
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

/// Runs a program of BPF's that takes nothing.
pub fn run(program: &OwnedFd) {
    let mut options = bpf_test_run_opts { sz: size_of::<bpf_test_run_opts>() as u64, ..bpf_test_run_opts::default() };
    // SAFETY: the options say that nothing is read or written. It fails for no program that has been loaded.
    unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
}

/// The signal, as a set.
fn announcement() -> libc::sigset_t {
    // SAFETY: a set is numbers only, and is emptied first.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        set
    }
}
