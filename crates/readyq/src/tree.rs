//! A red-black tree through the nodes, ordered by a comparison that the caller supplies.
//!
//! The tree caches its first task, so the best one is found without a search. It removes that task
//! by a shorter path than any other. It stores no keys: the caller compares tasks by its own
//! tables.
//!
//! Cost: insert and remove O(log n), at most three rotations; first O(1). Source: the textbook's
//! tree (Cormen et al., chapter 13) with the cached leftmost node of Linux's `rb_root_cached`. The
//! short removal of the first task is ours.
//!
//! ```
//! use readyq::{Node, Nodes, TaskId, tree::Tree};
//!
//! let deadline = [30, 10, 20];
//! let mut slab = [Node::NEW; 3];
//! let nodes = Nodes::from_mut(&mut slab);
//! let mut tree = Tree::new();
//! for task in 0..3 {
//!     tree.insert_by(nodes, TaskId(task), |_, a, b| deadline[a.index()] < deadline[b.index()]);
//! }
//! assert_eq!(tree.pop_first(nodes), Some(TaskId(1)));
//! tree.remove(nodes, TaskId(0));
//! assert_eq!(tree.first(), Some(TaskId(2)));
//! ```

use crate::nodes::Cursor;
use crate::{Id, Key, Node, Nodes, TaskId};

const RED: u8 = 0;
const BLACK: u8 = 1;

/// The heads of a tree: its root and its first task.
#[derive(Clone, Debug)]
pub struct Tree<I = TaskId> {
    root: I,
    /// The leftmost task; `NONE` exactly when the tree is empty.
    first: I,
}

impl Tree {
    /// An empty tree, of the default width.
    pub const fn new() -> Self {
        Tree::EMPTY
    }
}

impl<I: Id> Tree<I> {
    /// As [`new`](Tree::new), of any width.
    pub const EMPTY: Self = Tree { root: I::NONE, first: I::NONE };

    /// Inserts `task`, which is in no tree, in the order of `less(nodes, a, b)`, "a comes strictly
    /// before b". It comes after its equals.
    #[inline(always)]
    pub fn insert_by<K: Key>(
        &mut self,
        nodes: &mut Nodes<I, K>,
        task: I,
        mut less: impl FnMut(&Nodes<I, K>, I, I) -> bool,
    ) {
        let (mut parent, mut on_left, mut next) = (I::NONE, true, self.root);
        while let Some(node) = nodes.get(next) {
            parent = next;
            on_left = less(nodes, task, parent);
            next = if on_left { node.next } else { node.prev };
        }
        match (parent.known(), on_left) {
            (None, _) => self.plant(nodes, task),
            (Some(parent), true) => self.hang::<true, K>(nodes, task, parent),
            (Some(parent), false) => self.hang::<false, K>(nodes, task, parent),
        }
    }

    /// As [`insert_by`](Self::insert_by), for keys that are in the nodes: `before` says whether the
    /// task comes before that node's.
    ///
    /// The descent costs seven instructions a level. For this it uses references, and each side has
    /// its own load and its own end.
    #[inline(always)]
    pub(crate) fn insert_before<K: Key>(
        &mut self,
        nodes: &mut Nodes<I, K>,
        task: I,
        mut before: impl FnMut(&Node<I, K>) -> bool,
    ) {
        let mut parent = Cursor::at(self.root);
        let Some(mut node) = nodes.get(self.root) else {
            return self.plant(nodes, task);
        };
        loop {
            if before(node) {
                let left = node.next;
                let Some(below) = nodes.get(left) else {
                    // SAFETY: `parent` is at the task of `node`, which was found in the slab.
                    let parent = unsafe { nodes.promised(parent) };
                    return self.hang::<true, K>(nodes, task, parent);
                };
                (parent, node) = (Cursor::at(left), below);
            } else {
                let right = node.prev;
                let Some(below) = nodes.get(right) else {
                    // SAFETY: as above.
                    let parent = unsafe { nodes.promised(parent) };
                    return self.hang::<false, K>(nodes, task, parent);
                };
                (parent, node) = (Cursor::at(right), below);
            }
        }
    }

    /// Makes `task` the only one.
    #[inline(always)]
    fn plant<K: Key>(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        let node = &mut nodes[task];
        node.next = I::NONE;
        node.prev = I::NONE;
        node.parent = I::NONE;
        node.tag = BLACK;
        self.root = task;
        self.first = task;
    }

