//! Metrics that a command prints itself, as benchmarks do.

use crate::Better;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A metric that a command prints: its name, unit and better direction.
///
/// Its id in results is `printed:NAME:UNIT:DIRECTION`, so that a file of results says all of it.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Printed {
    id: String,
    name: String,
    unit: String,
    direction: &'static str,
}

/// What an id of such a metric begins with.
const PREFIX: &str = "printed:";
/// The words for directions.
const DIRECTIONS: [(&str, Better); 3] =
    [("lower", Better::Lower), ("higher", Better::Higher), ("neither", Better::Neither)];
/// The meaning of all of them.
pub(crate) const SUMMARY: &str = "Printed by the command.";

/// All that were named so far, so that a metric stays as small as a pointer and each exists once.
static KNOWN: Mutex<BTreeMap<String, &'static Printed>> = Mutex::new(BTreeMap::new());

impl Printed {
    /// The metric with this name, unit and better direction: `lower`, `higher` or `neither`.
    ///
    /// # Errors
    /// The part that cannot be one, and what can.
    pub fn new(name: &str, unit: &str, direction: &str) -> Result<&'static Printed, String> {
        let is_name = |text: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            !text.is_empty() && text.len() <= 64 && text.chars().all(is_part)
        };
        if !is_name(name) {
            return Err(format!("`{name}` is no name: give letters, digits, `_`, `-` and `.`"));
        }
        let is_part = |c: char| c.is_ascii_graphic() && !matches!(c, ':' | ',' | '<' | '&');
        if unit.is_empty() || unit.len() > 32 || !unit.chars().all(is_part) {
            return Err(format!("`{unit}` is no unit: give a word as us, ops/s or count"));
        }
        let Some((direction, _)) = DIRECTIONS.iter().find(|(word, _)| *word == direction) else {
            return Err(format!("`{direction}` is no direction: give lower, higher or neither"));
        };
        let id = format!("{PREFIX}{name}:{unit}:{direction}");
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(id.clone()).or_insert_with(|| {
            let (name, unit) = (name.to_string(), unit.to_string());
            Box::leak(Box::new(Printed { id, name, unit, direction }))
        }))
    }

    /// The metric with this id.
    pub fn named(id: &str) -> Option<&'static Printed> {
        let mut parts = id.strip_prefix(PREFIX)?.split(':');
        let (name, unit, direction) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Printed::new(name, unit, direction).ok()
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unit.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Which way is better.
    pub fn direction(&self) -> Better {
        let known = DIRECTIONS.iter().find(|(word, _)| *word == self.direction);
        known.map_or(Better::Neither, |(_, better)| *better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;

    #[test]
    fn a_metric_is_found_again_by_its_id_and_exists_once() {
        let one = Printed::new("p99", "us", "lower").unwrap();
        assert_eq!(one.id(), "printed:p99:us:lower");
        assert!(std::ptr::eq(one, Printed::named(one.id()).unwrap()));
        let metric = Metric::named("printed:rate:ops/s:higher").unwrap();
        assert_eq!((metric.unit(), metric.description().direction), ("ops/s", Better::Higher));
        assert_eq!(metric.to_string(), "printed:rate:ops/s:higher");
        assert!(Metric::printed(one).is_heavy_tailed() && !metric.is_heavy_tailed());
        assert_eq!(metric.prediction_error(), None);
    }

    #[test]
    fn what_is_no_metric_is_refused_with_what_is() {
        for (name, unit, direction, word) in [
            ("", "us", "lower", "no name"),
            ("a:b", "us", "lower", "no name"),
            ("a b", "us", "lower", "no name"),
            ("a", "", "lower", "no unit"),
            ("a", "u:s", "lower", "no unit"),
            ("a", "us", "less", "lower, higher or neither"),
        ] {
            let error = Printed::new(name, unit, direction).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        for id in ["printed:a", "printed:a:us", "printed:a:us:less", "printed:a:us:lower:x", "p:a"]
        {
            assert_eq!(Metric::named(id), None, "{id}");
        }
    }
}
