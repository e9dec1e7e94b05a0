//! The language of claims: comparisons of arithmetic over series.
//!
//! `max(list) / min(list) <= 1.01`. A name is a series of points (x, y); arithmetic goes point by point over the x that both sides have. `s@10` is the
//! value at x = 10, `s[50..200]` the points in that range. A comparison holds if it holds at every point. A [`Formula`] is one side of it: what a figure draws.

use super::series::{self, Series};
use std::collections::BTreeSet;

/// A parsed comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    left: Node,
    comparison: Comparison,
    right: Node,
    threshold: String,
}

/// Parsed arithmetic over series, such as `take / initial`.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula(Node);

impl Formula {
    /// Reads `text`.
    ///
    /// # Errors
    /// If it is no formula.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut parser = Parser { tokens: tokens(text)?, next: 0 };
        let formula = Formula(parser.sum()?);
        parser.take().map_or(Ok(formula), |token| Err(format!("`{text}`: unexpected `{token}`")))
    }

    /// The series that it speaks of.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.0.names(&mut names);
        names
    }

    /// The points of it.
    ///
    /// # Errors
    /// If it is a number, or asks for points that there are not.
    pub fn evaluate(&self, names: &impl Names) -> Result<Series, String> {
        points(&self.0, names)
    }
}

/// What a check says about one set of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// The left side, where it comes nearest to failing.
    pub value: f64,
    /// By how much the check holds there; below 0 it fails.
    pub margin: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    AtMost,
    Below,
    AtLeast,
    Above,
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Number(f64),
    Name(String),
    Call(String, Vec<Node>),
    Binary(char, Box<Node>, Box<Node>),
    At(Box<Node>, f64),
    Range(Box<Node>, f64, f64),
}

impl Node {
    fn names(&self, names: &mut BTreeSet<String>) {
        match self {
            Node::Number(_) => {}
            Node::Name(name) => drop(names.insert(name.clone())),
            Node::Call(_, arguments) => arguments.iter().for_each(|argument| argument.names(names)),
            Node::Binary(_, left, right) => [left, right].into_iter().for_each(|side| side.names(names)),
            Node::At(inner, _) | Node::Range(inner, ..) => inner.names(names),
        }
    }
}

enum Value {
    Number(f64),
    Series(Series),
}

/// Where names get their series: measured, and as printed.
pub trait Names {
    /// The series to judge.
    fn series(&self, name: &str) -> Option<&Series>;
    /// The printed one.
    fn printed(&self, name: &str) -> Option<&Series>;
}

impl Check {
    /// Reads `text`.
    pub fn parse(text: &str) -> Result<Check, String> {
        let mut parser = Parser { tokens: tokens(text)?, next: 0 };
        let left = parser.sum()?;
        let comparison = match parser.take().as_deref() {
            Some("<=") => Comparison::AtMost,
            Some("<") => Comparison::Below,
            Some(">=") => Comparison::AtLeast,
            Some(">") => Comparison::Above,
            other => return Err(format!("`{text}`: expected <=, <, >= or >, found {}", other.unwrap_or("the end"))),
        };
        let right = parser.sum()?;
        match parser.take() {
            None => {
                let threshold = text.find(['<', '>']).map_or(String::new(), |at| text[at..].to_string());
                Ok(Check { left, comparison, right, threshold })
            }
            Some(token) => Err(format!("`{text}`: unexpected `{token}`")),
        }
    }

    /// Its right side with the comparison, such as `<= 0.1`.
    pub fn threshold(&self) -> String {
        self.threshold.clone()
    }

    /// The series that it speaks of.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        [&self.left, &self.right].into_iter().for_each(|side| side.names(&mut names));
        names
    }

    /// Whether a series is in it.
    pub fn uses(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Evaluates both sides.
    pub fn evaluate(&self, names: &impl Names) -> Result<Outcome, String> {
        let (left, right) = (evaluate(&self.left, names)?, evaluate(&self.right, names)?);
        let pairs: Vec<(f64, f64)> = match (left, right) {
            (Value::Number(a), Value::Number(b)) => vec![(a, b)],
            (Value::Series(a), Value::Number(b)) => a.into_iter().map(|(_, a)| (a, b)).collect(),
            (Value::Number(a), Value::Series(b)) => b.into_iter().map(|(_, b)| (a, b)).collect(),
            (Value::Series(a), Value::Series(b)) => series::common(&a, &b).map(|(_, a, b)| (a, b)).collect(),
        };
        let margin = |(a, b): (f64, f64)| match self.comparison {
            Comparison::AtMost | Comparison::Below => b - a,
            Comparison::AtLeast | Comparison::Above => a - b,
        };
        let worst = pairs.into_iter().min_by(|a, b| margin(*a).total_cmp(&margin(*b))).ok_or("nothing to compare: no common points")?;
        let strict = matches!(self.comparison, Comparison::Below | Comparison::Above) && margin(worst) == 0.0;
        Ok(Outcome { value: worst.0, margin: if strict { -f64::MIN_POSITIVE } else { margin(worst) } })
    }
}

