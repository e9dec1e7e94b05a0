//! A comparison on this machine for people, its single runs for other programs, and how it ends.

use crate::Error;
use crate::experiment::{HostCase, HostComparison, Plan, RecordedRun};
use crate::host::cpus;
use crate::host::measured::METRICS;
use crate::output::{Align, Table, headline, quantity};
use crate::statistics::Estimate;
use std::fmt::Write;

pub const MARKS: &str = "\n+ better  - worse  = the same within the margin  ~ undecided, by paired differences, corrected for all comparisons and looks; \
                         ± half of a 95 % interval where above 1%\n";
/// The columns of [`raw`].
pub const RAW_HEADER: &str = "workload,policy,cpus,round,metric,value\n";

/// What was found on one number of CPUs.
pub fn table(comparison: &HostComparison, plan: &Plan<'_>) -> String {
    let baseline = &comparison.cases[0];
    let mut text = String::new();
    let cpus = &plan.conditions.cpus;
    let _ = writeln!(
        text,
        "\nOn this machine, CPU{} {}, against kernel:{}:",
        if cpus.len() == 1 { "" } else { "s" },
        cpus::names(cpus),
        baseline.class
    );
    text += &same(comparison);
    let shown = || METRICS.iter().filter(|metric| comparison.cases.iter().any(|case| case.estimate(metric.id).is_some()));
    let columns = ["runs", "makespan by pairs"].into_iter().chain(shown().map(|metric| metric.title));
    let mut table = Table::new(std::iter::once(("policy", Align::Left)).chain(columns.map(|title| (title, Align::Right))));
    for (index, case) in comparison.cases.iter().enumerate() {
        let ran = case.runs.iter().filter(|run| run.is_ok()).count().to_string();
        let cells = shown().map(|metric| {
            let mark = comparison.verdict(index, metric.id).map_or(" ", |verdict| verdict.mark());
            case.estimate(metric.id).map_or("- ".to_string(), |estimate| format!("{} {mark}", cell(estimate, metric.unit)))
        });
        let first = [format!("kernel:{}", case.class), ran, difference(case, baseline)];
        table.row(first.into_iter().chain(cells));
    }
    let _ = writeln!(text, "\n{table}");
    for case in &comparison.cases {
        text += &told(case);
    }
    if comparison.inconclusive {
        text += "Inconclusive: the time was up before the intervals were narrow enough; give more with --max-time.\n";
    }
    text
}

fn same(comparison: &HostComparison) -> String {
    let Some(same) = &comparison.same else { return String::new() };
    let percent = |estimate: Estimate| format!("{:+.2}% ±{:.2}%", 100.0 * estimate.mean, 100.0 * estimate.half_width.unwrap_or(f64::NAN));
    let mut text = format!(
        "The same against the same (A/A), {} rounds: {}; the mean of single runs is known to ±{:.2}%; measuring adds {}.\n",
        same.runs,
        percent(same.difference),
        100.0 * same.spread.half_width.unwrap_or(f64::NAN),
        percent(same.overhead)
    );
    if same.is_wrong() {
        text += "Caution: this machine tells the same from the same; something else is at work on it.\n";
    }
    text
}

fn difference(case: &HostCase, baseline: &HostCase) -> String {
    let base = baseline.estimate("makespan_ns").map_or(f64::NAN, |base| base.mean);
    match case.against(baseline, "makespan_ns") {
        Some(paired) if case.class != baseline.class => {
            format!("{:+.2}% ±{:.2}%", 100.0 * paired.mean / base, 100.0 * paired.half_width(0.95) / base)
        }
        _ => "-".to_string(),
    }
}

fn cell(estimate: Estimate, unit: &str) -> String {
    let share = estimate.half_width.map_or(0.0, |width| width / estimate.mean.abs());
    let spread = if share > 0.01 && share.is_finite() { format!(" ±{:.0}%", (100.0 * share).ceil()) } else { String::new() };
    format!("{}{spread}", quantity(estimate.mean, unit))
}

/// The metrics of recorded runs.
pub fn recorded(runs: &[RecordedRun]) -> String {
    let mut table = Table::new(std::iter::once(("recorded once", Align::Left)).chain(headline().map(|(_, title)| (title, Align::Right))));
    for run in runs {
        let cells =
            headline().map(|(metric, _)| metric.read(&run.summary).value.map_or("-".to_string(), |value| quantity(value, metric.unit)));
        table.row(std::iter::once(format!("kernel:{}", run.class)).chain(cells));
    }
    format!("\n{table}Of the workload's own tasks; from their making on, not from the release, and with what perf costs.\n")
}

/// What a reader must know of a case that did not go well.
fn told(case: &HostCase) -> String {
    let mut text = String::new();
    if let Some(refused) = &case.refused {
        let _ = writeln!(text, "kernel:{} was not run: {refused}{}", case.class, help(case));
        return text;
    }
    let failures: Vec<(usize, &str)> = case.failures().collect();
    if let Some((round, message)) = failures.first() {
        let _ = writeln!(
            text,
            "kernel:{}: {} of {} runs failed and are left out; round {}: {message}",
            case.class,
            failures.len(),
            case.runs.len(),
            round + 1
        );
    }
    text
}

fn is_privilege(case: &HostCase) -> bool {
    case.refused.as_ref().is_some_and(|refused| refused.contains("Operation not permitted"))
}

fn help(case: &HostCase) -> &'static str {
    use schedlab_runner::class::Class;
    match case.class {
        Class::Deadline { .. } if is_privilege(case) => {
            "; deadline tasks need root, and all CPUs: run it as root, without --affinity and --cpus"
        }
        Class::Deadline { .. } => "; all deadline tasks together may ask for 95 % of the CPUs at most, and may not make others",
        _ if is_privilege(case) => "; run it as root, or grant it: sudo setcap cap_sys_nice+ep $(which schedlab)",
        _ => "",
    }
}

/// How the command ends: skipped classes, unusable ones and intervals that are too wide have exit codes of their own.
pub fn end(comparison: &HostComparison) -> Result<(), Error> {
    let refused: Vec<&HostCase> = comparison.cases.iter().filter(|case| case.refused.is_some()).collect();
    let list = || refused.iter().map(|case| told(case).trim_end().to_string()).collect::<Vec<_>>().join("\n");
    match () {
        () if refused.iter().any(|case| is_privilege(case)) => Err(Error::Missing(list())),
        () if !refused.is_empty() => Err(Error::Input(list())),
        () if comparison.inconclusive => {
            Err(Error::Inconclusive("the time was up before the intervals were narrow enough: give more with --max-time".to_string()))
        }
        () => Ok(()),
    }
}

/// Each value of each run, so that others can judge for themselves.
pub fn raw(comparison: &HostComparison, plan: &Plan<'_>) -> String {
    let mut lines = String::new();
    for case in &comparison.cases {
        for (round, run) in case.runs.iter().enumerate() {
            for (metric, value) in run.iter().flat_map(|run| &run.values) {
                let name = plan.name.replace('"', "\"\"");
                let _ = writeln!(lines, "\"{name}\",kernel:{},{},{},{metric},{value}", case.class, plan.conditions.cpus.len(), round + 1);
            }
        }
    }
    lines
}
