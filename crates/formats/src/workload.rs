//! Resolves a WORKLOAD argument: a built-in workload, a file that describes one, or a recording.

pub mod built_in;
mod closed;
mod fit;
pub mod format;
mod rt_app;
mod stochastic;

pub use closed::ClosedWorkload;
pub use fit::{Fitted, Lives, Recorded as FitInput, all_but};
pub use stochastic::{Parameters, Stochastic, Template, list_parameters};

use crate::import;
use crate::toml_file::{TomlFile, read_text};
use program::{Error, no_such};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A resolved WORKLOAD.
#[derive(Clone, Debug)]
pub enum Workload {
    /// A recording of perf, not yet read.
    Recording(PathBuf),
    /// Tasks drawn from distributions; parameters can still change them.
    Stochastic(Template),
    /// Tasks that go through phases.
    Closed(Box<ClosedWorkload>),
}

impl Workload {
    /// The workload that `argument` names. A name with a slash is a file.
    ///
    /// # Errors
    /// If there is none. The message has the nearest match among built-in workloads and
    /// neighbouring files.
    pub fn resolve(argument: &OsStr) -> Result<Workload, Error> {
        let path = Path::new(argument);
        if let Some(name) = argument.to_str().filter(|name| !name.contains('/'))
            && let Some(built_in) = built_in::find(name)
        {
            return built_in;
        }
        if !path.exists() {
            return Err(unknown(path));
        }
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if name.ends_with(".toml.zst") {
            return Workload::described(TomlFile::read(path)?);
        }
        match path.extension().and_then(OsStr::to_str) {
            Some("toml") => Workload::described(TomlFile::read(path)?),
            Some("json") if import::is_trace_json(path) => {
                Ok(Workload::Recording(path.to_path_buf()))
            }
            Some("json") => {
                let file = path.display().to_string();
                rt_app::read(&file, &read_text(path)?).map(Box::new).map(Workload::Closed)
            }
            _ => Ok(Workload::Recording(path.to_path_buf())),
        }
    }

    /// A described workload: closed if it has tasks, stochastic if it has classes.
    pub fn described(file: TomlFile) -> Result<Workload, Error> {
        let keys: toml::Table = file.parse()?;
        match (keys.contains_key("task"), keys.contains_key("class") || keys.contains_key("base")) {
            (true, true) => Err(file.wrong(
                "task",
                "a workload has either tasks, or classes that tasks are drawn from; leave one out",
            )),
            (true, false) => ClosedWorkload::read(file).map(Box::new).map(Workload::Closed),
            _ => Template::read(file).map(Workload::Stochastic),
        }
    }
}

/// The error for a name that is neither a file nor built-in. A name like a path is a missing file,
/// any other a wrong name.
fn unknown(path: &Path) -> Error {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let looks_like_a_path = path.components().count() > 1 || path.extension().is_some();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    if folder.is_none() {
        names.splice(0..0, built_in::ALL.iter().map(|built_in| built_in.name.to_string()));
    }
    let see = "A WORKLOAD is a file or one of those that `schedlab list workloads` shows.";
    let message = no_such("workload", &name, &names, see);
    if looks_like_a_path {
        Error::Input(format!("{}: no such file: {message}", path.display()))
    } else {
        Error::Usage(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_matches_the_format() {
        let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workload.schema.json");
        let current = format::json_schema();
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(published, &current).expect("docs can be written");
        }
        let published = fs::read_to_string(published).expect("docs/workload.schema.json");
        assert!(
            published == current,
            "docs/workload.schema.json is out of date: UPDATE_SCHEMA=1 cargo test --lib"
        );
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_built_in_workload_or_file() {
        let wrong = |argument: &str| Workload::resolve(OsStr::new(argument)).expect_err(argument);
        let error = wrong("unix199");
        assert!(
            error.to_string().contains("Did you mean `unix1990`?") && error.exit_code() == 2,
            "{error}"
        );
        let error = wrong("../../workloads/redis.perf-script.zst");
        assert!(
            error.to_string().contains("Did you mean `redis.perf-script.txt.zst`?")
                && error.exit_code() == 3,
            "{error}"
        );
        assert!(matches!(Workload::resolve(OsStr::new("unix1990")), Ok(Workload::Stochastic(_))));
    }
}
