//! Mixes: the level of each task.

use program::no_such;
use schedsim::Random;
use std::fmt;
use std::str::FromStr;

/// The distribution of tasks over levels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mix {
    /// Every level equally likely.
    Random,
    /// All tasks at one level.
    One(u16),
    /// The levels from the first to the second, equally likely.
    Range(u16, u16),
    /// Porter's table 3: strides from the first to the second, equally likely, with his letter.
    Printed(char, u16, u16),
    /// Four of five tasks in the less important half.
    MostlyLow,
    /// Four of five tasks in the more important half.
    MostlyHigh,
    /// Four of five tasks at the middle level, the others anywhere.
    DefaultMiddle,
    /// Task i at level i, cyclically.
    Each,
}

/// Porter's randomisations A to N: the shortest and the longest stride.
const PRINTED: [(char, u16, u16); 14] = [
    ('A', 200, 200),
    ('B', 200, 250),
    ('C', 200, 300),
    ('D', 200, 400),
    ('E', 200, 500),
    ('F', 200, 1000),
    ('G', 200, 2000),
    ('H', 1, 10),
    ('I', 1, 100),
    ('J', 1, 200),
    ('K', 1, 500),
    ('L', 1, 1000),
    ('M', 1, 2000),
    ('N', 1, 3000),
];

const WORDS: [(&str, Mix); 5] = [
    ("random", Mix::Random),
    ("mostly-low", Mix::MostlyLow),
    ("mostly-high", Mix::MostlyHigh),
    ("default-middle", Mix::DefaultMiddle),
    ("each", Mix::Each),
];

impl Mix {
    /// The number of levels that a structure needs, if the user gives `levels`; an error if the mix
    /// has higher levels.
    pub fn levels(&self, levels: u16) -> Result<u16, String> {
        let last = match *self {
            Mix::Printed(_, _, longest) => return Ok(longest),
            Mix::One(level) | Mix::Range(_, level) => level,
            _ => 0,
        };
        if last < levels {
            return Ok(levels);
        }
        let letter = |level: u16| level_name(level);
        Err(format!(
            "mix `{self}`: level {last} is out of range, {levels} levels are 0 to {} ({} to {}); \
             give more with --levels",
            levels - 1,
            letter(0),
            letter(levels - 1)
        ))
    }

