//! Shapes of a mutated series: where each of its points lies within its limits.

use super::limits::Range;
use crate::series::Series;
use std::fmt::{Display, Formatter, Result as Written};
use std::str::FromStr;

/// A series from the limits of its points.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    /// At the same hundredth of the way from the lower to the upper limit.
    Flat(u8),
    /// The same, by ratio: for limits that are far from each other.
    FlatByRatio(u8),
    /// From the lower to the upper limit in equal steps.
    Rising,
    /// From the upper to the lower limit in equal steps.
    Falling,
    /// From the lower to the upper limit in equal ratios.
    RisingByRatio,
    /// From the upper to the lower limit in equal ratios.
    FallingByRatio,
    /// By the logarithm of x, from the lower to the upper limit.
    Logarithm,
    /// By 1 / x, from the upper to the lower limit.
    Hyperbola,
    /// The limits in turn.
    Alternating,
    /// Up to the upper limit in the middle, and down again.
    Peak,
    /// The printed numbers, stretched to the limits.
    Printed,
}

use Shape::{
    Alternating, Falling, FallingByRatio, Flat, FlatByRatio, Hyperbola, Logarithm, Peak, Printed,
    Rising, RisingByRatio,
};

const NAMED: [(&str, Shape); 9] = [
    ("rising", Rising),
    ("falling", Falling),
    ("rising by ratio", RisingByRatio),
    ("falling by ratio", FallingByRatio),
    ("logarithm", Logarithm),
    ("hyperbola", Hyperbola),
    ("alternating", Alternating),
    ("peak", Peak),
    ("printed", Printed),
];

impl Shape {
    /// All that a search tries.
    pub fn all() -> Vec<Shape> {
        let steps = || (0..=100).step_by(10);
        let mut all: Vec<Shape> = steps().map(Flat).collect();
        all.extend([1, 3, 5, 24, 35].map(Flat));
        all.extend(NAMED.map(|(_, shape)| shape));
        all.extend(steps().map(FlatByRatio));
        all
    }

    /// The series; absent for a shape that these limits do not allow.
    pub fn series(self, ranges: &[Range], printed: Option<&Series>) -> Option<Series> {
        let (first, last) = (ranges.first()?.x, ranges.last()?.x);
        let stretch = match self {
            Printed => {
                let values = || printed.into_iter().flatten().map(|point| point.1);
                let (low, high) = (
                    values().fold(f64::INFINITY, f64::min),
                    values().fold(f64::NEG_INFINITY, f64::max),
                );
                (low < high).then_some((low, high))?
            }
            _ => (0.0, 1.0),
        };
        let point = |(index, range): (usize, &Range)| {
            let step =
                if ranges.len() > 1 { index as f64 / (ranges.len() - 1) as f64 } else { 0.0 };
            let curve = |of: &dyn Fn(f64) -> f64| match of(last) - of(first) {
                0.0 => 0.0,
                span => (of(range.x) - of(first)) / span,
            };
            let share = match self {
                Flat(hundredths) | FlatByRatio(hundredths) => f64::from(hundredths) / 100.0,
                Rising | RisingByRatio => step,
                Falling | FallingByRatio => 1.0 - step,
                Logarithm => curve(&f64::ln),
                Hyperbola => 1.0 - curve(&|x| 1.0 / x),
                Alternating => (index % 2) as f64,
                Peak => 1.0 - (2.0 * step - 1.0).abs(),
                Printed => {
                    let (low, high) = stretch;
                    (crate::series::at(printed?, range.x)? - low) / (high - low)
                }
            };
            let by_ratio = matches!(self, FlatByRatio(_) | RisingByRatio | FallingByRatio);
            let y = match by_ratio {
                true if range.low <= 0.0 => return None,
                true => range.low * (range.high / range.low).powf(share),
                false => range.low + (range.high - range.low) * share,
            };
            y.is_finite().then_some((range.x, y))
        };
        ranges.iter().enumerate().map(point).collect()
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        match self {
            Flat(hundredths) => write!(f, "{hundredths} %"),
            FlatByRatio(hundredths) => write!(f, "{hundredths} % by ratio"),
            other => {
                let named = NAMED.iter().find(|(_, shape)| shape == other);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        if let Some((_, shape)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*shape);
        }
        let number = |text: &str| text.parse().map_err(|_| format!("there is no shape `{text}`"));
        match text.strip_suffix(" % by ratio") {
            Some(hundredths) => number(hundredths).map(FlatByRatio),
            None => number(text.trim_end_matches(" %")).map(Flat),
        }
    }
}
