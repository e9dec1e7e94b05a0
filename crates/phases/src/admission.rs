//! Range-checked types for numbers from outside: files, traces, the command line, Python.
//!
//! Each type is a range, and this module defines all ranges. A value outside is refused with the
//! value, the range and what to do; the caller adds the place. Arithmetic on admitted numbers
//! cannot overflow by accident: `docs/adr/0015-admission.md` says why.
//!
//! ```
//! use phases::admission::Cpus;
//!
//! assert_eq!(Cpus::admit(8).map(|cpus| cpus.get()), Ok(8));
//! let error = Cpus::admit(5000).unwrap_err().to_string();
//! assert_eq!(error, "5000 is out of range: give a whole number from 1 to 4096");
//! ```
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

pub use crate::time::LONGEST;

use crate::{Nanos, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Whole<T, const LEAST: u64, const MOST: u64>(T);

/// How many CPUs a machine has: as many as a set of CPUs holds at most.
pub type Cpus = Whole<u16, 1, 4096>;
/// The number of a CPU.
pub type CpuNumber = Whole<u16, 0, 4095>;
/// How many tasks a closed workload has, or an entry of one: each takes about 200 bytes before it
/// runs.
pub type TaskCount = Whole<u32, 1, { 1 << 20 }>;
/// A thread or process id; Linux's `PID_MAX_LIMIT` is the most.
pub type Pid = Whole<u32, 0, { 1 << 22 }>;
/// Linux's kernel priority: 0 to 99 real-time, 100 to 139 for nice −20 to 19.
pub type Priority = Whole<u8, 0, 139>;
/// The number of iterations of a loop. `u64::MAX` means for ever and cannot be written.
pub type Rounds = Whole<u64, 1, { 1 << 62 }>;
/// The number of tasks that a stochastic workload draws. Only live tasks take memory.
pub type Drawn = Whole<u64, 1, { 1 << 53 }>;
/// The number of warm-up tasks that arrive before the measured ones.
pub type WarmUpTasks = Whole<u64, 0, { 1 << 53 }>;
/// How many tasks of a stochastic workload may be alive: each takes about 500 bytes.
pub type Population = Whole<u32, 1, { 1 << 22 }>;
/// A number of bytes that a task reads or writes, or that a pipe holds.
pub type Bytes = Whole<u64, 1, { u64::MAX }>;
/// As [`Bytes`], but may be zero.
pub type Size = Whole<u64, 0, { u64::MAX }>;
/// How many requests a device serves at a time.
pub type Channels = Whole<u16, 1, { u16::MAX as u64 }>;
/// The period of a policy's tick in nanoseconds, up to [`LONGEST`].
pub type Tick = Whole<u64, 1, { 1 << 60 }>;
/// The seed of random numbers.
pub type Seed = Whole<u64, 0, { u64::MAX }>;

/// The latest time that a simulation reaches: four of the longest durations. What begins before it
/// ends before [`Time::NEVER`].
pub const LAST: Time = Time(1 << 62);
/// The maximum nesting of loops, tables and lists in a file.
pub const DEEPEST: usize = 100;
/// The maximum size in bytes of a file that a person writes (a workload, a machine, a grid,
/// rt-app's JSON).
pub const LARGEST_TEXT: u64 = 16 << 20;

/// A value outside of its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// The value as it was given.
    pub value: String,
    /// What it should be.
    pub expected: String,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is out of range: give {}", self.value, self.expected)
    }
}

impl std::error::Error for OutOfRange {}

impl<T: TryFrom<u64> + Into<u64> + Copy, const LEAST: u64, const MOST: u64> Whole<T, LEAST, MOST> {
    /// Returns the number if it is in the range.
    ///
    /// # Errors
    /// If it is outside the range.
    pub fn admit(value: i128) -> Result<Self, OutOfRange> {
        let number = u64::try_from(value)
            .ok()
            .filter(|number| (LEAST..=MOST).contains(number))
            .and_then(|number| T::try_from(number).ok());
        number.map(Whole).ok_or_else(|| Self::refuse(value))
    }

