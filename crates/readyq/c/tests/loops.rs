//! The loop of `count.c` over the Rust queues, for any machine: compiled for itself and linked to
//! that program, which sets the marks. Nothing here panics; what core has for that is not linked.
#![no_std]

use core::arch::asm;
use core::hint::assert_unchecked;

use readyq::{
    Buckets, Id as _, Level, Node, Nodes, Priority, RbTree, ReadyQueue, RoundRobin, Ruler, Strides,
};

/// What a call is to do.
#[derive(Clone, Copy, PartialEq)]
#[repr(C)]
pub enum Phase {
    /// Make the queue, insert all tasks, and let each run for a while.
    Fill,
    /// Run the loop.
    Run,
}

/// Memory and size of a run, as `count.c` declares them.
#[repr(C)]
pub struct Run {
    queue: *mut u8,
    nodes: *mut Node<Id, Key>,
    levels: *const Level,
    tasks: usize,
    slices: u32,
}

/// Does `phase` on the queue `number`, in the order of `count.c`'s.
///
/// # Safety
/// `run` has memory for any queue and for `tasks` nodes and levels; `Fill` comes before `Run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_loop(number: u32, phase: Phase, run: &Run) {
    // SAFETY: the caller's promise.
    unsafe {
        match number {
            0 => on(NoQueue, phase, run),
            1 => on(RoundRobin::EMPTY, phase, run),
            2 => on(Priority::<LEVELS, _, _>::with_probe(()), phase, run),
            3 => on(Ruler::<LEVELS, _, _>::with_probe(()), phase, run),
            4 => on(Buckets::<LEVELS, _, _>::new(Strides::Linear), phase, run),
            _ => on(RbTree::with_probe(Strides::Linear, ()), phase, run),
        }
    }
}

/// The widths: those of the C edition on a machine of 32 bits, readyq's default on one of 64.
#[cfg(target_pointer_width = "32")]
mod width {
    pub type Id = u16;
    pub type Key = u32;
    pub const LEVELS: usize = 32;
}
#[cfg(target_pointer_width = "64")]
mod width {
    pub type Id = readyq::TaskId;
    pub type Key = u64;
    pub const LEVELS: usize = 64;
}
use width::{Id, Key, LEVELS};

unsafe fn on<Q: ReadyQueue<Id, Key>>(empty: Q, phase: Phase, run: &Run) {
    // SAFETY: the caller's promise.
    let (slab, levels) = unsafe {
        if phase == Phase::Fill {
            run.queue.cast::<Q>().write(empty);
            (0..run.tasks).for_each(|task| run.nodes.add(task).write(Node::FRESH));
        }
        (
            core::slice::from_raw_parts_mut(run.nodes, run.tasks),
            core::slice::from_raw_parts(run.levels, run.tasks),
        )
    };
    // SAFETY: `Fill` has written it.
    let queue = unsafe { &mut *run.queue.cast::<Q>() };
    let nodes = Nodes::from_mut(slab);
    if phase == Phase::Run {
        return yield_for_ever(queue, nodes, levels, run.slices);
    }
    for (task, &level) in levels.iter().enumerate() {
        queue.insert(nodes, Id::from_index(task), level);
    }
    yield_for_ever(queue, nodes, levels, 20 * run.tasks as u32);
}

/// That of `examples/count`.
#[inline(never)]
fn yield_for_ever<Q: ReadyQueue<Id, Key>>(
    queue: &mut Q,
    nodes: &mut Nodes<Id, Key>,
    levels: &[Level],
    slices: u32,
) {
    for _ in 0..slices {
        let Some(task) = queue.pop(nodes) else { return };
        queue.insert(nodes, task, levels[task.index()]);
    }
}

/// No queue: what remains is the loop.
struct NoQueue;

impl ReadyQueue<Id, Key> for NoQueue {
    #[inline(always)]
    fn insert(&mut self, _nodes: &mut Nodes<Id, Key>, _task: Id, level: Level) {
        opaque(level.0.into());
    }

    #[inline(always)]
    fn pop(&mut self, _nodes: &mut Nodes<Id, Key>) -> Option<Id> {
        Some(opaque_task())
    }

    fn peek(&self, _nodes: &Nodes<Id, Key>) -> Option<Id> {
        None
    }

    fn remove(&mut self, _nodes: &mut Nodes<Id, Key>, _task: Id) {}

    fn find(&self, _nodes: &Nodes<Id, Key>, _accept: impl FnMut(Id) -> bool) -> Option<Id> {
        None
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// The first id, in a way that the compiler cannot see through. Takes no instruction: the value is
/// as one that was loaded from a link.
#[inline(always)]
fn opaque_task() -> Id {
    let index = opaque(0);
    // SAFETY: it is 0.
    unsafe { assert_unchecked(index < Id::MOST) };
    Id::from_index(index)
}

/// Returns `value`, in a way that the compiler cannot see through. Takes no instruction.
#[inline(always)]
fn opaque(mut value: usize) -> usize {
    // SAFETY: the assembly is empty but for a comment.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
