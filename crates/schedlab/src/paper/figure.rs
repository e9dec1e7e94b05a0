//! A figure: curves with intervals beside what is printed, or a diagram; drawn by the report, and written as CSV.

use super::Paper;
use super::check::Fault;
use super::claim::Bindings;
use super::diagram::Diagram;
use super::expression::Formula;
use super::table::Load;
use super::verdict::Replicate;
use crate::Error;
use crate::output::{SCHEMA, write_whole};
use crate::statistics::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// All figures that were drawn, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The version of this shape, the same as that of the results.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
    /// In the order of their papers.
    pub figures: Vec<Figure>,
}

impl Figures {
    /// The figures of this program.
    pub fn new(figures: Vec<Figure>) -> Figures {
        Figures { schema: SCHEMA, version: env!("CARGO_PKG_VERSION").to_string(), figures }
    }

    /// Writes `figures.json`, and a CSV per figure that has data, to `dir`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self).map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&dir.join("figures.json"), json.as_bytes())?;
        let mut with_data = self.figures.iter().filter(|figure| figure.diagram.is_none());
        with_data.try_for_each(|figure| write_whole(&dir.join(format!("{}.csv", figure.id)), figure.csv().as_bytes()))
    }
}

/// A figure as `experiments.toml` describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureData {
    /// `P-FIG01`, ….
    pub id: String,
    /// What it shows.
    pub title: String,
    /// `T02/…`, the columns that it draws.
    #[serde(default)]
    pub series: Vec<String>,
    /// What a slice costs beside the queue, as a dashed line.
    pub overhead: Option<Overhead>,
    /// Orders of levels instead: one task at each level of these structures.
    #[serde(default)]
    pub orders: Vec<Load>,
    /// A diagram of the workload instead.
    pub diagram: Option<Diagram>,
    /// Series by name.
    #[serde(default, rename = "let")]
    pub bindings: Bindings,
    /// Curves made of them.
    #[serde(default)]
    pub curve: Vec<CurveData>,
    /// Their formulas.
    #[serde(skip)]
    pub formulas: Vec<Formula>,
    /// Across.
    #[serde(default)]
    pub x: Axis,
    /// Upwards.
    #[serde(default)]
    pub y: Axis,
    /// What the text says.
    #[serde(default)]
    pub mark: Vec<Mark>,
}

/// What a slice of real threads costs beside the queue: a dashed line of a paper that could not measure it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Slices of real threads.
    pub slice: Load,
    /// The queue in them.
    pub queue: Load,
    /// Numbers of tasks.
    pub tasks: Vec<u32>,
}

/// A curve as `experiments.toml` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveData {
    /// What it is of.
    pub name: String,
    /// A formula, as in `take / initial`.
    pub y: String,
}

/// What is drawn.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    /// `P-FIG05`, `C-FIG4.1L`, ….
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
    /// What the paper's text says about it, as lines.
    pub marks: Vec<Mark>,
    /// Who runs in which slice, in place of curves.
    pub orders: Vec<Order>,
    /// An SVG in place of curves.
    pub diagram: Option<String>,
    /// Why curves are missing, where any are.
    #[serde(default)]
    pub missing: Vec<String>,
    /// The command that makes it.
    pub reproduce: String,
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it shows, with its unit.
    #[serde(default)]
    pub label: String,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Whether it begins at the smallest number instead of at 0, where there are printed numbers.
    #[serde(default)]
    pub zoom: bool,
}

/// A curve.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// Its points, by rising x.
    pub points: Vec<Point>,
    /// Whether it is dashed.
    #[serde(default)]
    pub dashed: bool,
}

/// The levels that a structure serves, slice by slice, with one task at each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The structure.
    pub queue: String,
    /// The letter of the level in each slice.
    pub levels: Vec<String>,
}

/// A point of a curve: ours, and the printed one.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The mean; none where there is no number, as of a saturated system.
    pub value: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: Option<f64>,
    /// The upper end of it.
    pub high: Option<f64>,
    /// What is printed.
    pub printed: Option<f64>,
}

/// A line at a value that the paper's text names.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Upright, at this x.
    pub x: Option<f64>,
    /// Level, at this y.
    pub y: Option<f64>,
    /// What it is.
    pub text: String,
}

impl Point {
    /// The mean of `values`, one per replicate, at `x`.
    pub fn new(x: f64, values: &[f64], printed: Option<f64>) -> Point {
        let estimate = Estimate::of(values);
        let end = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
        Point { x, value: estimate.map(|estimate| estimate.mean), low: end(-1.0), high: end(1.0), printed }
    }
}

impl FigureData {
    /// What it names that is not there: a key, and what is wrong.
    pub fn fault(&self, paper: &Paper) -> Option<Fault> {
        let series = self.series.iter().enumerate();
        let mut series = series.filter_map(|(place, id)| Some((format!("series[{place}]"), paper.column(id).err()?)));
        let loads = self.orders.iter().enumerate().map(|(place, load)| (format!("orders[{place}]"), load));
        let overhead = self.overhead.iter();
        let overhead = overhead.flat_map(|both| [("overhead.slice".to_string(), &both.slice), ("overhead.queue".to_string(), &both.queue)]);
        let mut loads = loads.chain(overhead).filter_map(|(at, load)| load.fault().map(|(key, why)| (format!("{at}.{key}"), why)));
        series.next().or_else(|| loads.next()).or_else(|| {
            let (key, why) = self.diagram.as_ref()?.fault(&paper.folder)?;
            Some((format!("diagram.{key}"), why))
        })
    }
}

impl CurveData {
    /// Its points by `formula`: the mean over `replicates`, each of which has a number of its own.
    pub fn draw(&self, formula: &Formula, replicates: &[Replicate]) -> Curve {
        let mut points: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (x, y) in replicates.iter().filter_map(|replicate| formula.evaluate(replicate).ok()).flatten() {
            // What an axis has is not negative, so that its bits rise with it.
            points.entry(x.to_bits()).or_default().push(y);
        }
        let points = points.into_iter().map(|(x, values)| Point::new(f64::from_bits(x), &values, None)).collect();
        Curve { name: self.name.clone(), points, dashed: false }
    }
}

impl Figure {
    /// Its data, a line per point; for a diagram none.
    pub fn csv(&self) -> String {
        if !self.orders.is_empty() {
            let line = |queue: &str, (slice, level): (usize, &String)| format!("{queue},{slice},{level}\n");
            let lines = self.orders.iter().flat_map(|order| order.levels.iter().enumerate().map(|slice| line(&order.queue, slice)));
            return "queue,slice,level\n".to_string() + &lines.collect::<String>();
        }
        let mut out = "series,x,value,ci_low,ci_high,printed\n".to_string();
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for curve in &self.curves {
            for Point { x, value, low, high, printed } in &curve.points {
                let name = curve.name.replace('"', "\"\"");
                let _ = writeln!(out, "\"{name}\",{x},{},{},{},{}", number(*value), number(*low), number(*high), number(*printed));
            }
        }
        out
    }
}
