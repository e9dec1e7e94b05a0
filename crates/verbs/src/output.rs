//! Prints an answer, and writes it to a directory.

use laboratory::results_directory::{ResultsDirectory, complete};
use program::terminal::{self, Size};
use program::{Error, print, print_data};
use results::{Answer, Input, InputLock, Results};
use std::path::Path;
use worlds::vm::pins;

/// The output format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables for people.
    #[default]
    Text,
    /// One object with all rows and the data to repeat the run.
    Json,
    /// The rows.
    Csv,
}

impl Format {
    /// Prints `results`; `text` makes the text for people.
    pub fn print(self, results: &Results, text: impl FnOnce() -> String) -> Result<(), Error> {
        let (out, again) = match self {
            Format::Text => {
                let reproduce = results
                    .reproduce
                    .as_ref()
                    .map_or(String::new(), |command| format!("\nReproduce: {command}\n"));
                let text = text() + &reproduce;
                let again = terminal::size().and_then(|size| again(results, &text, size));
                (text, again)
            }
            Format::Json => (results.to_json()?, None),
            Format::Csv => (results.to_csv()?, None),
        };
        let print_out = if self == Format::Text { print } else { print_data };
        print_out(&out)?;
        program::say_notes();
        again.map_or(Ok(()), |again| print(&again))
    }

    /// Prints `answer`, and returns its error, if any.
    pub fn answer(self, answer: Answer) -> Result<(), Error> {
        self.print(&answer.results, || answer.text)?;
        answer.end
    }
}

/// The answer, which `text` begins with, where it is no longer on the screen at the end of `text`.
fn again(results: &Results, text: &str, size: Size) -> Option<String> {
    let rows = |line: &str| line.chars().count().div_ceil(size.columns.max(1)).max(1);
    let answer = results.answer.as_ref().filter(|answer| text.starts_with(answer.as_str()))?;
    let is_gone = text.lines().map(rows).sum::<usize>() >= size.lines;
    is_gone.then(|| format!("\nAnswer: {answer}"))
}

/// Returns `answer`, whose results were written to `directory`, after completing that and writing the
/// report there.
pub fn reported(answer: Answer, directory: Option<&Path>) -> Result<Answer, Error> {
    if let Some(directory) = directory {
        complete(directory)?;
        report::write(directory, None)?;
    }
    Ok(answer)
}

/// Returns `answer` with the hash of all that it was made of, the `named` files of its command line
/// among it. The results in `directory`, if they were written to one, get it too, and a lock file.
pub fn pinned(
    mut answer: Answer,
    named: impl IntoIterator<Item = Input>,
    directory: Option<&Path>,
) -> Result<Answer, Error> {
    answer.inputs.extend(named);
    let lock = InputLock::new(answer.inputs.clone());
    answer.results.inputs = Some(pins::combined(&lock));
    if let Some(directory) = directory {
        lock.write(directory)?;
        answer.results.write(directory)?;
    }
    Ok(answer)
}

/// Completes `directory` and writes the report there.
pub fn finish(directory: ResultsDirectory) -> Result<(), Error> {
    let path = directory.path().to_path_buf();
    directory.finish()?;
    report::write(&path, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_stands_at_the_end_too_where_it_has_left_the_screen() {
        let answer = "`*: batch` would help.\n".to_string();
        let results = Results::new(Vec::new()).answered(answer.clone());
        let text = format!("{answer}\n{}", "a line of a table\n".repeat(10));
        let of = |text: &str, columns, lines| again(&results, text, Size { columns, lines });
        assert_eq!(of(&text, 80, 13), None);
        assert_eq!(of(&text, 80, 12).as_deref(), Some("\nAnswer: `*: batch` would help.\n"));
        assert!(of(&text, 10, 13).is_some(), "long lines take two");
        assert_eq!(of("another text\n", 80, 1), None);
    }
}
