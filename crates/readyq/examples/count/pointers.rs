//! The same structures with raw pointers, as in C: a comparison for the checked indices of
//! `readyq`.
//!
//! `rr`, `ruler` and `rbtree` are the library's algorithms, with null in place of an id beyond the
//! slab. `list-head` is a circular list with a sentinel, as in Linux's `include/linux/list.h`.
//! Nothing is checked: to insert a task twice, or free one that waits, is undefined behaviour. Only
//! insert and pop are here, because only they are counted. A task is 48 bytes, a `Node` 24.
//!
//! `unsafe` is the subject of this file: its numbers are in `docs/adr/0003-indices.md`.

use std::ptr::{NonNull, null_mut};

/// A task with its links in it.
pub struct Task {
    /// The task's id, to compare orders.
    pub id: u32,
    /// The level at which the task waits. It changes only while the task does not wait.
    pub level: u16,
    red: bool,
    key: u64,
    /// Next and previous in a list, left and right in a tree.
    links: [Link; 2],
    parent: Link,
}

type Link = *mut Task;

impl Task {
    /// A task that waits nowhere and has never run.
    pub const fn new(id: u32, level: u16) -> Task {
        Task { id, level, red: false, key: 0, links: [null_mut(); 2], parent: null_mut() }
    }
}

/// A queue of tasks. Tasks do not move while the queue lives.
pub trait PointerQueue {
    /// Inserts `task`.
    ///
    /// # Safety
    /// `task` is alive, does not move, and waits nowhere.
    unsafe fn insert(&mut self, task: NonNull<Task>);

    /// Removes the task that runs next.
    ///
    /// # Safety
    /// All waiting tasks are alive and have not moved.
    unsafe fn pop(&mut self) -> Option<NonNull<Task>>;
}

/// `readyq::RoundRobin`.
pub struct RoundRobin {
    head: Link,
    tail: Link,
}

impl RoundRobin {
    pub const NEW: RoundRobin = RoundRobin { head: null_mut(), tail: null_mut() };
}

impl PointerQueue for RoundRobin {
    #[inline(always)]
    unsafe fn insert(&mut self, task: NonNull<Task>) {
        let task = task.as_ptr();
        let tail = std::mem::replace(&mut self.tail, task);
        unsafe {
            (*task).links[1] = tail;
            if tail.is_null() {
                self.head = task;
            } else {
                (*tail).links[0] = task;
            }
        }
    }

    #[inline(always)]
    unsafe fn pop(&mut self) -> Option<NonNull<Task>> {
        let task = NonNull::new(self.head)?;
        self.head = unsafe { task.as_ref().links[0] };
        if self.tail == task.as_ptr() {
            *self = Self::NEW;
        }
        Some(task)
    }
}

/// A circular list through a sentinel. No end is null, and no operation has a branch.
pub struct ListHead(Box<Task>);

impl ListHead {
    pub fn new() -> ListHead {
        let mut sentinel = Box::new(Task::new(0, 0));
        sentinel.links = [&raw mut *sentinel; 2];
        ListHead(sentinel)
    }
}

impl PointerQueue for ListHead {
    #[inline(always)]
    unsafe fn insert(&mut self, task: NonNull<Task>) {
        let (sentinel, task) = (&raw mut *self.0, task.as_ptr());
        unsafe {
            let last = (*sentinel).links[1];
            (*sentinel).links[1] = task;
            (*task).links = [sentinel, last];
            (*last).links[0] = task;
        }
    }

    #[inline(always)]
    unsafe fn pop(&mut self) -> Option<NonNull<Task>> {
        let sentinel = &raw mut *self.0;
        unsafe {
            let task = (*sentinel).links[0];
            if task == sentinel {
                return None;
            }
            let [next, previous] = (*task).links;
            (*next).links[1] = previous;
            (*previous).links[0] = next;
            NonNull::new(task)
        }
    }
}

const LEVELS: usize = 64;

/// `readyq::Ruler`. A list's tail is null while it is empty; its head is stale then.
pub struct Ruler {
    pass: Link,
    tick: u64,
    due: u64,
    waiting: u64,
    lists: [[Link; 2]; LEVELS],
}

