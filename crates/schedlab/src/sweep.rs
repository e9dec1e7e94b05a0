//! A sweep: many runs of stochastic workloads, over a grid of parameters, policies and seeds, each computed once and kept.
//!
//! [`Sweep::read`] turns a grid file into [`Cell`]s, a cell being one run. [`Sweep::run`] computes those that a [`Store`] does not have yet, on all cores, and gives the
//! rows of all runs in the order of the cells, so that a sweep that was killed and goes on comes to the same table as one that was not. [`Sweep::summary`] sums them up
//! over the seeds.
//!
//! ```
//! use schedlab::sweep::{Store, Sweep};
//! use indicatif::ProgressBar;
//!
//! let grid = "workload = 'unix1990'\npolicies = ['initial:rr', 'take:rr']\nbaseline = 'initial:rr'\nseeds = 3\n\
//!             [parameters]\ntasks = 50\n[axes]\nload = [0.3, 0.5]\n";
//! let sweep = Sweep::parse("grid.toml", grid)?;
//! assert_eq!(sweep.cells.len(), 2 * 2 * 3);
//! let scratch = tempfile::tempdir()?;
//! let runs = sweep.run(&Store::open(scratch.path())?, None, &ProgressBar::hidden())?;
//! let table = sweep.summary(&runs);
//! let ngrr = |load: &str| table.iter().find(|row| row.metric == "ngrr" && row.policy == "take:rr" && row.params["load"] == load);
//! assert_eq!(ngrr("0.5").map(|row| (row.runs, row.value.is_some())), Some((3, true)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod grid;
mod store;

pub use grid::Grid;
pub use schedlab_sources::BUILD;
pub use store::{Key, Store};

use crate::Error;
use crate::experiment::{aggregate, simulate_open};
use crate::output::Row;
use crate::toml_file::TomlFile;
use crate::workload::Stochastic;
use indicatif::ProgressBar;
use rayon::prelude::*;
use schedsim::policy::PolicySpec;
use std::path::Path;
use std::sync::Arc;

/// All cells of a grid file.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The grids in it, in their order.
    pub grids: Vec<Grid>,
    /// Their cells, grid by grid; in each by parameters, policy and seed.
    pub cells: Vec<Cell>,
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name of the grid that it is of; `params` of its rows have it as `grid`.
    pub grid: Arc<str>,
    /// The workload with the parameters of this place.
    pub workload: Arc<Stochastic>,
    /// The policy.
    pub policy: Arc<PolicySpec>,
    /// The seed.
    pub seed: u64,
}

impl Sweep {
    /// The sweep that the grid file at `path` describes. Workload files are looked for beside it.
    ///
    /// # Errors
    /// If it is no grid file, or a grid has no cells: the message points at the line and the key.
    pub fn read(path: &Path) -> Result<Sweep, Error> {
        grid::read(&TomlFile::read(path)?, path.parent().unwrap_or(Path::new("")), path.file_stem().unwrap_or_default())
    }

    /// The same for a `text` with a name for messages; workload files are looked for in the current directory.
    pub fn parse(name: &str, text: &str) -> Result<Sweep, Error> {
        let path = Path::new(name);
        grid::read(&TomlFile::of(name, text), Path::new(""), path.file_stem().unwrap_or_default())
    }

    /// The rows of all cells, in their order. What `store` does not have is computed by `jobs` threads (by default one per core) and put there at once.
    ///
    /// # Errors
    /// If a run fails or its rows cannot be stored. What was finished before stays in the store.
    pub fn run(&self, store: &Store, jobs: Option<usize>, progress: &ProgressBar) -> Result<Vec<Row>, Error> {
        progress.set_length(self.cells.len() as u64);
        let work = || {
            let rows = self.cells.par_iter().map(|cell| {
                let rows = cell.rows(store);
                progress.inc(1);
                rows
            });
            Ok(rows.collect::<Result<Vec<Vec<Row>>, Error>>()?.concat())
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
        pool.map_err(|error| Error::Internal(format!("cannot start threads: {error}")))?.install(work)
    }

    /// `runs`, the rows of all cells, summed up over the seeds: means with 95 % intervals, and verdicts and NGRR against the baseline of each grid that has one.
    pub fn summary(&self, runs: &[Row]) -> Vec<Row> {
        let of_grid = |grid: &Grid| {
            let rows: Vec<Row> =
                runs.iter().filter(|row| row.params.get("grid").is_some_and(|name| **name == *grid.name)).cloned().collect();
            aggregate(&rows, grid.baseline.as_deref())
        };
        self.grids.iter().flat_map(of_grid).collect()
    }
}

impl Cell {
    /// The address of what comes of it: equal for equal workloads, policies and seeds run by the same program.
    pub fn key(&self) -> Key {
        Key::of(&[&format!("{:?}", self.workload), &self.policy.to_string(), &self.seed.to_string()])
    }

    /// The rows of its run, from the store or computed and put there.
    ///
    /// # Errors
    /// If the run fails, or its rows cannot be stored.
    pub fn rows(&self, store: &Store) -> Result<Vec<Row>, Error> {
        let key = self.key();
        let mut rows = match store.get(&key) {
            Some(rows) => rows,
            None => {
                let rows =
                    simulate_open(&self.workload, &self.policy, self.seed, Vec::new())?.rows(&self.workload, &self.policy, self.seed);
                store.put(&key, &rows)?;
                rows
            }
        };
        rows.iter_mut().for_each(|row| drop(row.params.insert("grid".to_string(), self.grid.to_string())));
        Ok(rows)
    }
}
