//! Loops over one structure, so that callgrind can count its instructions.
//!
//! ```text
//! cargo build --release -p readyq --example count
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null '--toggle-collect=*for_ever*' \\
//!     target/release/examples/count ruler 100 10 100000
//! ```
//!
//! The total divided by 100,000 is the cost of one slice: pop the next task, read its level, insert
//! it again. The structure `loop` has no queue and gives the cost of the loop itself; the
//! difference is the cost of one scheduling operation. Arguments: structure, tasks, levels (`10`:
//! at random among ten; `one:7`: all at level 7), slices. `ruler-in-place` and `rr-in-place` rotate
//! instead; their loop is `loop-in-place`. `pointers:rr`, `pointers:list-head`, `pointers:ruler`
//! and `pointers:rbtree` use raw pointers in place of indices; their loop is `pointers:loop`. The
//! output is a hash of the order of the first tasks. `tests/instructions.rs` checks the counts
//! against limits, and the orders against each other.

mod pointers;

use pointers::{PointerQueue, Task};
use readyq::catalog::{self, Visitor};
use readyq::{Level, Node, Nodes, ReadyQueue, RoundRobinInPlace, RulerInPlace, Strides, TaskId};
use std::hash::{DefaultHasher, Hasher};
use std::hint::black_box;
use std::ptr::NonNull;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (arguments, insert_first) = match arguments.split_last() {
        Some((last, rest)) if last == "insert-first" => (rest, true),
        _ => (&arguments[..], false),
    };
    let [name, tasks, mix, slices] = arguments else {
        eprintln!("usage: count STRUCTURE TASKS LEVELS|one:LEVEL SLICES [insert-first]");
        std::process::exit(2);
    };
    let number =
        |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text} is not a number"));
    let tasks = number(tasks) as usize;
    let (levels, count) = match mix.strip_prefix("one:") {
        Some(level) => (vec![Level(number(level) as u16); tasks], number(level) as u32 + 1),
        None => (random_levels(tasks, number(mix)), number(mix) as u32),
    };
    let rig = Rig { levels, slices: number(slices), insert_first };
    match &name[..] {
        "loop" => rig.visit(NoQueue),
        "loop-in-place" => {
            black_box(rotate_for_ever(Nodes::from_mut(&mut []), rig.slices, |_| {
                Some(TaskId(opaque(0)))
            }));
        }
        "rr-in-place" => rig.rotate_round_robin(),
        "ruler-in-place" => rig.rotate_ruler(),
        "pointers:loop" => rig.point(NoPointerQueue(None)),
        "pointers:rr" => rig.point(pointers::RoundRobin::NEW),
        "pointers:list-head" => rig.point(pointers::ListHead::new()),
        "pointers:ruler" => rig.point(pointers::Ruler::NEW),
        "pointers:rbtree" => rig.point(pointers::RbTree::NEW),
        _ => catalog::visit(name, count, Strides::Linear, rig)
            .unwrap_or_else(|error| panic!("{name}: {error}")),
    }
}

/// The same levels for every structure.
fn random_levels(tasks: usize, levels: u64) -> Vec<Level> {
    let mut state = 12345u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Level(((state >> 33) % levels) as u16)
    };
    (0..tasks).map(|_| next()).collect()
}

struct Rig {
    levels: Vec<Level>,
    slices: u64,
    insert_first: bool,
}

impl Visitor for Rig {
    type Out = ();

    fn visit<Q: ReadyQueue + Clone + 'static>(self, mut queue: Q) {
        let mut slab = vec![Node::NEW; self.levels.len()];
        let nodes = Nodes::from_mut(&mut slab);
        for (task, &level) in self.levels.iter().enumerate() {
            queue.insert(nodes, TaskId(task as u32), level);
        }
        let mut order = DefaultHasher::new();
        for slice in 0..20 * self.levels.len() {
            let Some(task) = queue.pop(nodes) else {
                unreachable!("slice {slice}: all tasks are ready")
            };
            order.write_u32(task.0);
            queue.insert(nodes, task, self.levels[task.index()]);
        }
        println!("{:016x}", order.finish());
        let counted = if self.insert_first { insert_first_for_ever } else { yield_for_ever };
        counted(&mut queue, nodes, &self.levels, self.slices);
        black_box(queue.is_empty());
    }
}

/// The loop that is counted.
#[inline(never)]
fn yield_for_ever<Q: ReadyQueue>(queue: &mut Q, nodes: &mut Nodes, levels: &[Level], slices: u64) {
    for _ in 0..slices {
        let Some(task) = queue.pop(nodes) else { return };
        queue.insert(nodes, task, levels[task.index()]);
    }
}

