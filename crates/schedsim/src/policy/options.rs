//! The options of a policy: names, values, and their syntax, `NAME?key=value&key=value`.

use crate::Nanos;
use std::fmt;

/// An option, as a descriptor lists it.
///
/// ```
/// use schedsim::policy::{OptionSpec, Value};
///
/// const BOOST: OptionSpec =
///     OptionSpec::count("boost", 0, 14, "levels", "the boost of a woken task").by_default("1");
/// assert_eq!(BOOST.parse("3"), Ok(Value::Count(3)));
/// assert_eq!(BOOST.parse("15").unwrap_err(), "a whole number from 0 to 14 (levels)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionSpec {
    /// The name, left of the `=`.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// Its default.
    pub preset: Preset,
    /// Its meaning, in a sentence without range and default.
    pub meaning: &'static str,
    /// Its former name; to use that is an error that names the present one.
    pub former: Option<&'static str>,
}

/// The kind of an option's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A time with its unit, as in `1ms`.
    Duration {
        /// The shortest.
        least: Nanos,
        /// The longest.
        most: Nanos,
    },
    /// A whole number, or one of a few words.
    Count {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
        /// The unit of the number.
        unit: &'static str,
        /// Words that are accepted in place of a number.
        words: &'static [&'static str],
    },
    /// `yes` or `no`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// The default of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// This value.
    Value(&'static str),
    /// No value; the text describes the behaviour without one.
    Unset(&'static str),
}

/// The value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// Of [`Kind::Duration`].
    Duration(Nanos),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Choice`], or a word of [`Kind::Count`].
    Word(&'static str),
}

/// The longest duration of most options.
const LONG: Nanos = Nanos::from_millis(100_000);

impl OptionSpec {
    const fn new(name: &'static str, kind: Kind, meaning: &'static str) -> OptionSpec {
        OptionSpec { name, kind, preset: Preset::Unset("not set"), meaning, former: None }
    }

    /// A duration from 1 ns to 100 s.
    pub const fn duration(name: &'static str, meaning: &'static str) -> OptionSpec {
        OptionSpec::new(name, Kind::Duration { least: Nanos(1), most: LONG }, meaning)
    }

    /// A whole number of `unit` from `least` to `most`.
    pub const fn count(
        name: &'static str,
        least: u64,
        most: u64,
        unit: &'static str,
        meaning: &'static str,
    ) -> OptionSpec {
        OptionSpec::new(name, Kind::Count { least, most, unit, words: &[] }, meaning)
    }

    /// `yes` or `no`.
    pub const fn flag(name: &'static str, meaning: &'static str) -> OptionSpec {
        OptionSpec::new(name, Kind::Flag, meaning)
    }

    /// One of `words`.
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        meaning: &'static str,
    ) -> OptionSpec {
        OptionSpec::new(name, Kind::Choice(words), meaning)
    }

    /// Sets the default value.
    pub const fn by_default(self, value: &'static str) -> OptionSpec {
        OptionSpec { preset: Preset::Value(value), ..self }
    }

    /// Sets no default value; `words` describe the behaviour without one.
    pub const fn unset(self, words: &'static str) -> OptionSpec {
        OptionSpec { preset: Preset::Unset(words), ..self }
    }

    /// Sets the former name.
    pub const fn formerly(self, name: &'static str) -> OptionSpec {
        OptionSpec { former: Some(name), ..self }
    }

    /// Sets the maximum of a duration.
    pub const fn up_to(self, most: Nanos) -> OptionSpec {
        OptionSpec { kind: Kind::Duration { least: Nanos(1), most }, ..self }
    }

    /// Adds `words` that a count accepts in place of a number.
    ///
    /// # Panics
    /// If it is no count.
    pub const fn or(self, words: &'static [&'static str]) -> OptionSpec {
        match self.kind {
            Kind::Count { least, most, unit, .. } => {
                OptionSpec { kind: Kind::Count { least, most, unit, words }, ..self }
            }
            _ => panic!("only a count can be a word as well"),
        }
    }

    /// Parses `text`.
    ///
    /// # Errors
    /// What the option accepts, in words.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let word = |words: &'static [&'static str]| {
            words.iter().find(|word| **word == text).map(|word| Value::Word(word))
        };
        let value = match self.kind {
            Kind::Duration { least, most } => {
                text.parse().ok().filter(|&time| least <= time && time <= most).map(Value::Duration)
            }
            Kind::Count { least, most, words, .. } => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                number.map(Value::Count).or_else(|| word(words))
            }
            Kind::Flag => [("yes", true), ("no", false)]
                .iter()
                .find(|(word, _)| *word == text)
                .map(|&(_, flag)| Value::Flag(flag)),
            Kind::Choice(words) => word(words),
        };
        value.ok_or_else(|| self.kind.to_string())
    }
}

/// What an option accepts, in words.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Duration { least, most } => write!(
                f,
                "a duration with its unit, from {} to {}, as in 1ms",
                least.exact(),
                most.exact()
            ),
            Kind::Count { least, most, unit, words } => {
                write!(f, "a whole number from {least} to {most} ({unit})")?;
                words.iter().try_for_each(|word| write!(f, " or {word}"))
            }
            Kind::Flag => f.write_str("yes or no"),
            Kind::Choice(words) => f.write_str(&words.join(" or ")),
        }
    }
}

/// The default, in words.
impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Preset::Value(words) | Preset::Unset(words)) = self;
        f.write_str(words)
    }
}

/// Splits `NAME?key=value&key=value` into the name and its options in order. The value of an option
/// without `=` is `None`.
pub fn split_options(text: &str) -> (&str, impl Iterator<Item = (&str, Option<&str>)>) {
    let (name, options) =
        text.split_once('?').map_or((text, None), |(name, options)| (name, Some(options)));
    fn pair(option: &str) -> (&str, Option<&str>) {
        option.split_once('=').map_or((option, None), |(key, value)| (key, Some(value)))
    }
    (name, options.into_iter().flat_map(|options| options.split('&')).map(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_its_values_at_both_ends_of_the_range_and_none_beyond() {
        let time = OptionSpec::duration("quantum", "").up_to(Nanos::from_millis(1_000));
        assert_eq!(
            (time.parse("1ns"), time.parse("1s")),
            (Ok(Value::Duration(Nanos(1))), Ok(Value::Duration(Nanos(1_000_000_000))))
        );
        for wrong in ["0ns", "1000000001ns", "1", "-1ms", "", "long"] {
            assert_eq!(
                time.parse(wrong).unwrap_err(),
                "a duration with its unit, from 1ns to 1s, as in 1ms",
                "{wrong}"
            );
        }
        let count = OptionSpec::count("search", 1, 9, "tasks", "").or(&["all"]);
        assert_eq!(
            (count.parse("1"), count.parse("9"), count.parse("all")),
            (Ok(Value::Count(1)), Ok(Value::Count(9)), Ok(Value::Word("all")))
        );
        for wrong in ["0", "10", "1.5", "-1", "none", ""] {
            assert_eq!(
                count.parse(wrong).unwrap_err(),
                "a whole number from 1 to 9 (tasks) or all",
                "{wrong}"
            );
        }
        let flag = OptionSpec::flag("preempt", "");
        assert_eq!(
            (flag.parse("yes"), flag.parse("no")),
            (Ok(Value::Flag(true)), Ok(Value::Flag(false)))
        );
        assert_eq!(flag.parse("1").unwrap_err(), "yes or no");
        let choice = OptionSpec::choice("taken", &["head", "tail"], "");
        assert_eq!(
            (choice.parse("tail"), choice.parse("middle")),
            (Ok(Value::Word("tail")), Err("head or tail".into()))
        );
    }

    #[test]
    fn options_stand_behind_a_question_mark() {
        let split = |text| {
            let (name, options) = split_options(text);
            (
                name.to_string(),
                options
                    .map(|(key, value)| format!("{key}:{}", value.unwrap_or("-")))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        assert_eq!(
            split("take:rr?quantum=1ms&levels=4"),
            ("take:rr".into(), "quantum:1ms levels:4".into())
        );
        assert_eq!(split("eevdf"), ("eevdf".into(), "".into()));
        assert_eq!(split("eevdf?delay"), ("eevdf".into(), "delay:-".into()));
        assert_eq!(split("x?a=b=c&"), ("x".into(), "a:b=c :-".into()));
    }
}
