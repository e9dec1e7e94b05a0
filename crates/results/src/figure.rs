//! A figure: our curves with intervals beside the printed ones, or a diagram. The report draws it;
//! it is also written as CSV.

use crate::SCHEMA;
use program::{Error, write_whole};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

/// All drawn figures, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The version of this schema, the same as that of the results.
    pub schema: u32,
    /// The version of schedlab.
    pub version: String,
    /// Ordered by paper.
    pub figures: Vec<Figure>,
}

impl Figures {
    /// The figures, with the version of this program.
    pub fn new(figures: Vec<Figure>) -> Figures {
        Figures { schema: SCHEMA, version: program::VERSION.to_string(), figures }
    }

    /// Writes `figures.json` to `dir`, and one CSV for each figure that has data.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self)
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&dir.join("figures.json"), json.as_bytes())?;
        let mut with_data = self.figures.iter().filter(|figure| figure.diagram.is_none());
        with_data.try_for_each(|figure| {
            write_whole(&dir.join(format!("{}.csv", figure.id)), figure.csv().as_bytes())
        })
    }
}

/// The content of one figure.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The id: `P-FIG05`, `C-FIG4.1L`, ….
    pub id: String,
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Lines at values that the paper's text names.
    pub marks: Vec<Mark>,
    /// The order in which levels run, instead of curves.
    pub orders: Vec<Order>,
    /// An SVG, instead of curves.
    pub diagram: Option<String>,
    /// Why some curves are missing, if any are.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Why points have no interval, if any have none: the curves, and the reason.
    #[serde(default)]
    pub without_interval: Option<String>,
    /// The command that makes this figure.
    pub reproduce: String,
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The label, with its unit.
    #[serde(default)]
    pub label: String,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Whether it begins at the smallest number instead of 0 if there are printed numbers.
    #[serde(default)]
    pub zoom: bool,
}

/// A curve.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Curve {
    /// The legend.
    pub name: String,
    /// Its points, in order of x.
    pub points: Vec<Point>,
    /// Whether it is dashed.
    #[serde(default)]
    pub dashed: bool,
}

/// The levels that a queue serves, slice by slice, with one task at each level.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The ready queue.
    pub queue: String,
    /// The letter of the level in each slice.
    pub levels: Vec<String>,
}

/// A point of a curve: our value and the printed value.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// The x coordinate.
    pub x: f64,
    /// The mean; absent where there is no number, for example for a saturated system.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
    /// The printed value.
    pub printed: Option<f64>,
}

/// A line at a value that the paper's text names.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// For a vertical line: its x.
    pub x: Option<f64>,
    /// For a horizontal line: its y.
    pub y: Option<f64>,
    /// The label.
    pub text: String,
}

impl Figure {
    /// Says `why` of each curve that has points without an interval; of none, says nothing.
    pub fn say_why_without_interval(&mut self, why: &str) {
        let is_bare = |point: &Point| point.value.is_some() && point.low.is_none();
        let bare = self.curves.iter().filter(|curve| curve.points.iter().any(is_bare));
        let names: Vec<&str> = bare.map(|curve| curve.name.as_str()).collect();
        self.without_interval = (!names.is_empty()).then(|| format!("{}: {why}", names.join(", ")));
    }

    /// The data as CSV, one line per point; empty for a diagram.
    pub fn csv(&self) -> String {
        if !self.orders.is_empty() {
            let line = |queue: &str, (slice, level): (usize, &String)| {
                format!("{queue},{slice},{level}\n")
            };
            let lines = self.orders.iter().flat_map(|order| {
                order.levels.iter().enumerate().map(|slice| line(&order.queue, slice))
            });
            return "queue,slice,level\n".to_string() + &lines.collect::<String>();
        }
        let mut out = "series,x,value,ci_low,ci_high,printed\n".to_string();
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for curve in &self.curves {
            for Point { x, value, low, high, printed } in &curve.points {
                let name = curve.name.replace('"', "\"\"");
                let _ = writeln!(
                    out,
                    "\"{name}\",{x},{},{},{},{}",
                    number(*value),
                    number(*low),
                    number(*high),
                    number(*printed)
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_with_a_point_without_an_interval_are_named_with_the_reason() {
        let point = |value, low| Point { value, low, high: low, ..Point::default() };
        let curve = |name: &str, points: &[Point]| Curve {
            name: name.to_string(),
            points: points.to_vec(),
            dashed: false,
        };
        let (whole, bare) = (point(Some(2.0), Some(1.0)), point(Some(2.0), None));
        let of = |curves: Vec<Curve>| {
            let mut figure = Figure { curves, ..Figure::default() };
            figure.say_why_without_interval("counted once");
            figure.without_interval
        };
        assert_eq!(of(vec![curve("a", &[whole, point(None, None)])]), None);
        let told = of(vec![curve("a", &[whole]), curve("b", &[whole, bare]), curve("c", &[bare])]);
        assert_eq!(told.as_deref(), Some("b, c: counted once"));
    }
}
