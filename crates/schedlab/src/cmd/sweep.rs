//! `schedlab sweep`: a grid of parameters, policies and seeds, computed once and kept.

use crate::Error;
use crate::output::write_whole;
use crate::output::{Align, Format, Results, Row, Table, open_cell, open_headline};
use crate::progress;
use crate::results_directory::{ResultsDirectory, to_parquet};
use crate::sweep::{Store, Sweep as Cells};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Runs a stochastic workload over a grid of parameters, policies and seeds, on all cores
///
/// Each finished run is kept at once, in a Parquet file of its own. A sweep that was killed goes on with --resume: it computes what is missing and comes to the same
/// table as one that was not killed.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  schedlab sweep workloads/loads.grid.toml --jobs 2 -o results/loads\n  \
                        schedlab sweep workloads/loads.grid.toml --resume -o results/loads\n\n\
                        A grid file: workload = \"unix1990\", policies = [\"central:rr\", \"take:rr\"], baseline = \"initial:rr\", seeds = 20, a table [axes] with lists \
                        as in load = [0.3, 0.5], a table [parameters] with single values, and several [[grid]] with a name each where one is not enough.")]
pub struct Sweep {
    /// The grid file
    grid: PathBuf,
    /// How many runs at a time [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Go on with what an earlier sweep has left in the directory
    #[arg(long)]
    resume: bool,
    /// Where runs and results are kept [default: the name of the grid file, with .sweep]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How the table is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Sweep {
    pub fn run(self) -> Result<(), Error> {
        let sweep = Cells::read(&self.grid)?;
        let dir = self.output.clone().unwrap_or_else(|| self.default_directory());
        let store = Store::open(&dir.join("cells"))?;
        let finished = store.len();
        if finished > 0 && !self.resume {
            let dir = dir.display();
            return Err(Error::Usage(format!(
                "{dir} has {finished} finished runs: go on with --resume, or give another directory with -o"
            )));
        }
        let directory = ResultsDirectory::begin(&dir)?;
        let bar = progress::bar("sweeping", 0);
        let runs = sweep.run(&store, self.jobs.map(usize::from), &bar);
        bar.finish_and_clear();
        let runs = self.results(runs?);
        write_whole(&dir.join("runs.parquet"), &to_parquet(&runs)?)?;
        let results = self.results(sweep.summary(&runs.rows));
        directory.write(&results, Vec::new())?;
        directory.finish()?;
        results.print(self.format, || text(&sweep, &dir, &results.rows))
    }

    fn default_directory(&self) -> PathBuf {
        Path::new(self.grid.file_stem().unwrap_or_default()).with_extension("sweep")
    }

    /// Results that are the same whether or not the sweep was interrupted.
    fn results(&self, rows: Vec<Row>) -> Results {
        let mut results = Results::new(rows);
        results.reproduce = results.reproduce.replace(" --resume", "");
        results
    }
}

/// A table per grid: a line for each place and policy.
fn text(sweep: &Cells, dir: &Path, rows: &[Row]) -> String {
    let mut text = String::new();
    for grid in &sweep.grids {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.params.get("grid").is_some_and(|name| **name == *grid.name)).collect();
        let against = grid.baseline.as_ref().map_or(String::new(), |baseline| format!(", against {baseline}"));
        let _ = writeln!(text, "{}{against}:\n\n{}", grid.name, table(&rows));
    }
    let _ = writeln!(text, "{} runs, each in {}/runs.parquet", sweep.cells.len(), dir.display());
    text
}

fn table(rows: &[&Row]) -> String {
    let mut lines: Vec<(&BTreeMap<String, String>, u16, &str)> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == "saturated") {
        lines.push((&row.params, row.cpus, &row.policy));
    }
    // What is the same in all lines needs no column.
    let varies = |key: &&String| lines.iter().any(|(params, ..)| params.get(*key) != lines[0].0.get(*key));
    let axes: Vec<&String> = lines.first().into_iter().flat_map(|(params, ..)| params.keys()).filter(varies).collect();
    let titles = axes.iter().map(|axis| axis.as_str()).chain(["CPUs"]).map(|title| (title, Align::Right));
    let metrics = open_headline().map(|(_, title)| (title, Align::Right));
    let mut table = Table::new(titles.chain([("policy", Align::Left)]).chain(metrics).chain([("", Align::Left)]));
    for (params, cpus, policy) in lines {
        let of = |metric: &str| {
            rows.iter().find(|row| row.metric == metric && row.policy == policy && row.cpus == cpus && row.params == *params)
        };
        let place = axes.iter().map(|axis| params[*axis].clone()).chain([cpus.to_string(), policy.to_string()]);
        let cells = open_headline().map(|(metric, _)| of(metric).map_or(String::new(), |row| open_cell(row)));
        let note = of("grr").and_then(|row| row.note.clone()).unwrap_or_default();
        table.row(place.chain(cells).chain([note]));
    }
    table.to_string()
}
