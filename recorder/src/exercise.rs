//! A program of known operations of the scheduler. What a recording of it shows of a machine's costs
//! holds for other recordings of that machine that cannot tell them.
//!
//! It takes about 150 ms of an idle machine. Each step runs in processes of its own, pinned to one CPU
//! or two; the first two CPUs on which the program may run. On one CPU the steps for two are left out.

use crate::error::Error;
use crate::machine::now;
use std::io::Error as SystemError;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Calls that neither block nor wake: what a call itself takes.
    Calls,
    /// Two tasks on one CPU or two pass a byte through two pipes, the first after a pause of this
    /// long: blocking, waking, the switch, and leaving idle after so long.
    Pipes { other: bool, pause: u64 },
    /// The same by futex.
    Futex { other: bool },
    /// A task of a real-time class beside one that computes is woken, on this CPU or another: how
    /// late a busy CPU stops its task.
    Stops { other: bool },
    /// A task sleeps for this long: how late its own timer's interrupt wakes an idle CPU.
    Sleeps { pause: u64 },
    /// The same in a real-time class beside a task that computes.
    SleepsBeside { pause: u64 },
}

/// The steps with their rounds. A cost needs 30 samples, a class of idle time 10.
const STEPS: [(Step, u32); 19] = [
    (Step::Calls, 200),
    (Step::Pipes { other: false, pause: 0 }, 150),
    (Step::Futex { other: false }, 150),
    (Step::Stops { other: false }, 60),
    (Step::Sleeps { pause: 3_000 }, 60),
    (Step::Sleeps { pause: 8_000 }, 60),
    (Step::Sleeps { pause: 60_000 }, 60),
    (Step::Sleeps { pause: 400_000 }, 40),
    (Step::SleepsBeside { pause: 100_000 }, 80),
    (Step::Pipes { other: true, pause: 0 }, 60),
    (Step::Pipes { other: true, pause: 700 }, 60),
    (Step::Pipes { other: true, pause: 2_000 }, 60),
    (Step::Pipes { other: true, pause: 4_000 }, 60),
    (Step::Pipes { other: true, pause: 8_000 }, 60),
    (Step::Pipes { other: true, pause: 60_000 }, 60),
    (Step::Pipes { other: true, pause: 400_000 }, 40),
    (Step::Futex { other: true }, 100),
    (Step::Stops { other: true }, 100),
    (Step::Calls, 200),
];

/// How long a task computes before it wakes one that stops another.
const BETWEEN: u64 = 30_000;

impl Step {
    fn needs_two(self) -> bool {
        matches!(
            self,
            Step::Pipes { other: true, .. }
                | Step::Futex { other: true }
                | Step::Stops { other: true }
        )
    }
}

/// Runs all steps that the CPUs allow.
///
/// # Errors
/// If a process cannot be started, or fails.
pub fn run() -> Result<(), Error> {
    let cpus = allowed();
    for (step, rounds) in STEPS.into_iter().filter(|(step, _)| !step.needs_two() || cpus.len() > 1)
    {
        if !child(|| perform(step, rounds, &cpus)).is_some_and(ended_well) {
            let error = SystemError::last_os_error();
            return Err(Error::Internal(format!("the exercise {step:?} failed: {error}")));
        }
    }
    Ok(())
}

/// The first task of a step, in a process of its own. Returns whether it was done.
fn perform(step: Step, rounds: u32, cpus: &[usize]) -> bool {
    let second = |other: bool| cpus.get(usize::from(other)).or(cpus.first());
    match step {
        Step::Calls => calls(rounds, cpus.first()),
        Step::Pipes { other, pause } => pipes(rounds, pause, [cpus.first(), second(other)]),
        Step::Futex { other } => futex(rounds, [cpus.first(), second(other)]),
        Step::Stops { other } => stops(rounds, [cpus.first(), second(other)]),
        Step::Sleeps { pause } => {
            pin(cpus.first());
            (0..rounds).for_each(|_| sleep(pause));
            true
        }
        Step::SleepsBeside { pause } => {
            let Some(beside) = computing(cpus.first(), &[]) else { return false };
            pin(cpus.first());
            let done = goes_first();
            (0..rounds).for_each(|_| sleep(pause));
            kill(beside);
            done
        }
    }
}

fn calls(rounds: u32, cpu: Option<&usize>) -> bool {
    let (Some([from, to]), nobody) = (pipe(), AtomicU32::new(0)) else { return false };
    pin(cpu);
    (0..rounds).all(|_| {
        wake(&nobody);
        pass(to) && take(from)
    })
}