fn evaluate(node: &Node, names: &dyn Names) -> Result<Value, String> {
    Ok(match node {
        Node::Number(number) => Value::Number(*number),
        Node::Name(name) => Value::Series(names.series(name).ok_or_else(|| format!("there is no series `{name}`"))?.clone()),
        Node::At(inner, x) => Value::Number(series::at(&points(inner, names)?, *x).ok_or_else(|| format!("no point at {x}"))?),
        Node::Range(inner, from, to) => {
            Value::Series(points(inner, names)?.into_iter().filter(|(x, _)| (*from..=*to).contains(x)).collect())
        }
        Node::Binary(operator, left, right) => combine(*operator, evaluate(left, names)?, evaluate(right, names)?),
        Node::Call(function, arguments) => call(function, arguments, names)?,
    })
}

fn points(node: &Node, names: &dyn Names) -> Result<Series, String> {
    match evaluate(node, names)? {
        Value::Series(series) if series.is_empty() => Err("a series has no points".to_string()),
        Value::Series(series) => Ok(series),
        Value::Number(_) => Err("expected a series, found a number".to_string()),
    }
}

fn combine(operator: char, left: Value, right: Value) -> Value {
    let apply = |a: f64, b: f64| match operator {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        _ => a / b,
    };
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Value::Number(apply(a, b)),
        (Value::Series(a), Value::Number(b)) => Value::Series(a.into_iter().map(|(x, a)| (x, apply(a, b))).collect()),
        (Value::Number(a), Value::Series(b)) => Value::Series(b.into_iter().map(|(x, b)| (x, apply(a, b))).collect()),
        (Value::Series(a), Value::Series(b)) => Value::Series(series::common(&a, &b).map(|(x, a, b)| (x, apply(a, b))).collect()),
    }
}

fn call(function: &str, arguments: &[Node], names: &dyn Names) -> Result<Value, String> {
    if let ("shape", [argument]) = (function, arguments) {
        return Ok(Value::Number(series::r2(&points(argument, names)?, &points(argument, &InPrint(names))?)));
    }
    if function == "join" {
        let all = arguments.iter().map(|argument| points(argument, names)).collect::<Result<Vec<_>, _>>()?;
        return Ok(Value::Series(all.into_iter().flatten().enumerate().map(|(index, (_, y))| (index as f64, y)).collect()));
    }
    if let ("cross", [argument, Node::Number(level)]) = (function, arguments) {
        let series = points(argument, names)?;
        let flat = series.iter().map(|&(x, _)| (x, *level)).collect();
        return Ok(Value::Number(series::cross(&series, &flat)));
    }
    if let ("abs", [argument]) = (function, arguments) {
        return Ok(match evaluate(argument, names)? {
            Value::Number(number) => Value::Number(number.abs()),
            Value::Series(series) => Value::Series(series.into_iter().map(|(x, y)| (x, y.abs())).collect()),
        });
    }
    let one =
        |index: usize| arguments.get(index).ok_or_else(|| format!("{function} needs more arguments")).and_then(|node| points(node, names));
    let first = one(0)?;
    Ok(match (function, arguments.len()) {
        ("x", 1) => Value::Series(first.into_iter().map(|(x, _)| (x, x)).collect()),
        ("cross", 2) => Value::Number(series::cross(&first, &one(1)?)),
        ("r2", 2) => Value::Number(series::r2(&first, &one(1)?)),
        ("slope_of", 2) => Value::Number(series::slope_against(&first, &one(1)?)),
        (_, 1) => Value::Number(series::summary(function, &first).ok_or_else(|| format!("there is no function `{function}`"))?),
        (_, count) => return Err(format!("there is no function `{function}` of {count} arguments")),
    })
}

/// The printed numbers under the names of the measured ones.
struct InPrint<'a>(&'a dyn Names);

impl Names for InPrint<'_> {
    fn series(&self, name: &str) -> Option<&Series> {
        self.0.printed(name)
    }

    fn printed(&self, name: &str) -> Option<&Series> {
        self.0.printed(name)
    }
}

