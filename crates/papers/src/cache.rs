//! A cache of measurements: a file of lines, each with the complete description of a measurement
//! and its result.
//!
//! A line is written when its measurement is done, so that a killed run loses only the current
//! measurement. The first line names the build that wrote the file. Results of another build are
//! not used: the file is written from the start, with a message. A second program that opens the
//! file waits until the first has closed it, and then has its results.

use laboratory::sweep::Key;
use program::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Measurements by description.
pub struct Cache {
    path: PathBuf,
    known: BTreeMap<String, Entry>,
    tail: Mutex<Tail>,
    used: AtomicUsize,
    used_ms: AtomicU64,
    added: AtomicUsize,
    added_ms: AtomicU64,
}

/// Where the next line goes, and when the last one was written.
struct Tail {
    file: File,
    written: Instant,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    of: String,
    is: Value,
    /// The time since the line before was written, or since the file was opened. Where several
    /// processors measure, lines follow each other sooner, so that the sum is the time of the run.
    ms: u64,
}

/// How existing measurements are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Use them.
    Reuse,
    /// Use them, and fail if there are none.
    Resume,
    /// Measure everything again.
    Anew,
}

impl Cache {
    /// Opens the cache in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or written, is not a cache, or there is nothing to resume.
    pub fn open(path: &Path, begin: Begin) -> Result<Cache, Error> {
        let failed = |error| Error::output(path, error);
        if begin != Begin::Resume {
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        }
        let mut file = match locked(path, begin) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(nothing_to_resume(path, "it is empty"));
            }
            file => file.map_err(failed)?,
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| {
            Error::Input(format!("{}: {error}; delete it to measure anew", path.display()))
        })?;
        let build = build();
        let (first, rest) = text.split_once('\n').unwrap_or_default();
        let stays = begin != Begin::Anew && first == build;
        if begin == Begin::Resume && !stays {
            let why = if text.is_empty() {
                "it is empty".to_string()
            } else {
                format!("it was written by {first}, and this is {build}")
            };
            return Err(nothing_to_resume(path, &why));
        }
        if !text.is_empty() && begin != Begin::Anew && !stays {
            program::complain!(
                "{}: written by {first}, and this is {build}: what it holds is not used, all is \
                 measured again",
                path.display()
            );
        }
        // A last line without a newline was being written when the program died.
        let whole = rest.rfind('\n').map_or("", |end| &rest[..=end]);
        let known = if stays { entries(path, whole)? } else { BTreeMap::new() };
        let kept = if stays { first.len() + 1 + whole.len() } else { 0 };
        file.set_len(kept as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if !stays {
            writeln!(file, "{build}").map_err(failed)?;
        }
        Ok(Cache {
            path: path.to_path_buf(),
            known,
            tail: Mutex::new(Tail { file, written: Instant::now() }),
            used: AtomicUsize::new(0),
            used_ms: AtomicU64::new(0),
            added: AtomicUsize::new(0),
            added_ms: AtomicU64::new(0),
        })
    }

    /// The result of the measurement `of`, if it was done.
    pub fn get<T: DeserializeOwned>(&self, of: &str) -> Option<T> {
        let known = self.known.get(of)?;
        let value = serde_json::from_value(known.is.clone()).ok()?;
        self.used.fetch_add(1, Ordering::Relaxed);
        self.used_ms.fetch_add(known.ms, Ordering::Relaxed);
        Some(value)
    }

    /// Stores the result of the measurement `of`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put<T: Serialize>(&self, of: &str, is: &T) -> Result<(), Error> {
        let internal = |error| Error::Internal(format!("cannot write JSON: {error}"));
        let is = serde_json::to_value(is).map_err(internal)?;
        let mut tail = self.tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = Instant::now();
        let ms = now.duration_since(tail.written).as_millis() as u64;
        let line = serde_json::to_string(&Entry { of: of.to_string(), is, ms });
        let line = line.map_err(internal)? + "\n";
        // The rest of a millisecond counts for the next line.
        tail.written += Duration::from_millis(ms);
        self.added.fetch_add(1, Ordering::Relaxed);
        self.added_ms.fetch_add(ms, Ordering::Relaxed);
        tail.file.write_all(line.as_bytes()).map_err(|error| Error::output(&self.path, error))
    }

    /// The result of the measurement `of`; measures now if there is none.
    ///
    /// # Errors
    /// If `measure` fails, or its result cannot be written.
    pub fn get_or<T: Serialize + DeserializeOwned>(
        &self,
        of: &str,
        measure: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(known) = self.get(of) {
            return Ok(known);
        }
        let measured = measure()?;
        self.put(of, &measured)?;
        Ok(measured)
    }

    /// One line: the number of new and of cached measurements, and how long both took when they
    /// were made.
    pub fn summary(&self) -> String {
        let [used, added] = [&self.used, &self.added].map(|count| count.load(Ordering::Relaxed));
        let time = |ms: &AtomicU64| {
            let seconds = (ms.load(Ordering::Relaxed) as f64 / 1000.0).round() as u64;
            format!("{} min {} s", seconds / 60, seconds % 60)
        };
        let (made_in, took) = (time(&self.added_ms), time(&self.used_ms));
        let path = self.path.display();
        format!("{added} measurements made in {made_in}, {used} taken from {path} that took {took}")
    }
}

