//! What happened, as `perf script` writes it: `schedlab inspect FILE --report DIR` draws it.

use crate::Console;
use crate::kernel::{Event, Kernel, State, TASKS, Task};
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of the first task: no two runs have a task of one number.
static FIRST: AtomicU32 = AtomicU32::new(1);

/// Prints each switch and wakeup, and how much of the CPU each task had.
pub fn show<Q>(title: &str, kernel: &Kernel<'_, Q>, tasks: &[Task]) {
    let first = FIRST.load(Relaxed);
    FIRST.store(first + TASKS as u32, Relaxed);
    let name = |task: Option<usize>| task.map_or("swapper", |task| tasks[task].name);
    let number = |task: Option<usize>| task.map_or(0, |task| first + task as u32);
    let mut running = None;
    for &(at, event) in &kernel.events {
        let Some(event) = event else { break };
        let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
        let _ = write!(
            Console,
            "{:>16} {:>5} [000] {seconds:>5}.{ns:09}: ",
            name(running),
            number(running)
        );
        let _ = match event {
            Event::Wakeup { task } => {
                let task = Some(task);
                writeln!(
                    Console,
                    "sched:sched_waking: comm={} pid={} prio=120 target_cpu=000",
                    name(task),
                    number(task)
                )
            }
            Event::Switch { from, state, to } => {
                let state = match state {
                    State::Ready => "R",
                    State::Asleep { .. } => "S",
                    State::Ended => "X",
                };
                running = to;
                writeln!(
                    Console,
                    "sched:sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={} next_prio=120",
                    name(from),
                    number(from),
                    name(to),
                    number(to)
                )
            }
        };
    }
    let all: u64 = kernel.slots.iter().map(|slot| slot.ran_ns).sum();
    for (task, slot) in tasks.iter().zip(&kernel.slots) {
        let tenths = (slot.ran_ns * 1000 + all / 2) / all;
        let _ = writeln!(
            Console,
            "{title}: {} ran {} us, {}.{} %",
            task.name,
            slot.ran_ns / 1000,
            tenths / 10,
            tenths % 10
        );
    }
}
