//! The results of rounds: rows, sentences, and single values for other programs.

use super::{Case, Rounds};
use program::Error;
use results::{Metric, Point, Row, SubjectKind};
use statistics::{Estimate, bootstrap_of, median};
use std::collections::BTreeMap;
use std::fmt::Write;
use worlds::{Measure, World};

/// The columns of [`Rounds::singles`].
pub const RAW_HEADER: &str = "workload,policy,cpus,round,metric,value\n";

impl Rounds<'_> {
    /// All numbers. For each candidate its metrics, the median makespan, the difference from the
    /// baseline, and the numbers of each kind of task. Also the baseline against itself.
    pub fn rows(&self, world: &dyn World) -> Vec<Row> {
        let Some(baseline) = self.cases.first() else { return Vec::new() };
        let mut rows = self.rows_of_itself(world);
        for (index, case) in self.cases.iter().enumerate() {
            let row = |metric: Metric, estimate: Option<Estimate>| {
                let baseline = (index > 0).then(|| baseline.trial.candidate.to_string());
                let runs = case.values(metric).flatten().count() as u32;
                Row { runs, baseline, ..self.row(world, case, metric, estimate) }
            };
            for measure in &self.measures {
                let mut row = Row {
                    note: self.note(case, measure),
                    ..row(measure.metric, case.estimate(measure.metric))
                };
                if let Some(decision) = self.decision(index, measure.metric) {
                    crate::samples::write(decision, &mut row);
                }
                rows.push(row);
            }
            let mut makespans: Vec<f64> = case.values(Metric::makespan_ns).flatten().collect();
            if let Some((low, high)) = bootstrap_of(&makespans, median) {
                let note = Some("the interval is of a percentile bootstrap".to_string());
                let row =
                    Row { runs: makespans.len() as u32, ..row(Metric::makespan_ns_median, None) };
                rows.push(Row {
                    value: Some(median(&mut makespans)),
                    ci_low: Some(low),
                    ci_high: Some(high),
                    note,
                    ..row
                });
            }
            let base = baseline.estimate(Metric::makespan_ns).map_or(f64::NAN, |base| base.mean);
            if let Some(paired) = case.against(baseline, Metric::makespan_ns).filter(|_| index > 0)
            {
                let estimate = Estimate {
                    mean: paired.mean / base,
                    half_width: Some(paired.half_width(0.95) / base),
                };
                let note = Some(
                    "mean difference from the baseline in the same rounds, as a share of the \
                     baseline's mean"
                        .to_string(),
                );
                rows.push(Row {
                    runs: paired.pairs as u32,
                    note,
                    ..row(Metric::makespan_difference, Some(estimate))
                });
            }
            rows.extend(self.rows_of_parts(world, case));
        }
        rows
    }

    /// Means over the runs for parts, such as kinds of tasks.
    fn rows_of_parts(&self, world: &dyn World, case: &Case<'_>) -> Vec<Row> {
        let mut values: BTreeMap<(SubjectKind, &str, Metric), Vec<f64>> = BTreeMap::new();
        for row in case.runs.iter().flatten().flat_map(|run| &run.rows) {
            if let (Some(kind), Some(subject), Some(value)) =
                (row.subject_kind, &row.subject, row.value)
            {
                values.entry((kind, subject, row.metric)).or_default().push(value);
            }
        }
        let of_part =
            |((kind, subject, metric), values): ((SubjectKind, &str, Metric), Vec<f64>)| {
                Row {
                    runs: values.len() as u32,
                    ..self.row(world, case, metric, Estimate::of(&values))
                }
                .of(kind, subject)
            };
        values.into_iter().map(of_part).collect()
    }

    fn note(&self, case: &Case<'_>, measure: &Measure) -> Option<String> {
        if let Some(refused) = &case.refused {
            return Some(format!("skipped: {refused}"));
        }
        if case.estimate(measure.metric).is_none() {
            let own = case.runs.iter().flatten().flat_map(|run| &run.rows);
            let own = own.filter(|row| row.metric == measure.metric && row.subject.is_none());
            let own = own.filter_map(|row| row.note.clone()).next();
            return own.or_else(|| Some(measure.missing.unwrap_or("no run has it").to_string()));
        }
        let failed = case.failures().count();
        match case.failures().next() {
            Some((round, message)) => Some(format!(
                "{failed} of {} runs failed and are left out; round {}: {message}",
                case.runs.len(),
                round + 1
            )),
            None => self.cut.map(|limit| limit.note().to_string()),
        }
    }

    fn rows_of_itself(&self, world: &dyn World) -> Vec<Row> {
        let Some(itself) = &self.itself else { return Vec::new() };
        let row = |metric, estimate| self.row(world, &self.cases[0], metric, Some(estimate));
        let difference = Row {
            verdict: Some(itself.verdict),
            note: Some(
                "A/A: the baseline against itself, paired; its half-width is the smallest \
                 difference that this machine shows"
                    .to_string(),
            ),
            ..row(Metric::same_makespan_difference, itself.difference)
        };
        let overhead = Row {
            note: Some(
                "the cost of measuring in the makespan: paired with runs that measure nothing else"
                    .to_string(),
            ),
            ..row(Metric::measurement_overhead, itself.overhead)
        };
        [difference, overhead].map(|row| Row { runs: itself.runs, ..row }).into()
    }

    fn row(
        &self,
        world: &dyn World,
        case: &Case<'_>,
        metric: Metric,
        estimate: Option<Estimate>,
    ) -> Row {
        let bound = |sign: f64| {
            estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?))
        };
        // The conditions are equal in all runs.
        let known = self
            .cases
            .iter()
            .flat_map(|case| case.runs.iter().flatten())
            .find_map(|run| run.rows.first());
        let point = known.map_or(Point::new(), |row| row.point.clone());
        let row = Row {
            value: estimate.map(|estimate| estimate.mean).filter(|mean| mean.is_finite()),
            ci_low: bound(-1.0).filter(|bound| bound.is_finite()),
            ci_high: bound(1.0).filter(|bound| bound.is_finite()),
            point,
            ..Row::new(world.name(), metric)
        };
        Row { runs: 0, ..case.trial.stamp(&row, Some(self.seed)) }
    }

    /// Remarks for the reader: the smallest visible difference, skipped candidates, failed runs.
    pub fn notes(&self) -> String {
        let mut text = String::new();
        if let Some(itself) = &self.itself {
            let percent = |estimate: Estimate| {
                format!(
                    "{:+.2}% ±{:.2}%",
                    100.0 * estimate.mean,
                    100.0 * estimate.half_width.unwrap_or(f64::NAN)
                )
            };
            let _ = writeln!(
                text,
                "The baseline against itself (A/A), {} rounds: {}; the mean of single runs is \
                 known to ±{:.2}%; measuring adds {}.",
                itself.runs,
                percent(itself.difference),
                100.0 * itself.spread.half_width.unwrap_or(f64::NAN),
                percent(itself.overhead)
            );
            if itself.is_wrong() {
                text += "Caution: the baseline differs from itself on this machine; something \
                         else is at work on it.\n";
            }
        }
        self.cases.iter().for_each(|case| text += &case.remark());
        if let Some(limit) = self.cut {
            text += &format!("{}; {}.\n", limit.note(), limit.advice());
        }
        text
    }

    /// The error at the end: skipped candidates, unusable candidates and wide intervals have
    /// different exit codes.
    pub fn end(&self) -> Result<(), Error> {
        let refused: Vec<&Case<'_>> =
            self.cases.iter().filter(|case| case.refused.is_some()).collect();
        let list = || {
            refused
                .iter()
                .map(|case| case.remark().trim_end().to_string())
                .collect::<Vec<_>>()
                .join("\n")
        };
        match () {
            () if refused.iter().any(|case| case.is_privilege()) => Err(Error::Missing(list())),
            () if refused.iter().any(|case| case.is_fault()) => Err(Error::Check(list())),
            () if !refused.is_empty() => Err(Error::Input(list())),
            () => match self.cut {
                Some(limit) => {
                    Err(Error::Inconclusive(format!("{}; {}", limit.note(), limit.advice())))
                }
                None => Ok(()),
            },
        }
    }

    /// Each value of each run, for analysis by other programs.
    pub fn singles(&self) -> String {
        let mut lines = String::new();
        for case in &self.cases {
            let name = case.trial.program.name().replace('"', "\"\"");
            let (candidate, cpus) = (&case.trial.candidate, case.trial.cpus);
            for (round, run) in case.runs.iter().enumerate() {
                let values =
                    run.iter().flat_map(|run| &run.rows).filter(|row| row.subject.is_none());
                for (metric, value) in values.filter_map(|row| Some((row.metric, row.value?))) {
                    let _ = writeln!(
                        lines,
                        "\"{name}\",{candidate},{cpus},{},{metric},{value}",
                        round + 1
                    );
                }
            }
        }
        lines
    }
}

