//! Mutexes, conditions and barriers on futexes that processes can share.
//!
//! Source: Drepper, "Futexes Are Tricky" (2011), mutex 2; the condition is a sequence number, the barrier a generation. They lie in memory that starts as zeros.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Sleeps while `word` is `value`, at most `timeout`; wakes up early at times.
pub fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word lives as long as the call; the kernel only reads it and the timeout.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, timeout) };
}

/// Wakes up to `count` that sleep on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: the kernel uses the word's address only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count.min(i32::MAX as u32)) };
}

/// Everybody.
pub const ALL: u32 = u32::MAX;

/// Excludes others. Either the first that comes gets it (0 free, 1 taken, 2 waited for), or the first that waits (a ticket).
#[repr(C)]
pub struct Mutex {
    state: AtomicU32,
    ticket: AtomicU32,
}

impl Mutex {
    /// Takes it.
    pub fn lock(&self, handoff: bool) {
        if handoff {
            let mine = self.ticket.fetch_add(1, SeqCst);
            loop {
                match self.state.load(SeqCst) {
                    serving if serving == mine => return,
                    serving => wait(&self.state, serving, None),
                }
            }
        }
        if self.state.compare_exchange(0, 1, SeqCst, SeqCst).is_ok() {
            return;
        }
        while self.state.swap(2, SeqCst) != 0 {
            wait(&self.state, 2, None);
        }
    }

    /// Gives it up.
    pub fn unlock(&self, handoff: bool) {
        if handoff {
            let serving = self.state.fetch_add(1, SeqCst) + 1;
            if self.ticket.load(SeqCst) != serving {
                wake(&self.state, ALL);
            }
        } else if self.state.swap(0, SeqCst) == 2 {
            wake(&self.state, 1);
        }
    }
}

/// Something to wait for.
#[repr(C)]
pub struct Condition {
    sequence: AtomicU32,
}

impl Condition {
    /// Waits for a signal without the mutex.
    pub fn wait(&self, mutex: &Mutex, handoff: bool) {
        let sequence = self.sequence.load(SeqCst);
        mutex.unlock(handoff);
        wait(&self.sequence, sequence, None);
        mutex.lock(handoff);
    }

    /// Wakes up to `count` of those that wait.
    pub fn signal(&self, count: u32) {
        self.sequence.fetch_add(1, SeqCst);
        wake(&self.sequence, count);
    }
}

/// Where tasks wait for each other, again and again.
#[repr(C)]
pub struct Barrier {
    arrived: AtomicU32,
    generation: AtomicU32,
}

impl Barrier {
    /// Waits until `tasks` have come.
    pub fn wait(&self, tasks: u32) {
        let generation = self.generation.load(SeqCst);
        if self.arrived.fetch_add(1, SeqCst) + 1 == tasks {
            self.arrived.store(0, SeqCst);
            self.generation.fetch_add(1, SeqCst);
            wake(&self.generation, ALL);
            return;
        }
        while self.generation.load(SeqCst) == generation {
            wait(&self.generation, generation, None);
        }
    }
}
