//! Parses an expression into a tree in which every name, function and known point exists.

use super::function::FUNCTIONS;
use super::{
    Check, Comparison, Expression, Formula, Function, Known, KnownSeries, Number, Operator, Pair,
    Points,
};
use program::no_such;
use std::ops::Range;
use winnow::ascii::{digit0, digit1, multispace0};
use winnow::combinator::{alt, not, opt, peek, terminated};
use winnow::error::{ErrMode, ParserError};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stateful, Stream};
use winnow::token::{any, one_of, take_while};

/// The longest expression, in bytes.
const LONGEST: usize = 1_000;
/// The deepest nesting of parentheses, calls and minus signs, and the greatest depth of the tree.
const DEEPEST: usize = 64;

/// An error in an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The bytes with the error.
    pub at: Range<usize>,
    /// The message.
    pub message: String,
}

#[derive(Debug)]
struct State<'a> {
    text: &'a str,
    known: &'a KnownSeries,
    depth: usize,
}

type Input<'a> = Stateful<LocatingSlice<&'a str>, State<'a>>;
type Read<T> = Result<T, ErrMode<Fault>>;

/// A parsed part of an expression, with its position.
struct Term {
    at: Range<usize>,
    value: Value,
    /// The depth of its tree.
    depth: usize,
}

enum Value {
    Number(Number),
    /// Every x at which it may have a point, if known.
    Points(Points, Option<Vec<f64>>),
}

impl ParserError<Input<'_>> for Fault {
    type Inner = Fault;

    fn from_input(input: &Input<'_>) -> Fault {
        Fault { at: next(input), message: format!("unexpected {}", found(input)) }
    }

    fn into_inner(self) -> Result<Fault, Fault> {
        Ok(self)
    }
}

impl Check {
    /// Parses `text`, which may name the series in `known`.
    ///
    /// # Errors
    /// The message and its position.
    pub fn parse(text: &str, known: &KnownSeries) -> Result<Check, Fault> {
        read(text, known, |input| {
            let left = sum(input)?;
            let Some(comparison) = opt(comparison).parse_next(input)? else {
                return fault(
                    next(input),
                    format!("expected <=, <, >= or >, found {}", found(input)),
                );
            };
            let right = sum(input)?;
            if let (Value::Points(_, a), Value::Points(_, b)) = (&left.value, &right.value) {
                common(left.at.start..right.at.end, a, b)?;
            }
            Ok(Check { left: left.expression(), comparison, right: right.expression() })
        })
    }
}

impl Formula {
    /// Parses `text`, which may name the series in `known`.
    ///
    /// # Errors
    /// The message and its position.
    pub fn parse(text: &str, known: &KnownSeries) -> Result<Formula, Fault> {
        read(text, known, |input| Ok(Formula(sum(input)?.points()?.0)))
    }
}

fn read<'a, T>(
    text: &'a str,
    known: &'a KnownSeries,
    part: impl FnOnce(&mut Input<'a>) -> Read<T>,
) -> Result<T, Fault> {
    if text.len() > LONGEST {
        return Err(Fault {
            at: 0..0,
            message: format!(
                "it has {} bytes; the limit is {LONGEST}: split it in two",
                text.len()
            ),
        });
    }
    let mut input =
        Stateful { input: LocatingSlice::new(text), state: State { text, known, depth: 0 } };
    let input = &mut input;
    let all = || {
        multispace0(input)?;
        let read = part(input)?;
        match input.peek_token() {
            None => Ok(read),
            Some(_) => fault(next(input), format!("unexpected {}", found(input))),
        }
    };
    all().map_err(|error| match error {
        ErrMode::Backtrack(fault) | ErrMode::Cut(fault) => fault,
        ErrMode::Incomplete(_) => {
            Fault { at: text.len()..text.len(), message: "unexpected end".to_string() }
        }
    })
}

fn fault<T>(at: Range<usize>, message: impl Into<String>) -> Read<T> {
    Err(ErrMode::Cut(Fault { at, message: message.into() }))
}

