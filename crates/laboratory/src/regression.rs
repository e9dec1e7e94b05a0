//! A gate: rules that the numbers of a comparison must keep against those of a stored result.
//!
//! A rule fails only when the bound of the interval passes the limit that is nearer to it. The
//! intervals hold for all numbers of the gate together, so that noise alone fails one gate of a
//! thousand. Numbers that are counted, and so the same in every run, have intervals without width: any
//! difference beyond the limit fails.

mod environment;
mod rule;

pub use rule::Rule;

use super::{failed, samples};
use environment::Environment;
use program::Error;
use results::gate::{Finding, Gate, Outcome};
use results::{Answer, Better, Metric, Printed, Results, Row, World, counted, quantity};
use rule::Limit;
use statistics::{Margin, widening};
use std::path::{Path, PathBuf};

/// The stored result, and the rules.
#[derive(Debug)]
pub struct Baseline {
    path: PathBuf,
    results: Results,
    rules: Vec<(Rule, Metric)>,
}

impl Baseline {
    /// Finds what the rules are about, and reads a results.json, or that of a directory. `printed`
    /// is what the command prints.
    ///
    /// # Errors
    /// [`Error::Input`] if it cannot be read, or has no number that a rule is about;
    /// [`Error::Usage`] if a rule names an unknown metric.
    pub fn read(
        path: &Path,
        rules: &[Rule],
        printed: &[&'static Printed],
    ) -> Result<Baseline, Error> {
        // A name that is wrong stays wrong when the file is there.
        let named = |rule: &Rule| Ok((rule.clone(), rule.metric(printed)?));
        let rules: Vec<(Rule, Metric)> = rules.iter().map(named).collect::<Result<_, Error>>()?;
        let path = if path.is_dir() { path.join("results.json") } else { path.to_path_buf() };
        if !path.exists() {
            return Err(Error::Input(format!(
                "--against {}: there is no such file; make it with the same command without \
                 --against and --fail-if, and with -o DIR, and give DIR",
                path.display()
            )));
        }
        let results = Results::read(&path)?;
        for (rule, metric) in &rules {
            rule.expect_in(&results.rows, *metric, &path.display().to_string())?;
        }
        Ok(Baseline { path, results, rules })
    }

    /// What the rules say of `answer`.
    ///
    /// # Errors
    /// [`Error::Input`] if the two are of different environments, unless that is allowed, or have
    /// no number in common that a rule is about.
    pub fn judge(&self, answer: &Answer, allow_environment: bool) -> Result<Gate, Error> {
        let against = self.path.display().to_string();
        let pairs = self.pairs(&answer.results.rows);
        let environment = Environment { path: &self.path, old: &self.results, new: answer };
        let common = pairs.iter().filter_map(|pair| Some((pair.old?, pair.new)));
        let differs = environment.differences(common);
        if !differs.is_empty() && !allow_environment {
            return Err(Error::Input(format!(
                "{against} is of another environment: {}; measure it again here, or give \
                 --allow-environment",
                differs.join("; ")
            )));
        }
        for (rule, metric) in &self.rules {
            let own = pairs.iter().filter(|pair| pair.rule.0 == *rule);
            if !own.clone().any(|pair| pair.old.is_some()) {
                rule.expect_in(&answer.results.rows, *metric, "this comparison")?;
                return Err(Error::Input(format!(
                    "{against} has {metric}, but of other workloads, candidates, CPUs or settings \
                     than this comparison; it has {}",
                    cases(&self.results.rows, *metric)
                )));
            }
        }
        let findings = pairs.iter().map(|pair| pair.finding(pairs.len())).collect();
        Ok(Gate { against, environment: differs, findings })
    }

    /// The numbers that the rules are about, each beside the stored one.
    fn pairs<'a>(&'a self, rows: &'a [Row]) -> Vec<Pair<'a>> {
        let mut pairs = Vec::new();
        for rule in &self.rules {
            let own: Vec<&Row> = rows.iter().filter(|row| rule.0.is_about(row, rule.1)).collect();
            let stored: Vec<&Row> =
                self.results.rows.iter().filter(|row| rule.0.is_about(row, rule.1)).collect();
            // A scheduler and its next version may have different names, where each is alone.
            let renamed = one_candidate(&own) && one_candidate(&stored);
            for new in own {
                let is_it = |old: &&&Row| {
                    (renamed || old.candidate == new.candidate) && environment::is_same(old, new)
                };
                pairs.push(Pair { rule, old: stored.iter().find(is_it).copied(), new });
            }
        }
        pairs
    }
}

/// How often noise alone fails a gate.
const FALSE_ALARMS: f64 = 0.001;

/// Whether all rows are of one candidate.
fn one_candidate(rows: &[&Row]) -> bool {
    rows.iter().all(|row| row.candidate == rows[0].candidate)
}

/// The cases of a metric, as in a message.
fn cases(rows: &[Row], metric: Metric) -> String {
    let mut all: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == metric) {
        let case = format!("{} under {}", case(row), row.candidate);
        if !all.contains(&case) {
            all.push(case);
        }
    }
    all.join(", ")
}