fn pipes(rounds: u32, pause: u64, [cpu, second]: [Option<&usize>; 2]) -> bool {
    let (Some(there), Some(back)) = (pipe(), pipe()) else { return false };
    let answers = child(|| {
        pin(second);
        close(&[there[1], back[0]]);
        while take(there[0]) {
            pass(back[1]);
        }
        true
    });
    close(&[there[0], back[1]]);
    pin(cpu);
    let done = (0..rounds).all(|_| {
        compute(pause);
        pass(there[1]) && take(back[0])
    });
    close(&[there[1], back[0]]);
    answers.is_some_and(ended_well) && done
}

fn futex(rounds: u32, [cpu, second]: [Option<&usize>; 2]) -> bool {
    let Some(whose) = shared() else { return false };
    let answers = child(|| {
        pin(second);
        for _ in 0..rounds {
            wait_while(whose, 0);
            whose.store(0, SeqCst);
            wake(whose);
        }
        true
    });
    if answers.is_none() {
        return false;
    }
    pin(cpu);
    for _ in 0..rounds {
        whose.store(1, SeqCst);
        wake(whose);
        wait_while(whose, 1);
    }
    answers.is_some_and(ended_well)
}

fn stops(rounds: u32, [cpu, second]: [Option<&usize>; 2]) -> bool {
    let Some([from, to]) = pipe() else { return false };
    let Some(beside) = computing(second, &[from, to]) else { return false };
    let woken = child(|| {
        pin(second);
        close(&[to]);
        let done = goes_first();
        while take(from) {}
        done
    });
    close(&[from]);
    pin(cpu);
    let done = woken.is_some()
        && (0..rounds).all(|_| {
            compute(BETWEEN);
            pass(to)
        });
    close(&[to]);
    let done = woken.is_some_and(ended_well) && done;
    kill(beside);
    done
}

/// A process that computes on `cpu` until it is ended, without these descriptors.
fn computing(cpu: Option<&usize>, without: &[libc::c_int]) -> Option<libc::pid_t> {
    child(|| {
        pin(cpu);
        close(without);
        loop {
            compute(1_000_000);
        }
    })
}

/// Runs `work` in a process that ends with this one. Returns its number.
fn child(work: impl FnOnce() -> bool) -> Option<libc::pid_t> {
    // SAFETY: this program has one thread. The child calls the system and computes, and ends in
    // `_exit`.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            // SAFETY: numbers in. The parent may end before it; then it computes for ever.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::_exit(i32::from(!work()))
            }
        }
        pid => Some(pid),
    }
}

/// Waits for a child. Returns whether it did all.
fn ended_well(pid: libc::pid_t) -> bool {
    let mut status = -1;
    // SAFETY: the status outlives the call.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    status == 0
}

fn kill(pid: libc::pid_t) {
    // SAFETY: numbers in; it is a child that nobody has waited for.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, null_mut(), 0);
    }
}

/// The CPUs on which this process may run.
fn allowed() -> Vec<usize> {
    // SAFETY: the set outlives the call; a set of zeros is one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above, and its size is given.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the numbers are below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

fn pin(cpu: Option<&usize>) {
    let Some(cpu) = cpu else { return };
    // SAFETY: the set outlives the calls, and the number is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(*cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// Runs before every task of the usual class from now on. Returns whether it may.
fn goes_first() -> bool {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the priority outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) == 0 }
}

fn compute(time: u64) {
    let end = now() + time;
    while time > 0 && now() < end {}
}

fn sleep(pause: u64) {
    let until = now() + pause;
    let until = libc::timespec {
        tv_sec: (until / 1_000_000_000).cast_signed(),
        tv_nsec: (until % 1_000_000_000).cast_signed(),
    };
    // SAFETY: the time outlives the call.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            null_mut(),
        )
    };
}

fn pipe() -> Option<[libc::c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    let done = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0;
    done.then_some(ends)
}

fn close(ends: &[libc::c_int]) {
    // SAFETY: they are this process's own, and not used again.
    ends.iter().for_each(|end| _ = unsafe { libc::close(*end) });
}

fn pass(to: libc::c_int) -> bool {
    // SAFETY: one byte is read from a byte that lives.
    unsafe { libc::write(to, [1_u8].as_ptr().cast(), 1) == 1 }
}

fn take(from: libc::c_int) -> bool {
    let mut byte = 0_u8;
    // SAFETY: the byte outlives the call.
    unsafe { libc::read(from, (&raw mut byte).cast(), 1) == 1 }
}

/// A word that is zero and that children share.
fn shared() -> Option<&'static AtomicU32> {
    let (size, both) = (size_of::<AtomicU32>(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which lives as long as the process.
    let at = unsafe { libc::mmap(null_mut(), size, both, flags, -1, 0) };
    // SAFETY: it is a page of zeros.
    (at != libc::MAP_FAILED).then(|| unsafe { &*at.cast::<AtomicU32>() })
}

fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

fn wait_while(word: &AtomicU32, value: u32) {
    while word.load(SeqCst) == value {
        let no_end = null::<libc::timespec>();
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, no_end) };
    }
}