    /// Parses the number from a text; fits as a parser of command lines.
    ///
    /// # Errors
    /// If it is no whole number, or outside of the range.
    pub fn parse(text: &str) -> Result<T, OutOfRange> {
        text.parse().map(Self::get)
    }

    /// The number.
    pub fn get(self) -> T {
        self.0
    }

    /// Whether `number` is in the range.
    pub fn has(number: impl TryInto<u64>) -> bool {
        number.try_into().is_ok_and(|number| (LEAST..=MOST).contains(&number))
    }

    /// The error for `value`.
    pub fn refuse(value: impl fmt::Display) -> OutOfRange {
        OutOfRange {
            value: value.to_string(),
            expected: format!("a whole number from {LEAST} to {MOST}"),
        }
    }
}

impl<T: TryFrom<u64> + Into<u64> + Copy, const LEAST: u64, const MOST: u64> FromStr
    for Whole<T, LEAST, MOST>
{
    type Err = OutOfRange;

    fn from_str(text: &str) -> Result<Self, OutOfRange> {
        text.parse().map_err(|_| Self::refuse(format_args!("`{text}`"))).and_then(Self::admit)
    }
}

impl<T: Serialize, const LEAST: u64, const MOST: u64> Serialize for Whole<T, LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: TryFrom<u64> + Into<u64> + Copy, const LEAST: u64, const MOST: u64> Deserialize<'de>
    for Whole<T, LEAST, MOST>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T, const LEAST: u64, const MOST: u64>(std::marker::PhantomData<T>);
        impl<T: TryFrom<u64> + Into<u64> + Copy, const LEAST: u64, const MOST: u64> de::Visitor<'_>
            for Visitor<T, LEAST, MOST>
        {
            type Value = Whole<T, LEAST, MOST>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                Whole::admit(value.into()).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                Whole::admit(value.into()).map_err(E::custom)
            }
        }
        deserializer.deserialize_u64(Visitor(std::marker::PhantomData))
    }
}

/// Lets a plain field of a file be read through its range: `#[serde(deserialize_with =
/// "admitted::<_, TaskCount, _>")]`.
///
/// # Errors
/// If the number is not in the range.
pub fn admitted<'de, T, W: Deserialize<'de> + Admitted<T>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    W::deserialize(deserializer).map(W::number)
}

/// The same for a field that may be absent.
///
/// # Errors
/// If the number is not in the range.
pub fn admitted_if_given<'de, T, W: Deserialize<'de> + Admitted<T>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<W>::deserialize(deserializer)?.map(W::number))
}

/// The same for a list that may be absent.
///
/// # Errors
/// If a number is not in the range.
pub fn admitted_list_if_given<'de, T, W, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    W: Deserialize<'de> + Admitted<T>,
    D: Deserializer<'de>,
{
    Ok(Option::<Vec<W>>::deserialize(deserializer)?
        .map(|list| list.into_iter().map(W::number).collect()))
}

/// A number that passed its range check, converted to the type that the rest of the code uses.
pub trait Admitted<T> {
    /// The plain number.
    fn number(self) -> T;
}

impl<T, const LEAST: u64, const MOST: u64> Admitted<T> for Whole<T, LEAST, MOST> {
    fn number(self) -> T {
        self.0
    }
}

#[cfg(feature = "schema")]
impl<T, const LEAST: u64, const MOST: u64> schemars::JsonSchema for Whole<T, LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Whole{LEAST}To{MOST}").into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

/// The duration of `count` times `unit`.
///
/// # Errors
/// If it is negative or longer than [`LONGEST`].
pub fn duration(count: i128, unit: Nanos) -> Result<Nanos, OutOfRange> {
    let nanos =
        count.checked_mul(unit.0.into()).and_then(|nanos| u64::try_from(nanos).ok()).map(Nanos);
    nanos.filter(|&nanos| nanos <= LONGEST).ok_or_else(|| {
        let most = LONGEST.0.checked_div(unit.0).unwrap_or(LONGEST.0);
        OutOfRange {
            value: format!("{count} × {}", unit.exact()),
            expected: format!("a whole number from 0 to {most}"),
        }
    })
}

