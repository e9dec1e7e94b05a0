//! A task: starts as a thread or process and executes the ops of its program.

use crate::event_loop::EventLoops;
use crate::failure::Failure;
use crate::pipe::{read_all, read_some, write_all};
use crate::program::{MAX_DEPTH, MAX_TIMERS, Op, Template, TimerSlot};
use crate::shared::{Places, Reading};
use crate::stage::Stage;
use crate::sync::{self, ALL};
use crate::usage::{self, Usage};
use crate::{attributes, cgroups, clock, epoll, guest};
use schedlab_runner::session::Windows;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The bytes that a frame of [`deeper`] takes at least.
const FRAME: usize = 64;

/// Starts instance `number` as a thread or a process.
pub fn begin(stage: &'static Stage, number: usize, waits_at_gate: bool) {
    let template = stage.program.template_of(number);
    if template.process {
        // SAFETY: the child executes its ops, which use system calls and existing memory, and
        // leaves without running anything else.
        match unsafe { libc::fork() } {
            -1 => stage.fail(Failure::Begin),
            0 => {
                deeper(stage.nudge.stack, &mut || run(stage, number, waits_at_gate));
                // SAFETY: it does not return.
                unsafe { libc::_exit(0) }
            }
            _ => {}
        }
    } else if !start_thread(Begun { stage, number, waits_at_gate }) {
        stage.fail(Failure::Begin);
    }
}

/// Starts the next instance of a template.
fn fork(stage: &'static Stage, template: usize) {
    let family = &stage.shared.families[template];
    let number = family.begun.fetch_add(1, SeqCst) as usize;
    let template = &stage.program.templates[template];
    if number >= template.count {
        return stage.fail(Failure::TooMany);
    }
    let place = if stage.places == Places::Kept {
        number
    } else {
        family.take_place(stage.places_of(template))
    };
    family.alive.fetch_add(1, SeqCst);
    if !template.daemon {
        stage.shared.board.remaining.fetch_add(1, SeqCst);
    }
    begin(stage, template.first + place, false);
}

/// Calls `body` with this many more frames on the stack.
#[inline(never)]
fn deeper(frames: u32, body: &mut dyn FnMut()) {
    let frame = black_box([0u8; FRAME]);
    match frames.checked_sub(1) {
        Some(left) => deeper(left, body),
        None => body(),
    }
    black_box(&frame);
}

