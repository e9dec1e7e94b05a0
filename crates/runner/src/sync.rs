//! Mutexes, conditions, barriers and semaphores on futexes that processes can share.
//!
//! Source: Drepper, "Futexes Are Tricky" (2011), mutex 2; futex(2), "Priority-inheritance futexes";
//! the condition is a sequence number, the barrier a generation. They lie in memory that starts as
//! zeros.

use crate::{clock, guest};
use phases::{Nanos, Spin};
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

/// Sleeps while `word` is `value`, for `timeout` at most; may wake up early.
pub fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word lives as long as the call; the kernel only reads it and the timeout.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, timeout) };
}

/// Wakes up to `count` tasks that sleep on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: the kernel uses the word's address only.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count.min(i32::MAX as u32))
    };
}

/// As many as there are.
pub const ALL: u32 = u32::MAX;

/// How often a task that spins looks in a nanosecond, times 2^16.
static LOOKS: AtomicU64 = AtomicU64::new(1 << 16);

/// Measures how long a look at a mutex takes.
pub fn calibrate() {
    const TRIAL: u64 = 20_000;
    let taken = Mutex { state: AtomicU32::new(1), ticket: AtomicU32::new(0) };
    let trial = || {
        let begin = clock::cpu();
        taken.look(TRIAL);
        (clock::cpu() - begin).max(1)
    };
    let best = (0..8).map(|_| trial()).min().unwrap_or(1);
    LOOKS.store((TRIAL << 16) / best, Relaxed);
}

/// The task that gets a released mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heir {
    /// The first task that tries to lock it.
    FirstToTry,
    /// The first task that sees it free, spinning.
    FirstToSee(Spin),
    /// The first task in the queue.
    FirstWaiter,
    /// The most important task in the queue. Until then the holder inherits its priority
    /// (`PTHREAD_PRIO_INHERIT`).
    HighestPriority,
}

/// A mutual exclusion lock. The state is 0 free, 1 taken, 2 waited for. Or it is the ticket that is
/// served, or the holder's thread id, as the kernel requires it.
#[repr(C)]
pub struct Mutex {
    state: AtomicU32,
    ticket: AtomicU32,
}

impl Mutex {
    /// Locks it; false if the kernel refuses, which it does only with priority inheritance.
    #[must_use]
    pub fn lock(&self, heir: Heir) -> bool {
        match heir {
            Heir::FirstWaiter => {
                let mine = self.ticket.fetch_add(1, SeqCst);
                loop {
                    match self.state.load(SeqCst) {
                        serving if serving == mine => return true,
                        serving => wait(&self.state, serving, None),
                    }
                }
            }
            Heir::FirstToTry => {
                if self.state.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
                    self.wait_until_locked();
                }
                true
            }
            Heir::FirstToSee(spin) => {
                while !self.spin_for(spin.limit) {
                    match spin.sleep {
                        Some(pause) => std::thread::sleep(Duration::from_nanos(pause.0)),
                        None => {
                            self.wait_until_locked();
                            break;
                        }
                    }
                }
                true
            }
            Heir::HighestPriority => {
                self.state.compare_exchange(0, own_tid(), SeqCst, SeqCst).is_ok()
                    || self.call_kernel(libc::FUTEX_LOCK_PI)
            }
        }
    }

    fn wait_until_locked(&self) {
        while self.state.swap(2, SeqCst) != 0 {
            wait(&self.state, 2, None);
        }
    }

    /// Spins for it; false if it is not free within the limit.
    fn spin_for(&self, limit: Option<Nanos>) -> bool {
        let per_limit =
            |limit: Nanos| (u128::from(limit.0) * u128::from(LOOKS.load(Relaxed))) >> 16;
        self.look(limit.map_or(u64::MAX, |limit| per_limit(limit) as u64 + 1))
    }

    /// Looks so often at most whether it is free, and takes it if so.
    fn look(&self, looks: u64) -> bool {
        for _ in 0..looks {
            if self.state.load(Relaxed) == 0
                && self.state.compare_exchange(0, 1, SeqCst, SeqCst).is_ok()
            {
                return true;
            }
            // Under an emulator `pause` ends the turn of its CPU.
            if !guest::is_guest() {
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Unlocks it.
    pub fn unlock(&self, heir: Heir) {
        match heir {
            Heir::FirstWaiter => {
                let serving = self.state.fetch_add(1, SeqCst) + 1;
                if self.ticket.load(SeqCst) != serving {
                    wake(&self.state, ALL);
                }
            }
            Heir::FirstToTry | Heir::FirstToSee(_) => {
                if self.state.swap(0, SeqCst) == 2 {
                    wake(&self.state, 1);
                }
            }
            Heir::HighestPriority => {
                if self.state.compare_exchange(own_tid(), 0, SeqCst, SeqCst).is_err() {
                    self.call_kernel(libc::FUTEX_UNLOCK_PI);
                }
            }
        }
    }

    /// Makes the kernel lock it for this thread, or pass it to the next.
    fn call_kernel(&self, operation: i32) -> bool {
        loop {
            // SAFETY: the word lives as long as the call; there is no timeout.
            if unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.state.as_ptr(),
                    operation,
                    0,
                    std::ptr::null::<libc::timespec>(),
                )
            } == 0
            {
                return true;
            }
            if !matches!(
                std::io::Error::last_os_error().raw_os_error(),
                Some(libc::EINTR | libc::EAGAIN)
            ) {
                return false;
            }
        }
    }
}

fn own_tid() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// A condition variable.
#[repr(C)]
pub struct Condition {
    sequence: AtomicU32,
}

impl Condition {
    /// Waits for a signal without the mutex; false if the mutex cannot be locked again.
    #[must_use]
    pub fn wait(&self, mutex: &Mutex, heir: Heir) -> bool {
        let sequence = self.sequence.load(SeqCst);
        mutex.unlock(heir);
        wait(&self.sequence, sequence, None);
        mutex.lock(heir)
    }

    /// Wakes up to `count` tasks that wait.
    pub fn signal(&self, count: u32) {
        self.sequence.fetch_add(1, SeqCst);
        wake(&self.sequence, count);
    }
}

/// A counter of which a task takes one, and which wakes as many as are added.
#[repr(C)]
pub struct Semaphore {
    count: AtomicU32,
    waiting: AtomicU32,
}

impl Semaphore {
    /// Takes one, or waits while there is none.
    pub fn take(&self) {
        let less = |count: u32| count.checked_sub(1);
        while self.count.fetch_update(SeqCst, SeqCst, less).is_err() {
            self.waiting.fetch_add(1, SeqCst);
            wait(&self.count, 0, None);
            self.waiting.fetch_sub(1, SeqCst);
        }
    }

    /// Adds `count`, up to 2^32 - 1 in all.
    pub fn post(&self, count: u64) {
        let added = u32::try_from(count).unwrap_or(u32::MAX);
        let more = |count: u32| Some(count.saturating_add(added));
        let _ = self.count.fetch_update(SeqCst, SeqCst, more);
        if self.waiting.load(SeqCst) > 0 {
            wake(&self.count, added);
        }
    }
}

/// A barrier that can be used again and again.
#[repr(C)]
pub struct Barrier {
    arrived: AtomicU32,
    generation: AtomicU32,
}

impl Barrier {
    /// Waits until `tasks` tasks have arrived.
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
