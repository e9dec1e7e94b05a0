//! What operations of the scheduler cost on this machine: small programs of known operations.
//!
//! Each runs in processes of its own, pinned to one CPU or two, and its samples come back through a
//! pipe. Where both tasks share a CPU it is their CPU time that is measured, so that other tasks
//! that run meanwhile do not count.

use crate::error::Error;
use crate::machine::{now, read_clock};
use recording::Between::{OtherCpu, SameCpu};
use recording::{Calibration, Measured};
use std::fs::File;
use std::io::{Error as SystemError, Read};
use std::os::fd::FromRawFd;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Samples of an operation.
const SAMPLES: u32 = 400;

/// How far ahead a sleep ends.
const AHEAD: u64 = 200_000;

/// One operation, and how it is measured.
struct Program {
    measured: Measured,
    is_cpu_time: bool,
    batch: u32,
    samples: u32,
    /// On another CPU than the first task; none has no second task.
    second: Option<bool>,
    /// What the two tasks do.
    operation: Operation,
}

#[derive(Clone, Copy)]
enum Operation {
    Yield,
    Pipe,
    Futex,
    ForkAndWait,
    Sleep,
}

const PROGRAMS: [Program; 7] = [
    Program::new(Measured::Yield, true, 64, Some(false), Operation::Yield),
    Program::new(Measured::Pipe(SameCpu), true, 16, Some(false), Operation::Pipe),
    Program::new(Measured::Pipe(OtherCpu), false, 16, Some(true), Operation::Pipe),
    Program::new(Measured::Futex(SameCpu), true, 16, Some(false), Operation::Futex),
    Program::new(Measured::Futex(OtherCpu), false, 16, Some(true), Operation::Futex),
    Program::new(Measured::ForkAndWait, false, 1, None, Operation::ForkAndWait),
    Program::new(Measured::SleepLate, false, 1, None, Operation::Sleep),
];

impl Program {
    const fn new(
        measured: Measured,
        is_cpu_time: bool,
        batch: u32,
        second: Option<bool>,
        operation: Operation,
    ) -> Program {
        Program { measured, is_cpu_time, batch, samples: SAMPLES, second, operation }
    }
}

/// What the two tasks of an operation share.
struct Shared {
    /// Whose part it is: 0 or 1; 2 ends the second task.
    whose: AtomicU32,
    /// Two pipes: their ends to read and to write.
    pipes: [[libc::c_int; 2]; 2],
}

/// All operations that this machine can do. On one CPU there is no other.
///
/// `traced` is called with each process before it begins.
///
/// # Errors
/// If a process cannot be started, or ends before its samples are there.
pub fn run(
    recorded: bool,
    mut traced: impl FnMut(u32) -> Result<(), Error>,
) -> Result<Vec<Calibration>, Error> {
    let cpus = allowed();
    let mut calibrations = Vec::new();
    for program in &PROGRAMS {
        if program.second == Some(true) && cpus.len() < 2 {
            continue;
        }
        let samples = samples(program, &cpus, &mut traced)?;
        calibrations.push(Calibration {
            name: program.measured.name().to_string(),
            unit: "ns".to_string(),
            clock: if program.is_cpu_time { "cpu" } else { "wall" }.to_string(),
            recorded,
            batch: program.batch,
            n: samples.len() as u64,
            quantiles: Calibration::quantiles_of(samples),
        });
    }
    Ok(calibrations)
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

/// The samples of a program, in nanoseconds an operation, from a process of its own.
fn samples(
    program: &Program,
    cpus: &[usize],
    traced: &mut impl FnMut(u32) -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let (gate, results) = (pipe()?, pipe()?);
    // SAFETY: the child calls the system and computes, allocates nothing, and ends in `_exit`.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => return Err(failed("fork")),
        0 => {
            pin(cpus.first());
            let mut byte = 0_u8;
            // SAFETY: the byte and the samples outlive the calls.
            unsafe {
                libc::close(gate[1]);
                libc::read(gate[0], (&raw mut byte).cast(), 1);
                let done = measure(program, cpus, |sample| {
                    libc::write(results[1], (&raw const sample).cast(), 8) == 8
                });
                libc::_exit(i32::from(!done))
            }
        }
        _ => {}
    }
    // SAFETY: the descriptors are ours, and each is closed or owned once.
    let mut from = unsafe {
        libc::close(gate[0]);
        libc::close(results[1]);
        File::from_raw_fd(results[0])
    };
    let begun = traced(pid.cast_unsigned());
    // SAFETY: it is ours; the child continues at the end of the file as with a byte.
    unsafe { libc::close(gate[1]) };
    let mut bytes = Vec::new();
    let read = from.read_to_end(&mut bytes);
    let mut status = 0;
    // SAFETY: the status outlives the call.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    begun?;
    if status != 0 || read.is_err() {
        return Err(Error::Internal(format!("the calibration {} failed", program.measured.name())));
    }
    Ok(bytes.as_chunks().0.iter().copied().map(f64::from_ne_bytes).collect())
}

