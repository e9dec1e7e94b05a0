//! The functions of the claim language.

use crate::series;
use crate::series::{Series, Summary};

/// A function, by its arguments and result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// A number of one series.
    Summary(Summary),
    /// A number of two series.
    Pair(Pair),
    /// How well the measured series matches the printed one: a number from one series.
    Shape,
    /// The absolute value of a number or of each point.
    Absolute,
    /// Each x of a series as its value.
    Coordinates,
    /// Series one after the other.
    Join,
}

/// A number of two series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pair {
    /// The x at which the first crosses the second; the second may be a number.
    Cross,
    /// The square of their correlation.
    R2,
    /// The slope of the second as a function of the first.
    SlopeOf,
}

/// The functions by name.
pub const FUNCTIONS: [(&str, Function); 21] = [
    ("abs", Function::Absolute),
    ("argmax", Function::Summary(Summary::Argmax)),
    ("count", Function::Summary(Summary::Count)),
    ("cross", Function::Pair(Pair::Cross)),
    ("first", Function::Summary(Summary::First)),
    ("join", Function::Join),
    ("largest_fall", Function::Summary(Summary::LargestFall)),
    ("largest_rise", Function::Summary(Summary::LargestRise)),
    ("last", Function::Summary(Summary::Last)),
    ("max", Function::Summary(Summary::Max)),
    ("mean", Function::Summary(Summary::Mean)),
    ("min", Function::Summary(Summary::Min)),
    ("r2", Function::Pair(Pair::R2)),
    ("r2_inverse", Function::Summary(Summary::R2Inverse)),
    ("r2_linear", Function::Summary(Summary::R2Linear)),
    ("r2_log", Function::Summary(Summary::R2Log)),
    ("shape", Function::Shape),
    ("slope", Function::Summary(Summary::Slope)),
    ("slope_of", Function::Pair(Pair::SlopeOf)),
    ("span", Function::Summary(Summary::Span)),
    ("x", Function::Coordinates),
];

impl Function {
    /// The function with this name.
    pub fn find(name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|(own, _)| *own == name).map(|(_, function)| *function)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// The number of arguments; `None` for any number from one on.
    pub fn arguments(self) -> Option<usize> {
        match self {
            Function::Join => None,
            Function::Pair(_) => Some(2),
            Function::Summary(_) | Function::Shape | Function::Absolute | Function::Coordinates => {
                Some(1)
            }
        }
    }
}

impl Pair {
    /// The value.
    pub fn of(self, a: &Series, b: &Series) -> f64 {
        match self {
            Pair::Cross => series::cross(a, b),
            Pair::R2 => series::r2(a, b),
            Pair::SlopeOf => series::slope_against(a, b),
        }
    }
}
