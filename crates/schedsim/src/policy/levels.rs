//! Maps a task's kernel priority to a level of a ready queue.

use readyq::Level;

/// Maps Linux priorities onto `count` levels, 0 the best.
///
/// With 140 levels or more each priority has its own. With fewer, real-time priorities share level
/// 0, and the forty nice values are spread evenly with nice 0 in the middle. Porter 2021: "put the
/// default priority in the middle".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    count: u16,
}

impl Levels {
    /// `count` levels, at least one.
    pub fn new(count: u16) -> Levels {
        Levels { count: count.max(1) }
    }

    /// How many there are.
    pub fn count(self) -> usize {
        usize::from(self.count)
    }

    /// The level of `prio` (0…139).
    #[inline]
    pub fn of(self, prio: u8) -> Level {
        let prio = u16::from(prio.min(139));
        Level(match self.count {
            1 => 0,
            140.. => prio,
            count => prio.saturating_sub(100) * count / 40,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_values_are_spread_evenly_and_nice_0_is_in_the_middle() {
        let eight = Levels::new(8);
        assert_eq!(
            [0, 99, 100, 104, 105, 120, 139, 255].map(|prio| eight.of(prio).0),
            [0, 0, 0, 0, 1, 4, 7, 7]
        );
        assert_eq!([0, 99, 120, 139].map(|prio| Levels::new(140).of(prio).0), [0, 99, 120, 139]);
        assert_eq!([0, 120, 139].map(|prio| Levels::new(1).of(prio).0), [0, 0, 0]);
    }
}