/// A range of real numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Real {
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Real {
    /// Offered load: arriving work divided by available CPU time.
    pub const LOAD: Real = Real { least: 1e-6, most: 1e6 };
    /// A share by which bursts lengthen.
    pub const SLOWDOWN: Real = Real { least: 0.0, most: 1e6 };
    /// The mean number of bursts of a task.
    pub const BURSTS: Real = Real { least: 1.0, most: 1e9 };
    /// How fast a CPU is.
    pub const SPEED: Real = Real { least: 0.001, most: 1000.0 };

    /// Returns `value` if it is in the range. NaN never is.
    ///
    /// # Errors
    /// If it is outside the range.
    pub fn admit(self, value: f64) -> Result<f64, OutOfRange> {
        let Real { least, most } = self;
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(OutOfRange {
            value: value.to_string(),
            expected: format!("a number from {least} to {most}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says<T: fmt::Debug>(result: Result<T, impl fmt::Display>, words: &str) {
        let message = result.expect_err(words).to_string();
        assert!(message.starts_with(words), "{message}");
    }

    #[test]
    fn both_ends_of_a_range_are_in_it_and_their_neighbours_are_not() {
        assert_eq!([1, 4096].map(|cpus| Cpus::admit(cpus).map(Cpus::get)), [Ok(1), Ok(4096)]);
        says(Cpus::admit(0), "0 is out of range: give a whole number from 1 to 4096");
        says(Cpus::admit(4097), "4097 is out of range");
        says(Cpus::admit(-1), "-1 is out of range");
        says(Cpus::admit(i128::MAX), "170141183460469231731687303715884105727 is out of range");
        says(
            "eight".parse::<Cpus>(),
            "`eight` is out of range: give a whole number from 1 to 4096",
        );
        says(
            "99999999999999999999".parse::<Seed>(),
            "99999999999999999999 is out of range: give a whole number from 0 to \
             18446744073709551615",
        );
        assert_eq!(Seed::parse("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn a_file_is_refused_with_the_value_and_the_range() {
        let read = |text: &str| serde_json::from_str::<Cpus>(text);
        assert_eq!(read("4096").unwrap().get(), 4096);
        for (text, words) in [
            ("65535", "65535 is out of range: give a whole number from 1 to 4096"),
            ("-3", "-3 is out of range"),
            ("1.5", "invalid type: floating point `1.5`, expected a whole number from 1 to 4096"),
            ("1e999", "number out of range"),
            ("\"4\"", "invalid type: string \"4\", expected a whole number from 1 to 4096"),
        ] {
            says(read(text), words);
        }
    }

    #[test]
    fn durations_end_at_the_longest() {
        let year = Nanos(365 * 86_400 * 1_000_000_000);
        assert_eq!(duration(36, year), Ok(Nanos(36 * year.0)));
        says(
            duration(37, year),
            "37 × 31536000s is out of range: give a whole number from 0 to 36",
        );
        says(duration(-1, Nanos(1)), "-1 × 1ns is out of range");
        says(duration(i128::MAX, Nanos(2)), "1701411");
        assert!(LAST + LONGEST + LONGEST < Time::NEVER);
    }

    #[test]
    fn no_real_range_has_nan_or_infinity() {
        for range in [Real::LOAD, Real::SLOWDOWN, Real::BURSTS, Real::SPEED] {
            assert_eq!(range.admit(range.least), Ok(range.least));
            assert_eq!(range.admit(range.most), Ok(range.most));
            for wrong in [f64::NAN, f64::INFINITY, -1.0, -0.1] {
                says(range.admit(wrong), &format!("{wrong} is out of range: give a number from "));
            }
        }
    }
}
