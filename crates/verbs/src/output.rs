//! Prints an answer, and writes it to a directory.

use laboratory::results_directory::ResultsDirectory;
use program::{Error, print};
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
        let out = match self {
            Format::Text => {
                text()
                    + &results
                        .reproduce
                        .as_ref()
                        .map_or(String::new(), |command| format!("\nReproduce: {command}\n"))
            }
            Format::Json => results.to_json()?,
            Format::Csv => results.to_csv()?,
        };
        print(&out)
    }

    /// Prints `answer`, and returns its error, if any.
    pub fn answer(self, answer: Answer) -> Result<(), Error> {
        self.print(&answer.results, || answer.text)?;
        answer.end
    }
}

/// Returns `answer`, whose results were written to `directory`, after writing the report there.
pub fn reported(answer: Answer, directory: Option<&Path>) -> Result<Answer, Error> {
    directory.map(|directory| report::write(directory, None)).transpose()?;
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