/// Runs instance `number` from the gate to its end.
pub fn run(stage: &'static Stage, number: usize, waits_at_gate: bool) {
    let template = stage.program.template_of(number);
    let instance = &stage.shared.instances[number];
    // SAFETY: it has no arguments.
    instance.tid.store(unsafe { libc::gettid() }.cast_unsigned(), SeqCst);
    // SAFETY: the name is a terminated string.
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
            sleep_until(begin_of(stage, number));
        }
    }
    if !guest::is_guest() {
        instance.began_ns.store(clock::now(), SeqCst);
    }
    Task {
        stage,
        number,
        windows: stage.windows.filter(|_| number == 0),
        readings: stage.shared.readings,
        rounds: 0,
    }
    .go(template);
    instance.cpu_ns.store(clock::cpu(), SeqCst);
    instance.ended_ns.store(clock::now(), SeqCst);
    if stage.reports_usage {
        if template.process {
            stage.shared.used.add(Usage::of_process());
        }
        if stage.is_detailed {
            stage
                .shared
                .used
                .run_delay_ns
                .fetch_add(usage::run_delay("thread-self").unwrap_or(0), SeqCst);
        }
    }
    stage.leave_place(number, template);
    let family = &stage.shared.families[stage.program.index_of(number)];
    if family.alive.fetch_sub(1, SeqCst) == 1 {
        sync::wake(&family.alive, ALL); // `join` waits for the last
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
        let mut event_loops = EventLoops::default();
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
                    let begin = begin_of(stage, self.number);
                    own_timers[slot] = next_period(own_timers[slot].max(begin), period, absolute);
                }
                Op::Timer { period, absolute, timer: TimerSlot::Shared(slot) } => {
                    let timer = &shared.timers[slot];
                    timer.store(
                        next_period(
                            timer.load(SeqCst).max(stage.monotonic_begin()),
                            period,
                            absolute,
                        ),
                        SeqCst,
                    );
                }
                Op::Lock(mutex) => stage.expect(
                    shared.mutexes[mutex].lock(stage.program.mutexes[mutex]),
                    Failure::Mutex,
                ),
                Op::Unlock(mutex) => shared.mutexes[mutex].unlock(stage.program.mutexes[mutex]),
                Op::Wait { condition, mutex } => {
                    let is_back = shared.conditions[condition]
                        .wait(&shared.mutexes[mutex], stage.program.mutexes[mutex]);
                    stage.expect(is_back, Failure::Mutex);
                }
                Op::Signal(condition) => shared.conditions[condition].signal(1),
                Op::Broadcast(condition) => shared.conditions[condition].signal(ALL),
                Op::Barrier(barrier) => {
                    shared.barriers[barrier].wait(stage.program.barriers[barrier])
                }
                Op::Write { pipe, bytes } => {
                    stage.expect(write_all(stage.pipes[pipe].1, &buffer[..bytes]), Failure::Pipe)
                }
                Op::Read { pipe, bytes, partial } => {
                    let read = if partial { read_some } else { read_all };
                    stage.expect(read(stage.pipes[pipe].0, &mut buffer[..bytes]), Failure::Pipe)
                }
                Op::Send { end, bytes } => {
                    let socket = stage.sockets[end.pair][end.side];
                    stage.expect(write_all(socket, &buffer[..bytes]), Failure::Socket)
                }
                Op::Receive { end, bytes, partial } => {
                    let socket = stage.sockets[end.pair][end.side];
                    let receive = if partial { read_some } else { read_all };
                    stage.expect(receive(socket, &mut buffer[..bytes]), Failure::Socket)
                }
                Op::Post { eventfd, count } if stage.program.eventfds[eventfd].wakes_one => {
                    shared.semaphores[eventfd].post(count);
                }
                Op::Take(eventfd) if stage.program.eventfds[eventfd].wakes_one => {
                    shared.semaphores[eventfd].take();
                }
                Op::Post { eventfd, count } => {
                    let bytes = count.to_ne_bytes();
                    stage.expect(write_all(stage.eventfds[eventfd], &bytes), Failure::Eventfd)
                }
                Op::Take(eventfd) => {
                    let mut bytes = [0; size_of::<u64>()];
                    stage.expect(read_all(stage.eventfds[eventfd], &mut bytes), Failure::Eventfd)
                }
                Op::Serve(serve) => match event_loops.wait(stage, serve) {
                    Some(to) => at = to.unwrap_or(at),
                    None => stage.fail(Failure::Epoll),
                },
                Op::Handle(serve) => match event_loops.next(stage, serve, at) {
                    Some(to) => at = to,
                    None => stage.fail(Failure::Epoll),
                },
                Op::Poll(set) => {
                    stage.expect(epoll::poll(&stage.watched[set]), Failure::Epoll);
                }
                Op::Watch { set, place, on } => {
                    let one = [place].into_iter();
                    let done = epoll::watch(stage.epolls[set], &stage.watched[set], one, on);
                    stage.expect(done.is_some(), Failure::Epoll);
                }
                Op::SleepUntil(after) => sleep_until(stage.monotonic_begin() + after),
                Op::Io { file, bytes, write } => stage
                    .expect(stage.files[file].transfer(&mut buffer[..bytes], write), Failure::File),
                Op::Fork(template) => fork(stage, template),
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
            }
        }
    }

    /// Ends a pass of the outermost loop: takes a reading at the end of a window.
    fn round(&mut self) {
        let Some(windows) = self.windows else { return };
        self.rounds += 1;
        if !self.rounds.is_multiple_of(windows.rounds) {
            return;
        }
        let taken = self.rounds / windows.rounds;
        let Some(reading) = taken
            .checked_sub(u64::from(windows.warm_up))
            .and_then(|index| self.readings.get(index as usize))
        else {
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

/// When instance `number` begins, on `CLOCK_MONOTONIC`; its timers count from there.
fn begin_of(stage: &Stage, number: usize) -> u64 {
    let start = stage.program.template_of(number).start;
    stage.monotonic_begin() + start + stage.nudge.timer_ns(number)
}

/// Sleeps until the next period begins; returns when that was due.
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
    let time = libc::timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    };
    // SAFETY: the kernel only reads `time`. After a signal the call is repeated with the same end.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// Takes the group, class, nice value, slice and CPUs of the template.
fn adopt(stage: &Stage, template: &Template) {
    if let Some(cgroup) = template.cgroup
        && !cgroups::enter(stage.number, cgroup)
    {
        stage.fail(Failure::Cgroup);
    }
    if !attributes::set_class(template.class, template.nice, template.slice) {
        stage.fail(Failure::Class);
    }
    if !template.affinity.is_empty() && !attributes::set_affinity(&template.affinity) {
        stage.fail(Failure::Affinity);
    }
}

/// The argument of a new thread.
struct Begun {
    stage: &'static Stage,
    number: usize,
    waits_at_gate: bool,
}

/// Starts a detached thread; false if the kernel refuses. The standard library maps memory for a
/// second stack of each thread, which doubles the cost.
fn start_thread(begun: Begun) -> bool {
    const STACK: usize = 64 << 10;
    extern "C" fn main(begun: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the pointer came from a box, for this thread alone.
        let Begun { stage, number, waits_at_gate } =
            *unsafe { Box::from_raw(begun.cast::<Begun>()) };
        deeper(stage.nudge.stack, &mut || run(stage, number, waits_at_gate));
        std::ptr::null_mut()
    }
    let begun = Box::into_raw(Box::new(begun));
    // SAFETY: attributes are initialised before use. The new thread owns the box; if there is none,
    // it is taken back.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let error =
            libc::pthread_create(&raw mut thread, &raw const attributes, main, begun.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        if error != 0 {
            drop(Box::from_raw(begun));
            *libc::__errno_location() = error;
        }
        error == 0
    }
}