/// The next character.
fn next(input: &Input<'_>) -> Range<usize> {
    let start = input.current_token_start();
    start..start + input.peek_token().map_or(0, |next| next.len_utf8())
}

fn found(input: &Input<'_>) -> String {
    input.peek_token().map_or("the end".to_string(), |next| format!("`{next}`"))
}

/// Consumes `symbol`, which must come next.
fn expect(symbol: &'static str, input: &mut Input<'_>) -> Read<()> {
    match opt(terminated(symbol, multispace0)).parse_next(input)? {
        Some(_) => Ok(()),
        None => fault(next(input), format!("expected `{symbol}`, found {}", found(input))),
    }
}

fn comparison(input: &mut Input<'_>) -> Read<Comparison> {
    let symbol = alt((
        "<=".value(Comparison::AtMost),
        "<".value(Comparison::Below),
        ">=".value(Comparison::AtLeast),
        ">".value(Comparison::Above),
    ));
    terminated(symbol, multispace0).parse_next(input)
}

fn sum(input: &mut Input<'_>) -> Read<Term> {
    chain(
        input,
        |input| alt(('+'.value(Operator::Add), '-'.value(Operator::Subtract))).parse_next(input),
        product,
    )
}

fn product(input: &mut Input<'_>) -> Read<Term> {
    chain(
        input,
        |input| alt(('*'.value(Operator::Multiply), '/'.value(Operator::Divide))).parse_next(input),
        selection,
    )
}

/// Operands separated by operators, from left to right.
fn chain(
    input: &mut Input<'_>,
    operator: fn(&mut Input<'_>) -> Read<Operator>,
    operand: fn(&mut Input<'_>) -> Read<Term>,
) -> Read<Term> {
    let mut left = operand(input)?;
    while let Some(operator) = opt(terminated(operator, multispace0)).parse_next(input)? {
        left = left.combined(operator, operand(input)?)?;
    }
    Ok(left)
}

/// A value, with the selection of its points.
fn selection(input: &mut Input<'_>) -> Read<Term> {
    let mut term = primary(input)?;
    while let Some(symbol) = opt(terminated(one_of(['@', '[']), multispace0)).parse_next(input)? {
        let (start, depth) = (term.at.start, term.depth);
        let (points, axis) = term.points()?;
        let (from, at) = literal(input)?;
        let value = if symbol == '@' {
            if let Some(axis) = axis.filter(|axis| !axis.contains(&from)) {
                return fault(
                    at,
                    format!("there is no point at {from}; there are {}", listed(&axis)),
                );
            }
            Value::Number(Number::At(Box::new(points), from))
        } else {
            expect("..", input)?;
            let (to, end) = literal(input)?;
            expect("]", input)?;
            let within = axis.clone().map(|axis| {
                axis.into_iter().filter(|x| (from..=to).contains(x)).collect::<Vec<f64>>()
            });
            if let (Some(axis), true) = (&axis, within.as_ref().is_some_and(Vec::is_empty)) {
                return fault(
                    at.start..end.end,
                    format!("there is no point from {from} to {to}; there are {}", listed(axis)),
                );
            }
            Value::Points(Points::Range(Box::new(points), from, to), within)
        };
        term = Term::new(start..end_of(input), value, depth + 1)?;
    }
    Ok(term)
}

fn primary(input: &mut Input<'_>) -> Read<Term> {
    let start = input.current_token_start();
    let first = opt(peek(any)).parse_next(input)?;
    let (value, depth) = match first {
        Some('(') => {
            let inner = nested(input, |input| {
                expect("(", input)?;
                let inner = sum(input)?;
                expect(")", input).map(|()| inner)
            })?;
            (inner.value, inner.depth)
        }
        Some('-') => {
            let positive = nested(input, |input| {
                expect("-", input)?;
                selection(input)
            })?;
            let zero = Term::new(start..start, Value::Number(Number::Literal(0.0)), 1)?;
            let negative = zero.combined(Operator::Subtract, positive)?;
            (negative.value, negative.depth)
        }
        Some('0'..='9') => (Value::Number(Number::Literal(literal(input)?.0)), 1),
        Some('a'..='z') => named(input)?,
        _ => {
            return fault(
                next(input),
                format!("expected a number, a series or a function, found {}", found(input)),
            );
        }
    };
    Term::new(start..end_of(input), value, depth)
}

/// The content of parentheses or a call, or the operand of a minus sign.
fn nested<'a, T>(input: &mut Input<'a>, inner: impl FnOnce(&mut Input<'a>) -> Read<T>) -> Read<T> {
    if input.state.depth == DEEPEST {
        return fault(
            next(input),
            format!("this is nested more than {DEEPEST} deep; split the expression in two"),
        );
    }
    input.state.depth += 1;
    let read = inner(input);
    input.state.depth -= 1;
    read
}

/// The end of the last consumed text, without the blanks after it.
fn end_of(input: &Input<'_>) -> usize {
    input.state.text[..input.current_token_start()].trim_end().len()
}

/// A number literal and its position.
fn literal(input: &mut Input<'_>) -> Read<(f64, Range<usize>)> {
    let digits = (digit1, opt(('.', not('.'), digit0))).take().with_span();
    let Some((digits, at)) = opt(digits).parse_next(input)? else {
        return fault(next(input), format!("expected a number, found {}", found(input)));
    };
    multispace0(input)?;
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number, at)),
        _ => fault(at, "this number is too large"),
    }
}

