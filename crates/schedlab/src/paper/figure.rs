//! Figures: what they draw, ours with its interval beside the printed one.

use super::queues::{Binding, Measured};
use super::series::at;
use super::table::{Figure, Load};
use crate::Error;
use crate::atlas::mix::level_name;
use crate::atlas::rig::Cell;
use crate::atlas::steps;
use crate::output::{SCHEMA, write_whole};
use crate::statistics::Estimate;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

/// How many slices of an order are shown.
const SLICES: usize = 64;

/// All figures of a paper that were drawn, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The version of this shape, the same as that of the results.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
    /// In the order of the paper.
    pub figures: Vec<Drawing>,
}

impl Figures {
    /// The figures of this program.
    pub fn new(figures: Vec<Drawing>) -> Figures {
        Figures { schema: SCHEMA, version: env!("CARGO_PKG_VERSION").to_string(), figures }
    }

    /// Writes `figures.json`, and a CSV per figure, to `dir`.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self).map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&dir.join("figures.json"), json.as_bytes())?;
        self.figures.iter().map(Drawing::csv).try_for_each(|(name, csv)| write_whole(&dir.join(name), csv.as_bytes()))
    }
}

/// A figure, ready to be drawn: curves over the number of tasks, or orders.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Drawing {
    /// `P-FIG01`, ….
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Instructions per operation.
    pub curves: Vec<Curve>,
    /// What a slice costs beside the queue, where the figure shows it.
    pub overhead: Option<Curve>,
    /// Who runs in which slice.
    pub orders: Vec<Order>,
}

/// One curve of it. All lists are as long as `tasks`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The column that it draws.
    pub name: String,
    /// Numbers of tasks.
    pub tasks: Vec<f64>,
    /// Ours; null where nothing could be counted.
    pub value: Vec<Option<f64>>,
    /// Lower end of the 95 % interval over assignments.
    pub ci_low: Vec<Option<f64>>,
    /// Upper end of it.
    pub ci_high: Vec<Option<f64>>,
    /// The paper's number, on the paper's machine.
    pub printed: Vec<Option<f64>>,
}

/// The levels that a structure serves, slice by slice, with one task at each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The structure.
    pub queue: String,
    /// The letter of the level in each slice.
    pub levels: Vec<String>,
}

impl Drawing {
    /// What `figure` draws of what was measured.
    ///
    /// # Errors
    /// If a structure cannot be watched.
    pub fn of(figure: &Figure, measured: &Measured) -> Result<Drawing, Error> {
        let twice = |column: &str| figure.series.iter().filter(|id| id.ends_with(&format!("/{column}"))).count() > 1;
        let curve = |id: &String| {
            let (table, column) = measured.paper.column(id).map_err(Error::Internal)?;
            let points = measured.paper.printed.series(table, &column.name);
            let (xs, printed) = points.into_iter().map(|(x, value)| (x, Some(value))).unzip();
            let name = if twice(&column.name) { format!("{} ({})", column.name, table.id) } else { column.name.clone() };
            let curves = measured.column(id).unwrap_or_default();
            Ok(Curve::new(name, xs, printed, |x| curves.iter().filter_map(|curve| at(curve, x)).collect()))
        };
        Ok(Drawing {
            id: figure.id.clone(),
            title: figure.title.clone(),
            curves: figure.series.iter().map(curve).collect::<Result<_, Error>>()?,
            overhead: figure.overhead.as_ref().map(|overhead| overhead.curve(measured)),
            orders: figure.orders.iter().map(Order::of).collect::<Result<_, Error>>()?,
        })
    }

    /// The name of its file and the file: the same as CSV.
    pub fn csv(&self) -> (String, String) {
        let mut out = String::new();
        if !self.orders.is_empty() {
            out.push_str("queue,slice,level\n");
            for Order { queue, levels } in &self.orders {
                levels.iter().enumerate().for_each(|(slice, level)| _ = writeln!(out, "{queue},{slice},{level}"));
            }
        } else {
            out.push_str("series,x,value,ci_low,ci_high,printed\n");
            for curve in self.curves.iter().chain(&self.overhead) {
                for (index, x) in curve.tasks.iter().enumerate() {
                    let number = |values: &[Option<f64>]| values[index].map_or(String::new(), |value| value.to_string());
                    let [value, low, high, printed] = [&curve.value, &curve.ci_low, &curve.ci_high, &curve.printed].map(|all| number(all));
                    let _ = writeln!(out, "\"{}\",{x},{value},{low},{high},{printed}", curve.name);
                }
            }
        }
        (format!("{}.csv", self.id), out)
    }
}

impl Curve {
    fn new(name: String, tasks: Vec<f64>, printed: Vec<Option<f64>>, values: impl Fn(f64) -> Vec<f64>) -> Curve {
        let estimates: Vec<Option<Estimate>> = tasks.iter().map(|&x| Estimate::of(&values(x))).collect();
        let all = |of: &dyn Fn(&Estimate) -> Option<f64>| estimates.iter().map(|estimate| of(estimate.as_ref()?)).collect();
        Curve {
            value: all(&|estimate| Some(estimate.mean)),
            ci_low: all(&|estimate| Some(estimate.mean - estimate.half_width?)),
            ci_high: all(&|estimate| Some(estimate.mean + estimate.half_width?)),
            name,
            tasks,
            printed,
        }
    }
}

/// What a slice of real threads costs beside the queue: the paper's dashed line, which it could not measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Slices of real threads.
    slice: Load,
    /// The queue in them.
    queue: Load,
    /// Numbers of tasks.
    tasks: Vec<u32>,
}

impl Overhead {
    /// What has to be measured: the slice and the queue.
    pub fn bindings(&self) -> [Binding; 2] {
        [&self.slice, &self.queue].map(|load| Binding::Load { measure: Default::default(), tasks: self.tasks.clone(), load: load.clone() })
    }

    fn curve(&self, measured: &Measured) -> Curve {
        let [slices, queues] = self.bindings().map(|binding| measured.binding(&binding).unwrap_or_default());
        let tasks: Vec<f64> = self.tasks.iter().map(|&tasks| f64::from(tasks)).collect();
        let printed = vec![None; tasks.len()];
        Curve::new("what a slice costs beside the queue".to_string(), tasks, printed, |x| {
            slices.iter().zip(&queues).filter_map(|(slice, queue)| Some(at(slice, x)? - at(queue, x)?)).collect()
        })
    }
}

impl Order {
    fn of(load: &Load) -> Result<Order, Error> {
        let cell =
            Cell { mix: load.mix.clone(), levels: load.levels, strides: load.strides, ..Cell::new(&load.queue, u32::from(load.levels)) };
        let counted = steps::count(&cell).map_err(Error::Internal)?;
        let levels = counted.order.iter().take(SLICES).map(|&level| level_name(level)).collect();
        Ok(Order { queue: load.queue.clone(), levels })
    }
}
