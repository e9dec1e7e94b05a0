//! Writes standard output and files. A file is complete or absent, never half-written.

use crate::{Error, Whole};
use std::borrow::Cow;
use std::fmt::Arguments;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// `text` as a terminal may show it. Names in untrusted files may hold what a terminal obeys
/// (control characters) or what hides the order of letters (marks of direction). These are written
/// as escapes, as in `\u{1b}`. Lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let obeys = |c: char| {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2066}'..='\u{2069}');
        turns || c.is_control() && !matches!(c, '\n' | '\t')
    };
    if !text.contains(obeys) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if obeys(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Writes text for people to standard output, as [`visible`] has it; a closed pipe is no error.
pub fn print(text: &str) -> Result<(), Error> {
    print_data(&visible(text))
}

/// Writes data to standard output, as it is; a closed pipe is no error.
pub fn print_data(text: &str) -> Result<(), Error> {
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

/// Writes the file at `path`, complete or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut whole = Whole::create(path)?;
        whole.write_all(bytes)?;
        whole.finish()
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
    complain(format_args!("schedlab: {}", visible(what)));
}

/// Writes a line to standard error. Where that is closed or full, the work is the same.
pub fn complain(line: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The same, as `eprintln!`, which panics where standard error is closed or full.
#[macro_export]
macro_rules! complain {
    ($($word:tt)*) => { $crate::complain(format_args!($($word)*)) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_shown_what_it_would_obey() {
        assert_eq!(visible("\u{1b}[31mred\r\u{7}\u{9b}1m"), "\\u{1b}[31mred\\u{d}\\u{7}\\u{9b}1m");
        assert_eq!(visible("a\u{202e}b\u{2066}c\u{200f}"), "a\\u{202e}b\\u{2066}c\\u{200f}");
        let plain = "two lines\n\tä, 漢字, 0.5 ± 0.1\n";
        assert!(matches!(visible(plain), Cow::Borrowed(_)) && visible(plain) == plain);
    }
}
