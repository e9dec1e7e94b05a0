//! The parameter values at which a number was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// Typed coordinates by name, sorted by name.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Point(BTreeMap<String, Coordinate>);

/// One coordinate: a number, a number with a unit, or text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Coordinate {
    /// An integer.
    Count(i64),
    /// A number without a unit.
    Number(f64),
    /// A number with a unit.
    #[serde(rename_all = "snake_case")]
    Quantity {
        /// The number.
        value: f64,
        /// The unit, as in `ms`.
        unit: String,
    },
    /// Anything else.
    Text(String),
}

impl Point {
    /// A point without coordinates.
    pub fn new() -> Point {
        Point::default()
    }

    /// Adds or replaces a coordinate.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Coordinate>) -> Point {
        self.set(name, value);
        self
    }

    /// Sets a coordinate.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Coordinate>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds all coordinates of `other`; they replace existing ones.
    pub fn extend(&mut self, other: Point) {
        self.0.extend(other.0);
    }

    /// Removes a coordinate.
    pub fn without(mut self, name: &str) -> Point {
        self.0.remove(name);
        self
    }

    /// The value of a coordinate.
    pub fn get(&self, name: &str) -> Option<&Coordinate> {
        self.0.get(name)
    }

    /// Whether there are no coordinates.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All coordinates, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Coordinate)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Reads parameters from text; text that reads as a number becomes one.
    pub fn read<'a>(parameters: impl IntoIterator<Item = (&'a String, &'a String)>) -> Point {
        Point(
            parameters
                .into_iter()
                .map(|(name, text)| (name.clone(), Coordinate::read(text)))
                .collect(),
        )
    }
}

impl<N: Into<String>, V: Into<Coordinate>> FromIterator<(N, V)> for Point {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(coordinates: I) -> Point {
        Point(coordinates.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl Coordinate {
    /// Reads a number, with or without a unit of time, if writing it gives the same text again. All
    /// other text stays text.
    pub fn read(text: &str) -> Coordinate {
        const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
        let number = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let unit = &text[number.len()..];
        let read = match number.parse::<f64>() {
            Ok(value) if value.is_finite() && unit.is_empty() => Coordinate::from(value),
            Ok(value) if value.is_finite() && UNITS.contains(&unit) => {
                Coordinate::Quantity { value, unit: unit.to_string() }
            }
            _ => Coordinate::Text(text.to_string()),
        };
        if read.to_string() == text { read } else { Coordinate::Text(text.to_string()) }
    }

    /// The number, without its unit.
    pub fn number(&self) -> Option<f64> {
        match self {
            Coordinate::Count(count) => Some(*count as f64),
            Coordinate::Number(value) | Coordinate::Quantity { value, .. } => Some(*value),
            Coordinate::Text(_) => None,
        }
    }

    /// The text, if it is not a number.
    pub fn text(&self) -> Option<&str> {
        match self {
            Coordinate::Text(text) => Some(text),
            _ => None,
        }
    }

    fn rank(&self) -> (u8, f64, &str) {
        match self {
            Coordinate::Count(count) => (0, *count as f64, ""),
            Coordinate::Number(value) => (0, *value, ""),
            Coordinate::Quantity { value, unit } => (1, *value, unit),
            Coordinate::Text(text) => (2, 0.0, text),
        }
    }
}

/// As on the command line: `8`, `0.7`, `2ms`, `powers`.
impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coordinate::Count(count) => write!(f, "{count}"),
            Coordinate::Number(value) => write!(f, "{value}"),
            Coordinate::Quantity { value, unit } => write!(f, "{value}{unit}"),
            Coordinate::Text(text) => f.write_str(text),
        }
    }
}

/// Numbers sort before text, by value.
impl Ord for Coordinate {
    fn cmp(&self, other: &Coordinate) -> Ordering {
        let ((kind, value, text), (other_kind, other_value, other_text)) =
            (self.rank(), other.rank());
        kind.cmp(&other_kind).then(value.total_cmp(&other_value)).then_with(|| text.cmp(other_text))
    }
}

impl PartialOrd for Coordinate {
    fn partial_cmp(&self, other: &Coordinate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Coordinate {
    fn eq(&self, other: &Coordinate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Coordinate {}

impl From<&str> for Coordinate {
    fn from(text: &str) -> Coordinate {
        Coordinate::Text(text.to_string())
    }
}

impl From<String> for Coordinate {
    fn from(text: String) -> Coordinate {
        Coordinate::Text(text)
    }
}

impl From<&String> for Coordinate {
    fn from(text: &String) -> Coordinate {
        Coordinate::Text(text.clone())
    }
}

/// A whole number becomes a count, so that it reads back as it was written.
impl From<f64> for Coordinate {
    fn from(value: f64) -> Coordinate {
        const EXACT: f64 = (1_u64 << 53) as f64;
        match value {
            _ if !value.is_finite() => Coordinate::Text(value.to_string()),
            _ if value.fract() == 0.0
                && value.abs() < EXACT
                && !(value == 0.0 && value.is_sign_negative()) =>
            {
                Coordinate::Count(value as i64)
            }
            _ => Coordinate::Number(value),
        }
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl From<$type> for Coordinate {
            fn from(count: $type) -> Coordinate {
                i64::try_from(count)
                    .map_or_else(|_| Coordinate::Text(count.to_string()), Coordinate::Count)
            }
        }
    )*};
}
whole_numbers!(u8, u16, u32, u64, usize, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_keeps_its_text_and_gets_a_type() {
        for (text, number) in [
            ("0.7", Some(0.7)),
            ("1000", Some(1000.0)),
            ("2ms", Some(2.0)),
            ("-1", Some(-1.0)),
            ("powers", None),
        ] {
            let read = Coordinate::read(text);
            assert_eq!((read.to_string().as_str(), read.number()), (text, number));
        }
        // Text stays text if writing it as a number would change it, or if it only looks like a
        // number.
        for text in ["6.10", "1e3", "inf", "NaN", "+1", "1,2", "", "ms", "8kb", "0x10", "1 ms"] {
            assert_eq!(Coordinate::read(text).text(), Some(text));
        }
    }

    #[test]
    fn coordinates_are_read_as_they_are_written() {
        let ms = Coordinate::Quantity { value: 0.5, unit: "ms".to_string() };
        for one in [
            8u16.into(),
            0.7.into(),
            ms,
            "8".into(),
            "a;b=c".into(),
            3.0.into(),
            (-0.0).into(),
            u64::MAX.into(),
        ] {
            let json = serde_json::to_string(&one).unwrap();
            let back: Coordinate = serde_json::from_str(&json).unwrap();
            assert_eq!((back.cmp(&one), back.number()), (Ordering::Equal, one.number()), "{json}");
        }
    }

    #[test]
    fn a_number_and_its_text_are_two_coordinates() {
        assert_ne!(Coordinate::from(8u16), Coordinate::from("8"));
        assert_eq!(Coordinate::from(8u16), Coordinate::from(8.0));
    }
}
