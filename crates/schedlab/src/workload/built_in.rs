//! The workloads that come with the program.

use super::{Template, Workload};
use crate::Error;
use crate::toml_file::TomlFile;

/// A workload that is known by name.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// What may follow behind a colon; empty if nothing may.
    pub argument: &'static str,
    /// What it is.
    pub summary: &'static str,
    make: fn(argument: Option<&str>) -> Result<Workload, Error>,
}

/// All of them.
pub const ALL: &[BuiltIn] = &[BuiltIn {
    name: "unix1990",
    argument: "",
    summary: "Curran & Stumm's Baseline System: tasks of a Unix of 1990 on four processors, drawn at random; its parameters are below",
    make: |_| Template::read(TomlFile::of("unix1990", "base = \"unix1990\"\n")).map(Workload::Stochastic),
}];

/// The built-in workload of that name, with its argument behind a colon; `None` if there is no such name.
pub fn find(text: &str) -> Option<Result<Workload, Error>> {
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    let built_in = ALL.iter().find(|built_in| built_in.name == name)?;
    Some(match argument {
        Some(argument) if built_in.argument.is_empty() => Err(Error::Usage(format!(
            "the workload {name} takes no argument, so not `{argument}`; `schedlab list workloads` shows what does"
        ))),
        _ => (built_in.make)(argument),
    })
}