fn case(row: &Row) -> String {
    let cpus = match row.cpus {
        0 => String::new(),
        cpus => format!(", {}", counted(cpus.into(), "CPU")),
    };
    let own = row.point.get("load").map_or(String::new(), |load| format!(", load {load}"));
    format!("{} ({}{cpus}{own})", row.workload, row.world)
}

/// A number and the stored one.
struct Pair<'a> {
    rule: &'a (Rule, Metric),
    old: Option<&'a Row>,
    new: &'a Row,
}

/// A relative difference and its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Difference {
    size: f64,
    low: f64,
    high: f64,
}

impl Difference {
    /// Of two independent numbers, in units of the metric or as a share of the old one. The error of
    /// the difference is the root of the sum of both errors' squares.
    fn of(old: Sampled, new: Sampled, as_share: bool) -> Difference {
        // Anything is infinitely more than nothing.
        let scaled = |difference: f64| match as_share && difference != 0.0 {
            true => difference / old.value.abs(),
            false => difference,
        };
        let size = new.value - old.value;
        let below = (new.value - new.low).hypot(old.high - old.value);
        let above = (new.high - new.value).hypot(old.value - old.low);
        Difference { size: scaled(size), low: scaled(size - below), high: scaled(size + above) }
    }
}

/// A number with its interval.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    value: f64,
    low: f64,
    high: f64,
}

impl Sampled {
    /// The number of a row, one of `numbers`. One without an interval is exact, unless it is of a
    /// machine where no two runs are equal.
    fn of(row: &Row, numbers: usize) -> Result<Sampled, String> {
        let why = || row.note.clone().unwrap_or_else(|| "not measured".to_string());
        let value = row.value.ok_or_else(why)?;
        match row.ci_low.zip(row.ci_high) {
            Some((low, high)) => {
                let wider = widening(numbers, row.runs, FALSE_ALARMS);
                let (low, high) = (value - wider * (value - low), value + wider * (high - value));
                Ok(Sampled { value, low, high })
            }
            None if row.world == World::Host => Err("it has no interval: give more runs".into()),
            None => Ok(Sampled { value, low: value, high: value }),
        }
    }
}

impl Pair<'_> {
    fn finding(&self, numbers: usize) -> Finding {
        let (outcome, says) = self.outcome(numbers);
        Finding {
            rule: self.rule.0.to_string(),
            case: case(self.new),
            candidate: self.new.candidate.clone(),
            outcome,
            says,
        }
    }

    fn outcome(&self, numbers: usize) -> (Outcome, String) {
        let Some(old) = self.old else {
            return (Outcome::Skipped, "the stored result has no such number".to_string());
        };
        let (stored, new) = match (Sampled::of(old, numbers), Sampled::of(self.new, numbers)) {
            (Ok(stored), Ok(new)) => (stored, new),
            (stored, Err(why)) if stored.is_ok() || why.starts_with(failed::NOTE) => {
                return (Outcome::Failed, why);
            }
            (Err(why), _) | (_, Err(why)) => {
                return (Outcome::Skipped, format!("stored without a number: {why}"));
            }
        };
        let limit = self.limit();
        let difference = Difference::of(stored, new, limit.as_share);
        let fails = match limit.is_above {
            true => difference.low > limit.size,
            false => difference.high < limit.size,
        };
        let unit = self.new.unit();
        let show = |size: f64| match limit.as_share {
            true => format!("{:+.2} %", 100.0 * size),
            false => format!("{size:+.4}"),
        };
        let interval = if difference.low == difference.high {
            String::new()
        } else {
            format!(" ({} to {})", show(difference.low), show(difference.high))
        };
        let says = format!(
            "{} after {}, {}{interval}",
            exact(new.value, unit),
            exact(stored.value, unit),
            show(difference.size)
        );
        (if fails { Outcome::Failed } else { Outcome::Passed }, says)
    }

    /// The limit of the rule. For `worse` it is the difference that does not matter, on the bad side.
    fn limit(&self) -> Limit {
        let (rule, metric) = self.rule;
        rule.limit().unwrap_or_else(|| {
            let (size, as_share) = match samples::margin(metric.to_owned()) {
                Margin::Share(size) => (size, true),
                Margin::Fixed(size) => (size, false),
            };
            match metric.description().direction {
                Better::Higher => Limit { is_above: false, size: -size, as_share },
                _ => Limit { is_above: true, size, as_share },
            }
        })
    }
}

/// Counts in full, times and shares as in tables.
fn exact(value: f64, unit: &str) -> String {
    match unit {
        "ns" => quantity(value, unit),
        _ if value.abs() >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests;
