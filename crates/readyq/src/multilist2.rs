//! Multi-List-2: eight FIFO lists served by a table of 255 entries, one pass each.
//!
//! Level l gets half the rate of level l − 1: `A AB A ABC A AB A ABCD …`. Right for proportional
//! rates with eight levels and at least tens of tasks, evenly spread. Bad when few tasks are ready
//! at unimportant levels: it then examines up to 254 entries of empty lists.
//! [`Ruler`](crate::Ruler) has the same order without the table, the search and the limit of eight
//! levels.
//!
//! Cost: O(1), plus schedule entries examined per pass; removing a waiting task searches the ends
//! of the lists. Source: Porter 2021, "Increasing the Responsiveness"; deviations in
//! [`multilist`](crate::multilist).

use crate::multilist::{MultiList, Schedule, Visit};

/// Porter's Multi-List-2.
pub type MultiList2<P = ()> = MultiList<RulerTable, 8, P>;

impl MultiList2 {
    /// An empty queue.
    pub fn new() -> Self {
        MultiList2::with_probe(RulerTable, ())
    }
}

impl Default for MultiList2 {
    fn default() -> Self {
        Self::new()
    }
}

/// The printed 255 entries: level 0 128 times, level 7 once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RulerTable;

impl Schedule for RulerTable {
    const SINGLE_PASSES: bool = true;

    #[inline(always)]
    fn entries(&self) -> usize {
        TABLE.len()
    }

    #[inline(always)]
    fn entry(&self, index: usize) -> Visit {
        Visit { level: TABLE[index] as u8, passes: 1 }
    }
}

static TABLE: [Letter; 255] = table();

/// A level by its printed name. As an enumeration, the compiler knows that each level has a list.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Letter {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
}

/// Tick t = 1, 2, … 128 serves the levels 0 to ctz(t).
const fn table() -> [Letter; 255] {
    use Letter::*;
    let letters = [A, B, C, D, E, F, G, H];
    let mut table = [A; 255];
    let (mut index, mut tick) = (0, 1u32);
    while index < table.len() {
        let mut level = 0;
        while level <= tick.trailing_zeros() {
            table[index] = letters[level as usize];
            index += 1;
            level += 1;
        }
        tick += 1;
    }
    table
}
