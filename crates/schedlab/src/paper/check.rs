//! Whether all that a paper's files name is there: asked when they are read, before anything runs.

use super::Paper;
use super::claim::{Binding, Bindings};
use super::expression::{Formula, Known, KnownSeries};
use crate::output::Metric;
use crate::toml_file::TomlFile;
use crate::{Error, no_such};
use serde::{Deserialize, Deserializer, de};

/// A key of a file, and what is wrong there.
pub type Fault = (String, String);

impl Paper {
    /// Checks `experiments.toml` and reads the formulas in it.
    pub(super) fn check_experiments(&mut self, file: &TomlFile) -> Result<(), Error> {
        let wrong = |of: String, (key, why): Fault| file.wrong(&format!("{of}.{key}"), &why);
        self.check_names(file)?;
        for (index, table) in self.experiments.table.iter().enumerate() {
            for (place, column) in table.column.iter().enumerate() {
                let at = || format!("table[{index}].column[{place}]");
                if self.printed.rows(&table.id, &column.name).is_empty() {
                    return Err(wrong(at(), ("name".to_string(), format!("tables.csv has no cell of {}/{}", table.id, column.name))));
                }
                column.fault(table).map_or(Ok(()), |fault| Err(wrong(at(), fault)))?;
            }
        }
        self.printed.check(&self.experiments.table)?;
        for (index, regime) in self.experiments.regime.iter().enumerate() {
            regime.fault().map_or(Ok(()), |fault| Err(wrong(format!("regime[{index}]"), fault)))?;
        }
        for (index, command) in self.experiments.command.iter_mut().enumerate() {
            command.cover(&self.folder).map_err(|fault| wrong(format!("command[{index}]"), fault))?;
        }
        let mut formulas = Vec::new();
        for (index, figure) in self.experiments.figure.iter().enumerate() {
            figure.fault(self).map_or(Ok(()), |fault| Err(wrong(format!("figure[{index}]"), fault)))?;
            let known = self.known(&figure.bindings).map_err(|fault| wrong(format!("figure[{index}]"), fault))?;
            let read = |(place, text): (usize, &str)| {
                let key = format!("figure[{index}].curve[{place}].y");
                Formula::parse(text, &known).map_err(|fault| file.wrong_within(&key, &fault.at, &fault.message))
            };
            let read = figure.curve.iter().map(|curve| curve.y.as_str()).enumerate().map(read).collect::<Result<Vec<_>, Error>>()?;
            let used = |name: &str| read.iter().any(|formula| formula.uses(name));
            unused(&figure.bindings, used).map_or(Ok(()), |fault| Err(wrong(format!("figure[{index}]"), fault)))?;
            formulas.push(read);
        }
        self.experiments.figure.iter_mut().zip(formulas).for_each(|(figure, formulas)| figure.formulas = formulas);
        Ok(())
    }

    /// Whether each table, figure, regime and command has a name of its own.
    fn check_names(&self, file: &TomlFile) -> Result<(), Error> {
        let experiments = &self.experiments;
        let kinds: [(&str, &str, Vec<&str>); 4] = [
            ("table", "id", experiments.table.iter().map(|table| table.id.as_str()).collect()),
            ("figure", "id", experiments.figure.iter().map(|figure| figure.id.as_str()).collect()),
            ("regime", "name", experiments.regime.iter().map(|regime| regime.name.as_str()).collect()),
            ("command", "name", experiments.command.iter().map(|command| command.name.as_str()).collect()),
        ];
        for (kind, key, names) in kinds {
            if let Some(index) = (1..names.len()).find(|&index| names[..index].contains(&names[index])) {
                return Err(file.wrong(&format!("{kind}[{index}].{key}"), &format!("there is another {kind} named `{}`", names[index])));
            }
        }
        Ok(())
    }

    /// What is known of series before they are measured.
    ///
    /// # Errors
    /// If one speaks of what is not there.
    pub(super) fn known(&self, bindings: &Bindings) -> Result<KnownSeries, Fault> {
        let known = |(name, binding): (&String, &Binding)| {
            let known = match binding {
                Binding::Queue(binding) => binding.known(self),
                Binding::Grid(binding) => self.grids.axis(binding).map(|axis| Known { axis: Some(axis), is_printed: false }),
                Binding::Command(binding) => binding.axis(&self.experiments.command).map(|axis| Known { axis, is_printed: false }),
            };
            known.map(|known| (name.clone(), known)).map_err(|(key, why)| (format!("let.{name}{key}"), why))
        };
        bindings.iter().map(known).collect()
    }

    /// The names of its regimes.
    pub(super) fn regime_names(&self) -> Vec<String> {
        self.grids.regimes().iter().map(|regime| regime.name.clone()).collect()
    }
}

/// A series that nothing uses: a name that nobody meant, or a check that was forgotten.
pub fn unused(bindings: &Bindings, used: impl Fn(&str) -> bool) -> Option<Fault> {
    let name = bindings.keys().find(|name| !used(name))?;
    Some((format!("let.{name}"), format!("nothing uses the series `{name}`; take it out, or put it into an expression")))
}

/// The most replicates of a measurement.
pub const MOST_SEEDS: u64 = 10_000;

/// A metric by its id.
///
/// # Errors
/// If there is none of it; the message has the nearest.
pub fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
    let id = String::deserialize(deserializer)?;
    Metric::named(&id).ok_or_else(|| {
        let ids: Vec<String> = Metric::ALL.iter().map(|metric| metric.id().to_string()).collect();
        de::Error::custom(no_such("metric", &id, &ids, "docs/results.schema.json shows them."))
    })
}

/// The message for a name that is none of `names`.
pub fn none_of(what: &str, wrong: &str, names: &[String], of: &str) -> String {
    no_such(what, wrong, names, &format!("{of} has {}.", names.join(", ")))
}
