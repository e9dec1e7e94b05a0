//! How wide ids and keys are: a machine with a hundred tasks needs no links of 32 bits.
//!
//! [`Nodes`](crate::Nodes) have two widths: that of an [`Id`], which is also that of every link, and
//! that of a [`Key`], a virtual time that wraps. The default is [`TaskId`] (32 bits) and `u64`: 24
//! bytes a task. `u16` and `u32` are 16 bytes, `u8` and `u16` are 10.
//!
//! ```
//! use readyq::{Level, Node, Nodes, ReadyQueue, Ruler};
//!
//! /// Ids of 8 bits, keys of 16, and 8 levels.
//! let mut slab = [Node::<u8, u16>::default(); 100];
//! let nodes = Nodes::from_mut(&mut slab);
//! let mut queue = Ruler::<8, u8, u16>::default();
//! queue.insert(nodes, 7, Level(0));
//! queue.insert(nodes, 99, Level(1));
//! assert_eq!(queue.pop(nodes), Some(7));
//! assert_eq!(queue.pop(nodes), Some(99));
//! assert_eq!(queue.pop(nodes), None);
//! ```

use core::fmt::Debug;

/// A task, as an index into the slab of [`Nodes`](crate::Nodes).
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
}

/// How important (strict priorities) or how frequent (virtual clocks) a task is; 0 comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Level(pub u16);

/// How many ids of a width lie beyond every slab: one for each list of a structure.
pub(crate) const BEYOND: usize = 64;

/// An id of a task: its index into the slab of [`Nodes`](crate::Nodes), in as many bits as a caller
/// gives it. [`TaskId`] has 32, `u16` and `u8` are ids themselves.
pub trait Id: Copy + Eq + Debug + 'static {
    /// No task. Never a valid index.
    const NONE: Self;

    /// The maximum number of tasks of a slab: [`NONE`](Self::NONE) and the 63 ids before it are
    /// beyond every slab.
    const MOST: usize;

    /// The ids that are beyond every slab, in order. The last is [`NONE`](Self::NONE).
    const BEYOND: [Self; BEYOND];

    /// This id as an index.
    fn index(self) -> usize;

    /// The id of `index`, which has no more bits than an id.
    fn from_index(index: usize) -> Self;

    /// `None` instead of [`NONE`](Self::NONE).
    #[inline(always)]
    fn known(self) -> Option<Self> {
        if self == Self::NONE { None } else { Some(self) }
    }
}

/// A virtual time, the sum of a task's strides. It wraps: keys are compared by their difference,
/// which is right while they lie within half of their range.
pub trait Key: Copy + Eq + Debug + 'static {
    /// The first time.
    const ZERO: Self;

    /// The longest stride with which wrapped keys still compare: an eighth of the range.
    const LONGEST_STRIDE: u64;

    /// Whether this key comes before `other`.
    fn is_before(self, other: Self) -> bool;

    /// The key of a task that had its last slice at `last`. It is a stride later, but at least
    /// `self`, the time now, and at most a stride after that.
    fn next(self, last: Self, stride: Self) -> Self;

    /// The stride `level` + 1.
    fn linear(level: Level) -> Self;

    /// The stride 2^`level`.
    fn power(level: Level) -> Self;

    /// The low bits, at least 16.
    fn low_bits(self) -> usize;
}

/// `$index` makes an index of an id, `$id` an id of an index; both are expressions.
macro_rules! id {
    ($type:ty, $raw:ty, |$self:ident| $index:expr, |$at:ident| $id:expr) => {
        impl Id for $type {
            const NONE: Self = Self::BEYOND[BEYOND - 1];
            const MOST: usize = <$raw>::MAX as usize - (BEYOND - 1);
            const BEYOND: [Self; BEYOND] = {
                let mut ids = [{ let $at = 0usize; $id }; BEYOND];
                let mut place = 0;
                while place < BEYOND {
                    let $at = Self::MOST + place;
                    ids[place] = $id;
                    place += 1;
                }
                ids
            };

            #[inline(always)]
            fn index($self) -> usize {
                $index as usize
            }

            #[inline(always)]
            fn from_index($at: usize) -> Self {
                $id
            }
        }
    };
}

id!(u8, u8, |self| self, |at| at as u8);
id!(u16, u16, |self| self, |at| at as u16);
id!(TaskId, u32, |self| self.0, |at| TaskId(at as u32));

macro_rules! key {
    ($type:ty, $signed:ty) => {
        impl Key for $type {
            const ZERO: Self = 0;
            const LONGEST_STRIDE: u64 = 1 << (<$type>::BITS - 3);

            #[inline(always)]
            fn is_before(self, other: Self) -> bool {
                (self.wrapping_sub(other) as $signed) < 0
            }

            #[inline(always)]
            fn next(self, last: Self, stride: Self) -> Self {
                let behind = self.wrapping_sub(last);
                // At most the clock plus a stride, at least the clock.
                if (behind as $signed) <= 0 {
                    self.wrapping_add(stride)
                } else {
                    self.wrapping_add(stride.saturating_sub(behind))
                }
            }

            #[inline(always)]
            fn linear(level: Level) -> Self {
                (level.0 as $type).wrapping_add(1)
            }

            #[inline(always)]
            fn power(level: Level) -> Self {
                1 << (level.0 as u32 & (<$type>::BITS - 1))
            }

            #[inline(always)]
            fn low_bits(self) -> usize {
                self as usize
            }
        }
    };
}

key!(u16, i16);
key!(u32, i32);
key!(u64, i64);
