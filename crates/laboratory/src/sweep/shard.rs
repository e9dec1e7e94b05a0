//! A part of a sweep, for one of many independent jobs.

use std::fmt;
use std::str::FromStr;

/// Every n-th cell, from the i-th on: neighbours cost about the same, and so do shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// The number of the shard, from 1.
    index: usize,
    /// The number of shards.
    count: usize,
}

impl Shard {
    /// All cells.
    pub const ALL: Shard = Shard { index: 1, count: 1 };

    /// Whether the shard contains the cell with this index.
    pub fn has(self, cell: usize) -> bool {
        cell % self.count == self.index - 1
    }
}

/// `3/100`.
impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index, count }),
            _ => Err("give the number and the count of shards, as in 3/100; the first is 1/100"
                .to_string()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_is_in_exactly_one_shard() {
        let shards: Vec<Shard> =
            (1..=3).map(|index| format!("{index}/3").parse().expect("a shard")).collect();
        assert!((0..100).all(|cell| shards.iter().filter(|shard| shard.has(cell)).count() == 1));
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0", "-1/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
