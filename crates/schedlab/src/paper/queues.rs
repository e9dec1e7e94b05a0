//! The cost atlas as a source of numbers: from the columns of a paper to cells, and back to series.

use super::Paper;
use super::cache::Cache;
use super::check::Fault;
use super::expression::Known;
use super::figure::{Axis, Curve, Figure, FigureData, Order, Overhead, Point};
use super::series::{Series, at};
use super::table::{Column, Load, Rows, Source as ColumnSource, TableData, part};
use super::verdict::Curves;
use crate::atlas::callgrind::{Counted, Events};
use crate::atlas::measure::{Source, filled};
use crate::atlas::mix::{Mix, level_name};
use crate::atlas::rig::{Body, Cell};
use crate::atlas::structure::{self, Service};
use crate::atlas::{steps, timing};
use crate::output::{Metric, Row};
use crate::{Error, no_such, progress};
use serde::{Deserialize, de};
use std::collections::BTreeMap;
use toml::Value;

/// A series of a claim.
#[derive(Clone, Debug)]
pub enum Binding {
    /// `T07/Linked List`: a column, with its printed numbers.
    Column(String),
    /// A column, by another measure.
    Measured(MeasuredColumn),
    /// A load of its own.
    Load(MeasuredLoad),
}

/// A column, by another measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredColumn {
    /// Which.
    column: String,
    /// By what.
    measure: Measure,
}

/// A load of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredLoad {
    /// By what.
    #[serde(default)]
    measure: Measure,
    /// Numbers of tasks; x.
    tasks: Vec<u32>,
    /// The structure, levels, mix and rates.
    load: Load,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Instructions per operation, without the loop.
    #[default]
    Instructions,
    /// List elements, schedule entries or tree levels per operation.
    Examined,
    /// The longest wait of the most important level, in slices.
    FirstWait,
    /// Turns by level, of a single number of tasks; x is the level.
    Turns,
    /// The level of each slice from the first; x counts slices from 0.
    Order,
    /// First-level data cache misses per operation.
    D1Misses,
    /// Nanoseconds per operation.
    Time,
}

/// How to count.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By what instructions are counted.
    pub source: Source,
    /// How many assignments.
    pub assignments: u32,
    /// What they are drawn from.
    pub seed: u64,
    /// How many slices are counted where a structure has no short period.
    pub slices: u64,
}

/// All that was measured for a paper.
pub struct Measured<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// How.
    pub settings: &'a Settings,
    wanted: BTreeMap<String, Wanted>,
    curves: BTreeMap<String, Curves>,
}

#[derive(Clone)]
struct Wanted {
    measure: Measure,
    points: Vec<Place>,
}

#[derive(Clone)]
struct Place {
    x: f64,
    cells: Vec<Cell>,
}

impl<'a> Measured<'a> {
    /// Nothing yet.
    pub fn new(paper: &'a Paper, settings: &'a Settings) -> Self {
        Measured { paper, settings, wanted: BTreeMap::new(), curves: BTreeMap::new() }
    }

    /// A column by its id, such as `T07/Linked List`.
    pub fn want(&mut self, id: &str) -> Result<(), String> {
        let (table, column) = self.paper.column(id)?;
        self.want_column(table, column);
        Ok(())
    }

    /// A column of a table, with those that it is made of.
    pub fn want_column(&mut self, table: &'a TableData, column: &'a Column) {
        match &column.source {
            ColumnSource::Measured(_) => self.want_measure(table, column, Measure::Instructions),
            ColumnSource::Difference(parts) => parts.iter().for_each(|name| self.want_part(table, name)),
            ColumnSource::Delta(part) => self.want_part(table, part),
            ColumnSource::Slices(_) => {}
        }
    }

    fn want_part(&mut self, table: &'a TableData, name: &str) {
        if let Some(part) = table.column.iter().find(|column| column.name == name) {
            self.want_column(table, part);
        }
    }

    fn want_measure(&mut self, table: &TableData, column: &Column, measure: Measure) {
        let ColumnSource::Measured(load) = &column.source else { return };
        let rows = self.paper.printed.rows(&table.id, &column.name);
        let point = |(index, (row, _)): (usize, &(String, f64))| {
            let x = table.x(index, row);
            match table.rows {
                Rows::Tasks => self.point(x, load, x as u32, load.mix.clone(), None),
                Rows::Mix => self.point(x, load, table.tasks, table.mix(row).unwrap_or(Mix::Random), None),
                Rows::Length => self.point(x, load, table.tasks, load.mix.clone(), Some((x * table.slices_per_second()) as u64)),
            }
        };
        let points = rows.iter().enumerate().map(point).collect();
        self.wanted.insert(key(&format!("{}/{}", table.id, column.name), measure), Wanted { measure, points });
    }

