//! A part of a sweep, for one job of many that know nothing of one another.

use std::fmt;
use std::str::FromStr;

/// Every n-th cell, beginning with the i-th: neighbours cost about the same, so that shards do too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Which, from 1.
    index: usize,
    /// Of how many.
    count: usize,
}

impl Shard {
    /// All cells.
    pub const ALL: Shard = Shard { index: 1, count: 1 };

    /// Whether the cell with this index is in it.
    pub fn has(self, cell: usize) -> bool {
        cell % self.count == self.index - 1
    }
}

/// `3/100`.
impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index, count }),
            _ => Err("give which of how many, as in 3/100; the first is 1/100".to_string()),
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
    fn shards_share_out_all_cells() {
        let shards: Vec<Shard> = (1..=3).map(|index| format!("{index}/3").parse().expect("a shard")).collect();
        assert!((0..100).all(|cell| shards.iter().filter(|shard| shard.has(cell)).count() == 1));
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0", "-1/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
