//! Finished cells on disk: one small Parquet file each, named by a hash of the cell's inputs.
//!
//! A file is written under a temporary name and then renamed, so after a kill all files are
//! complete. Sweeps, shards and machines can share a store: equal cells are equal. A failed cell
//! leaves a file with the reason; it is tried again.

use program::{Error, prepare_directory, write_whole};
use results::{Results, Row};
use std::path::{Path, PathBuf};
use std::{fmt, fs};
use twox_hash::XxHash3_128;

/// A directory of finished cells.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

/// The key of a finished cell: a hash of all its inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(u128);

impl Key {
    /// The key for the result of `parts` with this program. Programs built from other sources have
    /// other keys. The command line, the Python package and cluster workers share keys.
    pub fn of(parts: &[&str]) -> Key {
        Key::of_all([program::build()].iter().chain(parts).copied())
    }

    /// The key of these `parts` alone: equal under all programs.
    pub fn of_all<'p>(parts: impl IntoIterator<Item = &'p str>) -> Key {
        let mut hasher = XxHash3_128::new();
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part.as_bytes());
        }
        Key(hasher.finish_128())
    }
}

impl Store {
    /// Opens the store in `dir`, and creates it if necessary.
    ///
    /// # Errors
    /// If nothing can be written there, or this build has no Parquet.
    pub fn open(dir: &Path) -> Result<Store, Error> {
        results::expect_parquet()?;
        prepare_directory(dir)?;
        Ok(Store(dir.to_path_buf()))
    }

    /// The store of a sweep that was started in `dir`.
    pub fn of(dir: &Path) -> Store {
        Store(dir.join("cells"))
    }

    /// The number of finished cells.
    pub fn len(&self) -> usize {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        files
            .filter(|file| file.path().extension().is_some_and(|extension| extension == "parquet"))
            .count()
    }

    /// Whether there are no finished cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of the cell with this key, if it is finished. A damaged file does not count.
    pub fn get(&self, key: &Key) -> Option<Vec<Row>> {
        results::from_parquet(fs::read(self.file(key)).ok()?).ok()
    }

    /// Stores the rows of a finished cell.
    pub fn put(&self, key: &Key, rows: &[Row]) -> Result<(), Error> {
        self.put_file(key, &Store::pack(rows)?)
    }

    /// Encodes rows as the file of a cell.
    pub fn pack(rows: &[Row]) -> Result<Vec<u8>, Error> {
        Results::new(rows.to_vec()).to_parquet()
    }

    /// Stores the file of a finished cell, which may have been encoded elsewhere.
    pub fn put_file(&self, key: &Key, packed: &[u8]) -> Result<(), Error> {
        write_whole(&self.file(key), packed)
    }

    /// Stores the reason of a failure.
    pub fn put_failure(&self, key: &Key, why: &str) -> Result<(), Error> {
        write_whole(&self.failure_file(key), why.as_bytes())
    }

    /// The reason why the cell failed when it was last tried, if it did.
    pub fn failure(&self, key: &Key) -> Option<String> {
        fs::read_to_string(self.failure_file(key)).ok()
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.0.join(format!("{key}.parquet"))
    }

    fn failure_file(&self, key: &Key) -> PathBuf {
        self.0.join(format!("{key}.failed"))
    }
}

impl Key {
    /// Its bits.
    pub fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Coordinate, Metric, Point, Verdict, World};

    #[test]
    fn rows_are_read_back_unchanged_and_a_damaged_file_is_ignored() {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path()).unwrap();
        let row = |value: Option<f64>, seed| Row {
            workload: "w".to_string(),
            candidate: "take:rr".to_string(),
            cpus: 1024,
            seed,
            point: Point::new().with("tmc", Coordinate::read("0ms")),
            value,
            ci_low: value.map(|value| value - 1e-17),
            ci_high: None,
            runs: 1,
            verdict: value.map(|_| Verdict::Better),
            note: value.is_none().then(|| "saturated".to_string()),
            ..Row::new(World::Sim, Metric::grr)
        };
        let rows = vec![row(Some(0.1 + 0.2), Some(u64::MAX)), row(None, None)];
        let (key, other) = (Key::of(&["a", "b"]), Key::of(&["ab", ""]));
        assert_ne!(key, other);
        store.put(&key, &rows).unwrap();
        assert_eq!((store.get(&key), store.get(&other), store.len()), (Some(rows), None, 1));
        let file = store.file(&key);
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(store.get(&key), None);
    }
}