    /// The series of a claim.
    pub fn want_binding(&mut self, binding: &Binding) -> Result<(), String> {
        match binding {
            Binding::Column(id) => return self.want(id),
            Binding::Measured(MeasuredColumn { column, measure }) => {
                let (table, column) = self.paper.column(column)?;
                self.want_measure(table, column, *measure);
            }
            Binding::Load(MeasuredLoad { measure, tasks, load }) => {
                let points = tasks.iter().map(|&tasks| self.point(f64::from(tasks), load, tasks, load.mix.clone(), None)).collect();
                self.wanted.insert(binding.key(), Wanted { measure: *measure, points });
            }
        }
        Ok(())
    }

    fn point(&self, x: f64, load: &Load, tasks: u32, mix: Mix, slices: Option<u64>) -> Place {
        let whole_periods = structure::find(&load.queue).is_some_and(|found| found.service == Service::HalvingRates);
        let levels = mix.levels(load.levels).unwrap_or(load.levels);
        let cell = |assignment| Cell {
            mix: mix.clone(),
            levels,
            strides: load.strides,
            seed: self.settings.seed,
            assignment,
            slices: slices.or(if whole_periods { None } else { Some(self.settings.slices) }),
            body: load.body(),
            ..Cell::new(&load.queue, tasks)
        };
        let assignments = if mix.is_random() { self.settings.assignments } else { 1 };
        Place { x, cells: (0..assignments).map(cell).collect() }
    }

