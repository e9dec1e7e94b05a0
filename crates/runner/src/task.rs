//! One task while it runs: goes through the ops of its program.

use crate::program::{Op, Template, TimerSlot};
use crate::shared::Reading;
use crate::stage::Stage;
use crate::sync::{self, ALL};
use crate::usage::{self, Usage};
use crate::{cgroups, clock, guest};
use schedlab_runner::class::Class;
use schedlab_runner::session::Windows;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What a task could not do; see [`Stage::failure`].
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Failure {
    Class = 1,
    Affinity,
    Begin,
    TooMany,
    Pipe,
    File,
    Mutex,
    Cgroup,
}

/// Runs instance `number` from the gate to its end.
pub fn run(stage: &'static Stage, number: usize, waits_at_gate: bool) {
    let template = stage.program.template_of(number);
    let instance = &stage.shared.instances[number];
    // SAFETY: it has no arguments.
    instance.tid.store(unsafe { libc::gettid() }.cast_unsigned(), SeqCst);
    // SAFETY: the name is a string with an end.
    unsafe { libc::prctl(libc::PR_SET_NAME, template.name_of_task.as_ptr()) };
    adopt(stage, template);
    let board = stage.shared.board;
    if waits_at_gate {
        board.ready.fetch_add(1, SeqCst);
        sync::wake(&board.ready, 1);
        while board.gate.load(SeqCst) == 0 {
            sync::wait(&board.gate, 0, None);
        }
        if template.start > 0 {
            sleep_until(stage.monotonic_begin() + template.start);
        }
    }
    if !guest::is_guest() {
        instance.began_ns.store(clock::now(), SeqCst);
    }
    Task { stage, number, windows: stage.windows.filter(|_| number == 0), readings: stage.shared.readings, rounds: 0 }.go(template);
    instance.cpu_ns.store(clock::cpu(), SeqCst);
    instance.ended_ns.store(clock::now(), SeqCst);
    if stage.tells_usage {
        if template.process {
            stage.shared.used.add(Usage::of_process());
        }
        if stage.is_detailed {
            stage.shared.used.run_delay_ns.fetch_add(usage::run_delay("thread-self").unwrap_or(0), SeqCst);
        }
    }
    stage.leave_place(number, template);
    let family = &stage.shared.families[stage.program.index_of(number)];
    if family.alive.fetch_sub(1, SeqCst) == 1 {
        sync::wake(&family.alive, ALL); // who joins waits for the last
    }
    if !template.daemon && board.remaining.fetch_sub(1, SeqCst) == 1 {
        stage.finish();
    }
}

struct Task {
    stage: &'static Stage,
    number: usize,
    windows: Option<Windows>,
    readings: &'static [Reading],
    rounds: u64,
}

impl Task {
    fn go(&mut self, template: &'static Template) {
        let (stage, shared) = (self.stage, &self.stage.shared);
        let instance = &shared.instances[self.number];
        let mut passes = [0u64; MAX_DEPTH];
        let mut own_timers = [0u64; MAX_TIMERS];
        let mut buffer = vec![0u8; template.ops.iter().map(Op::bytes).max().unwrap_or(0)];
        let mut at = 0;
        loop {
            let op = &template.ops[at];
            at += 1;
            match *op {
                Op::Yield => {
                    // SAFETY: it has no arguments.
                    unsafe { libc::sched_yield() };
                }
                Op::Run(ns) => clock::burn(ns),
                Op::Sleep(ns) => sleep_until(clock::read(libc::CLOCK_MONOTONIC) + ns),
                Op::Timer { period, absolute, timer: TimerSlot::Own(slot) } => {
                    let begin = stage.monotonic_begin() + template.start;
                    own_timers[slot] = next_period(own_timers[slot].max(begin), period, absolute);
                }
                Op::Timer { period, absolute, timer: TimerSlot::Shared(slot) } => {
                    let timer = &shared.timers[slot];
                    timer.store(next_period(timer.load(SeqCst).max(stage.monotonic_begin()), period, absolute), SeqCst);
                }
                Op::Lock(mutex) => stage.expect(shared.mutexes[mutex].lock(stage.program.mutexes[mutex]), Failure::Mutex),
                Op::Unlock(mutex) => shared.mutexes[mutex].unlock(stage.program.mutexes[mutex]),
                Op::Wait { condition, mutex } => {
                    let is_back = shared.conditions[condition].wait(&shared.mutexes[mutex], stage.program.mutexes[mutex]);
                    stage.expect(is_back, Failure::Mutex);
                }
                Op::Signal(condition) => shared.conditions[condition].signal(1),
                Op::Broadcast(condition) => shared.conditions[condition].signal(ALL),
                Op::Barrier(barrier) => shared.barriers[barrier].wait(stage.program.barriers[barrier]),
                Op::Write { pipe, bytes } => write_all(stage, stage.pipes[pipe].1, &buffer[..bytes]),
                Op::Read { pipe, bytes } => read_all(stage, stage.pipes[pipe].0, &mut buffer[..bytes]),
                Op::Io { file, bytes, write } => stage.files[file].transfer(stage, &mut buffer[..bytes], write),
                Op::Fork(template) => stage.fork(template),
                Op::Join(template) => stage.join(template),
                Op::Goto(to) => at = to,
                Op::Repeat { back, times, depth } => {
                    if depth == 0 {
                        self.round();
                    }
                    passes[depth] += 1;
                    match passes[depth] < times {
                        true => at = back,
                        false => passes[depth] = 0,
                    }
                }
                Op::End => return,
            }
            if let Some(kind) = op.kind() {
                instance.count(kind);
                guest::next_cpu();
            }
        }
    }

