//! A stochastic workload in a file, and the parameters that replace its values.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod model;

pub use model::Stochastic;

use super::format::{Definition, stochastic_keys};
use crate::toml_file::{TomlFile, with_nearest};
use program::{Error, no_such};
use schedsim::workload::Invalid;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use toml::Value;

/// A workload file whose parameters can still change.
#[derive(Clone, Debug)]
pub struct Template {
    file: TomlFile,
    name: String,
    table: toml::Table,
}

/// Values that replace those of the file, by key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parameters(BTreeMap<String, Value>);

/// Keys that describe the kind of workload, not its amount: these are not parameters.
const NO_PARAMETERS: [&str; 4] = ["name", "description", "base", "class"];

impl Template {
    /// Reads the workload in `file`.
    ///
    /// # Errors
    /// If it is not TOML, or has unknown keys or invalid values.
    pub fn read(file: TomlFile) -> Result<Template, Error> {
        let definition: Definition = file.parse()?;
        let stem = file.name().rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        let name = definition.name.unwrap_or_else(|| stem.to_string());
        Ok(Template { name, table: file.parse()?, file })
    }

    /// Reads `text`; `name` is its name in messages.
    pub fn parse(name: &str, text: &str) -> Result<Template, Error> {
        Template::read(TomlFile::of(name, text))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// This workload under another name, with `parameters` in place of the file's values.
    ///
    /// # Errors
    /// If a parameter is unknown, or the numbers are invalid.
    pub fn preset(self, name: &str, parameters: Parameters) -> Result<Template, Error> {
        self.with(&parameters)?;
        let mut table = self.table;
        table.extend(parameters.0);
        Ok(Template { name: name.to_string(), table, file: self.file })
    }

    /// The workload with `parameters` in place of the file's values.
    ///
    /// # Errors
    /// If a parameter is unknown, or the numbers are invalid: the message points at the parameter
    /// or at the file's line and key.
    pub fn with(&self, parameters: &Parameters) -> Result<Stochastic, Error> {
        self.build(parameters).map_err(|invalid| self.refuse(parameters, &invalid))
    }

    /// The error for `invalid`: it points at the parameter or at the file's line and key.
    pub fn refuse(&self, parameters: &Parameters, invalid: &Invalid) -> Error {
        if parameters.0.contains_key(&invalid.key) {
            Error::Usage(format!("the parameter {invalid}"))
        } else {
            self.file.wrong(&invalid.key, &invalid.message)
        }
    }

    /// The same; the error has the key.
    pub fn build(&self, parameters: &Parameters) -> Result<Stochastic, Invalid> {
        let mut table = self.table.clone();
        for (key, value) in &parameters.0 {
            check(key, value)?;
            table.insert(key.clone(), value.clone());
        }
        let definition = Definition::deserialize(table).map_err(|error| Invalid {
            key: String::new(),
            message: error.message().to_string(),
        })?;
        // Results have a column for CPUs.
        let parameters = parameters
            .iter()
            .filter(|&(key, _)| key != "cpus")
            .map(|(key, value)| (key.to_string(), value))
            .collect();
        Stochastic::new(self.name.clone(), &definition, parameters)
    }
}

/// Checks one parameter: that the name exists and that it accepts the value.
fn check(key: &str, value: &Value) -> Result<(), Invalid> {
    let invalid = |message| Invalid { key: key.to_string(), message };
    let names: Vec<String> = list_parameters().into_iter().map(|(name, _)| name).collect();
    if !names.iter().any(|name| name == key) {
        return Err(invalid(no_such(
            "parameter",
            key,
            &names,
            "`schedlab list workloads` shows them all.",
        )));
    }
    let alone = toml::Table::from_iter([(key.to_string(), value.clone())]);
    Definition::deserialize(alone).map(drop).map_err(|error| invalid(with_nearest(error.message())))
}

/// All parameters with their meanings.
pub fn list_parameters() -> Vec<(String, String)> {
    stochastic_keys()
        .into_iter()
        .filter(|(name, _)| !NO_PARAMETERS.contains(&name.as_str()))
        .collect()
}

impl Parameters {
    /// Checks that the parameter `key` exists and accepts `value`.
    pub fn check(key: &str, value: &Value) -> Result<(), String> {
        check(key, value).map_err(|invalid| invalid.message)
    }

    /// Sets `key`.
    pub fn insert(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_string(), value);
    }

    /// A copy with a value for `key`.
    pub fn with(&self, key: &str, value: Value) -> Parameters {
        let mut changed = self.clone();
        changed.insert(key, value);
        changed
    }

    /// All parameters, sorted by key, by their names in results.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(key, value)| {
            (key.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_string))
        })
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A parameter on the command line, `KEY=VALUE`.
impl FromStr for Parameters {
    type Err = String;

    fn from_str(text: &str) -> Result<Parameters, String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| "give KEY=VALUE, as in tmc=2ms".to_string())?;
        let parsed = toml::de::ValueDeserializer::parse(value).and_then(Value::deserialize);
        let value = parsed.unwrap_or_else(|_| Value::String(value.to_string()));
        Parameters::check(key, &value)?;
        Ok(Parameters(BTreeMap::from([(key.to_string(), value)])))
    }
}

impl FromIterator<Parameters> for Parameters {
    fn from_iter<I: IntoIterator<Item = Parameters>>(all: I) -> Parameters {
        Parameters(all.into_iter().flat_map(|parameters| parameters.0).collect())
    }
}

#[cfg(test)]
mod tests;