    /// Counts everything that is wanted and not in the cache, each cell once.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn count(&mut self, cache: &Cache) -> Result<(), Error> {
        let empty = Cell::empty_loop();
        let by_source = |measure| matches!(measure, Measure::Instructions | Measure::D1Misses);
        let mut cells = vec![empty.clone()];
        for wanted in self.wanted.values().filter(|wanted| by_source(wanted.measure)) {
            cells.extend(wanted.points.iter().flat_map(|point| point.cells.iter().cloned()));
        }
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        cells.retain(|cell| {
            let (next, key) = (places.len(), format!("{cell:?}"));
            let new = !places.contains_key(&key);
            places.entry(key).or_insert(next);
            new
        });
        let counted = if cells.len() == 1 { Vec::new() } else { self.counted(&cells, cache)? };
        let events = |cell: &Cell, kinds: &[&str]| {
            let one = places.get(&format!("{cell:?}")).and_then(|&place| counted.get(place)).ok_or("was not counted")?;
            one.as_ref()
                .map_err(Clone::clone)?
                .per_slice(kinds)
                .ok_or_else(|| format!("{} are not counted without --cache", kinds.join(" and ")))
        };
        let empty = events(&empty, &["Ir"]);
        let progress = progress::bar("counting steps", self.wanted.len() as u64);
        let mut done = Vec::new();
        for (key, wanted) in &self.wanted {
            let value = |cell: &Cell| -> Result<Series, String> {
                let one = |value: f64| vec![(f64::NAN, value)];
                Ok(match wanted.measure {
                    // Of threads the whole slice counts.
                    Measure::Instructions if matches!(cell.body, Body::Thread { .. }) => one(events(cell, &["Ir"])?),
                    Measure::Instructions => one(events(cell, &["Ir"])? - empty.clone()?),
                    Measure::D1Misses => one(events(cell, &["D1mr", "D1mw"])?),
                    Measure::Examined => one(steps::count(cell)?.examined_per_op),
                    Measure::FirstWait => one(steps::count(cell)?.longest_wait.first().map_or(f64::NAN, |&(_, wait)| wait as f64)),
                    Measure::Time => one(self.time(cell, cache)?),
                    Measure::Turns => steps::count(cell)?.turns.iter().map(|&(level, turns)| (f64::from(level), turns as f64)).collect(),
                    Measure::Order => {
                        steps::count(cell)?.order.iter().enumerate().map(|(slice, &level)| (slice as f64, f64::from(level))).collect()
                    }
                })
            };
            done.push((key.clone(), curves(wanted, value)));
            progress.inc(1);
        }
        self.curves.extend(done);
        Ok(())
    }

    /// The events of each cell; a good many at a time, so that a killed run loses little.
    fn counted(&self, cells: &[Cell], cache: &Cache) -> Result<Vec<Counted>, Error> {
        let source = &self.settings.source;
        let of = |cell: &Cell| format!("{} {}", source.description(), serde_json::to_string(cell).unwrap_or_default());
        let mut counted: Vec<Option<Counted>> = cells.iter().map(|cell| cache.get::<Events>(&of(cell)).map(Ok)).collect();
        let missing: Vec<usize> = (0..cells.len()).filter(|&index| counted[index].is_none()).collect();
        let progress = progress::bar("counting instructions", missing.len() as u64);
        for some in missing.chunks(400) {
            let batch: Vec<Cell> = some.iter().map(|&index| cells[index].clone()).collect();
            match source.count_with(&batch, &progress) {
                Ok(all) => {
                    for (&index, one) in some.iter().zip(all) {
                        if let Ok(events) = &one {
                            cache.put(&of(&cells[index]), events)?;
                        }
                        counted[index] = Some(one);
                    }
                }
                // The counter is not available, for these cells or for any.
                Err(why) => return Ok(counted.into_iter().map(|one| one.unwrap_or_else(|| Err(why.clone()))).collect()),
            }
        }
        Ok(counted.into_iter().map(|one| one.unwrap_or_else(|| Err("was not counted".to_string()))).collect())
    }

    fn time(&self, cell: &Cell, cache: &Cache) -> Result<f64, String> {
        let of = format!("time {}", serde_json::to_string(cell).unwrap_or_default());
        let measure = || undisturbed_time(cell).map_err(Error::Internal);
        cache.get_or(&of, measure).map_err(|error| error.to_string())
    }

    /// The curves of a binding.
    pub fn binding(&self, binding: &Binding) -> Curves {
        match binding {
            Binding::Column(id) => self.column(id),
            other => self.curves.get(&other.key()).cloned().unwrap_or_else(|| Err("was not measured".to_string())),
        }
    }

    /// The curves of a column, made from others if need be.
    pub fn column(&self, id: &str) -> Curves {
        let (table, column) = self.paper.column(id)?;
        let of = |name: &str| self.column(&format!("{}/{name}", table.id));
        match &column.source {
            ColumnSource::Measured(_) => {
                self.curves.get(&key(id, Measure::Instructions)).cloned().unwrap_or_else(|| Err("was not measured".to_string()))
            }
            ColumnSource::Difference([a, b]) => {
                let (a, b) = (of(a)?, of(b)?);
                let pick = |curves: &[Series], index: usize| curves[index.min(curves.len() - 1)].clone();
                let subtract = |index| super::series::common(&pick(&a, index), &pick(&b, index)).map(|(x, a, b)| (x, a - b)).collect();
                Ok((0..a.len().max(b.len())).map(subtract).collect())
            }
            ColumnSource::Delta(part) => {
                Ok(of(part)?.into_iter().map(|curve| curve.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1)).collect()).collect())
            }
            ColumnSource::Slices(in_a_second) => {
                Ok(vec![self.paper.printed.series(table, &column.name).into_iter().map(|(x, _)| (x, x * in_a_second)).collect()])
            }
        }
    }

    /// A row for every number of a table: his in `expected`, ours as the value.
    pub fn table_rows(&self, table: &TableData) -> Vec<Row> {
        let mut rows = Vec::new();
        for column in &table.column {
            let curves = self.column(&format!("{}/{}", table.id, column.name));
            for (index, (label, expected)) in self.paper.printed.rows(&table.id, &column.name).iter().enumerate() {
                let x = table.x(index, label);
                let values = curves.clone().map(|curves| curves.iter().filter_map(|curve| super::series::at(curve, x)).collect());
                let mut row = self.row(&table.claim_id(), column.queue(), Metric::instructions_per_op);
                let tasks = if table.rows == Rows::Tasks { x as u32 } else { table.tasks };
                row.workload = format!("yield:{tasks}");
                row = row.at("column", &column.name).at("row", label).at("expected", expected.to_string());
                if let ColumnSource::Slices(_) = column.source {
                    (row.metric, row.note) = (Metric::slices, Some("given, not measured".to_string()));
                }
                if let ColumnSource::Measured(load) = &column.source {
                    row = row.at("levels", load.levels).at("mix", load.mix.to_string()).at("strides", load.strides.name());
                }
                rows.push(filled(row, &values));
            }
        }
        rows
    }

    /// A figure of these columns, or of these orders of levels: one task at each.
    ///
    /// # Errors
    /// If a structure cannot be watched.
    pub fn figure(&self, figure: &FigureData) -> Result<Figure, Error> {
        let x = figure.series.first().and_then(|id| self.paper.column(id).ok()).map_or("", |(table, _)| table.rows.label());
        let mut curves =
            figure.series.iter().map(|id| self.curve(figure, id)).collect::<Result<Vec<Curve>, String>>().map_err(Error::Internal)?;
        curves.extend(figure.overhead.as_ref().map(|overhead| self.overhead(overhead)));
        Ok(Figure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            x: Axis { label: x.to_string(), ..figure.x.clone() },
            y: Axis { label: "instructions per operation".to_string(), ..figure.y.clone() },
            curves,
            orders: figure.orders.iter().map(order).collect::<Result<_, Error>>()?,
            ..Figure::default()
        })
    }

    fn curve(&self, figure: &FigureData, id: &str) -> Result<Curve, String> {
        let (table, column) = self.paper.column(id)?;
        let curves = self.column(id).unwrap_or_default();
        let point = |(x, printed)| {
            let values: Vec<f64> = curves.iter().filter_map(|curve| at(curve, x)).collect();
            Point::new(x, &values, Some(printed))
        };
        let twice = figure.series.iter().filter(|id| id.ends_with(&format!("/{}", column.name))).count() > 1;
        let name = if twice { format!("{} ({})", column.name, table.id) } else { column.name.clone() };
        Ok(Curve { name, points: self.paper.printed.series(table, &column.name).into_iter().map(point).collect(), dashed: false })
    }

    fn overhead(&self, overhead: &Overhead) -> Curve {
        let [slices, queues] = overhead.bindings().map(|binding| self.binding(&binding).unwrap_or_default());
        let point = |&tasks: &u32| {
            let x = f64::from(tasks);
            let both = slices.iter().zip(&queues);
            Point::new(x, &both.filter_map(|(slice, queue)| Some(at(slice, x)? - at(queue, x)?)).collect::<Vec<f64>>(), None)
        };
        let name = "what a slice costs beside the queue".to_string();
        Curve { name, points: overhead.tasks.iter().map(point).collect(), dashed: true }
    }

    /// An empty row of the paper.
    pub fn row(&self, claim: &str, candidate: &str, metric: Metric) -> Row {
        Row {
            workload: "yield".to_string(),
            candidate: candidate.to_string(),
            cpus: 1,
            seed: Some(self.settings.seed),
            ..Row::new(self.settings.source.world(), metric)
        }
        .at("paper", &self.paper.name)
        .at("claim", claim)
    }
}

