//! The C interface of the ready queues.
//!
//! One opaque `rq_queue` holds any of seven structures. Every call is checked ([`readyq::Checked`])
//! and returns a status. It refuses a null pointer, an uninitialised queue and an id beyond the
//! array. All `unsafe` code is here and concerns the caller's pointers.
#![cfg_attr(target_os = "none", no_std)]

use core::mem::{align_of, size_of};
use core::num::NonZeroU8;

use readyq::{
    Checked, Error, Level, MultiList2, Node, Nodes, Priority, RbTree, RoundRobin, Ruler,
    SortedList, Strides, TaskId, Wheel,
};

/// The result of a call. Every status other than `RQ_STATUS_OK` leaves the queue unchanged.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// No task waits.
    Empty = 1,
    /// The array has no node for this task: it is full, or the id is wrong.
    BeyondSlab = 2,
    /// The structure has no such level.
    LevelOutOfRange = 3,
    /// The task waits already, in this queue or another one.
    AlreadyWaiting = 4,
    /// The task does not wait in this queue.
    NotWaiting = 5,
    /// A pointer is null.
    NullPointer = 6,
    /// The queue is not initialised, or was initialised with an unknown kind or stride.
    BadQueue = 7,
}

/// Which structure a queue is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Round robin; levels are ignored.
    Rr = 1,
    /// Virtual clock in a sorted list.
    SortedList = 2,
    /// Virtual clock in a red-black tree.
    Rbtree = 3,
    /// A list per level, 8 levels, each half as often as the one before, by a table.
    Multilist2 = 4,
    /// The same order without the table, 64 levels.
    Ruler = 5,
    /// Virtual clock in 64 buckets, for strides up to 63.
    Wheel = 6,
    /// Strict priorities, 256 levels.
    Priority = 7,
}

/// How a level becomes a stride; a task with twice the stride gets half the rate.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// Level l has the stride l + 1.
    Linear = 0,
    /// Level l has the stride 2^l.
    PowersOfTwo = 1,
}

/// The node of one task. Initialise with `rq_nodes_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CNode {
    opaque: [u64; 3],
}

/// A queue. Initialise with `rq_init`; it may be copied only while it is empty.
#[repr(C)]
pub struct CQueue {
    opaque: [u64; 266],
}

const _: () = {
    assert!(size_of::<CNode>() == size_of::<Node>() && align_of::<CNode>() >= align_of::<Node>());
    assert!(
        size_of::<CQueue>() >= size_of::<Tagged>() && align_of::<CQueue>() >= align_of::<Tagged>()
    );
};

/// What is in a `CQueue`.
#[repr(C)]
struct Tagged {
    /// Distinguishes an initialised queue from zeroed or random memory.
    magic: u64,
    queue: Queue,
}

const MAGIC: u64 = 0x7265_6164_7971_2d63;

#[expect(
    clippy::large_enum_variant,
    reason = "the caller's memory is as large as the largest of them anyway"
)]
enum Queue {
    Rr(Checked<RoundRobin>),
    SortedList(Checked<SortedList>),
    RbTree(Checked<RbTree>),
    MultiList2(Checked<MultiList2>),
    Ruler(Checked<Ruler>),
    Wheel(Checked<Wheel>),
    Priority(Checked<Priority>),
}

/// Applies the same expression to each structure.
macro_rules! each {
    ($queue:expr, $name:ident => $body:expr) => {
        match $queue {
            Queue::Rr($name) => $body,
            Queue::SortedList($name) => $body,
            Queue::RbTree($name) => $body,
            Queue::MultiList2($name) => $body,
            Queue::Ruler($name) => $body,
            Queue::Wheel($name) => $body,
            Queue::Priority($name) => $body,
        }
    };
}

/// Initialises `count` nodes. No task waits anywhere.
///
/// # Safety
/// `nodes` is null or points to `count` nodes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_nodes_init(nodes: *mut CNode, count: u32) -> Status {
    if nodes.is_null() {
        return Status::NullPointer;
    }
    for index in 0..count as usize {
        // SAFETY: the caller promises `count` writable nodes, and a `CNode` has the size and
        // alignment of a `Node`.
        unsafe { nodes.cast::<Node>().add(index).write(Node::NEW) };
    }
    Status::Ok
}

/// Initialises `queue` as an empty queue. `kind` and `stride` are values of `rq_kind` and
/// `rq_stride`. `number`, 1 to 255, is unique among the queues that share an array of nodes.
///
/// # Safety
/// `queue` is null or points to a queue that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_init(queue: *mut CQueue, kind: u32, stride: u32, number: u8) -> Status {
    if queue.is_null() {
        return Status::NullPointer;
    }
    let strides = match stride {
        0 => Strides::Linear,
        1 => Strides::PowersOfTwo,
        _ => return Status::BadQueue,
    };
    let Some(number) = NonZeroU8::new(number) else { return Status::BadQueue };
    let made = match kind {
        1 => Queue::Rr(Checked::new(RoundRobin::new(), number)),
        2 => Queue::SortedList(Checked::new(SortedList::new(strides), number)),
        3 => Queue::RbTree(Checked::new(RbTree::new(strides), number)),
        4 => Queue::MultiList2(Checked::new(MultiList2::new(), number)),
        5 => Queue::Ruler(Checked::new(Ruler::new(), number)),
        6 => Queue::Wheel(Checked::new(Wheel::new(strides), number)),
        7 => Queue::Priority(Checked::new(Priority::new(), number)),
        _ => return Status::BadQueue,
    };
    // SAFETY: the caller promises a writable `CQueue`, which is large and aligned enough for a
    // `Tagged`.
    unsafe { queue.cast::<Tagged>().write(Tagged { magic: MAGIC, queue: made }) };
    Status::Ok
}

