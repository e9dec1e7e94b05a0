//! Grids of simulations as a source of numbers: stochastic workloads under policies, over axes of
//! parameters and seeds.
//!
//! `grids.toml` is a file of [`sweep`](laboratory::sweep). Each grid is run in each *regime* of the
//! paper, which sets the length of a run and the number of seeds. For each seed all policies get
//! the same tasks, so that claims about ratios have narrow intervals.

use super::cache::Cache;
use super::evidence::Curves;
use super::fault::{Fault, MOST_SEEDS, none_of};
use super::series::Series;
use formats::toml_file::TomlFile;
use formats::workload::Parameters;
use laboratory::sweep::{Cell, Sweep};
use program::{Error, progress};
use rayon::prelude::*;
use results::{Metric, Row, World};
use schedsim::Nanos;
use schedsim::metrics::OPEN_CATALOGUE;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;
use worlds::experiment::subjects;

/// The length and the number of runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    /// The name in claims.
    pub name: String,
    /// The description.
    pub says: String,
    full: Extent,
    quick: Extent,
}

/// Parameters of the workload, and the number of seeds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extent {
    seeds: u64,
    parameters: toml::Table,
}

/// A metric of a policy along an axis of a grid.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The grid.
    pub grid: String,
    /// The policy.
    pub policy: String,
    /// The metric, by id.
    pub metric: String,
    /// The axis that is x.
    pub x: String,
    /// Values of other axes, and the priority or class of the metric.
    #[serde(default)]
    pub at: BTreeMap<String, Value>,
}

/// The simulations of a paper.
#[derive(Clone, Debug, Default)]
pub struct Grids {
    regimes: Vec<Regime>,
    text: String,
    /// Cells that are simulated once, with the length in the workload.
    cells: Vec<Cell>,
}

/// How to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Shorter runs, and fewer.
    pub quick: bool,
    /// The first seed.
    pub seed: u64,
}

/// Metrics of a run by id; for a part of the tasks as in `grr priority=130`.
type Values = BTreeMap<String, Option<f64>>;

/// All simulations of a paper.
pub struct Measured<'a> {
    grids: &'a Grids,
    settings: Settings,
    /// The cells in each regime.
    sweeps: BTreeMap<&'a str, Sweep>,
    wanted: BTreeMap<String, Cell>,
    values: BTreeMap<String, Values>,
}

/// Metrics besides those of the catalogue.
const MORE_METRICS: [&str; 2] = ["saturated", "warm_up"];

/// The parts of the tasks that a metric can be of.
const PARTS: [&str; 2] = ["priority", "class"];
/// The metrics of a part of the tasks.
const PART_METRICS: [&str; 2] = ["grr", "apr"];

impl Grids {
    /// Reads `file`, to be run in these regimes.
    ///
    /// # Errors
    /// A message with line and key.
    pub fn read(file: &TomlFile, text: &str, regimes: Vec<Regime>) -> Result<Grids, Error> {
        let cells = Sweep::parse(file.name(), text)?.cells;
        Ok(Grids { regimes, text: text.to_string(), cells })
    }

    /// The regimes.
    pub fn regimes(&self) -> &[Regime] {
        &self.regimes
    }