/// How many slices of an order are shown.
const SLICES: usize = 64;

/// The levels that a structure serves in the first slices.
fn order(load: &Load) -> Result<Order, Error> {
    let (mix, levels, strides) = (load.mix.clone(), load.levels, load.strides);
    let cell = Cell { mix, levels, strides, ..Cell::new(&load.queue, u32::from(levels)) };
    let counted = steps::count(&cell).map_err(Error::Internal)?;
    Ok(Order { queue: load.queue.clone(), levels: counted.order.iter().take(SLICES).map(|&level| level_name(level)).collect() })
}

impl Overhead {
    /// What has to be measured: the slice and the queue.
    pub fn bindings(&self) -> [Binding; 2] {
        let of = |load: &Load| MeasuredLoad { measure: Measure::default(), tasks: self.tasks.clone(), load: load.clone() };
        [&self.slice, &self.queue].map(|load| Binding::Load(of(load)))
    }
}

/// Nanoseconds per slice in the best of several runs: whatever else the machine does only adds to it.
fn undisturbed_time(cell: &Cell) -> Result<f64, String> {
    let hidden = indicatif::ProgressBar::hidden();
    let runs = (0..9).map(|_| timing::time(std::slice::from_ref(cell), &hidden).remove(0)).collect::<Result<Vec<f64>, String>>()?;
    Ok(runs.into_iter().fold(f64::INFINITY, f64::min))
}

/// One curve per assignment: the points of each.
fn curves(wanted: &Wanted, value: impl Fn(&Cell) -> Result<Series, String>) -> Curves {
    let assignments = wanted.points.iter().map(|point| point.cells.len()).max().unwrap_or(0);
    let mut values: Vec<Vec<Series>> = Vec::new();
    for point in &wanted.points {
        values.push(point.cells.iter().map(&value).collect::<Result<_, _>>()?);
    }
    let curve = |assignment: usize| {
        let points = wanted.points.iter().zip(&values).flat_map(|(point, values)| {
            let own = values[assignment.min(values.len() - 1)].iter();
            own.map(|&(x, y)| (if x.is_nan() { point.x } else { x }, y))
        });
        points.collect()
    };
    Ok((0..assignments).map(curve).collect())
}

