//! Instants and durations, in nanoseconds.
//!
//! Sums saturate, so that debug and release builds agree. Admitted values never reach the limit:
//! see [`admission`](crate::admission).

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// The longest duration, 36 years: a recording, a run or a pause that lasts longer is a mistake.
pub const LONGEST: Nanos = Nanos(1 << 60);

/// An instant: nanoseconds since the start of the trace or of the simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A duration in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Time {
    /// The beginning.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// How long after `earlier` this is; zero if it is not after it.
    #[inline]
    pub fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// Longer than anything lasts.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Nanos {
        Nanos(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Nanos {
        Nanos(n * 1_000_000)
    }

    /// This duration plus `other`, at most [`Nanos::MAX`]. The same as `+`, for code where a lint
    /// forbids that.
    #[inline]
    pub fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// This duration less `other`, or zero.
    #[inline]
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add<Nanos> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Nanos) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Nanos> for Time {
    #[inline]
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Nanos;
    #[inline]
    fn sub(self, earlier: Time) -> Nanos {
        debug_assert!(self >= earlier, "time runs backwards: {self:?} - {earlier:?}");
        Nanos(self.0.wrapping_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    #[inline]
    fn sub(self, other: Nanos) -> Nanos {
        debug_assert!(self >= other, "negative duration: {self:?} - {other:?}");
        Nanos(self.0.wrapping_sub(other.0))
    }
}

impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Nanos) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(spans: I) -> Nanos {
        spans.fold(Nanos::ZERO, Add::add)
    }
}

/// Why a text is not a duration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DurationError {
    /// It has another form.
    NotOne(String),
    /// It is longer than [`LONGEST`].
    TooLong(String),
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurationError::NotOne(text) => {
                write!(
                    f,
                    "{text:?} is not a duration: give a number and a unit (ns, us, ms or s), as \
                     in 500us or 1.5ms"
                )
            }
            DurationError::TooLong(text) => {
                write!(f, "{text} is out of range: give a duration from 0ns to {}", LONGEST.exact())
            }
        }
    }
}

impl std::error::Error for DurationError {}

/// A decimal number and a unit, `500us` or `1.5ms`, up to [`LONGEST`]; digits below a nanosecond
/// are refused.
impl FromStr for Nanos {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Nanos, DurationError> {
        let digits = || {
            let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit) = text.split_at(unit_at);
            let digits = match unit {
                "ns" => 0,
                "us" | "µs" => 3,
                "ms" => 6,
                "s" => 9,
                _ => return None,
            };
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            let is_number = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
            (is_number && fraction.len() <= digits && !whole.is_empty())
                .then(|| format!("{whole}{fraction:0<digits$}"))
        };
        let digits = digits().ok_or_else(|| DurationError::NotOne(text.to_string()))?;
        // More digits than a u64 holds are still a duration, one that is too long.
        let nanos = digits.parse().ok().map(Nanos).filter(|&nanos| nanos <= LONGEST);
        nanos.ok_or_else(|| DurationError::TooLong(text.to_string()))
    }
}

/// Three significant digits and the unit that suits: `950ns`, `12.3us`, `4.00ms`, `1.50s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return f.pad(&format!("{}ns", self.0)),
            1_000..1_000_000 => (ns / 1e3, "us"),
            1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        f.pad(&format!("{value:.digits$}{unit}"))
    }
}

impl Nanos {
    /// Every digit, in the longest unit that needs no fraction. [`FromStr`] reads the same value
    /// back.
    pub fn exact(self) -> String {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        let (length, unit) = units
            .into_iter()
            .find(|(length, _)| self.0 > 0 && self.0.is_multiple_of(*length))
            .unwrap_or((1, "ns"));
        format!("{}{unit}", self.0 / length)
    }
}

/// As [`Nanos::exact`] writes it.
impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.exact())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Nanos {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s)$",
            "examples": ["500us", "1.5ms"]
        })
    }
}

/// From a text with a unit.
impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_are_exact() {
        let parse = |text: &str| text.parse::<Nanos>().ok();
        assert_eq!(parse("500us"), Some(Nanos(500_000)));
        assert_eq!(parse("1.5ms"), Some(Nanos(1_500_000)));
        assert_eq!(parse("0.000000001s"), Some(Nanos(1)));
        for bad in
            ["", "5", "ms", "1.5ns", "-1ms", "1e3us", "5 ms", "99999999999999s", "1.2.3s", ".5s"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
        let refused = |text: &str| text.parse::<Nanos>().expect_err(text).to_string();
        let expected = "is out of range: give a duration from 0ns to 1152921504606846976ns";
        for long in ["1152921505s", "99999999999999999999s", "1152921504606846977ns"] {
            assert_eq!(refused(long), format!("{long} {expected}"));
        }
        assert!(refused("1.2.3s").contains("is not a duration"));
    }

    #[test]
    fn an_exact_duration_reads_back_as_the_same() {
        assert_eq!(
            [0, 1_500, 2_000_000, 60_000_000_000].map(|ns| Nanos(ns).exact()),
            ["0ns", "1500ns", "2ms", "60s"]
        );
        assert!(
            [0, 1, 999, 1_500, 1 << 60]
                .map(Nanos)
                .into_iter()
                .all(|span| span.exact().parse() == Ok(span))
        );
    }

    #[test]
    fn durations_print_with_three_digits() {
        assert_eq!(
            [999, 1_000, 12_345, 4_000_000, 1_500_000_000].map(|ns| Nanos(ns).to_string()),
            ["999ns", "1.00us", "12.3us", "4.00ms", "1.50s"]
        );
    }
}
