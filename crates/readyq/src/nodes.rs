//! The slab: one node per task, shared by every queue.

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

/// The links of one task, 24 bytes. What the fields mean is the business of the structure the task waits in.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Node {
    /// Virtual time or arrival number, kept while the task runs or sleeps.
    pub(crate) key: u64,
    /// Next in a list; left child in a tree.
    pub(crate) next: TaskId,
    /// Previous in a list; right child in a tree.
    pub(crate) prev: TaskId,
    /// Parent in a tree.
    pub(crate) parent: TaskId,
    /// The level at which the task was last inserted.
    pub(crate) level: Level,
    /// Colour in a tree; part of the arrival number in a heap.
    pub(crate) tag: u8,
    /// Which [`Checked`](crate::Checked) queue the task waits in, or 0. Raw queues neither read nor write it.
    pub(crate) owner: u8,
}

impl Node {
    /// A node of a task that waits nowhere and has never run.
    pub const NEW: Node = Node { key: 0, next: TaskId::NONE, prev: TaskId::NONE, parent: TaskId::NONE, level: Level(0), tag: 0, owner: 0 };
}

impl Default for Node {
    fn default() -> Self {
        Node::NEW
    }
}

/// A view of the caller's slab.
#[repr(transparent)]
pub struct Nodes([Node]);

impl Nodes {
    /// Views `slab` as nodes.
    #[inline(always)]
    pub fn from_mut(slab: &mut [Node]) -> &mut Nodes {
        // SAFETY: `Nodes` is a transparent wrapper around `[Node]`.
        unsafe { &mut *(slab as *mut [Node] as *mut Nodes) }
    }

    /// Views `slab` as nodes, to look only.
    #[inline(always)]
    pub fn from_ref(slab: &[Node]) -> &Nodes {
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

    /// The node of `task`, or `None` beyond the slab. [`TaskId::NONE`] is always beyond, so the bounds check that safe code needs
    /// is at the same time the test for the end of a list: one comparison, not two.
    #[inline(always)]
    pub(crate) fn get(&self, task: TaskId) -> Option<&Node> {
        self.0.get(task.index())
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
