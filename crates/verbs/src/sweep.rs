//! `schedlab sweep`: a grid of parameters, policies and seeds, computed once and kept: here, in
//! shards, or on a cluster.

use crate::output::Format;
use clap::Args;
use laboratory::results_directory::ResultsDirectory;
use laboratory::sweep::{Runs, Shard, Store, Sweep as Cells, grid_of};
use program::{Error, print, progress, write_whole};
use results::{
    Align, Answer, InputKind, Metric, Point, Results, Row, Table, open_cell, open_headline,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use worlds::vm::pins;

/// Runs a stochastic workload over a grid of parameters, policies and seeds, on all cores
///
/// Each finished run is stored at once, in its own Parquet file. Use --resume to continue a sweep
/// that was killed: it computes the missing runs and gives the same table as a sweep without a
/// break.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  schedlab sweep workloads/loads.grid.toml --jobs 2 -o \
                        results/loads\n  schedlab sweep workloads/loads.grid.toml --resume -o \
                        results/loads\n  schedlab sweep workloads/loads.grid.toml --shard 3/100 \
                        -o /shared/loads\n  schedlab sweep --merge /shared/loads\n  schedlab \
                        sweep workloads/loads.grid.toml --dask tcp://head:8786 -o \
                        results/loads\n\nA grid file: workload = \"unix1990\", policies = \
                        [\"central:rr\", \"take:rr\"], baseline = \"initial:rr\", seeds = 20, a \
                        table [axes] with lists as in load = [0.3, 0.5], a table [parameters] \
                        with single values, and several [[grid]] with a name each where one is \
                        not enough.")]
pub struct Sweep {
    /// The grid file
    #[arg(required_unless_present = "merge")]
    grid: Option<PathBuf>,
    /// Number of parallel runs [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Continue an earlier sweep in the directory
    #[arg(long)]
    resume: bool,
    /// Compute only one part of the cells, as in 3/100, for --merge to join: for job arrays with
    /// independent jobs
    #[arg(long, value_name = "PART/PARTS", conflicts_with_all = ["merge", "dask"])]
    shard: Option<Shard>,
    /// Join the shards in this directory
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["grid", "jobs", "resume", "output", "dask"])]
    merge: Option<PathBuf>,
    /// Compute on the workers of the Dask scheduler at this address, through the Python package
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    dask: Option<String>,
    /// The directory for runs and results [default: the name of the grid file, with .sweep]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Output format of the table
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Sweep {
    /// Runs the sweep and prints the result.
    pub fn run(self) -> Result<(), Error> {
        match self.shard {
            Some(shard) => print(&self.part(shard)?),
            None => self.format.answer(self.answer()?),
        }
    }

    /// The result.
    pub fn answer(&self) -> Result<Answer, Error> {
        results::expect_parquet()?;
        let (sweep, dir) = match (&self.merge, &self.grid) {
            (Some(dir), _) => (Cells::begun(dir)?, dir.clone()),
            (None, Some(grid)) => (Cells::read(grid)?, self.directory(grid)),
            (None, None) => {
                return Err(Error::Usage(
                    "give a grid file, or a directory to --merge".to_string(),
                ));
            }
        };
        let finished = Store::of(&dir).len();
        if finished > 0 && !self.resume && self.merge.is_none() {
            let dir = dir.display();
            return Err(Error::Usage(format!(
                "{dir} has {finished} finished runs: continue with --resume, or give another \
                 directory with -o"
            )));
        }
        let directory = ResultsDirectory::begin(&dir)?;
        let store = sweep.begin(&dir)?;
        if let Some(address) = &self.dask {
            sweep_on_dask(&dir, address)?;
        } else if self.merge.is_none() {
            let bar = progress::bar("sweeping", 0);
            let done = sweep.compute(&store, self.jobs.map(usize::from), Shard::ALL, &bar);
            bar.finish_and_clear();
            done?;
        }
        let runs = sweep.collect(&store);
        complete(&sweep, &runs, &dir)?;
        let end = verdict(&sweep, &runs);
        let runs = self.results(runs.rows);
        write_whole(&dir.join("runs.parquet"), &runs.to_parquet()?)?;
        let results = self.results(sweep.summary(&runs.rows));
        directory.write(&results, Vec::new())?;
        let text = text(&sweep, &dir, &results.rows);
        let answer = Answer { end, ..Answer::new(results, text) };
        let grid = self.grid.clone().unwrap_or_else(|| grid_of(&dir));
        let named = pins::named_file(InputKind::Workload, &grid);
        let answer = crate::output::pinned(answer, named, Some(&dir))?;
        crate::output::finish(directory)?;
        Ok(answer)
    }

    /// Computes a shard; returns a sentence on the result.
    fn part(&self, shard: Shard) -> Result<String, Error> {
        let Some(grid) = &self.grid else {
            return Err(Error::Usage("a shard needs a grid file: give it".to_string()));
        };
        let (sweep, dir) = (Cells::read(grid)?, self.directory(grid));
        sweep.expect_no_other(&dir)?;
        let store = sweep.begin(&dir)?;
        let bar = progress::bar("sweeping", 0);
        let done = sweep.compute(&store, self.jobs.map(usize::from), shard, &bar);
        bar.finish_and_clear();
        let failed = done?;
        let (cells, dir) =
            ((0..sweep.cells.len()).filter(|cell| shard.has(*cell)).count(), dir.display());
        Ok(format!(
            "Shard {shard} in {dir}: {cells} of {} runs, of which {failed} failed; when all \
             shards are there: schedlab sweep --merge {dir}\n",
            sweep.cells.len()
        ))
    }

    fn directory(&self, grid: &Path) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            Path::new(grid.file_stem().unwrap_or_default()).with_extension("sweep")
        })
    }

    /// Results that do not depend on interruptions of the sweep.
    fn results(&self, rows: Vec<Row>) -> Results {
        let results = Results::new(rows);
        let command = results.command.replace(" --resume", "");
        let results = results.of_command(command);
        // The directory of shards has their grid.
        let whole = self.merge.as_deref().map(|dir| {
            program::command_line(["sweep".into(), grid_of(dir).into_os_string()].into_iter())
        });
        Results { reproduce: whole.or(results.reproduce), ..results }
    }
}

