//! The slab: one node per task, shared by all queues.

use core::hint::{assert_unchecked, cold_path};

/// A task, as an index into the slab of [`Nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct TaskId(pub u32);

impl TaskId {
    /// No task: the end of a list, an idle CPU. Never a valid index.
    pub const NONE: TaskId = TaskId(u32::MAX);

    /// This id as an index into per-task tables.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// `None` instead of [`TaskId::NONE`].
    #[inline(always)]
    pub(crate) const fn known(self) -> Option<TaskId> {
        if self.0 == TaskId::NONE.0 { None } else { Some(self) }
    }
}

/// How important (strict priorities) or how frequent (virtual clocks) a task is; 0 comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Level(pub u16);

/// The links of one task, 24 bytes. The structure that holds the task defines the meaning of the
/// fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Node {
    /// Virtual time or arrival number, kept while the task runs or sleeps.
    pub(crate) key: u64,
    /// Next in a list; left child in a tree.
    pub(crate) next: TaskId,
    /// Previous in a list; right child in a tree.
    pub(crate) prev: TaskId,
    /// Parent in a tree; the index of the [`list`](Node::list) in a structure with several lists.
    pub(crate) parent: TaskId,
    /// Part of the arrival number in a heap.
    pub(crate) arrival: u16,
    /// Colour in a tree; part of the arrival number in a heap.
    pub(crate) tag: u8,
    /// Which [`Checked`](crate::Checked) queue the task waits in, or 0. Raw queues neither read
    /// nor write it.
    pub(crate) owner: u8,
}

impl Node {
    /// A node of a task that waits nowhere and has never run.
    pub const NEW: Node = Node {
        key: 0,
        next: TaskId::NONE,
        prev: TaskId::NONE,
        parent: TaskId::NONE,
        arrival: 0,
        tag: 0,
        owner: 0,
    };

    /// The list in which the task waits, by its index, where a structure has several.
    #[inline(always)]
    pub(crate) const fn list(&self) -> usize {
        self.parent.index()
    }

    /// Stores the list. A full word, although levels are shorter: one register then holds both the
    /// index and the stored value.
    #[inline(always)]
    pub(crate) const fn set_list(&mut self, index: usize) {
        self.parent = TaskId(index as u32);
    }
}

impl Default for Node {
    fn default() -> Self {
        Node::NEW
    }
}

/// A queue's position: at a task, or beyond every slab when there is none. Queues keep their most
/// used positions as cursors, not as [`TaskId`]s. A cursor is as wide as a register, so that an
/// inlined loop needs no widening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor(u64);

impl Cursor {
    /// At no task.
    pub(crate) const NONE: Cursor = Cursor(u64::MAX);
    /// Set in a cursor, it moves it beyond every slab.
    const AWAY: u64 = 1 << 32;

    /// At `task`, or at none for [`TaskId::NONE`].
    #[inline(always)]
    pub(crate) const fn at(task: TaskId) -> Cursor {
        Cursor(task.0 as u64)
    }

    /// The task, even if the cursor is away from it, or [`TaskId::NONE`].
    #[inline(always)]
    pub(crate) const fn task(self) -> TaskId {
        TaskId(self.0 as u32)
    }

    /// At no task; [`back`](Self::back) returns to the task.
    #[inline(always)]
    pub(crate) const fn away(self) -> Cursor {
        Cursor(self.0 | Cursor::AWAY)
    }

    /// Undoes [`away`](Self::away).
    #[inline(always)]
    pub(crate) const fn back(self) -> Cursor {
        Cursor(self.0 & !Cursor::AWAY)
    }

    /// Whether it was sent away.
    #[inline(always)]
    pub(crate) const fn is_away(self) -> bool {
        self.0 & Cursor::AWAY != 0
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

/// A view of the caller's slab. At most [`MOST`](Nodes::MOST) nodes, so that [`TaskId::NONE`] and
/// the 63 ids before it are beyond every slab.
#[repr(transparent)]
pub struct Nodes([Node]);

impl Nodes {
    /// The maximum number of tasks of a slab.
    pub const MOST: usize = TaskId::NONE.index() & !63;

    /// Views `slab` as nodes. Nodes beyond the first [`MOST`](Self::MOST) are ignored.
    #[inline(always)]
    pub fn from_mut(slab: &mut [Node]) -> &mut Nodes {
        let seen = slab.len().min(Nodes::MOST);
        let slab = &mut slab[..seen];
        // SAFETY: `Nodes` is a transparent wrapper around `[Node]`.
        unsafe { &mut *(slab as *mut [Node] as *mut Nodes) }
    }

    /// Views `slab` as read-only nodes.
    #[inline(always)]
    pub fn from_ref(slab: &[Node]) -> &Nodes {
        let slab = &slab[..slab.len().min(Nodes::MOST)];
        // SAFETY: as above.
        unsafe { &*(slab as *const [Node] as *const Nodes) }
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

    /// The node of `task`, or `None` beyond the slab. [`TaskId::NONE`] is always beyond, so the
    /// bounds check is also the test for the end of a list: one comparison, not two.
    #[inline(always)]
    pub(crate) fn get(&self, task: TaskId) -> Option<&Node> {
        self.0.get(task.index())
    }

    /// Whether `cursor` is at a task of this slab.
    #[inline(always)]
    pub(crate) fn holds(&self, cursor: Cursor) -> bool {
        cursor.0 < self.len() as u64
    }

    /// The task at `cursor`, if it is in this slab.
    #[inline(always)]
    pub(crate) fn task_at(&self, cursor: Cursor) -> Option<TaskId> {
        self.task_at_or(cursor, &mut ())
    }

    /// The task at `cursor` or, if that is not in this slab, the first one of the next pass, if
    /// that is. Returns a value that the compiler knows is in the slab; it would forget this where
    /// two paths meet.
    #[inline(always)]
    pub(crate) fn task_at_or<P: Passes>(&self, cursor: Cursor, passes: &mut P) -> Option<TaskId> {
        let mut index = cursor.0;
        if index >= self.len() as u64 {
            cold_path();
            index = passes.begin_pass()?.0;
            if index >= self.len() as u64 {
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
    pub(crate) unsafe fn promised(&self, cursor: Cursor) -> TaskId {
        // SAFETY: the caller promises the first half, and the length is at most `MOST`: see
        // `from_mut`.
        unsafe {
            assert_unchecked(cursor.0 < self.len() as u64 && cursor.0 < TaskId::NONE.0 as u64)
        };
        TaskId(cursor.0 as u32)
    }

    /// As [`get`](Self::get), to change it.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, task: TaskId) -> Option<&mut Node> {
        self.0.get_mut(task.index())
    }
}

impl core::ops::Index<TaskId> for Nodes {
    type Output = Node;
    #[inline(always)]
    fn index(&self, task: TaskId) -> &Node {
        &self.0[task.index()]
    }
}

impl core::ops::IndexMut<TaskId> for Nodes {
    #[inline(always)]
    fn index_mut(&mut self, task: TaskId) -> &mut Node {
        &mut self.0[task.index()]
    }
}
