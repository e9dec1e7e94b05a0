//! The slab: one node per task, shared by all queues.

use core::hint::{assert_unchecked, cold_path};

use crate::{Id, Key, TaskId};

/// The links of one task: 24 bytes, or fewer with narrower [`Id`]s and [`Key`]s. The structure that
/// holds the task defines the meaning of the fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Node<I = TaskId, K = u64> {
    /// Virtual time or arrival number, kept while the task runs or sleeps.
    pub(crate) key: K,
    /// Next in a list; left child in a tree.
    pub(crate) next: I,
    /// Previous in a list; right child in a tree.
    pub(crate) prev: I,
    /// Parent in a tree; the index of the [`list`](Node::list) in a structure with several lists.
    pub(crate) parent: I,
    /// Part of the arrival number in a heap.
    pub(crate) arrival: u16,
    /// Colour in a tree; part of the arrival number in a heap.
    pub(crate) tag: u8,
    /// Which [`Checked`](crate::Checked) queue the task waits in, or 0. Raw queues neither read
    /// nor write it.
    pub(crate) owner: u8,
}

impl Node {
    /// A node of a task that waits nowhere and has never run, of the default width.
    pub const NEW: Node = Node::FRESH;
}

impl<I: Id, K: Key> Node<I, K> {
    /// As [`NEW`](Node::NEW), of any width.
    pub const FRESH: Self = Node {
        key: K::ZERO,
        next: I::NONE,
        prev: I::NONE,
        parent: I::NONE,
        arrival: 0,
        tag: 0,
        owner: 0,
    };

    /// The list in which the task waits, by its index, where a structure has several.
    #[inline(always)]
    pub(crate) fn list(&self) -> usize {
        self.parent.index()
    }

    /// Stores the list. As wide as an id, although levels are shorter: one register then holds both
    /// the index and the stored value.
    #[inline(always)]
    pub(crate) fn set_list(&mut self, index: usize) {
        self.parent = I::from_index(index);
    }
}

impl<I: Id, K: Key> Default for Node<I, K> {
    fn default() -> Self {
        Node::FRESH
    }
}

/// A queue's position: at a task, or beyond every slab when there is none. Queues keep their most
/// used positions as cursors, not as [`Id`]s. A cursor is as wide as a register, so that an inlined
/// loop needs no widening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor(usize);

impl Cursor {
    /// At no task.
    pub(crate) const NONE: Cursor = Cursor(usize::MAX);
    /// Beyond every slab as well, and never at an id's [`NONE`](Id::NONE).
    pub(crate) const AWAY: Cursor = Cursor(usize::MAX - 1);

    /// At `task`, or at none for [`Id::NONE`].
    #[inline(always)]
    pub(crate) fn at<I: Id>(task: I) -> Cursor {
        Cursor(task.index())
    }

    /// The task, or an id beyond every slab.
    #[inline(always)]
    pub(crate) fn task<I: Id>(self) -> I {
        I::from_index(self.0)
    }

    /// Whether it is at a task.
    #[inline(always)]
    pub(crate) fn is_at_task<I: Id>(self) -> bool {
        self.0 < I::MOST
    }
}

/// Supplies the next pass over a list.
pub(crate) trait Passes {
    /// Begins the next pass and returns its first task, or `None` when no task waits.
    /// Implementations are inlined: a pass may be a single task long.
    fn begin_pass(&mut self) -> Option<Cursor>;
}

/// No pass follows.
impl Passes for () {
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<Cursor> {
        None
    }
}

/// A view of the caller's slab. At most [`MOST`](Nodes::MOST) nodes, so that [`Id::NONE`] and the 63
/// ids before it are beyond every slab.
#[repr(transparent)]
pub struct Nodes<I = TaskId, K = u64>([Node<I, K>]);

impl<I: Id, K: Key> Nodes<I, K> {
    /// The maximum number of tasks of a slab: 192 with ids of 8 bits, 65,472 with 16.
    pub const MOST: usize = I::MOST;

    /// Views `slab` as nodes. Nodes beyond the first [`MOST`](Self::MOST) are ignored.
    #[inline(always)]
    pub fn from_mut(slab: &mut [Node<I, K>]) -> &mut Self {
        let seen = slab.len().min(I::MOST);
        let slab = &mut slab[..seen];
        // SAFETY: `Nodes` is a transparent wrapper around `[Node]`.
        unsafe { &mut *(slab as *mut [Node<I, K>] as *mut Self) }
    }

    /// Views `slab` as read-only nodes.
    #[inline(always)]
    pub fn from_ref(slab: &[Node<I, K>]) -> &Self {
        let slab = &slab[..slab.len().min(I::MOST)];
        // SAFETY: as above.
        unsafe { &*(slab as *const [Node<I, K>] as *const Self) }
    }

    /// How many tasks the slab can hold.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the slab can hold no task.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The node of `task`, or `None` beyond the slab. [`Id::NONE`] is always beyond, so the
    /// bounds check is also the test for the end of a list: one comparison, not two.
    #[inline(always)]
    pub(crate) fn get(&self, task: I) -> Option<&Node<I, K>> {
        self.0.get(task.index())
    }

    /// Whether `cursor` is at a task of this slab.
    #[inline(always)]
    pub(crate) fn holds(&self, cursor: Cursor) -> bool {
        cursor.0 < self.len()
    }

    /// The task at `cursor`, if it is in this slab.
    #[inline(always)]
    pub(crate) fn task_at(&self, cursor: Cursor) -> Option<I> {
        self.task_at_or(cursor, &mut ())
    }

    /// The task at `cursor` or, if that is not in this slab, the first one of the next pass, if
    /// that is. Returns a value that the compiler knows is in the slab; it would forget this where
    /// two paths meet.
    #[inline(always)]
    pub(crate) fn task_at_or<P: Passes>(&self, cursor: Cursor, passes: &mut P) -> Option<I> {
        let mut index = cursor.0;
        if index >= self.len() {
            cold_path();
            index = passes.begin_pass()?.0;
            if index >= self.len() {
                return None;
            }
        }
        // SAFETY: both paths to here have just compared with the length.
        Some(unsafe { self.promised(Cursor(index)) })
    }

    /// The task at `cursor`, which is known to be in this slab. For code where two checked paths
    /// meet and the compiler has lost the fact.
    ///
    /// # Safety
    /// `cursor` is at a task whose index is less than `self.len()`.
    #[inline(always)]
    pub(crate) unsafe fn promised(&self, cursor: Cursor) -> I {
        // SAFETY: the caller promises the first half, and the length is at most `MOST`: see
        // `from_mut`.
        unsafe { assert_unchecked(cursor.0 < self.len() && cursor.0 < I::MOST) };
        cursor.task()
    }

    /// As [`get`](Self::get), to change it.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, task: I) -> Option<&mut Node<I, K>> {
        self.0.get_mut(task.index())
    }
}

impl<I: Id, K: Key> core::ops::Index<I> for Nodes<I, K> {
    type Output = Node<I, K>;
    #[inline(always)]
    fn index(&self, task: I) -> &Node<I, K> {
        &self.0[task.index()]
    }
}

impl<I: Id, K: Key> core::ops::IndexMut<I> for Nodes<I, K> {
    #[inline(always)]
    fn index_mut(&mut self, task: I) -> &mut Node<I, K> {
        &mut self.0[task.index()]
    }
}
