//! A sweep: runs of stochastic workloads over a grid of parameters, policies and seeds. Each run is
//! computed once and kept.
//!
//! [`Sweep::read`] turns a grid file into [`Cell`]s; a cell is one run. [`Sweep::compute`] computes
//! the cells that a [`Store`] lacks, on all cores. [`Sweep::collect`] returns the rows of all runs
//! in the order of the cells. So a sweep that was interrupted and resumed, done in shards, or done
//! on a cluster gives the same table. [`Sweep::summary`] summarises the rows over the seeds. A
//! failed cell is reported with its parameters and does not stop the others.
//!
//! ```
//! use laboratory::sweep::{Shard, Store, Sweep};
//! use indicatif::ProgressBar;
//! use results::Metric;
//!
//! let grid = "workload = 'unix1990'\npolicies = ['initial:rr', 'take:rr']\n\
//!             baseline = 'initial:rr'\nseeds = 3\n\
//!             [parameters]\ntasks = 50\n[axes]\nload = [0.3, 0.5]\n";
//! let sweep = Sweep::parse("grid.toml", grid)?;
//! assert_eq!(sweep.cells.len(), 2 * 2 * 3);
//! let scratch = tempfile::tempdir()?;
//! let store = Store::open(scratch.path())?;
//! sweep.compute(&store, None, Shard::ALL, &ProgressBar::hidden())?;
//! let runs = sweep.collect(&store);
//! assert_eq!(runs.failed.len() + runs.missing.len(), 0);
//! let table = sweep.summary(&runs.rows);
//! let is_of = |row: &results::Row, load: f64| {
//!     row.metric == Metric::ngrr
//!         && row.candidate == "take:rr"
//!         && row.coordinate("load").unwrap().number() == Some(load)
//! };
//! let ngrr = |load: f64| table.iter().find(|row| is_of(row, load));
//! assert_eq!(ngrr(0.5).map(|row| (row.runs, row.value.is_some())), Some((3, true)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod directory;
mod grid;
mod shard;
mod store;

pub use directory::grid_of;
pub use grid::Grid;
pub use shard::Shard;
pub use store::{Key, Store};

use crate::{Against, Experiment, Settings, Summed, settle, sum_up};
use formats::toml_file::TomlFile;
use formats::workload::Stochastic;
use indicatif::ProgressBar;
use program::{Error, progress};
use rayon::prelude::*;
use results::{Row, counted};
use schedsim::policy::PolicySpec;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use worlds::simulator::Simulator;
use worlds::{Candidate, Observed, Program};

/// All cells of a grid file.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The grids of the file, in order.
    pub grids: Vec<Grid>,
    /// Their cells, grid by grid; in each grid by parameters, policy and seed.
    pub cells: Vec<Cell>,
    /// The grid file with the content of all files that it names: [`parse`](Sweep::parse) gives the
    /// same cells anywhere.
    pub complete: String,
}

/// The stored results of a sweep.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Runs {
    /// The rows of all finished cells, in the order of the cells.
    pub rows: Vec<Row>,
    /// The failed cells by index, with the reason.
    pub failed: Vec<(usize, String)>,
    /// The cells that have not been tried.
    pub missing: Vec<usize>,
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name of its grid; the point of its rows has it as `grid`.
    pub grid: Arc<str>,
    /// The workload with the parameters of this cell.
    pub workload: Arc<Stochastic>,
    /// The policy.
    pub policy: Arc<PolicySpec>,
    /// The seed.
    pub seed: u64,
}

impl Sweep {
    /// Reads the sweep of the grid file at `path`. Workload files are searched beside it.
    ///
    /// # Errors
    /// If the file is not a grid file, or a grid has no cells: the message points at the line and
    /// the key.
    pub fn read(path: &Path) -> Result<Sweep, Error> {
        grid::read(
            &TomlFile::read(path)?,
            path.parent().unwrap_or(Path::new("")),
            path.file_stem().unwrap_or_default(),
        )
    }

    /// Parses `text`; `name` is its name in messages. Workload files are searched in the current
    /// directory.
    pub fn parse(name: &str, text: &str) -> Result<Sweep, Error> {
        let path = Path::new(name);
        grid::read(&TomlFile::of(name, text), Path::new(""), path.file_stem().unwrap_or_default())
    }

    /// Computes the cells of `shard` that `store` lacks, with `jobs` threads (by default one for
    /// each core), and stores each result at once. Returns the number of failures.
    ///
    /// # Errors
    /// If a result cannot be stored. Results stored before are kept.
    pub fn compute(
        &self,
        store: &Store,
        jobs: Option<usize>,
        shard: Shard,
        progress: &ProgressBar,
    ) -> Result<usize, Error> {
        let cells: Vec<&Cell> = self
            .cells
            .iter()
            .enumerate()
            .filter(|(index, _)| shard.has(*index))
            .map(|(_, cell)| cell)
            .collect();
        progress.set_length(cells.len() as u64);
        let work = || {
            let outcomes = cells.par_iter().map(|cell| {
                let failed = cell.finish(store)?;
                progress::step(progress)?;
                Ok(usize::from(failed))
            });
            outcomes.try_reduce(|| 0, |a, b| Ok(a + b))
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
        pool.map_err(|error| Error::Internal(format!("cannot start threads: {error}")))?
            .install(work)
    }

    /// The stored results of the cells.
    pub fn collect(&self, store: &Store) -> Runs {
        let outcomes: Vec<(Option<Vec<Row>>, Option<String>)> =
            self.cells.par_iter().map(|cell| cell.stored(store)).collect();
        let mut runs = Runs::default();
        for (index, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                (Some(rows), _) => runs.rows.extend(rows),
                (None, Some(why)) => runs.failed.push((index, why)),
                (None, None) => runs.missing.push(index),
            }
        }
        runs
    }

