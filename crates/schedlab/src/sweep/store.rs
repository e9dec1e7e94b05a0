//! Finished cells on disk: one small Parquet file each, named by the content that it comes from.
//!
//! A file is written under another name and then renamed, so a kill leaves whole files only. Sweeps, shards and machines may share a store: equal cells are equal. A cell that
//! failed leaves a file with the reason, which does not keep it from being tried again.

use crate::output::{Results, Row, prepare_directory, write_whole};
use crate::{Error, program};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// A directory of finished cells.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

/// What a finished cell is found by: a hash of all that it depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(u128);

impl Key {
    /// The key of what this program makes of `parts`. Programs of other sources may come to other numbers; the command line, the Python package and the workers of a
    /// cluster find one another's cells.
    pub fn of(parts: &[&str]) -> Key {
        let mut hasher = XxHash3_128::new();
        for part in [program::build()].iter().chain(parts) {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part.as_bytes());
        }
        Key(hasher.finish_128())
    }
}

impl Store {
    /// The store in `dir`, which is made if it is not there.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn open(dir: &Path) -> Result<Store, Error> {
        prepare_directory(dir)?;
        Ok(Store(dir.to_path_buf()))
    }

    /// The store of a sweep that has begun in `dir`.
    pub fn of(dir: &Path) -> Store {
        Store(dir.join("cells"))
    }

    /// How many finished cells are in it.
    pub fn len(&self) -> usize {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "parquet")).count()
    }

    /// Whether there is no finished cell in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of the cell with this key, if it is finished. A damaged file is no finished cell.
    pub fn get(&self, key: &Key) -> Option<Vec<Row>> {
        results::from_parquet(fs::read(self.file(key)).ok()?).ok()
    }

    /// Keeps the rows of a finished cell.
    pub fn put(&self, key: &Key, rows: &[Row]) -> Result<(), Error> {
        self.put_file(key, &Store::pack(rows)?)
    }

    /// Rows as the file of a cell has them.
    pub fn pack(rows: &[Row]) -> Result<Vec<u8>, Error> {
        Results::new(rows.to_vec()).to_parquet()
    }

    /// Keeps the file of a finished cell, which may have been packed elsewhere.
    pub fn put_file(&self, key: &Key, packed: &[u8]) -> Result<(), Error> {
        write_whole(&self.file(key), packed)
    }

    /// Keeps why a cell failed.
    pub fn put_failure(&self, key: &Key, why: &str) -> Result<(), Error> {
        write_whole(&self.failure_file(key), why.as_bytes())
    }

    /// Why the cell with this key failed when it was last tried, if it did.
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

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Coordinate, Metric, Point, Verdict, World};

    #[test]
    fn rows_come_back_as_they_were_and_a_damaged_file_is_no_cell() {
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
