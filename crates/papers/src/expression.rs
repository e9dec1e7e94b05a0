//! The language of claims: comparisons of arithmetic over series.
//!
//! Example: `max(list) / min(list) <= 1.01`. A name is a series of points (x, y). Arithmetic is
//! done point by point, for each x that both sides have. `s@10` is the value at x = 10,
//! `s[50..200]` the points in that range. A comparison holds if it holds at every point. A
//! [`Formula`] is one side of a comparison, to be drawn in a figure.
//!
//! The parser checks every name, every function with its arguments, and every point of a series
//! with a known axis. The result is a tree of two types, [`Number`] and [`Points`].

mod function;
mod parse;
mod print;

pub use function::{Function, Pair};
pub use parse::Fault;

use super::series::{self, Series, Summary};
use std::collections::BTreeMap;

/// What is known of a series before it is measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Known {
    /// Every x at which it may have a point, in order; `None` if only a measurement shows it.
    pub axis: Option<Vec<f64>>,
    /// Whether it has printed numbers.
    pub is_printed: bool,
}

/// The series that an expression may name.
pub type KnownSeries = BTreeMap<String, Known>;

/// A comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    left: Expression,
    comparison: Comparison,
    right: Expression,
}

/// Arithmetic over series whose value is a series, such as `take / initial`.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula(Points);

/// One side of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A number.
    Number(Number),
    /// A series.
    Points(Points),
}

/// An expression with a number as its value.
#[derive(Clone, PartialEq, Debug)]
pub enum Number {
    /// `0.5`
    Literal(f64),
    /// `a@1 + 2`
    Arithmetic(Box<Number>, Operator, Box<Number>),
    /// `abs(a@1)`
    Absolute(Box<Number>),
    /// `a@1`
    At(Box<Points>, f64),
    /// `max(a)`
    Summary(Summary, Box<Points>),
    /// `cross(a, b)`
    Pair(Pair, Box<Points>, Box<Points>),
    /// `cross(a, 0.5)`
    CrossesLevel(Box<Points>, Box<Number>),
    /// `shape(a)`: r² of the measured and the printed series.
    Shape(Box<Points>),
}

/// An expression with a series as its value.
#[derive(Clone, PartialEq, Debug)]
pub enum Points {
    /// `a`
    Name(String),
    /// `a / b`
    Arithmetic(Box<Points>, Operator, Box<Points>),
    /// `a / 2`
    ThenNumber(Box<Points>, Operator, Box<Number>),
    /// `2 / a`
    NumberThen(Box<Number>, Operator, Box<Points>),
    /// `abs(a)`
    Absolute(Box<Points>),
    /// `x(a)`: each x as a value.
    Coordinates(Box<Points>),
    /// `a[1..2]`
    Range(Box<Points>, f64, f64),
    /// `join(a, b)`: one after the other, x counts from 0.
    Join(Vec<Points>),
}

/// An arithmetic operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

/// The result of a check on one set of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// The left side at the point nearest to failing.
    pub value: f64,
    /// The margin at that point; below 0 the check fails.
    pub margin: f64,
}

/// Looks up series by name: measured and printed ones.
pub trait Names {
    /// The measured series.
    fn series(&self, name: &str) -> Option<&Series>;
    /// The printed series.
    fn printed(&self, name: &str) -> Option<&Series>;
}

/// The printed numbers in place of the measured ones.
struct InPrint<'a>(&'a dyn Names);

impl Names for InPrint<'_> {
    fn series(&self, name: &str) -> Option<&Series> {
        self.0.printed(name)
    }

    fn printed(&self, name: &str) -> Option<&Series> {
        self.0.printed(name)
    }
}

impl Check {
    /// The right side with the comparison, such as `<= 0.1`.
    pub fn threshold(&self) -> String {
        format!("{} {}", self.comparison, self.right)
    }

    /// Whether the check contains a series.
    pub fn uses(&self, name: &str) -> bool {
        self.left.uses(name) || self.right.uses(name)
    }

    /// Evaluates both sides.
    ///
    /// # Errors
    /// If a series lacks a required point.
    pub fn evaluate(&self, names: &impl Names) -> Result<Outcome, String> {
        use Expression::{Number, Points};
        let pairs: Vec<(f64, f64)> = match (&self.left, &self.right) {
            (Number(a), Number(b)) => vec![(a.evaluate(names)?, b.evaluate(names)?)],
            (Points(a), Number(b)) => {
                let (a, b) = (a.evaluate(names)?, b.evaluate(names)?);
                a.into_iter().map(|(_, a)| (a, b)).collect()
            }
            (Number(a), Points(b)) => {
                let (a, b) = (a.evaluate(names)?, b.evaluate(names)?);
                b.into_iter().map(|(_, b)| (a, b)).collect()
            }
            (Points(a), Points(b)) => series::common(&a.evaluate(names)?, &b.evaluate(names)?)
                .map(|(_, a, b)| (a, b))
                .collect(),
        };
        let margin = |(a, b): (f64, f64)| match self.comparison {
            Comparison::AtMost | Comparison::Below => b - a,
            Comparison::AtLeast | Comparison::Above => a - b,
        };
        let worst = pairs
            .into_iter()
            .min_by(|a, b| margin(*a).total_cmp(&margin(*b)))
            .ok_or("nothing to compare: no common points")?;
        let strict = matches!(self.comparison, Comparison::Below | Comparison::Above)
            && margin(worst) == 0.0;
        Ok(Outcome {
            value: worst.0,
            margin: if strict { -f64::MIN_POSITIVE } else { margin(worst) },
        })
    }
}

