//! Prints expressions so that they parse to the same tree, with as few parentheses as possible.

use super::{Check, Comparison, Expression, Formula, Function, Number, Operator, Pair, Points};
use std::fmt;

/// The precedence of the parts of an expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    Sum,
    Product,
    Alone,
}

/// A part that needs parentheses if the text around it has a higher precedence.
trait Part {
    fn write(&self, f: &mut fmt::Formatter<'_>, around: Tightness) -> fmt::Result;
}

impl Operator {
    fn tightness(self) -> Tightness {
        match self {
            Operator::Add | Operator::Subtract => Tightness::Sum,
            Operator::Multiply | Operator::Divide => Tightness::Product,
        }
    }
}

fn binary(
    f: &mut fmt::Formatter<'_>,
    around: Tightness,
    left: &dyn Part,
    operator: Operator,
    right: &dyn Part,
) -> fmt::Result {
    let own = operator.tightness();
    let parentheses = own < around;
    f.write_str(if parentheses { "(" } else { "" })?;
    left.write(f, own)?;
    write!(f, " {operator} ")?;
    right.write(f, if own == Tightness::Sum { Tightness::Product } else { Tightness::Alone })?;
    f.write_str(if parentheses { ")" } else { "" })
}

fn call(f: &mut fmt::Formatter<'_>, function: Function, arguments: &[&dyn Part]) -> fmt::Result {
    write!(f, "{}(", function.name())?;
    for (index, argument) in arguments.iter().enumerate() {
        f.write_str(if index > 0 { ", " } else { "" })?;
        argument.write(f, Tightness::Sum)?;
    }
    f.write_str(")")
}

impl Part for Number {
    fn write(&self, f: &mut fmt::Formatter<'_>, around: Tightness) -> fmt::Result {
        match self {
            Number::Literal(number) => write!(f, "{number}"),
            Number::Arithmetic(left, operator, right) => {
                binary(f, around, &**left, *operator, &**right)
            }
            Number::Absolute(inner) => call(f, Function::Absolute, &[&**inner]),
            Number::At(inner, x) => {
                inner.write(f, Tightness::Alone).and_then(|()| write!(f, "@{x}"))
            }
            Number::Summary(summary, inner) => call(f, Function::Summary(*summary), &[&**inner]),
            Number::Pair(pair, left, right) => call(f, Function::Pair(*pair), &[&**left, &**right]),
            Number::CrossesLevel(inner, level) => {
                call(f, Function::Pair(Pair::Cross), &[&**inner, &**level])
            }
            Number::Shape(inner) => call(f, Function::Shape, &[&**inner]),
        }
    }
}

impl Part for Points {
    fn write(&self, f: &mut fmt::Formatter<'_>, around: Tightness) -> fmt::Result {
        match self {
            Points::Name(name) => f.write_str(name),
            Points::Arithmetic(left, operator, right) => {
                binary(f, around, &**left, *operator, &**right)
            }
            Points::ThenNumber(left, operator, right) => {
                binary(f, around, &**left, *operator, &**right)
            }
            Points::NumberThen(left, operator, right) => {
                binary(f, around, &**left, *operator, &**right)
            }
            Points::Absolute(inner) => call(f, Function::Absolute, &[&**inner]),
            Points::Coordinates(inner) => call(f, Function::Coordinates, &[&**inner]),
            Points::Range(inner, from, to) => {
                inner.write(f, Tightness::Alone).and_then(|()| write!(f, "[{from}..{to}]"))
            }
            Points::Join(all) => {
                call(f, Function::Join, &all.iter().map(|one| one as &dyn Part).collect::<Vec<_>>())
            }
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Number(number) => number.write(f, Tightness::Sum),
            Expression::Points(points) => points.write(f, Tightness::Sum),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.comparison, self.right)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, Tightness::Sum)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::AtMost => "<=",
            Comparison::Below => "<",
            Comparison::AtLeast => ">=",
            Comparison::Above => ">",
        })
    }
}
