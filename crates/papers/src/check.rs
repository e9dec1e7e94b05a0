//! Checks that everything a paper's files name exists, when they are read and before anything runs.

use super::Paper;
use super::binding::{Binding, Bindings, unused};
use super::commands::CommandData;
use super::expression::{Formula, Known, KnownSeries};
use super::fault::Fault;
use super::figure::{CurveData, FigureData};
use super::folder::Folder;
use super::grids::Regime;
use super::table::TableData;
use formats::toml_file::TomlFile;
use program::Error;

impl Paper {
    /// Checks `experiments.toml` and parses its formulas.
    pub(super) fn check_experiments(&mut self, file: &TomlFile) -> Result<(), Error> {
        self.check_names(file)?;
        self.check_tables(file, &self.experiments.table)?;
        self.printed.check(&self.experiments.table)?;
        check_regimes(file, &self.experiments.regime)?;
        cover(file, &mut self.experiments.command, &self.folder)?;
        let formulas = self.formulas(file, &self.experiments.figure)?;
        self.experiments
            .figure
            .iter_mut()
            .zip(formulas)
            .for_each(|(figure, formulas)| figure.formulas = formulas);
        Ok(())
    }

    /// Checks that each column has printed numbers and a measurable source.
    pub(super) fn check_tables(&self, file: &TomlFile, tables: &[TableData]) -> Result<(), Error> {
        for (index, table) in tables.iter().enumerate() {
            for (place, column) in table.column.iter().enumerate() {
                let wrong = |(key, why): Fault| {
                    Err(file.wrong(&format!("table[{index}].column[{place}].{key}"), &why))
                };
                if self.printed.rows(&table.id, &column.name).is_empty() {
                    return wrong((
                        "name".to_string(),
                        format!("tables.csv has no cell of {}/{}", table.id, column.name),
                    ));
                }
                column.fault(table).map_or(Ok(()), wrong)?;
            }
        }
        Ok(())
    }

    /// Parses the formulas of each figure; all names in them must exist.
    pub(super) fn formulas(
        &self,
        file: &TomlFile,
        figures: &[FigureData],
    ) -> Result<Vec<Vec<Formula>>, Error> {
        let of_figure = |(index, figure): (usize, &FigureData)| {
            let wrong = |(key, why): Fault| file.wrong(&format!("figure[{index}].{key}"), &why);
            figure.fault(self).map_or(Ok(()), |fault| Err(wrong(fault)))?;
            let known = self.known(&figure.bindings).map_err(wrong)?;
            let read = |(place, curve): (usize, &CurveData)| {
                let key = format!("figure[{index}].curve[{place}].y");
                Formula::parse(&curve.y, &known)
                    .map_err(|fault| file.wrong_within(&key, &fault.at, &fault.message))
            };
            let formulas = figure
                .curve
                .iter()
                .enumerate()
                .map(read)
                .collect::<Result<Vec<Formula>, Error>>()?;
            let used = |name: &str| formulas.iter().any(|formula| formula.uses(name));
            unused(&figure.bindings, used).map_or(Ok(()), |fault| Err(wrong(fault)))?;
            Ok(formulas)
        };
        figures.iter().enumerate().map(of_figure).collect()
    }

    /// Checks that each table, figure, regime and command has a unique name.
    fn check_names(&self, file: &TomlFile) -> Result<(), Error> {
        let experiments = &self.experiments;
        let kinds: [(&str, &str, Vec<&str>); 4] = [
            ("table", "id", experiments.table.iter().map(|table| table.id.as_str()).collect()),
            ("figure", "id", experiments.figure.iter().map(|figure| figure.id.as_str()).collect()),
            (
                "regime",
                "name",
                experiments.regime.iter().map(|regime| regime.name.as_str()).collect(),
            ),
            (
                "command",
                "name",
                experiments.command.iter().map(|command| command.name.as_str()).collect(),
            ),
        ];
        for (kind, key, names) in kinds {
            if let Some(index) =
                (1..names.len()).find(|&index| names[..index].contains(&names[index]))
            {
                return Err(file.wrong(
                    &format!("{kind}[{index}].{key}"),
                    &format!("there is another {kind} named `{}`", names[index]),
                ));
            }
        }
        Ok(())
    }

    /// What is known of series before they are measured.
    ///
    /// # Errors
    /// If a series refers to something that does not exist.
    pub(super) fn known(&self, bindings: &Bindings) -> Result<KnownSeries, Fault> {
        let known = |(name, binding): (&String, &Binding)| {
            let known = match binding {
                Binding::Queue(binding) => binding.known(self),
                Binding::Grid(binding) => self
                    .grids
                    .axis(binding)
                    .map(|axis| Known { axis: Some(axis), is_printed: false }),
                Binding::Command(binding) => binding
                    .axis(&self.experiments.command)
                    .map(|axis| Known { axis, is_printed: false }),
            };
            known
                .map(|known| (name.clone(), known))
                .map_err(|(key, why)| (format!("let.{name}{key}"), why))
        };
        bindings.iter().map(known).collect()
    }

    /// The names of the paper's regimes.
    pub(super) fn regime_names(&self) -> Vec<String> {
        self.grids.regimes().iter().map(|regime| regime.name.clone()).collect()
    }
}

/// Checks that the parameters of each regime exist.
pub(super) fn check_regimes(file: &TomlFile, regimes: &[Regime]) -> Result<(), Error> {
    let fault =
        regimes.iter().enumerate().find_map(|(index, regime)| Some((index, regime.fault()?)));
    fault.map_or(Ok(()), |(index, (key, why))| {
        Err(file.wrong(&format!("regime[{index}].{key}"), &why))
    })
}

/// Finds what the rows of each command can be about.
pub(super) fn cover(
    file: &TomlFile,
    commands: &mut [CommandData],
    folder: &Folder,
) -> Result<(), Error> {
    let wrong =
        |index: usize, (key, why): Fault| file.wrong(&format!("command[{index}].{key}"), &why);
    commands
        .iter_mut()
        .enumerate()
        .try_for_each(|(index, command)| command.cover(folder).map_err(|fault| wrong(index, fault)))
}
