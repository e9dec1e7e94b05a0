//! Porter's rig as a program of Linux without a library, so that it can be built for any
//! architecture that Rust's core is there for, and at any level of optimisation.
//!
//! ```text
//! builds STRUCTURE TASKS ASSIGNMENT SLICES
//! ```
//!
//! Tasks that only yield, each at one of ten levels by an assignment of its own number. `loop` has
//! no queue. `tools/builds` counts the instructions of runs of different length: what a further
//! slice takes is what they differ by.
#![no_std]
#![no_main]

mod system;

use core::hint::black_box;
use readyq::catalog::{self, Visitor};
use readyq::{Level, Node, Nodes, ReadyQueue, Strides, TaskId};

const MOST: usize = 5_000;
const LEVELS: u64 = 10;

static mut SLAB: [Node; MOST] = [Node::NEW; MOST];
static mut ASSIGNED: [Level; MOST] = [Level(0); MOST];

/// Runs; the status with which the process ends.
fn run(words: &[&[u8]]) -> u8 {
    let [_, name, tasks, assignment, slices] = words else { return 2 };
    let (Some(tasks), Some(assignment), Some(slices)) =
        (number(tasks), number(assignment), number(slices))
    else {
        return 2;
    };
    let Ok(name) = core::str::from_utf8(name) else { return 2 };
    if tasks == 0 || tasks > MOST as u64 {
        return 2;
    }
    // SAFETY: there is one thread, and this is the only place that takes them.
    let (slab, levels) =
        unsafe { (&mut *core::ptr::addr_of_mut!(SLAB), &mut *core::ptr::addr_of_mut!(ASSIGNED)) };
    // MultiList2 has eight levels: it gets those of ten that it has.
    let most = if name == "multilist2" { 8 } else { LEVELS };
    let mut state = assignment.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(12345);
    for level in &mut levels[..tasks as usize] {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *level = Level(((state >> 33) % most) as u16);
    }
    let rig = Rig { slab: &mut slab[..tasks as usize], levels: &levels[..tasks as usize], slices };
    if name == "loop" {
        return rig.without_a_queue();
    }
    catalog::visit(name, most as u32, Strides::Linear, rig).unwrap_or(3)
}

struct Rig<'a> {
    slab: &'a mut [Node],
    levels: &'a [Level],
    slices: u64,
}

impl Rig<'_> {
    fn without_a_queue(self) -> u8 {
        let mut sum = 0u32;
        for slice in 0..self.slices {
            let task = black_box(slice as usize % 2);
            sum = sum.wrapping_add(u32::from(black_box(self.levels[task.min(self.levels.len() - 1)]).0));
        }
        black_box(sum);
        0
    }
}

impl Visitor for Rig<'_> {
    type Out = u8;

    fn visit<Q: ReadyQueue + Clone + 'static>(self, mut queue: Q) -> u8 {
        let nodes = Nodes::from_mut(self.slab);
        for (task, &level) in self.levels.iter().enumerate() {
            queue.insert(nodes, TaskId(task as u32), level);
        }
        let before = 4 * self.levels.len() as u64;
        for _ in 0..before + self.slices {
            let Some(task) = queue.pop(nodes) else { return 4 };
            queue.insert(nodes, black_box(task), self.levels[task.index()]);
        }
        0
    }
}

fn number(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |sum, &digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    system::end(101)
}
