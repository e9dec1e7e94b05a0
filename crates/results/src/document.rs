//! All results of a command: its rows, the data needed to repeat it, and its files.

use crate::{Input, Row, SCHEMA};
use program::{Error, write_whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// All results of a command, with the data needed to repeat it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// The version of this schema.
    pub schema: u32,
    /// The version of schedlab.
    pub version: String,
    /// The command line that produced the rows.
    pub command: String,
    /// The command line, if it gives the same digits again. Absent for runs on a real machine, and
    /// for runs that a time limit ended.
    pub reproduce: Option<String>,
    /// The kernel of the machine that ran it.
    pub kernel: String,
    /// The CPU of that machine.
    pub cpu: String,
    /// The SHA-256 over the build of the program and all inputs of the lock file beside the
    /// results; absent where inputs are not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// The findings in plain words, if candidates were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The rows.
    #[schemars(with = "Vec<Row>")]
    pub rows: Vec<Row>,
}

impl Results {
    /// Creates the results of the running command.
    pub fn new(rows: Vec<Row>) -> Results {
        let command = program::command_line(std::env::args_os().skip(1));
        Results {
            schema: SCHEMA,
            version: program::VERSION.to_string(),
            reproduce: Some(command.clone()),
            command,
            kernel: program::kernel().to_string(),
            cpu: program::cpu_model().to_string(),
            inputs: None,
            answer: None,
            rows,
        }
    }

    /// Replaces the command line.
    #[must_use]
    pub fn of_command(self, command: String) -> Results {
        Results { reproduce: self.reproduce.map(|_| command.clone()), command, ..self }
    }

    /// Sets the findings; an empty text is ignored.
    #[must_use]
    pub fn answered(self, answer: String) -> Results {
        Results { answer: Some(answer).filter(|answer| !answer.is_empty()), ..self }
    }

    /// States whether the command gives the same digits again.
    #[must_use]
    pub fn repeatable(self, is_repeatable: bool) -> Results {
        Results { reproduce: self.reproduce.filter(|_| is_repeatable), ..self }
    }

    /// Returns JSON with a newline at the end.
    pub fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string_pretty(self)
            .map(|json| json + "\n")
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))
    }

    /// Returns the rows as CSV.
    pub fn to_csv(&self) -> Result<String, Error> {
        crate::to_csv(&self.rows).map_err(Error::Internal)
    }

    /// Returns the rows as Parquet, with the other fields in the file's metadata.
    pub fn to_parquet(&self) -> Result<Vec<u8>, Error> {
        crate::expect_parquet()?;
        let metadata = [
            ("schedlab.version", self.version.as_str()),
            ("schedlab.command", &self.command),
            ("schedlab.reproduce", self.reproduce.as_deref().unwrap_or_default()),
            ("schedlab.kernel", &self.kernel),
            ("schedlab.cpu", &self.cpu),
        ];
        crate::to_parquet(&self.rows, &metadata).map_err(Error::Internal)
    }

    /// Parses the output of [`to_json`](Results::to_json). The error says what is wrong.
    pub fn from_json(text: &str) -> Result<Results, String> {
        stamped(text).map(|(_, results)| results)
    }

    /// Reads a file that holds the output of [`to_json`](Results::to_json).
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or has another version.
    pub fn read(path: &Path) -> Result<Results, Error> {
        Ok(Self::read_with_text(path)?.0)
    }

    /// The same, with the text of the file.
    ///
    /// # Errors
    /// As of [`read`](Results::read).
    pub fn read_with_text(path: &Path) -> Result<(Results, String), Error> {
        let text = fs::read_to_string(path)
            .map_err(|error| Error::unreadable(path, &error, "a results.json, as -o DIR writes"))?;
        let wrong = |why| Error::Input(format!("{}: {why}", path.display()));
        Ok((Results::from_json(&text).map_err(wrong)?, text))
    }

    /// Writes `results.json`, `results.csv` and `results.parquet` into `dir`. No file is ever left
    /// half-written. A build without Parquet removes a `results.parquet`: it has the rows of an
    /// earlier command.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        write_whole(&dir.join("results.json"), self.to_json()?.as_bytes())?;
        write_whole(&dir.join("results.csv"), self.to_csv()?.as_bytes())?;
        let parquet = dir.join("results.parquet");
        if crate::expect_parquet().is_ok() {
            return write_whole(&parquet, &self.to_parquet()?);
        }
        match fs::remove_file(&parquet) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::output(&parquet, error))
            }
            _ => Ok(()),
        }
    }
}

/// The outcome of a command: its results, the text for people, and an optional final error.
#[derive(Debug)]
pub struct Answer {
    /// The rows.
    pub results: Results,
    /// The numbers of each run of an ensemble, at the coordinate `member`; without their parts.
    pub members: Vec<Row>,
    /// What the numbers were made of beside this program, where that is known by its hash.
    pub inputs: Vec<Input>,
    /// Tables and sentences for people.
    pub text: String,
    /// An error if there are results but something is wrong with them.
    pub end: Result<(), Error>,
}

impl Answer {
    /// An answer without an error.
    pub fn new(results: Results, text: String) -> Answer {
        let (members, inputs) = (Vec::new(), Vec::new());
        Answer { results, members, inputs, text, end: Ok(()) }
    }
}

/// The fields that every version of results.json and distributions.json has.
#[derive(Deserialize)]
pub struct Stamp {
    /// The version of the schema.
    pub schema: u32,
    /// The version of schedlab that wrote it.
    pub version: String,
}

/// Parses JSON that has a schema version; checks the version first. The error says what is wrong.
pub fn stamped<T: for<'a> Deserialize<'a>>(text: &str) -> Result<(Stamp, T), String> {
    if text.is_empty() {
        return Err("the file is empty; write the results again".to_string());
    }
    let stamp: Stamp = serde_json::from_str(text).map_err(|error| {
        format!(
            "not results of schedlab, or damaged: {error}; give a results.json, as -o DIR writes"
        )
    })?;
    if stamp.schema != SCHEMA {
        let next = if stamp.schema > SCHEMA {
            "install the newer one"
        } else {
            "write the results again with this one"
        };
        return Err(format!(
            "its schema is version {}, written by schedlab {}; this is schedlab {}, which reads \
             version {SCHEMA}: {next}",
            stamp.schema,
            stamp.version,
            program::VERSION
        ));
    }
    let content = serde_json::from_str(text)
        .map_err(|error| format!("damaged: {error}; write the results again"))?;
    Ok((stamp, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_equals_the_schema_of_results() {
        let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.schema.json");
        let mut schema = schemars::schema_for!(Results);
        schema.insert("title".to_string(), format!("Results of schedlab, version {SCHEMA}").into());
        let current = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(published, &current).unwrap();
        }
        let published = fs::read_to_string(published).unwrap();
        assert!(
            published == current,
            "docs/results.schema.json is out of date: UPDATE_SCHEMA=1 cargo test --lib"
        );
    }
}
