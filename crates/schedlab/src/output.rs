//! Results: one long table of rows, as text, JSON or CSV.

mod numbers;
mod table;

pub use numbers::{counted, headline, is_headline, open_cell, open_headline, quantity};
pub use results::{Coordinate, Metric, Point, Record, Row, SCHEMA, SubjectKind, Verdict, World};
pub use table::{Align, Table};

use crate::results_directory::stamped;
use crate::{Error, program};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables for people.
    #[default]
    Text,
    /// One object with all rows and what is needed to repeat the run.
    Json,
    /// The rows.
    Csv,
}

/// All results of a command with what is needed to repeat it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// The version of this shape.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
    /// The command line that gave the rows.
    pub command: String,
    /// The same, if it gives the same digits again: not on a machine where no two runs are the same, and not if the time was up.
    pub reproduce: Option<String>,
    /// The kernel of the machine that did it.
    pub kernel: String,
    /// Its CPU.
    pub cpu: String,
    /// What was found, in plain words, if candidates were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The results.
    #[schemars(with = "Vec<Record>")]
    pub rows: Vec<Row>,
}

impl Results {
    /// `rows`, as results of this very command.
    pub fn new(rows: Vec<Row>) -> Results {
        let command = command_line(std::env::args_os().skip(1));
        Results {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            reproduce: Some(command.clone()),
            command,
            kernel: KERNEL.clone(),
            cpu: CPU_MODEL.clone(),
            answer: None,
            rows,
        }
    }

    /// The same of another command line.
    #[must_use]
    pub fn of_command(self, command: String) -> Results {
        Results { reproduce: self.reproduce.map(|_| command.clone()), command, ..self }
    }

    /// The same with what was found in plain words; nothing, if that is empty.
    #[must_use]
    pub fn answered(self, answer: String) -> Results {
        Results { answer: Some(answer).filter(|answer| !answer.is_empty()), ..self }
    }

    /// The same, of which the command gives the same digits again, or not.
    #[must_use]
    pub fn repeatable(self, is_repeatable: bool) -> Results {
        Results { reproduce: self.reproduce.filter(|_| is_repeatable), ..self }
    }

    /// As JSON, with a newline at the end.
    pub fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n").map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))
    }

    /// The rows as CSV.
    pub fn to_csv(&self) -> Result<String, Error> {
        results::to_csv(&self.rows).map_err(Error::Internal)
    }

    /// The rows as Parquet, with the rest in the file's metadata.
    pub fn to_parquet(&self) -> Result<Vec<u8>, Error> {
        let metadata = [
            ("schedlab.version", self.version.as_str()),
            ("schedlab.command", &self.command),
            ("schedlab.reproduce", self.reproduce.as_deref().unwrap_or_default()),
            ("schedlab.kernel", &self.kernel),
            ("schedlab.cpu", &self.cpu),
        ];
        results::to_parquet(&self.rows, &metadata).map_err(Error::Internal)
    }

    /// What [`to_json`](Results::to_json) wrote; an error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Results, String> {
        stamped(text).map(|(_, results)| results)
    }

    /// Reads a file that [`to_json`](Results::to_json) made.
    ///
    /// # Errors
    /// If it cannot be read, is damaged or of another version.
    pub fn read(path: &Path) -> Result<Results, Error> {
        let wrong = |why: String| Error::Input(format!("{}: {why}", path.display()));
        fs::read_to_string(path).map_err(|error| wrong(error.to_string())).and_then(|text| Results::from_json(&text).map_err(wrong))
    }

    /// Prints the rows in `format`; text is what `text` makes of them.
    pub fn print(&self, format: Format, text: impl FnOnce() -> String) -> Result<(), Error> {
        let out = match format {
            Format::Text => text() + &self.reproduce.as_ref().map_or(String::new(), |command| format!("\nReproduce: {command}\n")),
            Format::Json => self.to_json()?,
            Format::Csv => self.to_csv()?,
        };
        print(&out)
    }

    /// Writes `results.json`, `results.csv` and `results.parquet` into `dir`, each whole or not at all.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        write_whole(&dir.join("results.json"), self.to_json()?.as_bytes())?;
        write_whole(&dir.join("results.csv"), self.to_csv()?.as_bytes())?;
        write_whole(&dir.join("results.parquet"), &self.to_parquet()?)
    }
}

/// What a command came to: its results, the same as text for people, and what else it has to say at its end.
#[derive(Debug)]
pub struct Answer {
    /// The rows.
    pub results: Results,
    /// Tables and sentences.
    pub text: String,
    /// An error where there are results and something is wrong with them.
    pub end: Result<(), Error>,
}

