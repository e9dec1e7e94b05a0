//! Writes standard output and files. A file is complete or absent, never half-written.

use crate::Error;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Writes to standard output; a closed pipe is not an error.
pub fn print(text: &str) -> Result<(), Error> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::output(Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}

/// Checks, before any work is done, that results can be written to `dir`.
pub fn prepare_directory(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|error| Error::output(dir, error))?;
    tempfile::tempfile_in(dir).map(drop).map_err(|error| Error::output(dir, error))
}

/// Writes under a temporary name first and then renames, so that a reader never sees a part of the
/// file, even with several writers.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut builder = tempfile::Builder::new();
        let mut unfinished = builder
            .suffix(".unfinished")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(path))?;
        unfinished.write_all(bytes)?;
        unfinished.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| Error::output(path, error))
}

/// `text` as a part of a file's name: what is neither a letter, a digit, `-`, `=` nor `.` becomes `_`.
pub fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-=.".contains(c) { c } else { '_' };
    text.chars().map(plain).collect()
}

/// Says what takes time, on standard error.
pub fn say(what: &str) {
    // Where standard error is closed, the work is the same.
    let _ = writeln!(std::io::stderr(), "schedlab: {what}");
}

/// What the reader learns after the answer.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a note on what was done, which is less than the answer and comes after it.
pub fn note(what: String) {
    let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    if !notes.contains(&what) {
        notes.push(what);
    }
}

/// Writes the notes to standard error.
pub fn say_notes() {
    let notes = std::mem::take(&mut *NOTES.lock().unwrap_or_else(PoisonError::into_inner));
    notes.iter().for_each(|what| say(what));
}

/// The directory of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