    /// Makes `task` a child of `parent`, on the empty side that `ON_LEFT` names.
    #[inline(always)]
    fn hang<const ON_LEFT: bool, K: Key>(&mut self, nodes: &mut Nodes<I, K>, task: I, parent: I) {
        let node = &mut nodes[task];
        node.next = I::NONE;
        node.prev = I::NONE;
        node.parent = parent;
        node.tag = RED;
        let above = &mut nodes[parent];
        let is_red = above.tag == RED;
        if ON_LEFT {
            above.next = task;
            // Only to the left of the first task is there no task before the new one.
            if self.first == parent {
                self.first = task;
            }
        } else {
            above.prev = task;
        }
        if is_red {
            self.repair_red(nodes, task, parent);
        }
    }

    /// Removes the first task.
    #[inline(always)]
    pub fn pop_first<K: Key>(&mut self, nodes: &mut Nodes<I, K>) -> Option<I> {
        let task = self.first;
        let &Node { prev: right, parent, tag, .. } = nodes.get(task)?;
        // The first task has no left child, so its right one is a red leaf, which takes its place
        // and its colour.
        match nodes.get_mut(right) {
            Some(child) => {
                child.parent = parent;
                child.tag = BLACK;
                self.first = right;
            }
            None => self.first = parent,
        }
        match nodes.get_mut(parent) {
            Some(node) => node.next = right,
            None => {
                self.root = right;
                return Some(task);
            }
        }
        if right == I::NONE && tag == BLACK {
            self.repair_left_edge(nodes, parent);
        }
        Some(task)
    }

    /// Removes `task`, which is in this tree.
    #[inline]
    pub fn remove<K: Key>(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        if task == self.first {
            self.pop_first(nodes);
            return;
        }
        let Node { next: left, prev: right, parent, tag, .. } = nodes[task];
        // The node that leaves the tree's shape is `task` itself or, if it has two children, its
        // successor, which then replaces it.
        let (hole, hole_on_left, filler, lost);
        if left == I::NONE || right == I::NONE {
            filler = if left == I::NONE { right } else { left };
            (hole, hole_on_left, lost) =
                (parent, nodes.get(parent).is_some_and(|node| node.next == task), tag);
            self.replace_child(nodes, parent, task, filler);
        } else {
            let mut heir = right;
            while nodes[heir].next != I::NONE {
                heir = nodes[heir].next;
            }
            let Node { prev, parent: above, tag: heir_tag, .. } = nodes[heir];
            (filler, lost) = (prev, heir_tag);
            if above == task {
                (hole, hole_on_left) = (heir, false);
            } else {
                (hole, hole_on_left) = (above, true);
                nodes[above].next = filler;
                nodes[heir].prev = right;
                nodes[right].parent = heir;
            }
            nodes[heir].next = left;
            nodes[left].parent = heir;
            nodes[heir].parent = parent;
            nodes[heir].tag = tag;
            self.replace_child(nodes, parent, task, heir);
        }
        if let Some(node) = nodes.get_mut(filler) {
            // An only child is a red leaf.
            node.parent = hole;
            node.tag = BLACK;
        }
        if filler == I::NONE && lost == BLACK && hole != I::NONE {
            self.repair_black_up(nodes, hole, hole_on_left);
        }
    }

    /// The first task in the order.
    #[inline(always)]
    pub fn first(&self) -> Option<I> {
        self.first.known()
    }