impl Ruler {
    pub const NEW: Ruler =
        Ruler { pass: null_mut(), tick: 0, due: 0, waiting: 0, lists: [[null_mut(); 2]; LEVELS] };

    /// The level of the next pass.
    #[inline(always)]
    fn next_level(&mut self) -> Option<usize> {
        let due = self.due & self.waiting;
        if due != 0 {
            self.due &= due ^ due.wrapping_neg();
            return Some(due.trailing_zeros() as usize);
        }
        let waiting = std::num::NonZeroU64::new(self.waiting)?.get();
        let served = waiting ^ (waiting - 1);
        let before = self.tick | served >> 1;
        self.tick = before.wrapping_add(1);
        self.due = before ^ self.tick ^ served;
        Some(waiting.trailing_zeros() as usize)
    }
}

impl PointerQueue for Ruler {
    #[inline(always)]
    unsafe fn insert(&mut self, task: NonNull<Task>) {
        let task = task.as_ptr();
        unsafe {
            let level = usize::from((*task).level) % LEVELS;
            let [head, tail] = &mut self.lists[level];
            let last = std::mem::replace(tail, task);
            (*task).links = [null_mut(), last];
            if last.is_null() {
                self.waiting |= 1 << level;
                *head = task;
            } else {
                (*last).links[0] = task;
            }
        }
    }

    #[inline(always)]
    unsafe fn pop(&mut self) -> Option<NonNull<Task>> {
        let mut task = self.pass;
        if task.is_null() {
            std::hint::cold_path();
            let level = self.next_level()?;
            self.waiting &= !(1 << level);
            self.lists[level][1] = null_mut();
            task = self.lists[level][0];
        }
        // SAFETY: a non-empty level has a first task.
        let task = unsafe { NonNull::new_unchecked(task) };
        self.pass = unsafe { task.as_ref().links[0] };
        Some(task)
    }
}

/// `readyq::RbTree` with linear strides.
pub struct RbTree {
    root: Link,
    first: Link,
    now: u64,
}

impl PointerQueue for RbTree {
    #[inline(always)]
    unsafe fn insert(&mut self, task: NonNull<Task>) {
        let task = task.as_ptr();
        unsafe {
            let behind = self.now.wrapping_sub((*task).key) as i64;
            let stride = u64::from((*task).level) + 1;
            let ahead = if behind <= 0 { stride } else { stride.saturating_sub(behind as u64) };
            let key = self.now.wrapping_add(ahead);
            (*task).key = key;
            let mut parent = self.root;
            if parent.is_null() {
                ((*task).links, (*task).parent, (*task).red) = ([null_mut(); 2], null_mut(), false);
                (self.root, self.first) = (task, task);
                return;
            }
            loop {
                let side = if (key.wrapping_sub((*parent).key) as i64) < 0 { LEFT } else { RIGHT };
                let below = (*parent).links[side];
                if below.is_null() {
                    return if side == LEFT {
                        self.hang::<LEFT>(task, parent)
                    } else {
                        self.hang::<RIGHT>(task, parent)
                    };
                }
                parent = below;
            }
        }
    }

    #[inline(always)]
    unsafe fn pop(&mut self) -> Option<NonNull<Task>> {
        let task = NonNull::new(self.first)?;
        unsafe {
            let &Task { links: [_, right], parent, red, key, .. } = task.as_ref();
            self.now = key;
            // The first task has no left child, so its right one is a red leaf, which takes its
            // place and its colour.
            if right.is_null() {
                self.first = parent;
            } else {
                ((*right).parent, (*right).red) = (parent, false);
                self.first = right;
            }
            if parent.is_null() {
                self.root = right;
            } else {
                (*parent).links[LEFT] = right;
                if right.is_null() && !red {
                    self.repair_left_edge(parent);
                }
            }
        }
        Some(task)
    }
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// The operations of `readyq::tree::Tree`, by the same names. All need a valid tree, which only the
/// two operations above can break.
impl RbTree {
    pub const NEW: RbTree = RbTree { root: null_mut(), first: null_mut(), now: 0 };