    /// Once around the outermost loop: takes a reading when a window is over.
    fn round(&mut self) {
        let Some(windows) = self.windows else { return };
        self.rounds += 1;
        if !self.rounds.is_multiple_of(windows.rounds) {
            return;
        }
        let taken = self.rounds / windows.rounds;
        let Some(reading) = taken.checked_sub(u64::from(windows.warm_up)).and_then(|index| self.readings.get(index as usize)) else {
            return;
        };
        clock::mark(false);
        reading.end_ns.store(clock::now(), Relaxed);
        reading.operations.store(self.stage.shared.total(self.stage.program.sampled), Relaxed);
        reading.begin_ns.store(clock::now(), Relaxed);
        if taken < u64::from(windows.warm_up + windows.count) {
            return clock::mark(true);
        }
        self.stage.finish();
    }
}

/// Loops inside loops, at most.
pub const MAX_DEPTH: usize = 16;
/// Timers of one task, at most.
pub const MAX_TIMERS: usize = 16;

impl Op {
    /// The buffer it needs.
    fn bytes(&self) -> usize {
        match *self {
            Op::Write { bytes, .. } | Op::Read { bytes, .. } | Op::Io { bytes, .. } => bytes,
            _ => 0,
        }
    }
}

/// Sleeps until the next period begins and says when that was to be.
fn next_period(last: u64, period: u64, absolute: bool) -> u64 {
    let (next, now) = (last + period, clock::read(libc::CLOCK_MONOTONIC));
    if next > now {
        sleep_until(next);
        next
    } else if absolute {
        next
    } else {
        now
    }
}

fn sleep_until(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000).cast_signed(), tv_nsec: (ns % 1_000_000_000).cast_signed() };
    // SAFETY: the kernel reads `time` only. Interrupted, it is called again with the same end.
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut()) } == libc::EINTR
    {
    }
}

fn write_all(stage: &Stage, pipe: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads `bytes` only.
        let count = unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) => bytes = &bytes[count..],
            Err(_) => return stage.fail(Failure::Pipe),
        }
    }
}

fn read_all(stage: &Stage, pipe: i32, mut bytes: &mut [u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel writes to `bytes` only.
        let count = unsafe { libc::read(pipe, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => bytes = &mut bytes[count..],
            _ => return stage.fail(Failure::Pipe),
        }
    }
}

/// Keeps the calling thread, and all that it makes, on some CPUs; false if the kernel refuses.
pub fn set_affinity(cpus: &[u16]) -> bool {
    // SAFETY: the set is plain memory, and zeros are the empty set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(usize::from(cpu), &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// Takes the class, nice value, slice and CPUs that the template asks for.
fn adopt(stage: &Stage, template: &Template) {
    if let Some(cgroup) = template.cgroup
        && !cgroups::enter(stage.number, cgroup)
    {
        stage.fail(Failure::Cgroup);
    }
    if !set_class(template.class, template.nice, template.slice) {
        stage.fail(Failure::Class);
    }
    if !template.affinity.is_empty() && !set_affinity(&template.affinity) {
        stage.fail(Failure::Affinity);
    }
}

/// `struct sched_attr` of linux/include/uapi/linux/sched/types.h, its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const NO_ATTRIBUTES: Attributes =
    Attributes { size: size_of::<Attributes>() as u32, policy: 0, flags: 0, nice: 0, priority: 0, runtime: 0, deadline: 0, period: 0 };

/// Puts the calling thread above all others, its children among them.
pub fn become_experimenter() {
    const RESET_ON_FORK: u64 = 1;
    set_attributes(&Attributes { policy: 1, priority: 99, flags: RESET_ON_FORK, ..NO_ATTRIBUTES });
}

/// Puts the calling thread into `class`; false if the kernel refuses.
pub fn set_class(class: Class, nice: i32, slice: u64) -> bool {
    let none = NO_ATTRIBUTES;
    set_attributes(&match class {
        Class::Other => Attributes { nice, runtime: slice, ..none },
        Class::Fifo(priority) => Attributes { policy: 1, priority, ..none },
        Class::Rr(priority) => Attributes { policy: 2, priority, ..none },
        Class::Batch => Attributes { policy: 3, nice, runtime: slice, ..none },
        Class::Idle => Attributes { policy: 5, nice, ..none },
        Class::Deadline { runtime, deadline, period } => Attributes { policy: 6, runtime, deadline, period, ..none },
    })
}

fn set_attributes(attributes: &Attributes) -> bool {
    // SAFETY: the kernel reads `attributes` only, as many bytes as they say.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(attributes), 0) == 0 }
}