    /// Whether the tree holds no task.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.root == I::NONE
    }

    /// The task at the root, to search from.
    #[inline(always)]
    pub fn root(&self) -> Option<I> {
        self.root.known()
    }

    /// The root of the subtree below `task` with the tasks before it.
    #[inline(always)]
    pub fn left<K: Key>(&self, nodes: &Nodes<I, K>, task: I) -> Option<I> {
        nodes[task].next.known()
    }

    /// The root of the subtree below `task` with the tasks after it.
    #[inline(always)]
    pub fn right<K: Key>(&self, nodes: &Nodes<I, K>, task: I) -> Option<I> {
        nodes[task].prev.known()
    }

    /// The parent of `task`.
    #[inline(always)]
    pub fn parent<K: Key>(&self, nodes: &Nodes<I, K>, task: I) -> Option<I> {
        nodes[task].parent.known()
    }

    /// The task that follows `task` in the order.
    pub fn next<K: Key>(&self, nodes: &Nodes<I, K>, mut task: I) -> Option<I> {
        if let Some(mut below) = self.right(nodes, task) {
            while let Some(left) = self.left(nodes, below) {
                below = left;
            }
            return Some(below);
        }
        while let Some(above) = self.parent(nodes, task) {
            if nodes[above].next == task {
                return Some(above);
            }
            task = above;
        }
        None
    }

    /// The first task in the order that `accept` returns true for.
    pub fn find<K: Key>(
        &self,
        nodes: &Nodes<I, K>,
        mut accept: impl FnMut(I) -> bool,
    ) -> Option<I> {
        let mut candidate = self.first();
        while let Some(task) = candidate {
            if accept(task) {
                return Some(task);
            }
            candidate = self.next(nodes, task);
        }
        None
    }

    /// Restores "no red task below a red one" after the red `task` came in below the red `parent`.
    #[inline(always)]
    fn repair_red<K: Key>(&mut self, nodes: &mut Nodes<I, K>, mut task: I, mut parent: I) {
        // Both are in the slab: `hang` has written to them.
        loop {
            // SAFETY: at first as above; afterwards `parent` is what was `above` and found to be
            // red.
            unsafe { nodes.promised(Cursor::at(parent)) };
            // A red parent is not the root.
            let grand = nodes[parent].parent;
            let Node { next: left, prev: right, parent: above, .. } = nodes[grand];
            let uncle = I::from_index(left.index() ^ right.index() ^ parent.index());
            match nodes.get_mut(uncle) {
                Some(node) if node.tag == RED => node.tag = BLACK,
                _ if left == parent => {
                    return self.rotate_red::<true, K>(nodes, task, parent, grand);
                }
                _ => return self.rotate_red::<false, K>(nodes, task, parent, grand),
            }
            nodes[parent].tag = BLACK;
            let Some(node) = nodes.get(above) else { return };
            let is_red = node.tag == RED;
            nodes[grand].tag = RED;
            if !is_red {
                return;
            }
            task = grand;
            parent = above;
        }
    }

    /// The end of [`repair_red`](Self::repair_red): `task` and its parent are red, its uncle is
    /// black. `ON_LEFT`: the parent is a left child. The middle one of the three moves to the top
    /// and becomes black; the other two become its red children.
    #[inline(always)]
    fn rotate_red<const ON_LEFT: bool, K: Key>(
        &mut self,
        nodes: &mut Nodes<I, K>,
        task: I,
        parent: I,
        grand: I,
    ) {
        let above = nodes[grand].parent;
        let inner = far::<ON_LEFT, _, _>(&nodes[parent]);
        if inner != task {
            self.give::<ON_LEFT, K>(nodes, grand, inner);
            set_far::<ON_LEFT, _, _>(&mut nodes[parent], grand);
            self.crown(nodes, parent, grand, above);
            return;
        }
        let (outer, inner) =
            (near::<ON_LEFT, _, _>(&nodes[task]), far::<ON_LEFT, _, _>(&nodes[task]));
        set_far::<ON_LEFT, _, _>(&mut nodes[parent], outer);
        if let Some(node) = nodes.get_mut(outer) {
            node.parent = parent;
        }
        nodes[parent].parent = task;
        self.give::<ON_LEFT, K>(nodes, grand, inner);
        set_near::<ON_LEFT, _, _>(&mut nodes[task], parent);
        set_far::<ON_LEFT, _, _>(&mut nodes[task], grand);
        self.crown(nodes, task, grand, above);
    }

    /// Hangs `child` below `task`, on the side that `LEFT` names.
    #[inline(always)]
    fn give<const LEFT: bool, K: Key>(&mut self, nodes: &mut Nodes<I, K>, task: I, child: I) {
        set_near::<LEFT, _, _>(&mut nodes[task], child);
        if let Some(node) = nodes.get_mut(child) {
            node.parent = task;
        }
    }

    /// Puts `top`, black, in the place of `grand`, which becomes its red child.
    #[inline(always)]
    fn crown<K: Key>(&mut self, nodes: &mut Nodes<I, K>, top: I, grand: I, above: I) {
        nodes[grand].parent = top;
        nodes[grand].tag = RED;
        nodes[top].parent = above;
        nodes[top].tag = BLACK;
        self.replace_child(nodes, above, grand, top);
    }

    /// Repairs a tree in which every path through the left side of `hole` is one black task short.
    /// `hole` and everything above it must be on the left edge of the tree.
    #[inline(always)]
    fn repair_left_edge<K: Key>(&mut self, nodes: &mut Nodes<I, K>, mut hole: I) {
        while nodes.get(hole).is_some() {
            if self.repair_black::<true, true, K>(nodes, hole) {
                return;
            }
            hole = nodes[hole].parent;
        }
    }

    /// Repairs a tree in which every path through one side of `hole` is one black task short.
    #[inline]
    fn repair_black_up<K: Key>(&mut self, nodes: &mut Nodes<I, K>, mut hole: I, mut on_left: bool) {
        loop {
            let repaired = match on_left {
                true => self.repair_black::<true, false, K>(nodes, hole),
                false => self.repair_black::<false, false, K>(nodes, hole),
            };
            let above = nodes[hole].parent;
            if repaired || above == I::NONE {
                return;
            }
            on_left = nodes[above].next == hole;
            hole = above;
        }
    }

    /// One step of it: either repairs the tree, or returns `false` and leaves all paths through
    /// `hole` one black task short. `ON_EDGE`: `hole` and everything above it are on the left edge
    /// of the tree.
    #[inline(always)]
    fn repair_black<const ON_LEFT: bool, const ON_EDGE: bool, K: Key>(
        &mut self,
        nodes: &mut Nodes<I, K>,
        hole: I,
    ) -> bool {
        let mut sibling = far::<ON_LEFT, _, _>(&nodes[hole]);
        let Node { tag, next, prev, .. } = nodes[sibling];
        let mut below = (next, prev);
        if tag == RED {
            nodes[sibling].tag = BLACK;
            nodes[hole].tag = RED;
            self.rotate::<ON_LEFT, ON_EDGE, K>(nodes, hole);
            sibling = far::<ON_LEFT, _, _>(&nodes[hole]);
            below = (nodes[sibling].next, nodes[sibling].prev);
        }
        // SAFETY: both paths to here have read its links.
        unsafe { nodes.promised(Cursor::at(sibling)) };
        let (inner, outer) = if ON_LEFT { below } else { (below.1, below.0) };
        if let Some(node) = nodes.get_mut(outer)
            && node.tag == RED
        {
            node.tag = BLACK;
            nodes[sibling].tag = nodes[hole].tag;
        } else if let Some(node) = nodes.get(inner)
            && node.tag == RED
        {
            if ON_LEFT {
                self.rotate::<false, false, K>(nodes, sibling);
            } else {
                self.rotate::<true, false, K>(nodes, sibling);
            }
            nodes[inner].tag = nodes[hole].tag;
        } else {
            nodes[sibling].tag = RED;
            let was_red = nodes[hole].tag == RED;
            nodes[hole].tag = BLACK;
            return was_red;
        }
        nodes[hole].tag = BLACK;
        self.rotate::<ON_LEFT, ON_EDGE, K>(nodes, hole);
        true
    }

    /// Rotates `task` down to the side that `TO_LEFT` names; its child on the other side replaces
    /// it. `ON_EDGE` as in [`repair_black`](Self::repair_black).
    #[inline(always)]
    fn rotate<const TO_LEFT: bool, const ON_EDGE: bool, K: Key>(
        &mut self,
        nodes: &mut Nodes<I, K>,
        task: I,
    ) {
        let up = far::<TO_LEFT, _, _>(&nodes[task]);
        let above = nodes[task].parent;
        let inner = near::<TO_LEFT, _, _>(&nodes[up]);
        let node = &mut nodes[up];
        node.parent = above;
        set_near::<TO_LEFT, _, _>(node, task);
        set_far::<TO_LEFT, _, _>(&mut nodes[task], inner);
        nodes[task].parent = up;
        if let Some(node) = nodes.get_mut(inner) {
            node.parent = task;
        }
        match nodes.get_mut(above) {
            Some(node) if ON_EDGE => node.next = up,
            _ => self.replace_child(nodes, above, task, up),
        }
    }

    /// Makes `parent` point to `new` where it pointed to `old`.
    #[inline(always)]
    fn replace_child<K: Key>(&mut self, nodes: &mut Nodes<I, K>, parent: I, old: I, new: I) {
        match nodes.get_mut(parent) {
            Some(node) if node.next == old => node.next = new,
            Some(node) => node.prev = new,
            None => self.root = new,
        }
    }
}

impl<I: Id> Default for Tree<I> {
    fn default() -> Self {
        Tree::EMPTY
    }
}

/// The child on the side that `LEFT` names.
#[inline(always)]
fn near<const LEFT: bool, I: Id, K: Key>(node: &Node<I, K>) -> I {
    if LEFT { node.next } else { node.prev }
}

/// The child on the other side.
#[inline(always)]
fn far<const LEFT: bool, I: Id, K: Key>(node: &Node<I, K>) -> I {
    if LEFT { node.prev } else { node.next }
}

/// Puts `child` on the side that `LEFT` names.
#[inline(always)]
fn set_near<const LEFT: bool, I: Id, K: Key>(node: &mut Node<I, K>, child: I) {
    *(if LEFT { &mut node.next } else { &mut node.prev }) = child;
}

/// Puts `child` on the other side.
#[inline(always)]
fn set_far<const LEFT: bool, I: Id, K: Key>(node: &mut Node<I, K>, child: I) {
    *(if LEFT { &mut node.prev } else { &mut node.next }) = child;
}
