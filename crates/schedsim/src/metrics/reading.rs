//! Reads values from a summary, or the reason why there is none.

pub use super::value::*;

use super::order::completion_inversions;
use super::slowdown::slowdown;
use super::{FairnessSummary, Histogram, Summary, TaskDeadlines};
use crate::Nanos;
use crate::trace::OverheadKind;

pub fn nanos(span: Nanos) -> f64 {
    span.0 as f64
}

pub fn ratio(numerator: f64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator / denominator as f64)
}

pub fn percentile(samples: &Histogram, percent: f64) -> Option<f64> {
    samples.percentile(percent).map(nanos)
}

/// The 99th percentile, which requires 1,000 samples.
pub fn tail(samples: &Histogram, none: &'static str) -> Value {
    match samples.count() {
        0 => Value::or(None, none),
        1..1000 => Value::or(None, TOO_FEW),
        _ => Value::or(percentile(samples, 99.0), none),
    }
}

/// A value that requires the priorities of the tasks.
pub fn fairness(summary: &Summary, read: fn(FairnessSummary) -> Nanos) -> Value {
    Value::or(summary.fairness.map(|fairness| nanos(read(fairness))), NO_PRIORITIES)
}

/// A value that requires switches.
pub fn switches(summary: &Summary, value: f64) -> Value {
    let any = summary.cpus.iter().any(|cpu| cpu.switches > 0);
    Value::or(any.then_some(value).filter(|value| value.is_finite()), NO_SWITCHES)
}

/// A share of CPU time idled while tasks wait. Requires that waiting and idling are known for 99 %
/// of all CPU time.
pub fn idle_waste(summary: &Summary, wasted: Nanos) -> Value {
    if nanos(summary.totals.time_unseen) > 0.01 * summary.machine_time() {
        return Value::or(None, UNSEEN);
    }
    wakeups(summary, Some(nanos(wasted) / summary.machine_time()))
}

/// A value that requires switches and wakeups.
pub fn wakeups(summary: &Summary, value: Option<f64>) -> Value {
    if summary.totals.wakings + summary.totals.wakeups_without_waking == 0 {
        return Value::or(None, NO_WAKEUPS);
    }
    match switches(summary, 0.0).value {
        Some(_) => Value::or(value.filter(|value| value.is_finite()), NO_TASKS),
        None => Value::or(None, NO_SWITCHES),
    }
}

pub fn overhead(summary: &Summary, kinds: &[OverheadKind]) -> Value {
    let spent: Nanos = kinds.iter().map(|&kind| summary.totals.overhead(kind)).sum();
    Value::or((summary.totals.overheads > 0).then(|| nanos(spent)), NO_OVERHEAD)
}

pub fn spun(summary: &Summary) -> Value {
    let spent = summary.totals.overhead(OverheadKind::Spin);
    Value::or((spent > Nanos::ZERO).then(|| nanos(spent)), NO_SPINNING)
}

pub fn jain(summary: &Summary) -> Option<f64> {
    let (mut sum, mut squares, mut tasks) = (0.0, 0.0, 0u64);
    for service in summary.tasks.iter().filter_map(|task| task.service()) {
        sum += service;
        squares += service * service;
        tasks += 1;
    }
    (squares > 0.0).then(|| sum * sum / (tasks as f64 * squares))
}

/// The share of tasks that exit out of order.
pub fn order(summary: &Summary) -> Value {
    Value::or(completion_inversions(&summary.tasks), NO_ORDER)
}

pub fn deadlines(summary: &Summary, read: fn(&[TaskDeadlines]) -> f64) -> Value {
    let has_some = !summary.deadlines.is_empty();
    Value::or(has_some.then(|| read(&summary.deadlines)), NO_RESERVATIONS)
}

/// A percentile of the slowdowns of activations.
pub fn slowdowns(summary: &Summary, percent: f64) -> Value {
    slowdown(&summary.distributions.slowdowns.all(), percent, NO_ACTIVATIONS)
}

/// An amount per unit of CPU time that tasks got, times `scale`: equal work, whatever the window.
pub fn per_cpu_time(summary: &Summary, amount: Option<f64>, scale: f64) -> Value {
    let served = nanos(summary.sum(|task| task.cpu_time));
    Value::or(amount.filter(|_| served > 0.0).map(|amount| scale * amount / served), NO_SERVICE)
}