/// A series or a call, and its depth.
fn named(input: &mut Input<'_>) -> Read<(Value, usize)> {
    let letters = ('a'..='z', 'A'..='Z', '0'..='9', '_');
    let (name, at) = take_while(1.., letters).with_span().parse_next(input)?;
    multispace0(input)?;
    let known = input.state.known;
    if input.peek_token().is_some_and(|next| next == '(') {
        let arguments = nested(input, arguments)?;
        let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0) + 1;
        return Ok((call(name, at, arguments, known)?, depth));
    }
    match known.get(name) {
        Some(Known { axis, .. }) => {
            Ok((Value::Points(Points::Name(name.to_string()), axis.clone()), 1))
        }
        None => {
            let names: Vec<String> = known.keys().cloned().collect();
            let see = if names.is_empty() {
                "`let.NAME = …` defines one.".to_string()
            } else {
                format!("There are {}.", names.join(", "))
            };
            fault(at, no_such("series", name, &names, &see))
        }
    }
}

fn arguments(input: &mut Input<'_>) -> Read<Vec<Term>> {
    expect("(", input)?;
    let mut arguments = vec![sum(input)?];
    while opt(terminated(',', multispace0)).parse_next(input)?.is_some() {
        arguments.push(sum(input)?);
    }
    expect(")", input)?;
    Ok(arguments)
}

/// The call of the function `name` at position `at`.
fn call(name: &str, at: Range<usize>, arguments: Vec<Term>, known: &KnownSeries) -> Read<Value> {
    let Some(function) = Function::find(name) else {
        let names: Vec<String> = FUNCTIONS.iter().map(|(name, _)| name.to_string()).collect();
        return fault(
            at,
            no_such("function", name, &names, &format!("There are {}.", names.join(", "))),
        );
    };
    if let Some(wanted) = function.arguments().filter(|&wanted| wanted != arguments.len()) {
        let plural = if wanted == 1 { "" } else { "s" };
        return fault(
            at,
            format!("`{name}` takes {wanted} argument{plural}, not {}", arguments.len()),
        );
    }
    let mut rest = arguments.into_iter();
    let Some(first) = rest.next() else { return fault(at, "a call needs arguments") };
    match function {
        Function::Summary(summary) => {
            Ok(Value::Number(Number::Summary(summary, Box::new(first.points()?.0))))
        }
        Function::Shape => {
            let (points, _) = first.points()?;
            match known.iter().find(|(name, known)| !known.is_printed && points.uses(name)) {
                Some((name, _)) => fault(
                    at,
                    format!("`shape` compares with printed numbers, and `{name}` has none"),
                ),
                None => Ok(Value::Number(Number::Shape(Box::new(points)))),
            }
        }
        Function::Absolute => Ok(match first.value {
            Value::Number(number) => Value::Number(Number::Absolute(Box::new(number))),
            Value::Points(points, axis) => Value::Points(Points::Absolute(Box::new(points)), axis),
        }),
        Function::Coordinates => first
            .points()
            .map(|(points, axis)| Value::Points(Points::Coordinates(Box::new(points)), axis)),
        Function::Pair(pair) => pair_of(pair, at, first, rest.next()),
        Function::Join => {
            let all =
                std::iter::once(first).chain(rest).map(Term::points).collect::<Read<Vec<_>>>()?;
            let count =
                all.iter().map(|(_, axis)| Some(axis.as_ref()?.len())).sum::<Option<usize>>();
            let axis = count.map(|count| (0..count).map(|index| index as f64).collect());
            Ok(Value::Points(
                Points::Join(all.into_iter().map(|(points, _)| points).collect()),
                axis,
            ))
        }
    }
}