impl Answer {
    /// `results`, with nothing wrong.
    pub fn new(results: Results, text: String) -> Answer {
        Answer { results, text, end: Ok(()) }
    }

    /// Prints it in `format`, then ends as it should.
    pub fn print(self, format: Format) -> Result<(), Error> {
        self.results.print(format, || self.text)?;
        self.end
    }
}

/// The registered metric behind one of the simulator's, this machine's or an open system's.
///
/// # Panics
/// If it is not registered; a test holds the lists equal.
pub fn registered(id: &str) -> Metric {
    Metric::named(id).unwrap_or_else(|| panic!("the metric {id} is not in the list of all metrics"))
}

/// Writes to standard output; a reader that went away is no error.
pub fn print(text: &str) -> Result<(), Error> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::output(Path::new("standard output"), error)),
        _ => Ok(()),
    }
}

/// Makes sure, before any work is done, that results can be written to `dir`.
pub fn prepare_directory(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|error| Error::output(dir, error))?;
    tempfile::tempfile_in(dir).map(drop).map_err(|error| Error::output(dir, error))
}

/// Writes a file under a name of its own first, so that a file that is there is a whole one, whoever else writes it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut builder = tempfile::Builder::new();
        let mut unfinished = builder.suffix(".unfinished").permissions(Permissions::from_mode(0o666)).tempfile_in(folder(path))?;
        unfinished.write_all(bytes)?;
        unfinished.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| Error::output(path, error))
}

/// In which directory a file is.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A command line of this program as one would type it.
pub fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let words = words.map(|word| shell_word(&word.to_string_lossy()));
    std::iter::once(program::name().to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
pub fn shell_word(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:,=%+@".contains(c));
    if plain { word.to_string() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The running kernel's release.
static KERNEL: LazyLock<String> = LazyLock::new(|| {
    fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_string()).unwrap_or_else(|_| "unknown".to_string())
});

/// What the CPU calls itself.
static CPU_MODEL: LazyLock<String> = LazyLock::new(|| {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, model)| model.to_string())
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::measured::METRICS;
    use results::Direction;
    use schedsim::metrics::{Better, CATALOGUE, OPEN_CATALOGUE};

    fn direction(better: Better) -> Direction {
        match better {
            Better::Higher => Direction::Higher,
            Better::Lower => Direction::Lower,
            Better::Neither => Direction::Neither,
        }
    }

    /// The list of all metrics repeats what those of the simulator and of this machine say, so neither can change alone.
    #[test]
    fn what_measures_and_the_list_of_all_metrics_agree() {
        let simulated = CATALOGUE.iter().map(|metric| (metric.id, metric.unit, metric.better));
        let open = OPEN_CATALOGUE.iter().map(|metric| (metric.id, metric.unit, metric.better));
        for (id, unit, better) in simulated.chain(open) {
            let known = registered(id).description();
            assert_eq!((known.unit, known.direction), (unit, direction(better)), "{id}");
        }
        // Of these a program on this machine is judged otherwise than a simulation, in which CPU time is given and migrations cost.
        const JUDGED_OTHERWISE: [&str; 2] = ["cpu_time_ns", "migrations"];
        for metric in &METRICS {
            let known = registered(metric.id).description();
            assert_eq!(known.unit, metric.unit, "{}", metric.id);
            assert_eq!(known.direction != direction(metric.better), JUDGED_OTHERWISE.contains(&metric.id), "{}", metric.id);
        }
        for metric in CATALOGUE {
            assert_eq!(registered(metric.id).description().summary, metric.definition, "{}", metric.id);
        }
    }

    #[test]
    #[should_panic(expected = "the metric makespan is not in the list")]
    fn a_metric_that_is_not_registered_cannot_be_printed() {
        registered("makespan");
    }

    #[test]
    fn the_published_schema_is_that_of_the_results() {
        let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.schema.json");
        let mut schema = schemars::schema_for!(Results);
        schema.insert("title".to_string(), format!("Results of schedlab, version {SCHEMA}").into());
        let current = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(published, &current).unwrap();
        }
        let published = fs::read_to_string(published).unwrap();
        assert!(published == current, "docs/results.schema.json is out of date: UPDATE_SCHEMA=1 cargo test -p schedlab --lib schema");
    }

    #[test]
    fn a_prediction_is_tested_in_every_headline_metric() {
        assert!(headline().all(|(metric, _)| registered(metric.id).prediction_error().is_some()));
    }
}
