//! What has been measured before: a file of lines, each with the complete description of a measurement and what came of it.
//!
//! A line is written when its measurement is done, so that a killed run loses what was under way and nothing else. The first line says which build of the program
//! wrote the file; what another build measured is not used, and the file begins anew with a message.

use crate::Error;
use crate::sweep::Key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Measurements by their descriptions.
pub struct Cache {
    path: PathBuf,
    known: BTreeMap<String, Value>,
    file: Mutex<File>,
    used: AtomicUsize,
    added: AtomicUsize,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    of: String,
    is: Value,
}

/// What is done with what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Use it.
    Reuse,
    /// Use it, and fail if there is none.
    Resume,
    /// Measure all of it again.
    Anew,
}

impl Cache {
    /// The cache in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or written, is no cache, or there is nothing to resume.
    pub fn open(path: &Path, begin: Begin) -> Result<Cache, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::Input(format!("{}: {error}; delete it to measure anew", path.display()))),
        };
        let build = build();
        let (first, rest) = text.split_once('\n').unwrap_or_default();
        let stays = begin != Begin::Anew && first == build;
        if begin == Begin::Resume && !stays {
            let why = if text.is_empty() {
                "there is nothing in it".to_string()
            } else {
                format!("it was written by {first}, and this is {build}")
            };
            return Err(Error::Usage(format!("{}: nothing to resume: {why}; leave --resume out to begin anew", path.display())));
        }
        if !text.is_empty() && begin != Begin::Anew && !stays {
            eprintln!("{}: written by {first}, and this is {build}: what it holds is not used, all is measured again", path.display());
        }
        // A last line without an end was being written when the program died.
        let whole = rest.rfind('\n').map_or("", |end| &rest[..=end]);
        let known = if stays { entries(path, whole)? } else { BTreeMap::new() };
        let failed = |error| Error::output(path, error);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let mut file = OpenOptions::new().create(true).write(true).truncate(false).open(path).map_err(failed)?;
        let kept = if stays { first.len() + 1 + whole.len() } else { 0 };
        file.set_len(kept as u64).map_err(failed)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(failed)?;
        if !stays {
            writeln!(file, "{build}").map_err(failed)?;
        }
        Ok(Cache { path: path.to_path_buf(), known, file: Mutex::new(file), used: AtomicUsize::new(0), added: AtomicUsize::new(0) })
    }

    /// What came of the measurement that `of` describes, if it was done.
    pub fn get<T: DeserializeOwned>(&self, of: &str) -> Option<T> {
        let value = serde_json::from_value(self.known.get(of)?.clone()).ok()?;
        self.used.fetch_add(1, Ordering::Relaxed);
        Some(value)
    }

    /// Keeps what came of the measurement that `of` describes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put<T: Serialize>(&self, of: &str, is: &T) -> Result<(), Error> {
        let internal = |error| Error::Internal(format!("cannot write JSON: {error}"));
        let entry = Entry { of: of.to_string(), is: serde_json::to_value(is).map_err(internal)? };
        let line = serde_json::to_string(&entry).map_err(internal)? + "\n";
        self.added.fetch_add(1, Ordering::Relaxed);
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        file.write_all(line.as_bytes()).map_err(|error| Error::output(&self.path, error))
    }

    /// What came of the measurement that `of` describes, measured now if it was not before.
    ///
    /// # Errors
    /// If `measure` fails, or its result cannot be written.
    pub fn get_or<T: Serialize + DeserializeOwned>(&self, of: &str, measure: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if let Some(known) = self.get(of) {
            return Ok(known);
        }
        let measured = measure()?;
        self.put(of, &measured)?;
        Ok(measured)
    }

    /// In a line: how much was measured now, and how much before.
    pub fn summary(&self) -> String {
        let (used, added) = (self.used.load(Ordering::Relaxed), self.added.load(Ordering::Relaxed));
        format!("{added} measurements made, {used} taken from {}", self.path.display())
    }
}

fn entries(path: &Path, lines: &str) -> Result<BTreeMap<String, Value>, Error> {
    let entry = |(index, line)| {
        let Entry { of, is } = serde_json::from_str(line).map_err(|error| {
            Error::Input(format!("{}:{}: damaged: {error}; delete the file to measure anew", path.display(), index + 2))
        })?;
        Ok((of, is))
    };
    lines.lines().enumerate().map(entry).collect()
}

/// Which program this is: another one may measure something else, even if its version is the same.
fn build() -> String {
    format!("schedlab {} ({})", env!("CARGO_PKG_VERSION"), Key::of(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_stays_and_what_was_being_written_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/paper.jsonl");
        assert!(Cache::open(&path, Begin::Resume).err().unwrap().to_string().contains("nothing to resume"));
        let cache = Cache::open(&path, Begin::Reuse).unwrap();
        assert_eq!(cache.get::<Vec<f64>>("a"), None);
        cache.put("a", &vec![0.1 + 0.2]).unwrap();
        cache.put("b", &vec![2.0]).unwrap();
        drop(cache);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 3]).unwrap();
        let cache = Cache::open(&path, Begin::Resume).unwrap();
        assert_eq!((cache.get("a"), cache.get::<Vec<f64>>("b")), (Some(vec![0.1 + 0.2]), None));
        cache.put("b", &vec![3.0]).unwrap();
        assert!(cache.summary().starts_with("1 measurements made, 1 taken"));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
        assert_eq!(Cache::open(&path, Begin::Anew).unwrap().get::<Vec<f64>>("a"), None);
    }

    #[test]
    fn a_cache_of_another_build_and_a_damaged_one_are_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("paper.jsonl");
        fs::write(&path, "schedlab 0.0.1\n{\"of\":\"a\",\"is\":1}\n").unwrap();
        let message = Cache::open(&path, Begin::Resume).err().unwrap().to_string();
        assert!(message.contains("written by schedlab 0.0.1"), "{message}");
        assert_eq!(Cache::open(&path, Begin::Reuse).unwrap().get::<f64>("a"), None);
        fs::write(&path, format!("{}\n{{\"of\":\"a\",\"is\":1}}\nnonsense\n", build())).unwrap();
        let message = Cache::open(&path, Begin::Reuse).err().unwrap().to_string();
        assert!(message.contains("paper.jsonl:3: damaged"), "{message}");
    }
}
