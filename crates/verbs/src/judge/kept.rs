//! Answers that are kept: a line each, written as soon as it is known. So an interrupted batch
//! continues where it was.

use laboratory::judge::Judge;
use program::{Error, prepare_directory};
use results::judge::Judged;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Lines, Seek, Write};
use std::path::{Path, PathBuf};

/// The answers of a directory.
pub struct Kept {
    path: PathBuf,
    /// Those of an earlier, interrupted batch that were not asked for yet.
    earlier: Option<Lines<BufReader<File>>>,
    to: File,
    suite: String,
}

/// Their file.
const FILE: &str = "judged.jsonl";

impl Kept {
    /// Opens the answers in `dir`; those of an earlier batch only if it is `resumed`.
    ///
    /// # Errors
    /// If there are some and it is not, or nothing can be written.
    pub fn open(dir: &Path, judge: &Judge, is_resumed: bool) -> Result<Kept, Error> {
        prepare_directory(dir)?;
        let path = dir.join(FILE);
        let broken = |error| Error::output(&path, error);
        let is_new = path.metadata().map_or(true, |file| file.len() == 0);
        if !is_new && !is_resumed {
            return Err(Error::Usage(format!(
                "{} has answers: continue with --resume, or give another directory with -o",
                path.display()
            )));
        }
        let mut to = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(broken)?;
        cut(&mut to).map_err(broken)?;
        let earlier = File::open(&path).map_err(broken)?;
        let earlier = Some(BufReader::new(earlier).lines());
        Ok(Kept { path: path.clone(), earlier, to, suite: judge.hash().to_string() })
    }

    /// The answer to the next candidate, if the earlier batch has it.
    ///
    /// # Errors
    /// If that was of another candidate, another suite, or another schedlab.
    pub fn next(&mut self, id: &str) -> Result<Option<String>, Error> {
        let wrong = |why: String| {
            Error::Input(format!("{}: {why}; give another directory with -o", self.path.display()))
        };
        let Some(line) = self.earlier.as_mut().and_then(Iterator::next) else {
            self.earlier = None;
            return Ok(None);
        };
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let judged: Judged =
            serde_json::from_str(&line).map_err(|error| wrong(format!("damaged: {error}")))?;
        let own = [("suite", &judged.suite, &self.suite[..])];
        let own = own.into_iter().chain([("schedlab", &judged.version, program::build())]);
        for (what, old, new) in own.chain([("candidate", &judged.id, id)]) {
            if old != new {
                return Err(wrong(format!("it is of {what} {old}, and this is {new}")));
            }
        }
        Ok(Some(line))
    }

    /// Keeps an answer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, said: &str) -> Result<(), Error> {
        let line = format!("{said}\n");
        self.to.write_all(line.as_bytes()).map_err(|error| Error::output(&self.path, error))
    }

    /// Refuses answers to more candidates than there were.
    ///
    /// # Errors
    /// If there are some.
    pub fn expect_no_more(mut self) -> Result<(), Error> {
        match self.earlier.as_mut().and_then(Iterator::next) {
            None => Ok(()),
            Some(_) => Err(Error::Input(format!(
                "{} has answers to more candidates than these; give the same candidates, or \
                 another directory with -o",
                self.path.display()
            ))),
        }
    }
}

/// Removes a line that was not written to its end, and goes to the end.
fn cut(file: &mut File) -> std::io::Result<()> {
    let (mut whole, mut line) = (0, Vec::new());
    let mut lines = BufReader::new(&mut *file);
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.last() == Some(&b'\n') {
            whole += line.len() as u64;
        }
        line.clear();
    }
    file.set_len(whole)?;
    file.seek(std::io::SeekFrom::End(0)).map(drop)
}
