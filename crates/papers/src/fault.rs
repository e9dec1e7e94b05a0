//! An error at a key of a file.

use program::no_such;
use results::Metric;
use serde::{Deserialize, Deserializer, de};

/// A key of a file, and the message.
pub type Fault = (String, String);

/// The largest number of replicates of a measurement.
pub const MOST_SEEDS: u64 = 10_000;

/// A metric by its id.
///
/// # Errors
/// If there is no such metric; the message has the nearest one.
pub fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
    let id = String::deserialize(deserializer)?;
    Metric::named(&id).ok_or_else(|| {
        let ids: Vec<String> = Metric::ALL.iter().map(|metric| metric.id().to_string()).collect();
        de::Error::custom(no_such("metric", &id, &ids, "docs/results.schema.json lists them."))
    })
}

/// The message for a name that is not one of `names`.
pub fn none_of(what: &str, wrong: &str, names: &[String], of: &str) -> String {
    no_such(what, wrong, names, &format!("{of} has {}.", names.join(", ")))
}