    /// The levels of `tasks` tasks. They are the same for every structure, and fewer tasks get the
    /// first part of the same list.
    pub fn assign(&self, tasks: u32, levels: u16, seed: u64, assignment: u32) -> Vec<u16> {
        let mut random = Random::new(
            seed.wrapping_add(u64::from(assignment).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        let mut between =
            |low: u16, high: u16| low + random.below(u64::from(high - low) + 1) as u16;
        let (middle, last) = (levels / 2, levels - 1);
        let mut level = |task: u32| match *self {
            Mix::Random => between(0, last),
            Mix::One(level) => level,
            Mix::Range(low, high) => between(low, high),
            Mix::Printed(_, shortest, longest) => between(shortest - 1, longest - 1),
            Mix::MostlyLow if between(0, 4) > 0 => between(middle, last),
            Mix::MostlyHigh if between(0, 4) == 0 => between(middle, last),
            Mix::MostlyLow | Mix::MostlyHigh => between(0, middle.saturating_sub(1)),
            Mix::DefaultMiddle if between(0, 4) > 0 => middle,
            Mix::DefaultMiddle => between(0, last),
            Mix::Each => (task % u32::from(levels)) as u16,
        };
        (0..tasks).map(&mut level).collect()
    }

    /// Whether another assignment gives other levels.
    pub fn is_random(&self) -> bool {
        !matches!(self, Mix::One(_) | Mix::Each)
    }

    /// The names to choose from.
    pub fn names() -> Vec<String> {
        let words = WORDS.iter().map(|(word, _)| word.to_string());
        words
            .chain(["one:H".to_string(), "7-9".to_string()])
            .chain(PRINTED.iter().map(|(letter, ..)| letter.to_string()))
            .collect()
    }
}

/// `A` for level 0; beyond `Z` the number.
pub fn level_name(level: u16) -> String {
    match u8::try_from(level) {
        Ok(level @ 0..26) => char::from(b'A' + level).to_string(),
        _ => level.to_string(),
    }
}

/// A level from its letter or number.
fn parse_level(text: &str) -> Option<u16> {
    match text.as_bytes() {
        [letter @ b'A'..=b'Z'] => Some(u16::from(letter - b'A')),
        _ => text.parse().ok(),
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let unknown = || {
            no_such(
                "mix",
                text,
                &Mix::names(),
                "There are random, one:LEVEL, FIRST-LAST, mostly-low, mostly-high, \
                 default-middle, each, and A to N (Porter's table 3).",
            )
        };
        if let Some((_, mix)) = WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(mix.clone());
        }
        if let Some(&(letter, shortest, longest)) =
            PRINTED.iter().find(|(letter, ..)| text.len() == 1 && text.starts_with(*letter))
        {
            return Ok(Mix::Printed(letter, shortest, longest));
        }
        if let Some(level) = text.strip_prefix("one:") {
            return parse_level(level).map(Mix::One).ok_or_else(|| {
                format!("mix `{text}`: `{level}` is not a level; write one:H or one:7")
            });
        }
        let (low, high) = text
            .split_once('-')
            .and_then(|(low, high)| Some((parse_level(low)?, parse_level(high)?)))
            .ok_or_else(unknown)?;
        if low > high {
            return Err(format!(
                "mix `{text}`: the first level comes after the last; write {high}-{low}"
            ));
        }
        Ok(Mix::Range(low, high))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mix::One(level) => write!(f, "one:{}", level_name(*level)),
            Mix::Range(low, high) => write!(f, "{low}-{high}"),
            Mix::Printed(letter, ..) => write!(f, "{letter}"),
            _ => {
                f.write_str(WORDS.iter().find(|(_, mix)| mix == self).map_or("", |(word, _)| word))
            }
        }
    }
}

impl serde::Serialize for Mix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Mix {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Mix, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_prints_as_it_is_parsed() {
        for text in [
            "random",
            "one:H",
            "7-9",
            "A",
            "N",
            "mostly-low",
            "mostly-high",
            "default-middle",
            "each",
        ] {
            assert_eq!(text.parse::<Mix>().unwrap().to_string(), text);
        }
        assert_eq!("one:7".parse::<Mix>(), Ok(Mix::One(7)));
        assert!("radnom".parse::<Mix>().unwrap_err().contains("`random`"));
        assert!("9-7".parse::<Mix>().unwrap_err().contains("7-9"));
        assert!(Mix::One(7).levels(5).unwrap_err().contains("0 to 4 (A to E)"));
    }

    #[test]
    fn fewer_tasks_get_the_first_part_of_the_same_levels() {
        for (_, mix) in WORDS {
            let many = mix.assign(100, 10, 7, 3);
            assert_eq!(many[..40], mix.assign(40, 10, 7, 3));
            assert!(many.iter().all(|&level| level < 10));
            assert_eq!(mix.is_random(), many != mix.assign(100, 10, 7, 4), "{mix}");
        }
        let strides = Mix::Printed('B', 200, 250).assign(1000, 250, 1, 0);
        assert_eq!((strides.iter().min(), strides.iter().max()), (Some(&199), Some(&249)));
    }

    #[test]
    fn mostly_means_four_in_five() {
        let low =
            Mix::MostlyLow.assign(10_000, 10, 1, 0).into_iter().filter(|&level| level >= 5).count();
        assert!((7_800..8_200).contains(&low), "{low}");
        let high =
            Mix::MostlyHigh.assign(10_000, 10, 1, 0).into_iter().filter(|&level| level < 5).count();
        assert!((7_800..8_200).contains(&high), "{high}");
    }
}