struct Parser {
    tokens: Vec<String>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(String::as_str)
    }

    fn take(&mut self) -> Option<String> {
        self.next += 1;
        self.tokens.get(self.next - 1).cloned()
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.take() {
            Some(token) if token == wanted => Ok(()),
            other => Err(format!("expected `{wanted}`, found {}", other.as_deref().unwrap_or("the end"))),
        }
    }

    fn sum(&mut self) -> Result<Node, String> {
        self.binary(&["+", "-"], Parser::product)
    }

    fn product(&mut self) -> Result<Node, String> {
        self.binary(&["*", "/"], Parser::selection)
    }

    fn binary(&mut self, operators: &[&str], operand: fn(&mut Parser) -> Result<Node, String>) -> Result<Node, String> {
        let mut left = operand(self)?;
        while let Some(operator) = self.peek().filter(|token| operators.contains(token)).and_then(|token| token.chars().next()) {
            self.next += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn selection(&mut self) -> Result<Node, String> {
        let mut node = self.primary()?;
        loop {
            match self.peek() {
                Some("@") => {
                    self.next += 1;
                    node = Node::At(Box::new(node), self.number()?);
                }
                Some("[") => {
                    self.next += 1;
                    let from = self.number()?;
                    self.expect("..")?;
                    let to = self.number()?;
                    self.expect("]")?;
                    node = Node::Range(Box::new(node), from, to);
                }
                _ => return Ok(node),
            }
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        let token = self.take().unwrap_or_default();
        token.parse().map_err(|_| format!("expected a number, found `{token}`"))
    }

    fn primary(&mut self) -> Result<Node, String> {
        let token = self.take().ok_or("expected a value, found the end")?;
        if token == "(" {
            let inner = self.sum()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if token == "-" {
            return Ok(Node::Binary('-', Box::new(Node::Number(0.0)), Box::new(self.selection()?)));
        }
        if let Ok(number) = token.parse() {
            return Ok(Node::Number(number));
        }
        if !token.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(format!("expected a value, found `{token}`"));
        }
        if self.peek() != Some("(") {
            return Ok(Node::Name(token));
        }
        self.next += 1;
        let mut arguments = vec![self.sum()?];
        while self.peek() == Some(",") {
            self.next += 1;
            arguments.push(self.sum()?);
        }
        self.expect(")")?;
        Ok(Node::Call(token, arguments))
    }
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            'a'..='z' => rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()),
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
                rest[..end].find("..").unwrap_or(end)
            }
            '<' | '>' if rest[1..].starts_with('=') => 2,
            '.' if rest.starts_with("..") => 2,
            '<' | '>' | '+' | '-' | '*' | '/' | '(' | ')' | ',' | '@' | '[' | ']' => 1,
            other => return Err(format!("`{text}`: unexpected `{other}`")),
        };
        tokens.push(rest[..length].to_string());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two(Series, Series);

    impl Names for Two {
        fn series(&self, name: &str) -> Option<&Series> {
            match name {
                "a" => Some(&self.0),
                "b" => Some(&self.1),
                _ => None,
            }
        }

        fn printed(&self, name: &str) -> Option<&Series> {
            self.series(name)
        }
    }

    fn outcome(text: &str) -> Result<Outcome, String> {
        let line = |slope: f64| (1..=5).map(|x| (f64::from(x) * 10.0, 100.0 + slope * f64::from(x))).collect();
        Check::parse(text)?.evaluate(&Two(line(0.0), line(-10.0)))
    }

    #[test]
    fn the_worst_point_decides() {
        assert_eq!(outcome("a - b <= 30"), Ok(Outcome { value: 50.0, margin: -20.0 }));
        assert_eq!(outcome("(a - b)[10..30] <= 30"), Ok(Outcome { value: 30.0, margin: 0.0 }));
        assert_eq!(outcome("max(b) / a@10 + 2 * 3 >= -1"), Ok(Outcome { value: 6.9, margin: 7.9 }));
        assert!(outcome("a@10 < 100").unwrap().margin < 0.0);
        assert_eq!(outcome("r2_linear(b) >= 0.999").unwrap().value, 1.0);
        assert_eq!(outcome("shape(b) >= 1").unwrap().margin, 0.0);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, complaint) in [
            ("a", "expected <="),
            ("a <= ", "the end"),
            ("c < 1", "no series `c`"),
            ("twice(a) < 1", "no function `twice`"),
            ("a ? 1", "unexpected `?`"),
            ("a@7 < 1", "no point at 7"),
        ] {
            assert!(outcome(text).unwrap_err().contains(complaint), "{text}: {:?}", outcome(text));
        }
    }
}