fn key(id: &str, measure: Measure) -> String {
    format!("{id} by {measure:?}")
}

impl Measured<'_> {
    /// The structure that a binding measures.
    pub fn queue(&self, binding: &Binding) -> Option<String> {
        match binding {
            Binding::Column(column) | Binding::Measured(MeasuredColumn { column, .. }) => {
                Some(self.paper.column(column).ok()?.1.queue().to_string())
            }
            Binding::Load(MeasuredLoad { load, .. }) => Some(load.queue.clone()),
        }
    }

    /// The printed numbers of a binding.
    pub fn printed(&self, binding: &Binding) -> Option<Series> {
        let Binding::Column(id) = binding else { return None };
        let (table, column) = self.paper.column(id).ok()?;
        Some(self.paper.printed.series(table, &column.name))
    }
}

impl Binding {
    /// Reads what is no series of a grid and none of a command.
    ///
    /// # Errors
    /// If it is no series of the cost atlas either.
    pub fn read<E: de::Error>(value: Value) -> Result<Binding, E> {
        const FORMS: &str = "a series is { grid, policy, metric, x }, { command, metric }, a column as in \"T07/Linked List\", { column, measure } or \
                             { load, tasks }";
        match value {
            Value::String(column) => Ok(Binding::Column(column)),
            Value::Table(ref table) if table.contains_key("column") => part(value).map(Binding::Measured),
            Value::Table(ref table) if table.contains_key("load") => part(value).map(Binding::Load),
            Value::Table(table) => Err(E::custom(format!("{FORMS}; this has {}", table.keys().cloned().collect::<Vec<_>>().join(", ")))),
            _ => Err(E::custom(FORMS)),
        }
    }

    /// What is known of it before it is measured.
    ///
    /// # Errors
    /// If it speaks of what is not there: a key, and what is wrong.
    pub fn known(&self, paper: &Paper) -> Result<Known, Fault> {
        let along = |measure: &Measure, axis: Vec<f64>| (!matches!(measure, Measure::Turns | Measure::Order)).then_some(axis);
        match self {
            Binding::Column(id) => {
                let (table, column) = paper.column(id).map_err(|why| (String::new(), why))?;
                Ok(Known { axis: Some(paper.axis(table, column)), is_printed: true })
            }
            Binding::Measured(MeasuredColumn { column, measure }) => {
                let wrong = |why| (".column".to_string(), why);
                let (table, column) = paper.column(column).map_err(wrong)?;
                table.measured(&column.name).map_err(wrong)?;
                Ok(Known { axis: along(measure, paper.axis(table, column)), is_printed: false })
            }
            Binding::Load(MeasuredLoad { measure, tasks, load }) => {
                load.fault().map_or(Ok(()), |(key, why)| Err((format!(".load.{key}"), why)))?;
                Ok(Known { axis: along(measure, tasks.iter().map(|&tasks| f64::from(tasks)).collect()), is_printed: false })
            }
        }
    }

    fn key(&self) -> String {
        match self {
            Binding::Column(id) => key(id, Measure::Instructions),
            Binding::Measured(MeasuredColumn { column, measure }) => key(column, *measure),
            load => format!("{load:?}"),
        }
    }
}

impl Paper {
    /// The column of that id, such as `T07/Linked List`.
    pub fn column(&self, id: &str) -> Result<(&TableData, &Column), String> {
        let found = id.split_once('/').and_then(|(table, name)| {
            let table = self.table(table)?;
            Some((table, table.column.iter().find(|column| column.name == name)?))
        });
        found.ok_or_else(|| {
            let of = |table: &TableData| table.column.iter().map(|column| format!("{}/{}", table.id, column.name)).collect::<Vec<_>>();
            let names: Vec<String> = self.experiments.table.iter().flat_map(of).collect();
            no_such("column", id, &names, "The `[[table]]`s of experiments.toml have a `[[table.column]]` each.")
        })
    }

    /// Every x at which a column has a number.
    fn axis(&self, table: &TableData, column: &Column) -> Vec<f64> {
        let printed = |name: &str| self.printed.series(table, name).into_iter().map(|(x, _)| x).collect::<Vec<f64>>();
        match &column.source {
            ColumnSource::Measured(_) | ColumnSource::Slices(_) => printed(&column.name),
            ColumnSource::Difference([one, other]) => {
                let other = printed(other);
                printed(one).into_iter().filter(|x| other.contains(x)).collect()
            }
            ColumnSource::Delta(part) => printed(part).into_iter().skip(1).collect(),
        }
    }
}