/// Refuses an incomplete table.
fn complete(sweep: &Cells, runs: &Runs, dir: &Path) -> Result<(), Error> {
    let Some(first) = runs.missing.first() else { return Ok(()) };
    let (count, all, dir) = (runs.missing.len(), sweep.cells.len(), dir.display());
    Err(Error::Input(format!(
        "{dir}: {count} of {all} runs are missing, the first is {} ({}); run the shards that \
         did not end again, or copy their cells here",
        first + 1,
        sweep.cells[*first]
    )))
}

/// An error that lists the failed cells, if there are any.
fn verdict(sweep: &Cells, runs: &Runs) -> Result<(), Error> {
    if runs.failed.is_empty() {
        return Ok(());
    }
    let told = |(cell, why): &(usize, String)| format!("  {}: {why}", sweep.cells[*cell]);
    let list: Vec<String> = runs.failed.iter().take(10).map(told).collect();
    let (count, all) = (runs.failed.len(), sweep.cells.len());
    Err(Error::Cells(format!(
        "{count} of {all} runs failed, the others have results:\n{}",
        list.join("\n")
    )))
}

/// Lets the Python package fill the store of `dir` on the cluster at `address`.
fn sweep_on_dask(dir: &Path, address: &str) -> Result<(), Error> {
    let missing = |why: &str| {
        Error::Missing(format!(
            "--dask takes the Python package, which python3 does not have ({why}): in schedlab's \
             folder, pip install '.[dask]'"
        ))
    };
    let python = Command::new("python3")
        .args(["-m", "schedlab.cluster"])
        .arg(dir)
        .args([address, program::build()])
        .stdout(Stdio::piped())
        .spawn();
    let output =
        python.and_then(Child::wait_with_output).map_err(|error| missing(&error.to_string()))?;
    let message = String::from_utf8_lossy(&output.stdout).trim().to_string();
    match output.status.code() {
        Some(0) => Ok(()),
        Some(77) => Err(Error::Missing(message)),
        _ if message.is_empty() => Err(missing("its message is above")),
        _ => Err(Error::Internal(format!(
            "the sweep on {address} ended ({}): {message}",
            output.status
        ))),
    }
}

/// A table for each grid: a line for each point and policy.
fn text(sweep: &Cells, dir: &Path, rows: &[Row]) -> String {
    let mut text = String::new();
    for grid in &sweep.grids {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.text("grid") == &*grid.name).collect();
        let against = grid
            .baseline
            .as_ref()
            .map_or(String::new(), |baseline| format!(", against {baseline}"));
        let _ = writeln!(text, "{}{against}:\n\n{}", grid.name, table(&rows));
    }
    let _ = writeln!(text, "{} runs, each in {}/runs.parquet", sweep.cells.len(), dir.display());
    text
}

fn table(rows: &[&Row]) -> String {
    let mut lines: Vec<(&Point, u16, &str)> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == Metric::saturated) {
        lines.push((&row.point, row.cpus, &row.candidate));
    }
    // A value that is equal in all lines needs no column.
    let varies =
        |name: &&str| lines.iter().any(|(point, ..)| point.get(name) != lines[0].0.get(name));
    let axes: Vec<&str> =
        lines.first().into_iter().flat_map(|(point, ..)| point.names()).filter(varies).collect();
    let titles = axes.iter().copied().chain(["CPUs"]).map(|title| (title, Align::Right));
    let metrics = open_headline().map(|(_, title)| (title, Align::Right));
    let mut table = Table::new(
        titles.chain([("policy", Align::Left)]).chain(metrics).chain([("", Align::Left)]),
    );
    for (point, cpus, policy) in lines {
        let of = |metric: &str| {
            rows.iter().find(|row| {
                row.metric.id() == metric
                    && row.candidate == policy
                    && row.cpus == cpus
                    && row.point == *point
                    && row.subject.is_none()
            })
        };
        let place = axes
            .iter()
            .map(|axis| point.get(axis).map_or(String::new(), |value| value.to_string()))
            .chain([cpus.to_string(), policy.to_string()]);
        let cells = open_headline()
            .map(|(metric, _)| of(metric).map_or(String::new(), |row| open_cell(row)));
        let note = of("grr").and_then(|row| row.note.clone()).unwrap_or_default();
        table.row(place.chain(cells).chain([note]));
    }
    table.to_string()
}