/// Runs in the child. Gives each sample to `take`, which says whether it took it.
fn measure(program: &Program, cpus: &[usize], take: impl Fn(f64) -> bool) -> bool {
    let shared = Shared { whose: AtomicU32::new(0), pipes: [[-1; 2]; 2] };
    let Some(shared) = place(shared) else { return false };
    let mut second = 0;
    if let Some(is_other) = program.second {
        // SAFETY: the child only does its part of the operation, and ends in `_exit`.
        second = unsafe { libc::fork() };
        if second < 0 {
            return false;
        }
        if second == 0 {
            pin(cpus.get(usize::from(is_other)));
            answer(program.operation, shared);
            // SAFETY: it does not return.
            unsafe { libc::_exit(0) };
        }
    }
    let clock = || if program.is_cpu_time { both(second) } else { now() };
    let mut done = true;
    // The first samples find cold caches, and a second task that does not answer yet.
    for number in 0..program.samples + program.samples / 8 {
        let begin = clock();
        let mut late = 0;
        for _ in 0..program.batch {
            late += ask(program.operation, shared);
        }
        let spent = if matches!(program.operation, Operation::Sleep) {
            late as f64
        } else {
            clock().saturating_sub(begin) as f64 / f64::from(program.batch * program.parts())
        };
        if number >= program.samples / 8 {
            done &= take(spent);
        }
    }
    shared.whose.store(2, SeqCst);
    wake(&shared.whose);
    // SAFETY: numbers in, numbers out; the second task ends at the end of its pipe.
    let ended = unsafe {
        shared.pipes.iter().flatten().for_each(|end| _ = libc::close(*end));
        second == 0 || libc::waitpid(second, std::ptr::null_mut(), 0) == second
    };
    ended && done
}

impl Program {
    /// Both tasks do one operation in each round trip or yield.
    fn parts(&self) -> u32 {
        1 + u32::from(self.second.is_some())
    }
}

/// One round of the first task. Returns how late it was, of a sleep.
fn ask(operation: Operation, shared: &Shared) -> u64 {
    match operation {
        // SAFETY: it has no arguments.
        Operation::Yield => drop(unsafe { libc::sched_yield() }),
        Operation::Pipe => {
            pass(shared.pipes[0][1]);
            take(shared.pipes[1][0]);
        }
        Operation::Futex => {
            shared.whose.store(1, SeqCst);
            wake(&shared.whose);
            wait_while(&shared.whose, 1);
        }
        Operation::ForkAndWait => {
            // SAFETY: the child ends at once.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::_exit(0);
                }
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
        Operation::Sleep => {
            let until = now() + AHEAD;
            let time = libc::timespec {
                tv_sec: (until / 1_000_000_000).cast_signed(),
                tv_nsec: (until % 1_000_000_000).cast_signed(),
            };
            // SAFETY: the time outlives the call.
            unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_MONOTONIC,
                    libc::TIMER_ABSTIME,
                    &raw const time,
                    std::ptr::null_mut(),
                )
            };
            return now().saturating_sub(until);
        }
    }
    0
}

/// The second task: it answers until the first ends.
fn answer(operation: Operation, shared: &Shared) {
    match operation {
        Operation::Yield => {
            while shared.whose.load(SeqCst) != 2 {
                // SAFETY: it has no arguments.
                unsafe { libc::sched_yield() };
            }
        }
        Operation::Pipe => {
            // SAFETY: the ends are this process's own.
            unsafe {
                libc::close(shared.pipes[0][1]);
                libc::close(shared.pipes[1][0]);
            }
            while take(shared.pipes[0][0]) {
                pass(shared.pipes[1][1]);
            }
        }
        Operation::Futex => loop {
            wait_while(&shared.whose, 0);
            if shared.whose.load(SeqCst) == 2 {
                return;
            }
            shared.whose.store(0, SeqCst);
            wake(&shared.whose);
        },
        Operation::ForkAndWait | Operation::Sleep => {}
    }
}

/// Puts it where both tasks see it, with its pipes.
fn place(mut shared: Shared) -> Option<&'static Shared> {
    let size = size_of::<Shared>();
    let both = libc::PROT_READ | libc::PROT_WRITE;
    for ends in &mut shared.pipes {
        // SAFETY: the array has room for two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return None;
        }
    }
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which lives as long as the process.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, both, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    let at = at.cast::<Shared>();
    // SAFETY: it is large enough and aligned to a page.
    unsafe {
        at.write(shared);
        Some(&*at)
    }
}

/// The CPU time of this task and of the other.
fn both(other: libc::pid_t) -> u64 {
    let mut clock = 0;
    // SAFETY: the clock outlives the call.
    unsafe { libc::clock_getcpuclockid(other, &raw mut clock) };
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID) + read_clock(clock)
}

fn pass(to: libc::c_int) {
    // SAFETY: one byte is read from a byte that lives.
    unsafe { libc::write(to, [1_u8].as_ptr().cast(), 1) };
}

fn take(from: libc::c_int) -> bool {
    let mut byte = 0_u8;
    // SAFETY: the byte outlives the call.
    unsafe { libc::read(from, (&raw mut byte).cast(), 1) == 1 }
}

fn wake(word: &AtomicU32) {
    // SAFETY: the word lives as long as the process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

fn wait_while(word: &AtomicU32, value: u32) {
    while word.load(SeqCst) == value {
        let no_end = null::<libc::timespec>();
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, no_end) };
    }
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

fn pipe() -> Result<[libc::c_int; 2], Error> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    let done = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    if done == 0 { Ok(ends) } else { Err(failed("pipe")) }
}

fn failed(what: &str) -> Error {
    Error::Internal(format!("{what}: {}", SystemError::last_os_error()))
}