impl Case<'_> {
    /// A remark on a case with a problem.
    fn remark(&self) -> String {
        let candidate = &self.trial.candidate;
        if let Some(refused) = &self.refused {
            return format!("{candidate} was not run: {refused}{}\n", self.help());
        }
        let failures: Vec<(usize, &Error)> = self.failures().collect();
        failures.first().map_or(String::new(), |(round, message)| {
            let (failed, runs) = (failures.len(), self.runs.len());
            format!(
                "{candidate}: {failed} of {runs} runs failed and are left out; round {}: \
                 {message}\n",
                round + 1
            )
        })
    }

    /// Whether its scheduler broke a rule.
    fn is_fault(&self) -> bool {
        matches!(self.refused, Some(Error::Check(_) | Error::Policy(_)))
    }

    fn is_privilege(&self) -> bool {
        let is_it = |refused: &Error| refused.to_string().contains("Operation not permitted");
        self.refused.as_ref().is_some_and(is_it)
    }

    fn help(&self) -> &'static str {
        let is_deadline = self.trial.candidate.to_string().starts_with("kernel:deadline");
        match (is_deadline, self.is_privilege()) {
            (true, true) => {
                "; deadline tasks need root, and all CPUs: run it as root, without --affinity and \
                 --cpus"
            }
            (true, false) => {
                "; all deadline tasks together may ask for 95 % of the CPUs at most, and may not \
                 make others"
            }
            (false, true) => {
                "; run it as root, or grant it: sudo setcap cap_sys_nice+ep $(which schedlab)"
            }
            (false, false) => "",
        }
    }
}
