//! All runs for a paper: what is wanted, what was measured now, and what is on record.

use super::ensembles::{Again, Ensembles, compare, folded};
use super::{Binding, CommandData, Run, Settings, member};
use crate::cache::Cache;
use crate::evidence::Curves;
use crate::folder::Folder;
use crate::series::Series;
use program::Error;
use rayon::prelude::*;
use results::{Metric, Row, World};
use std::collections::BTreeMap;

/// All runs for a paper.
pub struct Measured<'a> {
    commands: &'a [CommandData],
    folder: &'a Folder,
    ensembles: &'a Ensembles,
    settings: Settings,
    wanted: BTreeMap<String, Run>,
    /// Why the first members of ensembles on record are not measured again, by run.
    left: BTreeMap<String, String>,
    /// The rows of each run, or why it could not run.
    rows: BTreeMap<String, Result<Vec<Row>, String>>,
    /// What became of the ensembles on record, by run.
    again: BTreeMap<String, Again>,
}

impl<'a> Measured<'a> {
    /// No measurements yet.
    pub fn new(
        commands: &'a [CommandData],
        folder: &'a Folder,
        ensembles: &'a Ensembles,
        settings: Settings,
    ) -> Self {
        let (wanted, left) = (BTreeMap::new(), BTreeMap::new());
        let (rows, again) = (BTreeMap::new(), BTreeMap::new());
        Measured { commands, folder, ensembles, settings, wanted, left, rows, again }
    }