/// The file at `path`, for this program alone; waits for another that has it.
fn locked(path: &Path, begin: Begin) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).truncate(false);
    let file = options.create(begin != Begin::Resume).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            program::complain!("{}: another schedlab measures for it; waiting", path.display());
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

fn nothing_to_resume(path: &Path, why: &str) -> Error {
    let next = "leave --resume out to begin anew";
    Error::Usage(format!("{}: nothing to resume: {why}; {next}", path.display()))
}

fn entries(path: &Path, lines: &str) -> Result<BTreeMap<String, Entry>, Error> {
    let entry = |(index, line)| {
        let entry: Entry = serde_json::from_str(line).map_err(|error| {
            Error::Input(format!(
                "{}:{}: damaged: {error}; delete the file to measure anew",
                path.display(),
                index + 2
            ))
        })?;
        Ok((entry.of.clone(), entry))
    };
    lines.lines().enumerate().map(entry).collect()
}

/// The identity of this build: another build may measure something else, even with the same
/// version.
fn build() -> String {
    format!("schedlab {} ({})", env!("CARGO_PKG_VERSION"), Key::of(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_measurements_are_kept_and_an_incomplete_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/paper.jsonl");
        assert!(
            Cache::open(&path, Begin::Resume)
                .err()
                .unwrap()
                .to_string()
                .contains("nothing to resume")
        );
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
        assert!(cache.summary().starts_with("1 measurements made in 0 min 0 s, 1 taken from "));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
        drop(cache);
        assert_eq!(Cache::open(&path, Begin::Anew).unwrap().get::<Vec<f64>>("a"), None);
    }

    /// The times of the lines add up to that of the run, whoever measures beside whom, and stay.
    #[test]
    fn the_times_of_measurements_add_up_to_the_time_of_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("paper.jsonl");
        let begun = Instant::now();
        let cache = Cache::open(&path, Begin::Reuse).unwrap();
        std::thread::scope(|scope| {
            for of in ["a", "b", "c"] {
                let cache = &cache;
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(600));
                    cache.put(of, &1.0).unwrap();
                });
            }
        });
        let took = begun.elapsed().as_millis() as u64;
        let of_lines = |cache: &Cache| cache.known.values().map(|entry| entry.ms).sum::<u64>();
        drop(cache);
        let cache = Cache::open(&path, Begin::Resume).unwrap();
        assert!((600..=took).contains(&of_lines(&cache)), "{} of {took}", of_lines(&cache));
        let taken = ["a", "b", "c"].map(|of| cache.get::<f64>(of));
        assert_eq!(taken, [Some(1.0); 3]);
        let summary = cache.summary();
        assert!(summary.contains("3 taken") && !summary.ends_with(" 0 min 0 s"), "{summary}");
    }

    /// Without the lock the second would empty the file under the first, or measure again.
    #[test]
    fn two_at_once_measure_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("paper.jsonl");
        let begun = std::sync::Barrier::new(2);
        let measured = AtomicUsize::new(0);
        let one = || {
            begun.wait();
            let cache = Cache::open(&path, Begin::Reuse).unwrap();
            let measure = || {
                measured.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(20));
                Ok(1.5)
            };
            ["a", "b"].map(|of| cache.get_or::<f64>(of, measure).unwrap())
        };
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(one);
            [one(), other.join().unwrap()]
        });
        assert_eq!(both, [[1.5, 1.5]; 2]);
        assert_eq!(measured.load(Ordering::Relaxed), 2);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_cache_of_another_build_or_a_damaged_one_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("paper.jsonl");
        fs::write(&path, "schedlab 0.0.1\n{\"of\":\"a\",\"is\":1,\"ms\":1}\n").unwrap();
        let message = Cache::open(&path, Begin::Resume).err().unwrap().to_string();
        assert!(message.contains("written by schedlab 0.0.1"), "{message}");
        assert_eq!(Cache::open(&path, Begin::Reuse).unwrap().get::<f64>("a"), None);
        fs::write(&path, format!("{}\n{{\"of\":\"a\",\"is\":1,\"ms\":1}}\nnonsense\n", build()))
            .unwrap();
        let message = Cache::open(&path, Begin::Reuse).err().unwrap().to_string();
        assert!(message.contains("paper.jsonl:3: damaged"), "{message}");
    }
}