fn pair_of(pair: Pair, at: Range<usize>, first: Term, second: Option<Term>) -> Read<Value> {
    let Some(second) = second else { return fault(at, "this function takes two arguments") };
    let whole = at.start..second.at.end;
    let (left, axis) = first.points()?;
    let (right, other) = match (pair, second.value) {
        (Pair::Cross, Value::Number(level)) => {
            return Ok(Value::Number(Number::CrossesLevel(Box::new(left), Box::new(level))));
        }
        (_, value) => Term { at: second.at, value, depth: second.depth }.points()?,
    };
    common(whole, &axis, &other)?;
    Ok(Value::Number(Number::Pair(pair, Box::new(left), Box::new(right))))
}

/// Every x that both have; there must be at least one.
fn common(at: Range<usize>, a: &Option<Vec<f64>>, b: &Option<Vec<f64>>) -> Read<Option<Vec<f64>>> {
    let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
    let both: Vec<f64> = a.iter().copied().filter(|x| b.contains(x)).collect();
    if both.is_empty() {
        return fault(
            at,
            format!(
                "the two sides have no point in common: one has {}, the other {}",
                listed(a),
                listed(b)
            ),
        );
    }
    Ok(Some(both))
}

/// The points of an axis, for a message.
fn listed(axis: &[f64]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = axis.iter().take(SHOWN).map(f64::to_string).collect();
    shown.join(", ") + if axis.len() > SHOWN { ", …" } else { "" }
}

impl Term {
    fn new(at: Range<usize>, value: Value, depth: usize) -> Read<Term> {
        match depth > DEEPEST {
            true => fault(
                at,
                format!("this is more than {DEEPEST} operations deep; split the expression in two"),
            ),
            false => Ok(Term { at, value, depth }),
        }
    }

    fn expression(self) -> Expression {
        match self.value {
            Value::Number(number) => Expression::Number(number),
            Value::Points(points, _) => Expression::Points(points),
        }
    }

    fn points(self) -> Read<(Points, Option<Vec<f64>>)> {
        match self.value {
            Value::Points(points, axis) => Ok((points, axis)),
            Value::Number(_) => fault(self.at, "expected a series, found a number"),
        }
    }

    fn combined(self, operator: Operator, right: Term) -> Read<Term> {
        let (at, depth) = (self.at.start..right.at.end, self.depth.max(right.depth) + 1);
        let value = match (self.value, right.value) {
            (Value::Number(a), Value::Number(b)) => {
                Value::Number(Number::Arithmetic(Box::new(a), operator, Box::new(b)))
            }
            (Value::Points(a, axis), Value::Number(b)) => {
                Value::Points(Points::ThenNumber(Box::new(a), operator, Box::new(b)), axis)
            }
            (Value::Number(a), Value::Points(b, axis)) => {
                Value::Points(Points::NumberThen(Box::new(a), operator, Box::new(b)), axis)
            }
            (Value::Points(a, one), Value::Points(b, other)) => {
                let axis = common(at.clone(), &one, &other)?;
                Value::Points(Points::Arithmetic(Box::new(a), operator, Box::new(b)), axis)
            }
        };
        Term::new(at, value, depth)
    }
}