    fn command(&self, binding: &Binding) -> Option<&'a CommandData> {
        self.commands.iter().find(|command| command.name == binding.command)
    }

    /// A quick run takes what is on record whole.
    fn settings_of(&self, command: &CommandData) -> Settings {
        let quick =
            self.settings.quick && !command.is_on_record(self.ensembles, self.settings.seed);
        Settings { quick, ..self.settings }
    }

    fn replicates(&self, command: &CommandData) -> Vec<Vec<Run>> {
        command.replicates(self.settings_of(command))
    }

    /// Adds the runs of a series.
    pub fn want(&mut self, binding: &Binding) {
        let Some(command) = self.command(binding) else { return };
        let runs = self.replicates(command).concat();
        let is_left = self.settings.quick && !self.settings.is_every_member;
        if let Some(why) = command.quick.skipped.as_ref().filter(|_| is_left) {
            self.left.extend(runs.iter().map(|run| (run.key(), why.clone())));
        }
        self.wanted.extend(runs.into_iter().map(|run| (run.key(), run)));
    }

    /// Runs everything that is needed and not cached, one at a time, as each run uses all cores.
    ///
    /// # Errors
    /// If a run fails for a reason other than something missing here, or the cache cannot be
    /// written.
    pub fn run(&mut self, cache: &Cache) -> Result<(), Error> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let directory = self.folder.unpacked()?;
        let rows = |run: &Run| run.cached(cache, self.folder, directory.path());
        // Of ensembles on record one guest each runs: as many at a time as there are cores.
        let recorded = |key: &String| self.ensembles.get(key).filter(|_| self.settings.quick);
        let is_again = |key: &String| recorded(key).is_some() && !self.left.contains_key(key);
        let firsts: Vec<(&String, Run)> = self
            .wanted
            .iter()
            .filter(|(key, _)| is_again(key))
            .filter_map(|(key, run)| Some((key, run.first_member()?)))
            .collect();
        let firsts = firsts.par_iter().with_max_len(1).map(|(key, run)| Ok((*key, rows(run)?)));
        let mut firsts: BTreeMap<&String, Result<Vec<Row>, String>> =
            firsts.collect::<Result<_, Error>>()?;
        for (key, run) in &self.wanted {
            let rows = match (recorded(key), self.left.get(key)) {
                (Some(recorded), Some(why)) => {
                    self.again.insert(key.clone(), Again::Left(why.clone()));
                    Ok(recorded.clone())
                }
                (Some(recorded), None) => {
                    firsts.remove(key).unwrap_or(Ok(Vec::new())).and_then(|rows| {
                        let again = compare(recorded, &rows);
                        let rows = again.judged_by(recorded);
                        self.again.insert(key.clone(), again);
                        rows
                    })
                }
                (None, _) => rows(run)?,
            };
            self.rows.insert(key.clone(), rows);
        }
        Ok(())
    }

    /// Takes all runs that are wanted from the record; whether all are there.
    #[cfg(test)]
    pub(crate) fn take_from_record(&mut self) -> bool {
        let of = |key: &String| Some((key.clone(), Ok(self.ensembles.get(key)?.clone())));
        let rows: Option<BTreeMap<_, _>> = self.wanted.keys().map(of).collect();
        rows.map(|rows| self.rows.extend(rows)).is_some()
    }

    /// What became of each ensemble on record, with its command line.
    pub fn again(&self) -> impl Iterator<Item = (&str, &Again)> {
        self.again.iter().map(|(run, again)| (run.as_str(), again))
    }

    /// The rows for `ensembles.csv` about these series: those of ensembles in guests.
    pub fn folded(&self, binding: &Binding) -> Vec<Row> {
        let runs = self.command(binding).map(|command| self.replicates(command).concat());
        let of_run = |run: Run| {
            let rows = self.rows.get(&run.key()).and_then(|rows| rows.as_ref().ok());
            let rows = rows.filter(|_| run.first_member().is_some());
            let own = |row: &&Row| {
                row.metric == binding.metric && member(row).is_none() && binding.is_about(row)
            };
            let fold = |rows: &Vec<Row>| {
                let whole = rows.iter().filter(own);
                whole.map(|row| folded(&run, row, rows)).collect::<Vec<Row>>()
            };
            rows.map(fold).unwrap_or_default()
        };
        runs.into_iter().flatten().flat_map(of_run).collect()
    }

    /// A series for each replicate.
    pub fn curves(&self, binding: &Binding) -> Curves {
        let command = self
            .command(binding)
            .ok_or_else(|| format!("there is no command {}", binding.command))?;
        if let Some(why) = command.skipped(self.settings_of(command)) {
            return Err(format!("only --full measures it: {why}"));
        }
        let rows = |run: &Run| -> Result<&Vec<Row>, String> {
            let rows = self.rows.get(&run.key()).ok_or("was not run")?;
            rows.as_ref().map_err(String::clone)
        };
        let series = |runs: &[Run], member: Option<f64>| -> Result<Series, String> {
            let mut series = Series::new();
            for run in runs {
                series.extend(binding.points(run, rows(run)?, member)?);
            }
            series.sort_by(|a, b| a.0.total_cmp(&b.0));
            Ok(series)
        };
        let replicates = self.replicates(command);
        // The members of ensembles are replicates, paired by their numbers.
        let members = match &replicates[..] {
            [runs] => {
                let of = |run: &Run| rows(run).map(|rows| binding.members(rows));
                let all = runs.iter().map(of).collect::<Result<Vec<Vec<f64>>, String>>()?;
                let same = all.windows(2).all(|pair| pair[0] == pair[1]);
                all.into_iter().next().filter(|_| same).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        match members.len() {
            0 | 1 => replicates.iter().map(|runs| series(runs, None)).collect(),
            _ => members.iter().map(|&member| series(&replicates[0], Some(member))).collect(),
        }
    }

    /// The numbers behind these series, for each command's rows: of whole ensembles, and of their
    /// first members, with which a shorter run can be compared.
    pub fn rows_of(&self, binding: &Binding) -> Vec<Row> {
        /// As many as have a mean with an interval.
        const FIRST: f64 = 2.0;
        let runs = self.command(binding).map(|command| self.replicates(command).concat());
        let rows = runs.into_iter().flatten().filter_map(|run| self.rows.get(&run.key()));
        let own = |row: &&Row| {
            row.metric == binding.metric
                && binding.is_about(row)
                && member(row).is_none_or(|member| member <= FIRST)
        };
        rows.flatten().flatten().filter(own).cloned().collect()
    }

    /// The coordinates of a row about these series.
    pub fn row(&self, bindings: &[&Binding]) -> Row {
        let first = |binding: &&Binding| {
            let run = self.replicates(self.command(binding)?).into_iter().flatten().next()?;
            self.rows
                .get(&run.key())?
                .as_ref()
                .ok()?
                .iter()
                .find(|row| binding.is_about(row))
                .cloned()
        };
        let rows: Vec<Row> = bindings.iter().filter_map(first).collect();
        let all = |of: fn(&Row) -> &str| {
            let mut all: Vec<&str> = rows.iter().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all.join(" | ")
        };
        Row {
            workload: all(|row| &row.workload),
            candidate: all(|row| &row.candidate),
            cpus: rows.first().map_or(0, |row| row.cpus),
            seed: Some(self.settings.seed),
            ..Row::new(World::all(rows.iter().map(|row| row.world.clone())), Metric::check)
        }
    }
}
