//! Constraints: `METRIC < NUMBER`, in the metric's unit or with one of time.

use super::{Base, Cases};
use formats::toml_file::TomlFile;
use program::{Error, no_such};
use results::Metric;
use schedsim::Nanos;

/// A constraint of a suite.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    pub metric: Metric,
    /// Whether values must be below the limit.
    is_below: bool,
    limit: f64,
    /// As the suite says it.
    pub text: String,
    key: String,
}

/// The constraints of a suite.
///
/// # Errors
/// If one is none, or is about an unknown metric.
pub fn bounds(cases: &Cases) -> Result<Vec<Bound>, Error> {
    let Cases { file, suite, .. } = cases;
    let bound = |(index, text): (usize, &String)| {
        let key = format!("constraints[{index}]");
        bound(text, &key).map_err(|message| file.wrong(&key, &message))
    };
    suite.constraints.iter().enumerate().map(bound).collect()
}

fn bound(text: &str, key: &str) -> Result<Bound, String> {
    let form = || "give a metric and its limit, as in wakeup_latency_ns_max < 50ms".to_string();
    let at = text.find(['<', '>']).ok_or_else(form)?;
    let (name, rest) = text.split_at(at);
    let (is_below, limit) = (rest.starts_with('<'), rest[1..].trim());
    let metric = metric(name.trim())?;
    let limit = match limit.parse::<f64>() {
        Ok(limit) if limit.is_finite() => limit,
        Ok(_) => return Err(form()),
        Err(_) if metric.description().unit == "ns" => {
            limit.parse::<Nanos>().map_err(|error| format!("`{limit}`: {error}"))?.0 as f64
        }
        Err(_) => return Err(form()),
    };
    Ok(Bound { metric, is_below, limit, text: text.to_string(), key: key.to_string() })
}

/// The metric of this name, or a message with the nearest one.
pub(super) fn metric(name: &str) -> Result<Metric, String> {
    Metric::named(name).ok_or_else(|| {
        let names: Vec<String> = Metric::ALL.iter().map(|metric| metric.id().to_string()).collect();
        no_such("metric", name, &names, "docs/results.schema.json describes all of them.")
    })
}

impl Bound {
    /// Whether a run with this value keeps it.
    pub fn holds(&self, value: f64) -> bool {
        if self.is_below { value < self.limit } else { value > self.limit }
    }

    /// Whether `value` is worse than `other`; none is the worst.
    pub fn is_worse(&self, value: Option<f64>, other: Option<f64>) -> bool {
        match (value, other) {
            (Some(value), Some(other)) => {
                if self.is_below {
                    value > other
                } else {
                    value < other
                }
            }
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }

    /// Whether a workload has its metric, under the baseline.
    pub(super) fn is_about(&self, base: &Base) -> bool {
        base.runs.iter().all(|run| run.value(self.metric).is_some())
    }

    /// Refuses a metric that no workload has.
    pub(super) fn expect_somewhere(&self, cases: &[Base], file: &TomlFile) -> Result<(), Error> {
        if cases.iter().any(|base| self.is_about(base)) {
            return Ok(());
        }
        Err(file.wrong(
            &self.key,
            &format!("{} has no value in any workload under the baseline", self.metric),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_a_metric_a_side_and_a_limit_in_its_unit() {
        let time = bound("wakeup_latency_ns_max < 50ms", "").unwrap();
        assert_eq!((time.metric, time.limit), (Metric::wakeup_latency_ns_max, 5e7));
        assert!(time.holds(4.9e7) && !time.holds(5e7));
        assert!(time.is_worse(Some(2.0), Some(1.0)) && time.is_worse(None, Some(9.0)));
        assert!(!time.is_worse(Some(1.0), None) && !time.is_worse(Some(1.0), Some(1.0)));
        let count = bound("utilisation>0.5", "").unwrap();
        assert!(count.holds(0.6) && !count.holds(0.5) && count.is_worse(Some(1.0), Some(2.0)));
        for wrong in
            ["", "<", "switches", "switches <", "switches < 3ms", "switches < inf", "x < 3"]
        {
            assert!(bound(wrong, "").is_err(), "{wrong}");
        }
        assert!(metric("switchs").unwrap_err().contains("Did you mean `switches`"));
    }
}
