//! The cost atlas as a source of numbers: from a paper's columns to cells, and back to series.

pub mod binding;

use binding::{Binding, Measure, MeasuredColumn, MeasuredLoad, key};

use super::Paper;
use super::cache::Cache;
use super::evidence::Curves;
use super::figure::{FigureData, Overhead, point};
use super::series::{Series, at};
use super::table::{Column, Load, Rows, Run, Source as ColumnSource, TableData};
use atlas::callgrind::{Counted, Events};
use atlas::measure::{Source, filled};
use atlas::mix::{Mix, level_name};
use atlas::rig::{Body, Cell};
use atlas::structure::Service;
use atlas::{steps, structure, timing};
use program::{Error, progress};
use results::figure::{Axis, Curve, Figure, Order};
use results::{Metric, Row};
use std::collections::BTreeMap;

/// How to count.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The counter of instructions.
    pub source: Source,
    /// The number of assignments.
    pub assignments: u32,
    /// The seed of the assignments.
    pub seed: u64,
    /// The number of slices to count in structures without a short period.
    pub slices: u64,
}

/// All measurements of a paper.
pub struct Measured<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// The settings.
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
    /// No measurements yet.
    pub fn new(paper: &'a Paper, settings: &'a Settings) -> Self {
        Measured { paper, settings, wanted: BTreeMap::new(), curves: BTreeMap::new() }
    }

    /// Adds a column by id, such as `T07/Linked List`.
    pub fn want(&mut self, id: &str) -> Result<(), String> {
        let (table, column) = self.paper.column(id)?;
        self.want_column(table, column);
        Ok(())
    }

    /// Adds a column of a table, with the columns that it is derived from.
    pub fn want_column(&mut self, table: &'a TableData, column: &'a Column) {
        match &column.source {
            ColumnSource::Measured(_) | ColumnSource::Slices(_) => {
                self.want_measure(table, column, Measure::Instructions)
            }
            ColumnSource::Difference(parts) => {
                parts.iter().for_each(|name| self.want_part(table, name))
            }
            ColumnSource::Delta(part) => self.want_part(table, part),
        }
    }

    fn want_part(&mut self, table: &'a TableData, name: &str) {
        if let Some(part) = table.column.iter().find(|column| column.name == name) {
            self.want_column(table, part);
        }
    }

    fn want_measure(&mut self, table: &TableData, column: &Column, measure: Measure) {
        let (ColumnSource::Measured(load) | ColumnSource::Slices(Run { load, .. })) =
            &column.source
        else {
            return;
        };
        let rows = self.paper.printed.rows(&table.id, &column.name);
        let point = |(index, (row, _)): (usize, &(String, f64))| {
            let x = table.x(index, row);
            match table.rows {
                Rows::Tasks => self.point(x, load, x as u32, load.mix.clone(), None),
                Rows::Mix => {
                    self.point(x, load, table.tasks, table.mix(row).unwrap_or(Mix::Random), None)
                }
                Rows::Length => self.point(
                    x,
                    load,
                    table.tasks,
                    load.mix.clone(),
                    Some((x * table.slices_per_second()) as u64),
                ),
            }
        };
        let points = rows.iter().enumerate().map(point).collect();
        self.wanted.insert(
            key(&format!("{}/{}", table.id, column.name), measure),
            Wanted { measure, points },
        );
    }

    /// Adds the series of a claim.
    pub fn want_binding(&mut self, binding: &Binding) -> Result<(), String> {
        match binding {
            Binding::Column(id) => return self.want(id),
            Binding::Measured(MeasuredColumn { column, measure }) => {
                let (table, column) = self.paper.column(column)?;
                self.want_measure(table, column, *measure);
            }
            Binding::Load(MeasuredLoad { measure, tasks, load }) => {
                let points = tasks
                    .iter()
                    .map(|&tasks| self.point(f64::from(tasks), load, tasks, load.mix.clone(), None))
                    .collect();
                self.wanted.insert(binding.key(), Wanted { measure: *measure, points });
            }
        }
        Ok(())
    }

    fn point(&self, x: f64, load: &Load, tasks: u32, mix: Mix, slices: Option<u64>) -> Place {
        let whole_periods = structure::find(&load.queue)
            .is_some_and(|found| found.service == Service::HalvingRates);
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

    /// Counts everything that is needed and not cached, each cell once.
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
            let one = places
                .get(&format!("{cell:?}"))
                .and_then(|&place| counted.get(place))
                .ok_or("was not counted")?;
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
                    // For threads the complete slice counts.
                    Measure::Instructions if matches!(cell.body, Body::Thread { .. }) => {
                        one(events(cell, &["Ir"])?)
                    }
                    Measure::Instructions => one(events(cell, &["Ir"])? - empty.clone()?),
                    Measure::D1Misses => one(events(cell, &["D1mr", "D1mw"])?),
                    Measure::Examined => one(steps::count(cell)?.examined_per_op),
                    Measure::FirstWait => one(steps::count(cell)?
                        .longest_wait
                        .first()
                        .map_or(f64::NAN, |&(_, wait)| wait as f64)),
                    Measure::Time => one(self.time(cell, cache)?),
                    Measure::Turns => steps::count(cell)?
                        .turns
                        .iter()
                        .map(|&(level, turns)| (f64::from(level), turns as f64))
                        .collect(),
                    Measure::Order => steps::count(cell)?
                        .order
                        .iter()
                        .enumerate()
                        .map(|(slice, &level)| (slice as f64, f64::from(level)))
                        .collect(),
                })
            };
            done.push((key.clone(), curves(wanted, value)));
            progress.inc(1);
        }
        self.curves.extend(done);
        Ok(())
    }

    /// The events of each cell, in batches, so that a killed run loses little.
    fn counted(&self, cells: &[Cell], cache: &Cache) -> Result<Vec<Counted>, Error> {
        let source = &self.settings.source;
        let of = |cell: &Cell| {
            format!("{} {}", source.description(), serde_json::to_string(cell).unwrap_or_default())
        };
        let mut counted: Vec<Option<Counted>> =
            cells.iter().map(|cell| cache.get::<Events>(&of(cell)).map(Ok)).collect();
        let missing: Vec<usize> =
            (0..cells.len()).filter(|&index| counted[index].is_none()).collect();
        let effort = missing.iter().map(|&index| cells[index].effort()).sum();
        let progress = progress::bar("counting instructions", effort);
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
                Err(why) => {
                    return Ok(counted
                        .into_iter()
                        .map(|one| one.unwrap_or_else(|| Err(why.clone())))
                        .collect());
                }
            }
        }
        Ok(counted
            .into_iter()
            .map(|one| one.unwrap_or_else(|| Err("was not counted".to_string())))
            .collect())
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
            other => self
                .curves
                .get(&other.key())
                .cloned()
                .unwrap_or_else(|| Err("was not measured".to_string())),
        }
    }

    /// The curves of a column, derived from others if necessary.
    pub fn column(&self, id: &str) -> Curves {
        let (table, column) = self.paper.column(id)?;
        let of = |name: &str| self.column(&format!("{}/{name}", table.id));
        let measured = || {
            let measured = self.curves.get(&key(id, Measure::Instructions)).cloned();
            measured.unwrap_or_else(|| Err("was not measured".to_string()))
        };
        match &column.source {
            ColumnSource::Measured(_) => measured(),
            ColumnSource::Difference([a, b]) => {
                let (a, b) = (of(a)?, of(b)?);
                let pick =
                    |curves: &[Series], index: usize| curves[index.min(curves.len() - 1)].clone();
                let subtract = |index| {
                    super::series::common(&pick(&a, index), &pick(&b, index))
                        .map(|(x, a, b)| (x, a - b))
                        .collect()
                };
                Ok((0..a.len().max(b.len())).map(subtract).collect())
            }
            ColumnSource::Delta(part) => Ok(of(part)?
                .into_iter()
                .map(|curve| {
                    curve.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1)).collect()
                })
                .collect()),
            ColumnSource::Slices(run) => {
                let slices = |curve: Series| {
                    let of =
                        |(x, instructions)| (x, x * run.instructions_per_second / instructions);
                    curve.into_iter().map(of).collect()
                };
                Ok(measured()?.into_iter().map(slices).collect())
            }
        }
    }

    /// A row for every number of a table: the printed one in `expected`, ours as the value.
    pub fn table_rows(&self, table: &TableData) -> Vec<Row> {
        let mut rows = Vec::new();
        for column in &table.column {
            let curves = self.column(&format!("{}/{}", table.id, column.name));
            for (index, (label, expected)) in
                self.paper.printed.rows(&table.id, &column.name).iter().enumerate()
            {
                let x = table.x(index, label);
                let values = curves.clone().map(|curves| {
                    curves.iter().filter_map(|curve| super::series::at(curve, x)).collect()
                });
                let mut row =
                    self.row(&table.claim_id(), column.queue(), Metric::instructions_per_op);
                let tasks = if table.rows == Rows::Tasks { x as u32 } else { table.tasks };
                row.workload = format!("yield:{tasks}");
                row = row
                    .at("column", &column.name)
                    .at("row", label)
                    .at("expected", expected.to_string());
                if let ColumnSource::Slices(_) = column.source {
                    row.metric = Metric::slices;
                }
                if let ColumnSource::Measured(load) = &column.source {
                    row = row
                        .at("levels", load.levels)
                        .at("mix", load.mix.to_string())
                        .at("strides", load.strides.name());
                }
                rows.push(filled(row, &values));
            }
        }
        rows
    }

    /// A figure of these columns, or of these orders of levels with one task at each.
    ///
    /// # Errors
    /// If a structure cannot be watched.
    pub fn figure(&self, figure: &FigureData) -> Result<Figure, Error> {
        let x = figure
            .series
            .first()
            .and_then(|id| self.paper.column(id).ok())
            .map_or("", |(table, _)| table.rows.label());
        let mut curves = figure
            .series
            .iter()
            .map(|id| self.curve(figure, id))
            .collect::<Result<Vec<Curve>, String>>()
            .map_err(Error::Internal)?;
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
            point(x, &values, Some(printed))
        };
        let twice =
            figure.series.iter().filter(|id| id.ends_with(&format!("/{}", column.name))).count()
                > 1;
        let name =
            if twice { format!("{} ({})", column.name, table.id) } else { column.name.clone() };
        Ok(Curve {
            name,
            points: self.paper.printed.series(table, &column.name).into_iter().map(point).collect(),
            dashed: false,
        })
    }

    fn overhead(&self, overhead: &Overhead) -> Curve {
        let [slices, queues] =
            overhead.bindings().map(|binding| self.binding(&binding).unwrap_or_default());
        let point = |&tasks: &u32| {
            let x = f64::from(tasks);
            let both = slices.iter().zip(&queues);
            point(
                x,
                &both
                    .filter_map(|(slice, queue)| Some(at(slice, x)? - at(queue, x)?))
                    .collect::<Vec<f64>>(),
                None,
            )
        };
        let name = "cost of a slice besides the queue".to_string();
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

/// Why a curve over no assignments of levels has no interval.
pub const COUNTED: &str = "instructions are counted, and no levels are drawn";

/// The number of slices shown of an order.
const SLICES: usize = 64;

/// The levels that a structure serves in the first slices.
fn order(load: &Load) -> Result<Order, Error> {
    let (mix, levels, strides) = (load.mix.clone(), load.levels, load.strides);
    let cell = Cell { mix, levels, strides, ..Cell::new(&load.queue, u32::from(levels)) };
    let counted = steps::count(&cell).map_err(Error::Internal)?;
    Ok(Order {
        queue: load.queue.clone(),
        levels: counted.order.iter().take(SLICES).map(|&level| level_name(level)).collect(),
    })
}

impl Overhead {
    /// The required measurements: the slice and the queue.
    pub fn bindings(&self) -> [Binding; 2] {
        let of = |load: &Load| MeasuredLoad {
            measure: Measure::default(),
            tasks: self.tasks.clone(),
            load: load.clone(),
        };
        [&self.slice, &self.queue].map(|load| Binding::Load(of(load)))
    }
}

/// Nanoseconds per slice in the best of several runs: other load on the machine can only add time.
fn undisturbed_time(cell: &Cell) -> Result<f64, String> {
    let hidden = indicatif::ProgressBar::hidden();
    let runs = (0..9)
        .map(|_| timing::time(std::slice::from_ref(cell), &hidden).remove(0))
        .collect::<Result<Vec<f64>, String>>()?;
    Ok(runs.into_iter().fold(f64::INFINITY, f64::min))
}

/// One curve for each assignment.
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
