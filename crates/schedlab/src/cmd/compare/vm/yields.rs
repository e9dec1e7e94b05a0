//! What a yield costs in real kernels, in instructions.

use super::{Case, InCharge};
use crate::Error;
use crate::cmd::compare::Compare;
use crate::output::{Align, Metric, Results, Row, SubjectKind, Table};
use crate::vm::{functions, yields};
use schedlab_runner::class::Class;
use std::fmt::Write;

/// The instructions of one job by function, the most first.
type Split = Vec<(String, u64)>;

/// A case, with what a yield of so many tasks costs in it.
struct Yields {
    case: Case,
    costs: Vec<(u32, yields::YieldCost)>,
    /// For each number of tasks, if it was asked for.
    splits: Vec<Split>,
}

impl Compare {
    pub(super) fn yields_on_vm(&self, counts: &str) -> Result<(), Error> {
        let tasks = numbers_of_tasks(counts)?;
        if self.one_number_of_cpus()?.is_some_and(|cpus| cpus != 1) {
            return Err(Error::Usage(
                "with more than one virtual CPU the clock counts all instructions and says nothing of one: give --cpus 1".to_string(),
            ));
        }
        if self.vm.boots > 1 {
            return Err(Error::Usage("instructions of a yield are exact, and the same in each boot: leave --boots out".to_string()));
        }
        InCharge::all(&self.policy)?.iter().try_for_each(|in_charge| expect_short_period(in_charge.class()))?;
        let cases = self.cases(1, &[], |class| tasks.iter().map(|&tasks| yields::job(tasks, class)).collect())?;
        let cases = cases.into_iter().map(|case| Yields::of(case, &tasks, self.vm.functions.is_some())).collect::<Result<Vec<_>, _>>()?;
        let results = Results::new(cases.iter().flat_map(Yields::rows).collect());
        results.print(self.common.format, || text(&cases, self.vm.functions.unwrap_or(0)))
    }
}

/// Refuses a deadline task whose yields would take longer than the guest's watchdog waits: each waits for its next period.
fn expect_short_period(class: Class) -> Result<(), Error> {
    const LONGEST: u64 = 500_000;
    match class {
        Class::Deadline { period, .. } if period > LONGEST => Err(Error::Usage(format!(
            "a task of kernel:{class} yields once in each period: give one of at most 500us, as in kernel:deadline:50us/100us/100us"
        ))),
        _ => Ok(()),
    }
}

/// `2,8,32`: the numbers of tasks.
fn numbers_of_tasks(counts: &str) -> Result<Vec<u32>, Error> {
    match counts.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>() {
        Ok(counts) if counts.iter().all(|count| (1..=10_000).contains(count)) => Ok(counts),
        _ => Err(Error::Usage(format!("`yield:{counts}`: give numbers of tasks from 1 to 10000, as in yield:2,8,32,128"))),
    }
}

impl Yields {
    fn of(case: Case, tasks: &[u32], with_functions: bool) -> Result<Yields, Error> {
        let transcript = &case.proved.transcript;
        let cost = |(job, &tasks)| yields::cost(transcript, case.first_job + job).map(|cost| (tasks, cost));
        let mut costs: Vec<_> = tasks.iter().enumerate().filter_map(cost).collect();
        let mut splits = Vec::new();
        // A deadline task that yields waits for its next period: the CPU idles, and the clock skips what it idles.
        let idles = matches!(case.in_charge.class(), Class::Deadline { .. });
        if with_functions || idles {
            let symbols = functions::Symbols::of(&case.guest)?;
            let counted = functions::count(&case.guest, transcript)?;
            splits = (case.first_job..).take(tasks.len()).map(|job| functions::split(&counted, &symbols, job)).collect();
        }
        for ((_, cost), split) in costs.iter_mut().zip(&splits).filter(|_| idles) {
            *cost = cost.executed(split.iter().map(|(_, count)| count).sum());
        }
        Ok(Yields { case, costs, splits })
    }

    fn fit(&self) -> Option<yields::Fit> {
        yields::Fit::of(&self.costs.iter().map(|(tasks, cost)| (*tasks, cost.instructions)).collect::<Vec<_>>())
    }