    /// Summarises `runs`, the rows of all cells, over the seeds: means with 95 % intervals, and
    /// verdicts and NGRR for each grid with a baseline.
    pub fn summary(&self, runs: &[Row]) -> Vec<Row> {
        let of_grid = |grid: &Grid| {
            let rows = runs.iter().filter(|row| row.text("grid") == &*grid.name);
            let rows: Vec<(u64, Row)> =
                rows.map(|row| (row.seed.unwrap_or(0), row.clone())).collect();
            sum_up(&rows, grid.baseline.as_deref(), &[])
        };
        let mut summed: Vec<Summed> = self.grids.iter().map(of_grid).collect();
        settle(summed.iter_mut().map(|grid| (&mut grid.rows[..], &grid.compared[..])));
        summed.into_iter().flat_map(|grid| grid.rows).collect()
    }
}

impl Cell {
    /// The key of its result: equal for equal workloads, policies and seeds with the same program.
    pub fn key(&self) -> Key {
        Key::of(&[
            &format!("{:?}", self.workload),
            &self.policy.to_string(),
            &self.seed.to_string(),
        ])
    }

    /// Computes the cell unless `store` has it, and stores the result; returns whether it failed.
    fn finish(&self, store: &Store) -> Result<bool, Error> {
        let key = self.key();
        if store.get(&key).is_some() {
            return Ok(false);
        }
        let outcome = self.compute();
        match &outcome {
            Ok(rows) => store.put(&key, rows)?,
            Err(why) => store.put_failure(&key, why)?,
        }
        Ok(outcome.is_err())
    }

    /// The rows of its run, or the reason of a failure.
    pub fn compute(&self) -> Result<Vec<Row>, String> {
        let run = || self.rows().map_err(|error| error.to_string());
        catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err("the simulation panicked".to_string()))
    }

    /// The rows of its run.
    ///
    /// # Errors
    /// If the policy breaks its contract.
    pub fn rows(&self) -> Result<Vec<Row>, Error> {
        let experiment = Experiment {
            programs: vec![Program::Open(self.workload.clone())],
            worlds: vec![Box::new(Simulator::new())],
            candidates: vec![Candidate::Policy((*self.policy).clone())],
            against: Against::Nothing,
            cpus: Vec::new(),
            settings: Settings::once(self.seed),
        };
        experiment.once(Observed::Measured, None).map(|once| once.rows)
    }

    /// The stored result: its rows, or the reason of a failure.
    fn stored(&self, store: &Store) -> (Option<Vec<Row>>, Option<String>) {
        let key = self.key();
        let mut rows = store.get(&key);
        rows.iter_mut().flatten().for_each(|row| row.point.set("grid", &*self.grid));
        let why = if rows.is_none() { store.failure(&key) } else { None };
        (rows, why)
    }
}

/// One line that identifies the cell.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<String> =
            self.workload.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let (name, cpus) = (&self.workload.name, self.workload.machine.cpus);
        write!(
            f,
            "{}: {name} {} on {}, {}, seed {}",
            self.grid,
            parameters.join(" "),
            counted(cpus.into(), "CPU"),
            self.policy,
            self.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_cell_is_reported_and_does_not_stop_the_others() {
        let grid = "workload = 'unix1990'\npolicies = ['take:rr']\nseeds = 4\n[parameters]\ntasks \
                    = 20\nload = 0.3\n";
        let mut sweep = Sweep::parse("grid.toml", grid).unwrap();
        let whole = sweep.clone();
        Arc::make_mut(&mut sweep.cells[2].workload).machine.cpus = 0;
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path()).unwrap();
        assert_eq!(sweep.compute(&store, Some(1), Shard::ALL, &ProgressBar::hidden()).unwrap(), 1);
        let runs = sweep.collect(&store);
        assert_eq!(
            (runs.failed.len(), runs.failed[0].0, runs.failed[0].1.is_empty()),
            (1, 2, false)
        );
        assert!(runs.missing.is_empty() && runs.rows.iter().all(|row| row.seed != Some(3)));
        assert_eq!(
            sweep.cells[2].to_string(),
            "grid: unix1990 load=0.3 tasks=20 on 0 CPUs, take:rr, seed 3"
        );
        assert_eq!(whole.collect(&store).missing, [2]);
        assert_eq!(whole.compute(&store, Some(1), Shard::ALL, &ProgressBar::hidden()).unwrap(), 0);
        assert_eq!(whole.collect(&store).failed, []);
    }
}