/// As above in the other order: insert first, then pop, as a scheduler does at the end of a slice.
/// The running task is carried from one iteration to the next.
#[inline(never)]
fn insert_first_for_ever<Q: ReadyQueue>(
    queue: &mut Q,
    nodes: &mut Nodes,
    levels: &[Level],
    slices: u64,
) {
    let Some(mut task) = queue.pop(nodes) else { return };
    for _ in 0..slices {
        queue.insert(nodes, task, levels[task.index()]);
        let Some(next) = queue.pop(nodes) else { return };
        task = next;
    }
    queue.insert(nodes, task, levels[task.index()]);
}

impl Rig {
    fn point(self, mut queue: impl PointerQueue) {
        let mut tasks: Vec<Task> =
            self.levels.iter().zip(0..).map(|(level, id)| Task::new(id, level.0)).collect();
        let mut order = DefaultHasher::new();
        // SAFETY: the tasks outlive the queue and do not move; none waits when it is inserted.
        unsafe {
            for task in &mut tasks {
                queue.insert(NonNull::from(task));
            }
            for slice in 0..20 * self.levels.len() {
                let Some(task) = queue.pop() else {
                    unreachable!("slice {slice}: all tasks are ready")
                };
                order.write_u32(task.as_ref().id);
                queue.insert(task);
            }
            point_for_ever(&mut queue, self.slices);
        }
        println!("{:016x}", order.finish());
    }

    fn rotate_ruler(self) {
        let mut slab = vec![Node::NEW; self.levels.len()];
        let nodes = Nodes::from_mut(&mut slab);
        let mut queue = RulerInPlace::new();
        for (task, &level) in self.levels.iter().enumerate() {
            queue.insert(nodes, TaskId(task as u32), level);
        }
        black_box(rotate_for_ever(nodes, self.slices, |nodes| queue.rotate(nodes)));
    }

    fn rotate_round_robin(self) {
        let mut slab = vec![Node::NEW; self.levels.len()];
        let nodes = Nodes::from_mut(&mut slab);
        let mut queue = RoundRobinInPlace::new();
        for task in 0..self.levels.len() {
            queue.insert(nodes, TaskId(task as u32));
        }
        black_box(rotate_for_ever(nodes, self.slices, |nodes| queue.rotate(nodes)));
    }
}

/// The loop with pointers. A task holds its own level, so there is no lookup.
///
/// # Safety
/// As for the queue's operations.
#[inline(never)]
unsafe fn point_for_ever(queue: &mut impl PointerQueue, slices: u64) {
    for _ in 0..slices {
        let Some(task) = (unsafe { queue.pop() }) else { return };
        unsafe { queue.insert(task) };
    }
}

/// The loop with the running task left linked. It also sums ids, so that the compiler keeps the
/// result.
#[inline(never)]
fn rotate_for_ever(
    nodes: &Nodes,
    slices: u64,
    mut rotate: impl FnMut(&Nodes) -> Option<TaskId>,
) -> u32 {
    let mut sum = 0u32;
    for _ in 0..slices {
        let Some(task) = rotate(nodes) else { return sum };
        sum = sum.wrapping_add(task.0);
    }
    sum
}

/// No queue: the same task runs on. What remains is the cost of the loop: reading the level and
/// counting slices.
#[derive(Clone)]
struct NoQueue;

impl ReadyQueue for NoQueue {
    #[inline(always)]
    fn insert(&mut self, _nodes: &mut Nodes, _task: TaskId, level: Level) {
        opaque(level.0.into());
    }

    #[inline(always)]
    fn pop(&mut self, _nodes: &mut Nodes) -> Option<TaskId> {
        Some(TaskId(opaque(0)))
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        Some(TaskId(0))
    }

    fn remove(&mut self, _nodes: &mut Nodes, _task: TaskId) {}

    fn find(&self, _nodes: &Nodes, _accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        None
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// As [`NoQueue`], for pointers.
struct NoPointerQueue(Option<NonNull<Task>>);

impl PointerQueue for NoPointerQueue {
    #[inline(always)]
    unsafe fn insert(&mut self, task: NonNull<Task>) {
        // SAFETY: a caller of this has a task.
        opaque(unsafe { task.as_ref().level }.into());
        self.0 = Some(task);
    }

    #[inline(always)]
    unsafe fn pop(&mut self) -> Option<NonNull<Task>> {
        self.0
    }
}

/// Returns `value`, in a way that the compiler cannot see through. Takes no instruction.
#[inline(always)]
fn opaque(mut value: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assembly is only a comment.
    unsafe {
        std::arch::asm!("/* {0:e} */", inout(reg) value, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        value = black_box(value);
    }
    value
}