    fn rows(&self) -> Vec<Row> {
        let row = &|workload: String, metric: Metric, value: f64, note: Option<String>| Row {
            workload,
            candidate: self.case.in_charge.to_string(),
            cpus: self.case.guest.cpus,
            point: self.case.point(),
            value: Some(value),
            runs: 2,
            note,
            ..Row::new(self.case.world(), metric)
        };
        let each = self.costs.iter().map(|(tasks, cost)| {
            let (low, high) = cost.range;
            let note = format!("windows from {low:.1} to {high:.1}, {} yields; two boots, the same digits", cost.yields);
            row(format!("yield:{tasks}"), Metric::instructions_per_yield, cost.instructions, Some(note))
        });
        let by_function = self.costs.iter().zip(&self.splits).flat_map(|((tasks, cost), split)| {
            split.iter().map(move |(function, count)| {
                let value = *count as f64 / cost.yields as f64;
                row(format!("yield:{tasks}"), Metric::instructions_per_yield_in_function, value, None).of(SubjectKind::Function, function)
            })
        });
        let fitted = self.fit().into_iter().flat_map(|fit| {
            [(Metric::instructions_per_yield_base, fit.base), (Metric::instructions_per_yield_per_doubling, fit.per_doubling)].map(
                |(metric, value)| row("yield:*".to_string(), metric, value, Some("fitted: base + per_doubling * log2 tasks".to_string())),
            )
        });
        each.chain(by_function).chain(fitted).collect()
    }

    /// The functions that take the most, one row each, a column for each number of tasks.
    fn functions(&self, show: usize) -> String {
        let mut columns = vec![(self.case.title(), Align::Left)];
        columns.extend(self.costs.iter().map(|(tasks, _)| (format!("{tasks} tasks"), Align::Right)));
        let mut table = Table::new(columns);
        let per_yield = |split: &Split, cost: &yields::YieldCost, function: &str| {
            let count = split.iter().find(|(name, _)| name == function).map_or(0, |(_, count)| *count);
            format!("{:.1}", count as f64 / cost.yields as f64)
        };
        let costs = || self.splits.iter().zip(&self.costs);
        for (function, _) in self.splits.last().into_iter().flatten().take(show) {
            let cells = costs().map(|(split, (_, cost))| per_yield(split, cost, function));
            table.row(std::iter::once(function.clone()).chain(cells));
        }
        let all = costs()
            .map(|(split, (_, cost))| format!("{:.1}", split.iter().map(|(_, count)| count).sum::<u64>() as f64 / cost.yields as f64));
        table.row(std::iter::once("all functions".to_string()).chain(all));
        format!("{table}\n")
    }
}

fn text(cases: &[Yields], functions: usize) -> String {
    let mut columns = vec![("tasks".to_string(), Align::Right)];
    columns.extend(cases.iter().map(|yields| (yields.case.title(), Align::Right)));
    let mut table = Table::new(columns);
    for (index, (tasks, _)) in cases.first().map_or(&[][..], |yields| &yields.costs).iter().enumerate() {
        let cost = |yields: &Yields| yields.costs.get(index).map_or("-".to_string(), |(_, cost)| format!("{:.1}", cost.instructions));
        table.row(std::iter::once(tasks.to_string()).chain(cases.iter().map(cost)));
    }
    let mut text = format!("Instructions per yield, one virtual CPU, each kernel booted twice: the same digits\n\n{table}\n");
    for yields in cases {
        if let Some(fit) = yields.fit() {
            let _ = writeln!(text, "{}: {:.0} + {:.1} * log2 N", yields.case.title(), fit.base, fit.per_doubling);
        }
    }
    if functions > 0 {
        let _ = writeln!(text, "\nInstructions per yield by function, counted in a boot of its own that gave the same digits:\n");
        cases.iter().for_each(|yields| text += &yields.functions(functions));
    }
    let mut identities: Vec<String> = cases.iter().map(|yields| yields.case.identity.to_string()).collect();
    identities.dedup();
    identities.iter().for_each(|identity| text += &format!("{identity}\n"));
    text
}