/// Inserts `task` at `level`, when its slice ends or it wakes.
///
/// # Safety
/// `queue` is null or points to initialised or zeroed memory of a queue; `nodes` is null or points
/// to `count` initialised nodes. Nothing else accesses either during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_insert(
    queue: *mut CQueue,
    nodes: *mut CNode,
    count: u32,
    task: u32,
    level: u16,
) -> Status {
    // SAFETY: the caller promises what `open` asks for.
    match unsafe { open(queue, nodes, count) } {
        Ok((queue, nodes)) => {
            each!(queue, queue => status(queue.insert(nodes, TaskId(task), Level(level))))
        }
        Err(refused) => refused,
    }
}

/// Removes the task that runs next and stores it in `task`.
///
/// # Safety
/// As `rq_insert`; `task` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_pop(
    queue: *mut CQueue,
    nodes: *mut CNode,
    count: u32,
    task: *mut u32,
) -> Status {
    if task.is_null() {
        return Status::NullPointer;
    }
    // SAFETY: the caller promises what `open` asks for.
    match unsafe { open(queue, nodes, count) } {
        // SAFETY: the caller promises that `task` may be written.
        Ok((queue, nodes)) => unsafe { store(each!(queue, queue => queue.pop(nodes)), task) },
        Err(refused) => refused,
    }
}

/// Stores in `task` the task that `rq_pop` would remove.
///
/// # Safety
/// As `rq_pop`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_peek(
    queue: *mut CQueue,
    nodes: *mut CNode,
    count: u32,
    task: *mut u32,
) -> Status {
    if task.is_null() {
        return Status::NullPointer;
    }
    // SAFETY: the caller promises what `open` asks for.
    match unsafe { open(queue, nodes, count) } {
        // SAFETY: the caller promises that `task` may be written.
        Ok((queue, nodes)) => unsafe { store(each!(queue, queue => queue.peek(nodes)), task) },
        Err(refused) => refused,
    }
}

/// Removes `task`, wherever it waits in this queue: it was killed, migrated or re-prioritised.
///
/// # Safety
/// As `rq_insert`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_remove(
    queue: *mut CQueue,
    nodes: *mut CNode,
    count: u32,
    task: u32,
) -> Status {
    // SAFETY: the caller promises what `open` asks for.
    match unsafe { open(queue, nodes, count) } {
        Ok((queue, nodes)) => each!(queue, queue => status(queue.remove(nodes, TaskId(task)))),
        Err(refused) => refused,
    }
}

/// The number of levels that the queue accepts, or 0 if it is invalid.
///
/// # Safety
/// `queue` is null or points to initialised or zeroed memory of a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rq_levels(queue: *mut CQueue) -> u32 {
    // SAFETY: the caller promises what `open_queue` asks for.
    match unsafe { open_queue(queue) } {
        Ok(queue) => each!(queue, queue => queue.levels()),
        Err(_) => 0,
    }
}

/// # Safety
/// As `rq_insert`.
unsafe fn open<'a>(
    queue: *mut CQueue,
    nodes: *mut CNode,
    count: u32,
) -> Result<(&'a mut Queue, &'a mut Nodes), Status> {
    if nodes.is_null() {
        return Err(Status::NullPointer);
    }
    // SAFETY: the caller promises `count` initialised nodes that nothing else accesses; layouts are
    // asserted above.
    let slab = unsafe { core::slice::from_raw_parts_mut(nodes.cast::<Node>(), count as usize) };
    // SAFETY: passed on.
    Ok((unsafe { open_queue(queue)? }, Nodes::from_mut(slab)))
}

/// # Safety
/// `queue` is null or points to initialised or zeroed memory of a queue that nothing else accesses.
unsafe fn open_queue<'a>(queue: *mut CQueue) -> Result<&'a mut Queue, Status> {
    let tagged = queue.cast::<Tagged>();
    if tagged.is_null() {
        return Err(Status::NullPointer);
    }
    // SAFETY: not null, so readable; any bits are a `u64`.
    if unsafe { (*tagged).magic } != MAGIC {
        return Err(Status::BadQueue);
    }
    // SAFETY: the magic number was written together with the queue.
    Ok(unsafe { &mut (*tagged).queue })
}

/// # Safety
/// `place` may be written.
unsafe fn store(task: Option<TaskId>, place: *mut u32) -> Status {
    match task {
        Some(task) => {
            // SAFETY: the caller promises it.
            unsafe { place.write(task.0) };
            Status::Ok
        }
        None => Status::Empty,
    }
}

fn status(result: Result<(), Error>) -> Status {
    match result {
        Ok(()) => Status::Ok,
        Err(Error::BeyondSlab { .. }) => Status::BeyondSlab,
        Err(Error::LevelOutOfRange { .. }) => Status::LevelOutOfRange,
        Err(Error::AlreadyWaiting { .. }) => Status::AlreadyWaiting,
        Err(_) => Status::NotWaiting,
    }
}

/// Loops for ever: without an operating system a panic has no other place to go.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