    #[inline(always)]
    unsafe fn hang<const SIDE: usize>(&mut self, task: Link, parent: Link) {
        unsafe {
            ((*task).links, (*task).parent, (*task).red) = ([null_mut(); 2], parent, true);
            (*parent).links[SIDE] = task;
            if SIDE == LEFT && self.first == parent {
                self.first = task;
            }
            if (*parent).red {
                self.repair_red(task, parent);
            }
        }
    }

    #[inline(always)]
    unsafe fn repair_red(&mut self, mut task: Link, mut parent: Link) {
        unsafe {
            loop {
                let grand = (*parent).parent;
                let [left, right] = (*grand).links;
                let above = (*grand).parent;
                let uncle = if left == parent { right } else { left };
                if uncle.is_null() || !(*uncle).red {
                    return if left == parent {
                        self.rotate_red::<LEFT, RIGHT>(task, parent, grand)
                    } else {
                        self.rotate_red::<RIGHT, LEFT>(task, parent, grand)
                    };
                }
                ((*uncle).red, (*parent).red) = (false, false);
                if above.is_null() {
                    return;
                }
                (*grand).red = true;
                if !(*above).red {
                    return;
                }
                (task, parent) = (grand, above);
            }
        }
    }

    #[inline(always)]
    unsafe fn rotate_red<const NEAR: usize, const FAR: usize>(
        &mut self,
        task: Link,
        parent: Link,
        grand: Link,
    ) {
        unsafe {
            let above = (*grand).parent;
            let inner = (*parent).links[FAR];
            let top = if inner == task {
                give::<FAR>(parent, (*task).links[NEAR]);
                give::<NEAR>(grand, (*task).links[FAR]);
                (*task).links[NEAR] = parent;
                (*parent).parent = task;
                task
            } else {
                give::<NEAR>(grand, inner);
                parent
            };
            (*top).links[FAR] = grand;
            ((*grand).parent, (*grand).red) = (top, true);
            ((*top).parent, (*top).red) = (above, false);
            self.replace_child(above, grand, top);
        }
    }

    /// Every path through the left side of `hole`, which is on the left edge, is one black task
    /// short.
    #[inline(always)]
    unsafe fn repair_left_edge(&mut self, mut hole: Link) {
        unsafe {
            while !hole.is_null() {
                let mut sibling = (*hole).links[RIGHT];
                if (*sibling).red {
                    ((*sibling).red, (*hole).red) = (false, true);
                    self.rotate_edge(hole);
                    sibling = (*hole).links[RIGHT];
                }
                let [inner, outer] = (*sibling).links;
                if !outer.is_null() && (*outer).red {
                    (*outer).red = false;
                    (*sibling).red = (*hole).red;
                } else if !inner.is_null() && (*inner).red {
                    give::<LEFT>(sibling, (*inner).links[RIGHT]);
                    give::<RIGHT>(inner, sibling);
                    give::<RIGHT>(hole, inner);
                    (*inner).red = (*hole).red;
                } else {
                    (*sibling).red = true;
                    if std::mem::replace(&mut (*hole).red, false) {
                        return;
                    }
                    hole = (*hole).parent;
                    continue;
                }
                (*hole).red = false;
                return self.rotate_edge(hole);
            }
        }
    }

    /// Rotates `task`, which is on the left edge, to the left.
    #[inline(always)]
    unsafe fn rotate_edge(&mut self, task: Link) {
        unsafe {
            let (up, above) = ((*task).links[RIGHT], (*task).parent);
            give::<RIGHT>(task, (*up).links[LEFT]);
            (*up).parent = above;
            (*up).links[LEFT] = task;
            (*task).parent = up;
            if above.is_null() {
                self.root = up;
            } else {
                (*above).links[LEFT] = up;
            }
        }
    }

    #[inline(always)]
    unsafe fn replace_child(&mut self, parent: Link, old: Link, new: Link) {
        unsafe {
            if parent.is_null() {
                self.root = new;
            } else if (*parent).links[LEFT] == old {
                (*parent).links[LEFT] = new;
            } else {
                (*parent).links[RIGHT] = new;
            }
        }
    }
}

/// Makes `child`, if any, a child of `task`.
#[inline(always)]
unsafe fn give<const SIDE: usize>(task: Link, child: Link) {
    unsafe {
        (*task).links[SIDE] = child;
        if !child.is_null() {
            (*child).parent = task;
        }
    }
}