    /// Every x at which a series has a point, in order.
    ///
    /// # Errors
    /// If it names a grid, a policy, an axis or a metric that does not exist. If it leaves the
    /// value of an axis open. The error is a key, and a message.
    pub fn axis(&self, binding: &Binding) -> Result<Vec<f64>, Fault> {
        let wrong = |key: &str, message: String| Err((format!(".{key}"), message));
        let grid = format!("the grid {}", binding.grid);
        let distinct = |all: Vec<String>| {
            all.into_iter().collect::<BTreeSet<String>>().into_iter().collect::<Vec<String>>()
        };
        let names = distinct(self.cells.iter().map(|cell| cell.grid.to_string()).collect());
        let of_grid: Vec<&Cell> =
            self.cells.iter().filter(|cell| *cell.grid == *binding.grid).collect();
        if of_grid.is_empty() {
            return wrong("grid", none_of("grid", &binding.grid, &names, "grids.toml"));
        }
        let policies = distinct(of_grid.iter().map(|cell| cell.policy.to_string()).collect());
        if !policies.contains(&binding.policy) {
            return wrong("policy", none_of("policy", &binding.policy, &policies, &grid));
        }
        let metrics: Vec<String> = OPEN_CATALOGUE
            .iter()
            .map(|metric| metric.id)
            .chain(MORE_METRICS)
            .map(str::to_string)
            .collect();
        if !metrics.contains(&binding.metric) {
            return wrong(
                "metric",
                none_of("metric", &binding.metric, &metrics, "a stochastic workload"),
            );
        }
        let axes = distinct(
            of_grid[0].workload.parameters.keys().cloned().chain(["cpus".to_string()]).collect(),
        );
        if !axes.contains(&binding.x) {
            return wrong("x", none_of("axis", &binding.x, &axes, &grid));
        }
        if let Some(key) =
            binding.at.keys().find(|key| !axes.contains(key) && !PARTS.contains(&key.as_str()))
        {
            let axes: Vec<String> = axes.into_iter().chain(PARTS.map(str::to_string)).collect();
            return wrong(&format!("at.{key}"), none_of("axis", key, &axes, &grid));
        }
        for (key, value) in &binding.at {
            let values = distinct(of_grid.iter().flat_map(|cell| values(cell, key)).collect());
            if !values.contains(&text(value)) {
                return wrong(
                    &format!("at.{key}"),
                    none_of(&format!("value of {key}"), &text(value), &values, &grid),
                );
            }
        }
        if let Some(part) = PARTS
            .into_iter()
            .find(|part| binding.at.contains_key(*part))
            .filter(|_| !PART_METRICS.contains(&&*binding.metric))
        {
            return wrong(
                "metric",
                format!(
                    "the metrics of one {part} are {}, not {}",
                    PART_METRICS.join(" and "),
                    binding.metric
                ),
            );
        }
        let places: Vec<String> = of_grid
            .iter()
            .filter(|cell| binding.is_at(cell))
            .map(|cell| parameter(cell, &binding.x))
            .collect();
        let apart = distinct(places.clone());
        match places.len() {
            0 => wrong("at", format!("{grid} has no cell with these values")),
            count if apart.len() < count => wrong(
                "x",
                format!(
                    "{grid} has several cells for a value of {}: give the values of its other \
                     axes in `at`",
                    binding.x
                ),
            ),
            _ => {
                let mut axis: Vec<f64> = apart
                    .iter()
                    .enumerate()
                    .map(|(index, place)| coordinate(place).unwrap_or(index as f64))
                    .collect();
                axis.sort_by(f64::total_cmp);
                Ok(axis)
            }
        }
    }
}

impl Regime {
    /// An unknown parameter in it: its key, and a message.
    pub fn fault(&self) -> Option<Fault> {
        if let Some((name, _)) = [("full", &self.full), ("quick", &self.quick)]
            .iter()
            .find(|(_, extent)| !(1..=MOST_SEEDS).contains(&extent.seeds))
        {
            return Some((format!("{name}.seeds"), format!("give 1 to {MOST_SEEDS} seeds")));
        }
        let fault = |(name, extent): (&str, &Extent)| {
            let wrong = extent
                .parameters
                .iter()
                .find_map(|(key, value)| Some((key.clone(), Parameters::check(key, value).err()?)));
            wrong.map(|(key, message)| (format!("{name}.parameters.{key}"), message))
        };
        [("full", &self.full), ("quick", &self.quick)].into_iter().find_map(fault)
    }
}

impl Binding {
    /// Whether a cell is one of its points.
    fn is_at(&self, cell: &Cell) -> bool {
        let fits = |(key, value): (&String, &Value)| {
            PARTS.contains(&key.as_str()) || parameter(cell, key) == text(value)
        };
        *cell.grid == *self.grid
            && cell.policy.to_string() == self.policy
            && self.at.iter().all(fits)
    }

    /// The name of the metric in runs.
    fn metric(&self) -> String {
        let part =
            PARTS.into_iter().find_map(|key| Some(format!(" {key}={}", text(self.at.get(key)?))));
        format!("{}{}", self.metric, part.unwrap_or_default())
    }
}

impl<'a> Measured<'a> {
    /// No simulations yet.
    ///
    /// # Errors
    /// If a regime has an unknown parameter.
    pub fn new(grids: &'a Grids, settings: Settings) -> Result<Self, Error> {
        let mut sweeps = BTreeMap::new();
        for regime in &grids.regimes {
            let extent = if settings.quick { &regime.quick } else { &regime.full };
            let seeds: Vec<u64> = (settings.seed..settings.seed + extent.seeds).collect();
            let head = format!(
                "seeds = {seeds:?}\nparameters = {}\n",
                Value::Table(extent.parameters.clone())
            );
            sweeps.insert(
                regime.name.as_str(),
                Sweep::parse(&format!("regime {}", regime.name), &(head + &grids.text))?,
            );
        }
        Ok(Measured { grids, settings, sweeps, wanted: BTreeMap::new(), values: BTreeMap::new() })
    }

    /// Adds the runs of a series.
    pub fn want(&mut self, binding: &Binding, regime: &str) {
        let cells: Vec<Cell> = self.cells(binding, regime).cloned().collect();
        self.wanted.extend(cells.into_iter().map(|cell| (cell.key().to_string(), cell)));
    }

    fn cells<'s>(&'s self, binding: &'s Binding, regime: &str) -> impl Iterator<Item = &'s Cell> {
        self.sweeps
            .get(regime)
            .into_iter()
            .flat_map(|sweep| &sweep.cells)
            .filter(|cell| binding.is_at(cell))
    }