impl Formula {
    /// Whether the formula contains a series.
    pub fn uses(&self, name: &str) -> bool {
        self.0.uses(name)
    }

    /// Evaluates the points.
    ///
    /// # Errors
    /// If a series lacks a required point.
    pub fn evaluate(&self, names: &impl Names) -> Result<Series, String> {
        self.0.some(names)
    }
}

impl Expression {
    fn uses(&self, name: &str) -> bool {
        match self {
            Expression::Number(number) => number.uses(name),
            Expression::Points(points) => points.uses(name),
        }
    }
}

impl Number {
    fn uses(&self, name: &str) -> bool {
        match self {
            Number::Literal(_) => false,
            Number::Arithmetic(left, _, right) => left.uses(name) || right.uses(name),
            Number::Absolute(inner) => inner.uses(name),
            Number::At(inner, _) | Number::Summary(_, inner) | Number::Shape(inner) => {
                inner.uses(name)
            }
            Number::Pair(_, left, right) => left.uses(name) || right.uses(name),
            Number::CrossesLevel(series, level) => series.uses(name) || level.uses(name),
        }
    }

    fn evaluate(&self, names: &dyn Names) -> Result<f64, String> {
        Ok(match self {
            Number::Literal(number) => *number,
            Number::Arithmetic(left, operator, right) => {
                operator.apply(left.evaluate(names)?, right.evaluate(names)?)
            }
            Number::Absolute(inner) => inner.evaluate(names)?.abs(),
            Number::At(inner, x) => {
                series::at(&inner.some(names)?, *x).ok_or_else(|| format!("no point at {x}"))?
            }
            Number::Summary(summary, inner) => summary.of(&inner.some(names)?).ok_or(NO_POINTS)?,
            Number::Pair(pair, left, right) => pair.of(&left.some(names)?, &right.some(names)?),
            Number::CrossesLevel(inner, level) => {
                let (series, level) = (inner.some(names)?, level.evaluate(names)?);
                let flat = series.iter().map(|&(x, _)| (x, level)).collect();
                series::cross(&series, &flat)
            }
            Number::Shape(inner) => series::r2(&inner.some(names)?, &inner.some(&InPrint(names))?),
        })
    }
}

const NO_POINTS: &str = "a series has no points";

impl Points {
    fn uses(&self, name: &str) -> bool {
        match self {
            Points::Name(own) => own == name,
            Points::Arithmetic(left, _, right) => left.uses(name) || right.uses(name),
            Points::ThenNumber(points, _, number) | Points::NumberThen(number, _, points) => {
                points.uses(name) || number.uses(name)
            }
            Points::Absolute(inner) | Points::Coordinates(inner) | Points::Range(inner, ..) => {
                inner.uses(name)
            }
            Points::Join(all) => all.iter().any(|one| one.uses(name)),
        }
    }

    fn evaluate(&self, names: &dyn Names) -> Result<Series, String> {
        let mapped = |series: Series, of: &dyn Fn(f64) -> f64| {
            series.into_iter().map(|(x, y)| (x, of(y))).collect()
        };
        Ok(match self {
            Points::Name(name) => {
                names.series(name).ok_or_else(|| format!("there is no series `{name}`"))?.clone()
            }
            Points::Arithmetic(left, operator, right) => {
                let (left, right) = (left.evaluate(names)?, right.evaluate(names)?);
                series::common(&left, &right).map(|(x, a, b)| (x, operator.apply(a, b))).collect()
            }
            Points::ThenNumber(left, operator, right) => {
                let (left, right) = (left.evaluate(names)?, right.evaluate(names)?);
                mapped(left, &|y| operator.apply(y, right))
            }
            Points::NumberThen(left, operator, right) => {
                let (left, right) = (left.evaluate(names)?, right.evaluate(names)?);
                mapped(right, &|y| operator.apply(left, y))
            }
            Points::Absolute(inner) => mapped(inner.evaluate(names)?, &f64::abs),
            Points::Coordinates(inner) => {
                inner.some(names)?.into_iter().map(|(x, _)| (x, x)).collect()
            }
            Points::Range(inner, from, to) => {
                inner.some(names)?.into_iter().filter(|(x, _)| (*from..=*to).contains(x)).collect()
            }
            Points::Join(all) => {
                let all = all
                    .iter()
                    .map(|one| one.some(names))
                    .collect::<Result<Vec<Series>, String>>()?;
                all.into_iter()
                    .flatten()
                    .enumerate()
                    .map(|(index, (_, y))| (index as f64, y))
                    .collect()
            }
        })
    }

    /// Its points; there must be at least one.
    fn some(&self, names: &dyn Names) -> Result<Series, String> {
        self.evaluate(names).and_then(|series| {
            if series.is_empty() { Err(NO_POINTS.to_string()) } else { Ok(series) }
        })
    }
}

impl Operator {
    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
        }
    }
}

#[cfg(test)]
mod tests;
