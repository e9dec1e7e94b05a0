//! The kernel: tasks, a trap, and a ready queue of `readyq`, any of them.
//!
//! A task runs until a trap: the timer's, each millisecond, or its own call. The trap has stored the
//! task's registers on its stack, so that the task is one number, where they lie. The kernel puts
//! the task back into the queue, or not, takes the next one out, and the trap loads its registers.

use crate::port;
use core::cell::UnsafeCell;
use core::ptr;
use readyq::{Level, Node, Nodes, ReadyQueue, TaskId};

/// The time between two interrupts of the timer.
pub const TICK_NS: u64 = 1_000_000;
/// How many tasks there can be.
pub const TASKS: usize = 4;
/// How many switches and wakeups are kept.
const EVENTS: usize = 512;

/// What the writer of a task says.
pub struct Task {
    pub name: &'static str,
    /// What the queue makes of it: 0 is the most important one, or the one with the largest share.
    pub level: u16,
    pub body: fn(),
}

#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Ready,
    Asleep { until_ns: u64 },
    Ended,
}

/// What is known of a task.
#[derive(Clone, Copy)]
pub struct Slot {
    /// Where its registers lie while it does not run.
    frame: usize,
    pub state: State,
    /// How long it ran.
    pub ran_ns: u64,
}

/// What happened.
#[derive(Clone, Copy)]
pub enum Event {
    /// From one task to another; `None` is the idle CPU. What became of the first one.
    Switch {
        from: Option<usize>,
        state: State,
        to: Option<usize>,
    },
    Wakeup {
        task: usize,
    },
}

pub struct Kernel<'a, Q> {
    queue: Q,
    nodes: [Node; TASKS],
    tasks: &'a [Task],
    pub slots: [Slot; TASKS],
    running: Option<usize>,
    since_ns: u64,
    end_ns: u64,
    /// The registers of the code that waits for interrupts, while tasks run.
    idle: usize,
    is_over: bool,
    pub events: [(u64, Option<Event>); EVENTS],
    count: usize,
}

const YIELD: usize = 0;
const SLEEP: usize = 1;
const END: usize = 2;

impl<Q: ReadyQueue> Kernel<'_, Q> {
    /// A trap: keeps the task that ran, and chooses the next one.
    fn switch(&mut self, frame: usize, call: Option<(usize, usize)>) -> usize {
        let now = port::now_ns();
        let (from, mut state) = (self.running, State::Ready);
        if let Some(task) = from {
            state = match call {
                None | Some((YIELD, _)) => State::Ready,
                Some((SLEEP, until_us)) => State::Asleep { until_ns: until_us as u64 * 1000 },
                Some(_) => State::Ended,
            };
            let slot = &mut self.slots[task];
            (slot.frame, slot.state) = (frame, state);
            slot.ran_ns += now - self.since_ns;
            if state == State::Ready {
                self.insert(task);
            }
        } else {
            self.idle = frame;
        }
        for task in 0..self.tasks.len() {
            if matches!(self.slots[task].state, State::Asleep { until_ns } if until_ns <= now) {
                self.slots[task].state = State::Ready;
                self.insert(task);
                self.log(now, Event::Wakeup { task });
            }
        }
        let has_ended = |slot: &Slot| slot.state == State::Ended;
        self.is_over = now >= self.end_ns || self.slots[..self.tasks.len()].iter().all(has_ended);
        let next =
            if self.is_over { None } else { self.queue.pop(Nodes::from_mut(&mut self.nodes)) };
        let to = next.map(|task| task.0 as usize);
        if from != to {
            self.log(now, Event::Switch { from, state, to });
        }
        (self.running, self.since_ns) = (to, now);
        to.map_or(self.idle, |task| self.slots[task].frame)
    }

    fn insert(&mut self, task: usize) {
        let level = Level(self.tasks[task].level);
        self.queue.insert(Nodes::from_mut(&mut self.nodes), TaskId(task as u32), level);
    }

    fn log(&mut self, now: u64, event: Event) {
        if let Some(place) = self.events.get_mut(self.count) {
            *place = (now, Some(event));
            self.count += 1;
        }
    }
}

/// A kernel, whatever its queue is, and its part of [`trap`].
type Current = (*mut (), fn(*mut (), usize, Option<(usize, usize)>) -> usize);

/// What only traps and the code that waits for them use.
struct Only<T>(UnsafeCell<T>);

// SAFETY: there is one CPU, and interrupts are not taken in either.
unsafe impl<T> Sync for Only<T> {}

#[repr(align(16))]
struct Stacks([[usize; 1024]; TASKS]);

static CURRENT: Only<Option<Current>> = Only(UnsafeCell::new(None));
static STACKS: Only<Stacks> = Only(UnsafeCell::new(Stacks([[0; 1024]; TASKS])));

/// Runs tasks under a queue until all have ended, or for so long.
pub fn run<Q: ReadyQueue>(queue: Q, tasks: &[Task], length_ns: u64) -> Kernel<'_, Q> {
    let slot = Slot { frame: 0, state: State::Ready, ran_ns: 0 };
    let now = port::now_ns();
    let mut kernel = Kernel {
        queue,
        nodes: [Node::NEW; TASKS],
        tasks,
        slots: [slot; TASKS],
        running: None,
        since_ns: now,
        end_ns: now + length_ns,
        idle: 0,
        is_over: false,
        events: [(0, None); EVENTS],
        count: 0,
    };
    for (task, of) in tasks.iter().enumerate() {
        // SAFETY: no task runs, so the stacks are free.
        let stack = unsafe { &mut (*STACKS.0.get()).0[task] };
        kernel.slots[task].frame = port::prepare(stack, begin, of.body as usize);
        kernel.insert(task);
    }
    let place = &raw mut kernel;
    // SAFETY: interrupts are taken in `idle` alone, and `place` lives until no trap comes any more.
    unsafe {
        *CURRENT.0.get() = Some((place.cast(), trapped::<Q>));
        while !ptr::read_volatile(&raw const (*place).is_over) {
            port::idle();
        }
        *CURRENT.0.get() = None;
    }
    kernel
}

fn trapped<Q: ReadyQueue>(kernel: *mut (), frame: usize, call: Option<(usize, usize)>) -> usize {
    // SAFETY: `run` stored the pointer with this function, and waits.
    unsafe { (*kernel.cast::<Kernel<'_, Q>>()).switch(frame, call) }
}

/// Every trap, with the place of the registers that it stored. Returns the place of those to load.
#[unsafe(no_mangle)]
extern "C" fn trap(frame: usize, is_call: bool) -> usize {
    port::mark(true);
    if !is_call {
        port::ticked();
    }
    // SAFETY: traps do not interrupt each other, and the words at `frame` are what one stored.
    let (current, saved) =
        unsafe { (*CURRENT.0.get(), core::slice::from_raw_parts(frame as *const usize, 16)) };
    let call = is_call.then(|| port::arguments(saved));
    let next = current.map_or(frame, |(kernel, switch)| switch(kernel, frame, call));
    port::mark(false);
    next
}

/// Where every task begins, with the function that it is.
extern "C" fn begin(body: usize) -> ! {
    // SAFETY: `run` stored a function of this type.
    let body: fn() = unsafe { core::mem::transmute(body) };
    body();
    loop {
        port::call(END, 0);
    }
}

/// Gives the CPU up, and stays ready.
pub fn give_way() {
    port::call(YIELD, 0);
}

/// Sleeps until the clock shows `us` microseconds.
pub fn sleep_until(us: u64) {
    port::call(SLEEP, us as usize);
}