    /// Simulates everything that is needed and not cached, on all cores.
    ///
    /// # Errors
    /// If a policy fails, or the cache cannot be written.
    pub fn simulate(&mut self, cache: &Cache) -> Result<(), Error> {
        let bar = progress::bar("simulating", self.wanted.len() as u64);
        let run = |(key, cell): (&String, &Cell)| {
            let values = cache.get_or(key, || run(cell))?;
            bar.inc(1);
            Ok((key.clone(), values))
        };
        self.values = self.wanted.par_iter().map(run).collect::<Result<_, Error>>()?;
        Ok(())
    }

    /// A series for each seed. A point with any saturated run has no number, because it has no
    /// steady state.
    pub fn curves(&self, binding: &Binding, regime: &str) -> Curves {
        let metric = binding.metric();
        let mut places: BTreeMap<String, Vec<&Values>> = BTreeMap::new();
        for cell in self.cells(binding, regime) {
            let values = self.values.get(&cell.key().to_string()).ok_or("was not simulated")?;
            places.entry(parameter(cell, &binding.x)).or_default().push(values);
        }
        let seeds = places
            .values()
            .map(Vec::len)
            .max()
            .ok_or_else(|| format!("nothing is simulated in regime {regime}"))?;
        let mut curves: Vec<Series> = vec![Series::new(); seeds];
        for (index, (place, runs)) in places.into_iter().enumerate() {
            let of = |run: &Values| run.get(&metric).copied().flatten();
            if runs.iter().any(|run| of(run).is_none() && run.get("saturated") == Some(&Some(1.0)))
            {
                continue;
            }
            let x = coordinate(&place).unwrap_or(index as f64);
            curves
                .iter_mut()
                .zip(&runs)
                .for_each(|(curve, run)| curve.extend(of(run).map(|y| (x, y))));
        }
        curves.iter_mut().for_each(|curve| curve.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Ok(curves)
    }

    /// The coordinates of a row about these series.
    pub fn row(&self, bindings: &[&Binding]) -> Row {
        let policies: BTreeSet<&str> =
            bindings.iter().map(|binding| binding.policy.as_str()).collect();
        let cell = bindings
            .iter()
            .find_map(|binding| self.grids.cells.iter().find(|cell| binding.is_at(cell)));
        Row {
            workload: cell.map_or(String::new(), |cell| cell.workload.name.clone()),
            candidate: policies.into_iter().collect::<Vec<&str>>().join(" | "),
            cpus: cell.map_or(0, |cell| cell.workload.machine.cpus),
            seed: Some(self.settings.seed),
            ..Row::new(World::Sim, Metric::check)
        }
    }
}

fn run(cell: &Cell) -> Result<Values, Error> {
    let rows = cell.rows()?;
    let value = |row: Row| {
        let part =
            PARTS.into_iter().find_map(|key| Some(format!(" {key}={}", row.coordinate(key)?)));
        (format!("{}{}", row.metric, part.unwrap_or_default()), row.value)
    };
    Ok(rows.into_iter().map(value).collect())
}

/// The values of a key of `at` in a cell: a parameter, or a part of the tasks.
fn values(cell: &Cell, key: &str) -> Vec<String> {
    match key {
        "priority" | "class" => subjects(&cell.workload.model)
            .into_iter()
            .filter(|(kind, _)| kind.word() == key)
            .map(|(_, subject)| subject)
            .collect(),
        _ => vec![parameter(cell, key)],
    }
}

/// A parameter of a cell, by its name in results.
fn parameter(cell: &Cell, key: &str) -> String {
    match key {
        "cpus" => cell.workload.machine.cpus.to_string(),
        _ => cell.workload.parameters.get(key).cloned().unwrap_or_default(),
    }
}

/// A value as text, as in parameters.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The position of a value on an axis: a number itself, a duration in milliseconds.
fn coordinate(value: &str) -> Option<f64> {
    value
        .parse()
        .ok()
        .or_else(|| value.parse::<Nanos>().ok().map(|duration| duration.0 as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use worlds::experiment::simulate_open;

    /// A paper gets the same numbers as a direct simulation, digit by digit.
    #[test]
    fn a_cell_has_the_numbers_of_its_simulation() {
        let grid = "workload = 'unix1990'\npolicies = ['take:rr', 'central:priority']\nseeds = \
                    2\n[parameters]\ntasks = 60\nload = 0.6\n";
        for cell in Sweep::parse("grid.toml", grid).expect("a grid").cells {
            let simulated =
                simulate_open(&cell.workload, &cell.policy, cell.seed, Vec::new()).expect("a run");
            let direct: Vec<Row> = simulated.rows(&cell.workload, &cell.policy, cell.seed);
            let bits = |rows: &[Row]| {
                rows.iter().map(|row| (row.metric, row.value.map(f64::to_bits))).collect::<Vec<_>>()
            };
            assert_eq!(bits(&cell.rows().expect("rows")), bits(&direct), "{cell}");
            assert!(run(&cell).expect("values").values().any(Option::is_some));
        }
    }
}
