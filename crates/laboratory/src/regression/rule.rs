//! Rules of a gate: `METRIC > +1%`, `METRIC[SUBJECT] < -5%`, `METRIC worse`.

use program::{Error, no_such};
use results::{Better, Metric, Printed, Row, find_metric};
use std::fmt;
use std::str::FromStr;

/// A rule: when it applies, the gate fails.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// The name of the metric, as it was given.
    metric: String,
    /// The part: a program, a task or a function. None is the complete run.
    subject: Option<String>,
    /// None: worse by more than what does not matter.
    limit: Option<Limit>,
    text: String,
}

/// A limit of a difference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Limit {
    /// Whether what is above it is bad.
    pub is_above: bool,
    pub size: f64,
    /// Whether it is a share of the stored number, not in the metric's unit.
    pub as_share: bool,
}

/// What a rule looks like.
const FORM: &str = "give a metric, its limit and the better side, as in \
                    'instructions_per_yield > +1%', 'wake_p99[redis] worse' or 'throughput < -2%'";

impl Rule {
    pub(super) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Whether it is about a part of a run.
    pub fn has_subject(&self) -> bool {
        self.subject.is_some()
    }

    /// Whether `row` is one of those that the rule is about.
    pub(super) fn is_about(&self, row: &Row, metric: Metric) -> bool {
        row.metric == metric && row.subject == self.subject
    }

    /// The metric: by its id, its title in tables (`wake_p99`), or the name under which the command
    /// prints it, one of `printed`.
    ///
    /// # Errors
    /// [`Error::Usage`] with the nearest name, or if `worse` has no meaning for it.
    pub(super) fn metric(&self, printed: &[&'static Printed]) -> Result<Metric, Error> {
        let metric = find_metric(&self.metric, printed.iter().copied())
            .map_err(|why| Error::Usage(format!("--fail-if '{self}': {why}")))?;
        if self.limit.is_none() && metric.description().direction == Better::Neither {
            return Err(Error::Usage(format!(
                "--fail-if '{self}': {metric} has no better side: give a limit, as in '{metric} > \
                 +1%'"
            )));
        }
        Ok(metric)
    }

    /// Refuses a rule that is about nothing in `rows`, which are those of `place`.
    ///
    /// # Errors
    /// [`Error::Input`] with what there is.
    pub(super) fn expect_in(&self, rows: &[Row], metric: Metric, place: &str) -> Result<(), Error> {
        if rows.iter().any(|row| self.is_about(row, metric)) {
            return Ok(());
        }
        let of_metric: Vec<&Row> = rows.iter().filter(|row| row.metric == metric).collect();
        let wrong = |why: String| Err(Error::Input(format!("--fail-if '{self}': {place} {why}")));
        if of_metric.is_empty() {
            let with_value = rows.iter().filter(|row| row.value.is_some());
            let names = each(with_value.map(|row| row.metric.id()));
            return wrong(format!("has no {metric}; it has {}", names.join(", ")));
        }
        let subjects = each(of_metric.iter().filter_map(|row| row.subject.as_deref()));
        match &self.subject {
            None => wrong(format!(
                "has {metric} of parts alone: give one, as in {metric}[{}]",
                subjects[0]
            )),
            Some(_) if subjects.is_empty() => {
                wrong(format!("has no parts of {metric}: compare with --by comm"))
            }
            Some(subject) => {
                let see = format!("It has {}.", subjects.join(", "));
                let names: Vec<String> = subjects.iter().map(ToString::to_string).collect();
                wrong(format!("has no such part: {}", no_such("part", subject, &names, &see)))
            }
        }
    }
}

/// Each of `names` once.
fn each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = names.collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let text = text.trim();
        let end = text
            .find(|c: char| c.is_whitespace() || matches!(c, '[' | '<' | '>'))
            .ok_or_else(|| format!("`{text}` is no rule: {FORM}"))?;
        let (metric, rest) = text.split_at(end);
        let wrong = |why: &str| format!("`{text}`: {why}: {FORM}");
        let (subject, rest) = match rest.strip_prefix('[') {
            None => (None, rest),
            // The name of a task may have brackets.
            Some(of) => {
                let close = of.rfind(']').ok_or_else(|| wrong("`[` is not closed"))?;
                (Some(of[..close].to_string()), &of[close + 1..])
            }
        };
        let rest = rest.trim();
        if metric.is_empty() {
            return Err(wrong("it has no metric"));
        }
        let rule = |limit| {
            Ok(Rule {
                metric: metric.to_string(),
                subject: subject.clone(),
                limit,
                text: text.to_string(),
            })
        };
        if rest == "worse" {
            return rule(None);
        }
        let (is_above, limit) = match (rest.strip_prefix('>'), rest.strip_prefix('<')) {
            (Some(limit), _) => (true, limit.trim()),
            (_, Some(limit)) => (false, limit.trim()),
            _ => return Err(wrong("neither `>`, `<` nor `worse` follows the metric")),
        };
        let number = limit.strip_suffix('%').ok_or_else(|| wrong("the limit is no percentage"))?;
        let number: f64 = number.trim().parse().map_err(|_| wrong("the limit is no number"))?;
        match number.is_finite() {
            true => rule(Some(Limit { is_above, size: number / 100.0, as_share: true })),
            false => Err(wrong("the limit is no number")),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
