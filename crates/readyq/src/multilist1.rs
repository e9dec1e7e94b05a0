//! Multi-List-1: FIFO lists served by a bunched schedule, several passes per entry.
//!
//! Level l gets half the rate of level l − 1, in a shorter table than that of
//! [`MultiList2`](crate::MultiList2). The cost is bunching: level 0 runs up to 16 passes in a row.
//! Level 1 waits eight times as long as its rate requires, levels 2 to 5 four times, level 6 twice.
//! Right for ten levels and many tasks without deadlines. Bad for responsiveness, and for few tasks
//! at unimportant levels.
//!
//! Cost: O(1), plus schedule entries examined per pass; removing a waiting task searches the ends
//! of the lists. Source: Porter 2021, "Multiple Ready Lists"; deviations in
//! [`multilist`](crate::multilist).
//!
//! ```
//! use readyq::{Level, MultiList1, Node, Nodes, ReadyQueue, TaskId, schedules};
//!
//! let mut slab = [Node::NEW; 2];
//! let nodes = Nodes::from_mut(&mut slab);
//! let mut queue = MultiList1::new(&schedules::TEN_LEVELS);
//! queue.insert(nodes, TaskId(0), Level(0));
//! queue.insert(nodes, TaskId(1), Level(1));
//! for _ in 0..16 {
//!     assert_eq!(queue.pop(nodes), Some(TaskId(0)));
//!     queue.insert(nodes, TaskId(0), Level(0));
//! }
//! assert_eq!(queue.pop(nodes), Some(TaskId(1)));
//! ```

use crate::Probe;
use crate::multilist::{MultiList, Schedule, Visit};

/// Porter's Multi-List-1, with any schedule of up to 16 levels.
pub type MultiList1<P = ()> = MultiList<&'static [Visit], 16, P>;

impl MultiList1 {
    /// An empty queue that is served by `schedule`, for example one of [`schedules`].
    ///
    /// # Panics
    /// If the schedule is empty, or has an entry without passes or of a level beyond 15.
    pub fn new(schedule: &'static [Visit]) -> Self {
        Self::with_schedule(schedule, ())
    }
}

impl<P: Probe> MultiList1<P> {
    /// As [`new`](MultiList1::new); `probe` counts the schedule entries that are examined.
    pub fn with_schedule(schedule: &'static [Visit], probe: P) -> Self {
        MultiList::with_probe(schedule, probe)
    }
}

impl Schedule for &'static [Visit] {
    #[inline(always)]
    fn entries(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn entry(&self, index: usize) -> Visit {
        self[index]
    }
}

/// Schedules as Porter prints them: a letter for the level (A is 0) and the number of passes.
pub mod schedules {
    use super::Visit;

    /// The printed 135 entries. In one period A has 512 passes and J one, and no level has more
    /// than 16 in a row.
    pub static TEN_LEVELS: [Visit; 135] = parse(
        "A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         F-4 G-2 H-1
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         F-4 G-2 H-1 I-1
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         F-4 G-2 H-1
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         F-4 G-2 H-1 I-1 J-1",
    );

    /// Eight levels: the first section of [`TEN_LEVELS`], in which A makes 128 passes and H one.
    /// The paper measures Multi-List-1 with eight levels but does not print its schedule; this one
    /// is our choice.
    pub static EIGHT_LEVELS: [Visit; 33] = parse(
        "A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         A-16 B-8 C-4   A-16 B-8 C-4 D-4   A-16 B-8 C-4   A-16 B-8 C-4 D-4 E-4
         F-4 G-2 H-1",
    );

    /// The printed five levels, consolidated.
    pub static FIVE_LEVELS: [Visit; 9] = parse("A-8 B-4 C-2 D-1  A-8 B-4 C-2 D-1 E-1");

    /// The printed shortest five levels: the fewest entries, and A has 16 passes in a row.
    pub static FIVE_LEVELS_SHORTEST: [Visit; 5] = parse("A-16 B-8 C-4 D-2 E-1");

    /// The printed shortest ten levels, which the paper rejects: with slices of 2 ms A locks out
    /// all other levels for 1.024 s.
    pub static TEN_LEVELS_SHORTEST: [Visit; 10] =
        parse("A-512 B-256 C-128 D-64 E-32 F-16 G-8 H-4 I-2 J-1");

    /// The shortest of the bunched schedules above that has `levels` levels, up to 10.
    pub fn for_levels(levels: u32) -> &'static [Visit] {
        match levels {
            0..=5 => &FIVE_LEVELS,
            6..=8 => &EIGHT_LEVELS,
            _ => &TEN_LEVELS,
        }
    }

    /// Reads the notation above, at compile time.
    const fn parse<const ENTRIES: usize>(text: &str) -> [Visit; ENTRIES] {
        let text = text.as_bytes();
        let mut schedule = [Visit { level: 0, passes: 0 }; ENTRIES];
        let (mut entries, mut at) = (0, 0);
        while at < text.len() {
            match text[at] {
                letter @ b'A'..=b'Z' => {
                    schedule[entries].level = letter - b'A';
                    entries += 1;
                }
                digit @ b'0'..=b'9' => {
                    let visit = &mut schedule[entries - 1];
                    visit.passes = visit.passes * 10 + (digit - b'0') as u16;
                }
                separator => assert!(separator == b'-' || separator.is_ascii_whitespace()),
            }
            at += 1;
        }
        assert!(entries == ENTRIES);
        schedule
    }
}
