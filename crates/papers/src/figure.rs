//! The figures in a paper's description, and their curves from measurements.

use super::Paper;
use super::binding::Bindings;
use super::diagram::Diagram;
use super::evidence::Replicate;
use super::expression::Formula;
use super::fault::Fault;
use super::table::Load;
use results::figure::{Axis, Curve, Figure, Mark, Point};
use serde::Deserialize;
use statistics::Estimate;
use std::collections::BTreeMap;

/// A figure in `experiments.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureData {
    /// The id: `P-FIG01`, ….
    pub id: String,
    /// The title.
    pub title: String,
    /// The columns to draw: `T02/…`.
    #[serde(default)]
    pub series: Vec<String>,
    /// The cost of a slice besides the queue, drawn as a dashed line.
    pub overhead: Option<Overhead>,
    /// Orders of levels instead of columns: one task at each level of these structures.
    #[serde(default)]
    pub orders: Vec<Load>,
    /// A diagram of the workload instead.
    pub diagram: Option<Diagram>,
    /// Series by name.
    #[serde(default, rename = "let")]
    pub bindings: Bindings,
    /// Curves from these series.
    #[serde(default)]
    pub curve: Vec<CurveData>,
    /// Their formulas.
    #[serde(skip)]
    pub formulas: Vec<Formula>,
    /// The horizontal axis.
    #[serde(default)]
    pub x: Axis,
    /// The vertical axis.
    #[serde(default)]
    pub y: Axis,
    /// Lines at values that the paper's text names.
    #[serde(default)]
    pub mark: Vec<Mark>,
    /// Why something in it is measured once, so that its points have no interval.
    pub once: Option<String>,
}

/// The cost of a slice of real threads besides the queue: a dashed line of a paper that could not
/// measure it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Slices of real threads.
    pub slice: Load,
    /// The queue of these threads.
    pub queue: Load,
    /// Numbers of tasks.
    pub tasks: Vec<u32>,
}

/// A curve in `experiments.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveData {
    /// The legend.
    pub name: String,
    /// A formula, as in `take / initial`.
    pub y: String,
}

/// The mean of `values`, one per replicate, at `x`.
pub fn point(x: f64, values: &[f64], printed: Option<f64>) -> Point {
    let estimate = Estimate::of(values);
    let end =
        |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
    Point {
        x,
        value: estimate.map(|estimate| estimate.mean),
        low: end(-1.0),
        high: end(1.0),
        printed,
    }
}

/// Why a point has no interval where the paper gives no reason.
pub const ONCE: &str = "measured once; a second run may give other numbers";

impl FigureData {
    /// Why points without an interval have none.
    pub fn why_without_interval(&self) -> &str {
        self.once.as_deref().unwrap_or(ONCE)
    }

    /// The figure without its content.
    pub fn empty(&self) -> Figure {
        let (id, title, marks) = (self.id.clone(), self.title.clone(), self.mark.clone());
        Figure { id, title, marks, x: self.x.clone(), y: self.y.clone(), ..Figure::default() }
    }

    /// The error if it names something that does not exist: a key, and a message.
    pub fn fault(&self, paper: &Paper) -> Option<Fault> {
        let series = self.series.iter().enumerate();
        let mut series = series
            .filter_map(|(place, id)| Some((format!("series[{place}]"), paper.column(id).err()?)));
        let loads =
            self.orders.iter().enumerate().map(|(place, load)| (format!("orders[{place}]"), load));
        let overhead = self.overhead.iter();
        let overhead = overhead.flat_map(|both| {
            [
                ("overhead.slice".to_string(), &both.slice),
                ("overhead.queue".to_string(), &both.queue),
            ]
        });
        let mut loads = loads
            .chain(overhead)
            .filter_map(|(at, load)| load.fault().map(|(key, why)| (format!("{at}.{key}"), why)));
        series.next().or_else(|| loads.next()).or_else(|| {
            let (key, why) = self.diagram.as_ref()?.fault(&paper.folder)?;
            Some((format!("diagram.{key}"), why))
        })
    }
}

impl CurveData {
    /// The points of `formula`: the mean over `replicates`.
    pub fn draw(&self, formula: &Formula, replicates: &[Replicate]) -> Curve {
        let mut points: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (x, y) in
            replicates.iter().filter_map(|replicate| formula.evaluate(replicate).ok()).flatten()
        {
            // Values on an axis are not negative, so their bits sort in the same order.
            points.entry(x.to_bits()).or_default().push(y);
        }
        let points =
            points.into_iter().map(|(x, values)| point(f64::from_bits(x), &values, None)).collect();
        Curve { name: self.name.clone(), points, dashed: false }
    }
}
