//! A comparison on this machine as rows.

use super::{HostComparison, Plan};
use crate::host::cpus;
use crate::host::measured::{HostMetric, METRICS};
use crate::output::{Metric, Point, Row, SubjectKind, World, registered};
use crate::statistics::{Estimate, bootstrap_of, median};
use std::collections::BTreeMap;

impl HostComparison {
    /// All numbers: of each class its metrics, the median makespan, the difference from the baseline in it, and what each kind of task came to; and the baseline against itself.
    pub fn rows(&self, plan: &Plan<'_>) -> Vec<Row> {
        let mut rows = self.rows_of_same(plan);
        for (index, case) in self.cases.iter().enumerate() {
            let row = |metric: Metric, estimate: Option<Estimate>| Row {
                runs: case.values(metric.id()).flatten().count() as u32,
                baseline: (index > 0).then(|| format!("kernel:{}", self.cases[0].class)),
                ..row(plan, &format!("kernel:{}", case.class), metric, estimate)
            };
            for metric in &METRICS {
                let verdict = self.verdict(index, metric.id);
                rows.push(Row { verdict, note: self.note(index, metric), ..row(registered(metric.id), case.estimate(metric.id)) });
            }
            let mut makespans: Vec<f64> = case.values("makespan_ns").flatten().collect();
            if let Some((low, high)) = bootstrap_of(&makespans, median) {
                let note = Some("the interval is of a percentile bootstrap".to_string());
                let value = Some(median(&mut makespans));
                rows.push(Row { value, ci_low: Some(low), ci_high: Some(high), note, ..row(Metric::makespan_ns_median, None) });
            }
            let base = self.cases[0].estimate("makespan_ns").map_or(f64::NAN, |base| base.mean);
            if let Some(paired) = case.against(&self.cases[0], "makespan_ns").filter(|_| index > 0) {
                let estimate = Estimate { mean: paired.mean / base, half_width: Some(paired.half_width(0.95) / base) };
                let note = Some("mean difference from the baseline in the same rounds, as a share of the baseline's mean".to_string());
                rows.push(Row { runs: paired.pairs as u32, note, ..row(Metric::makespan_difference, Some(estimate)) });
            }
            rows.extend(self.rows_of_tasks(index, plan));
        }
        rows
    }

    /// CPU time, begin and end of each `[[task]]`: means over the runs, of a kind with several tasks their sum, first begin and last end.
    fn rows_of_tasks(&self, index: usize, plan: &Plan<'_>) -> Vec<Row> {
        let mut values: BTreeMap<(String, Metric), Vec<f64>> = BTreeMap::new();
        for run in self.cases[index].runs.iter().flatten() {
            let mut of_run: BTreeMap<(&str, Metric), f64> = BTreeMap::new();
            for task in &run.tasks {
                *of_run.entry((&task.name, Metric::task_cpu_time_ns)).or_default() += task.cpu_ns as f64;
                if let Some(began) = task.began_ns {
                    let first = of_run.entry((&task.name, Metric::task_began_ns)).or_insert(f64::INFINITY);
                    *first = first.min(began as f64);
                }
                if let Some(ended) = task.ended_ns {
                    let last = of_run.entry((&task.name, Metric::task_ended_ns)).or_default();
                    *last = last.max(ended as f64);
                }
            }
            of_run.into_iter().for_each(|((task, metric), value)| values.entry((task.to_string(), metric)).or_default().push(value));
        }
        let of_task = |((task, metric), values): ((String, Metric), Vec<f64>)| {
            let policy = format!("kernel:{}", self.cases[index].class);
            Row { runs: values.len() as u32, ..row(plan, &policy, metric, Estimate::of(&values)) }.of(SubjectKind::Task, task)
        };
        values.into_iter().map(of_task).collect()
    }

    fn note(&self, index: usize, metric: &HostMetric) -> Option<String> {
        let case = &self.cases[index];
        let failed = case.failures().count();
        if let Some(refused) = &case.refused {
            return Some(format!("skipped: {refused}"));
        }
        if case.estimate(metric.id).is_none() {
            return Some(metric.missing.to_string());
        }
        match case.failures().next() {
            Some((round, message)) => {
                Some(format!("{failed} of {} runs failed and are left out; round {}: {message}", case.runs.len(), round + 1))
            }
            None => self.inconclusive.then(|| "inconclusive: the time was up before the interval was narrow enough".to_string()),
        }
    }

    fn rows_of_same(&self, plan: &Plan<'_>) -> Vec<Row> {
        let Some(same) = &self.same else { return Vec::new() };
        let policy = format!("kernel:{}", self.cases[0].class);
        let difference = Row {
            verdict: Some(same.verdict),
            note: Some(
                "A/A: the baseline against itself, paired; its half-width is the smallest difference that this machine shows".to_string(),
            ),
            ..row(plan, &policy, Metric::same_makespan_difference, Some(same.difference))
        };
        let overhead = Row {
            note: Some("what measuring adds to the makespan: paired with runs that measure nothing else".to_string()),
            ..row(plan, &policy, Metric::measurement_overhead, Some(same.overhead))
        };
        [difference, overhead].map(|row| Row { runs: same.runs, ..row }).into()
    }
}

pub(super) fn row(plan: &Plan<'_>, candidate: &str, metric: Metric, estimate: Option<Estimate>) -> Row {
    let bound = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
    let conditions = &plan.conditions;
    let mut point = Point::new();
    if conditions.nice != 0 {
        point.set("nice", conditions.nice);
    }
    if conditions.pinned {
        point.set("affinity", cpus::names(&conditions.cpus));
    }
    Row {
        workload: plan.name.to_string(),
        candidate: candidate.to_string(),
        cpus: conditions.cpus.len() as u16,
        seed: Some(plan.seed),
        point,
        value: estimate.map(|estimate| estimate.mean).filter(|mean| mean.is_finite()),
        ci_low: bound(-1.0).filter(|bound| bound.is_finite()),
        ci_high: bound(1.0).filter(|bound| bound.is_finite()),
        ..Row::new(World::Host, metric)
    }
}
