//! `schedlab diff --decisions --explain`: the decisions in which a policy differs from the kernel,
//! one by one.

use super::{KEPT, Pair};
use results::{Align, Table, quantity};
use schedsim::TaskId;
use schedsim::live::{Difference, Diverged};

/// The number of lines of a table.
const SHOWN: usize = 20;

/// What differs in a boot; empty if nothing was compared.
pub(super) fn differences(pair: &Pair) -> String {
    let Some(judgement) = &pair.judgement else { return String::new() };
    let task = |task: Option<TaskId>| match task {
        Some(task) => pair
            .tasks
            .get(task.index())
            .map_or(task.0.to_string(), |name| format!("{name} [{}]", task.0)),
        None => "none".to_string(),
    };
    let mut text = String::new();
    let decision = |of: &Diverged| {
        let Diverged { time, cpu, class, kernel, policy } = *of;
        let at = quantity(time.0 as f64, "ns");
        [at, cpu.0.to_string(), class.name().to_string(), task(kernel), task(policy)]
    };
    let titles = ["at", "CPU", "the policy differs by", "the kernel's task", "the policy's task"];
    text += &shown("Decisions that differ", &titles, judgement.divergences.iter().map(decision));
    let state = |of: &Difference| {
        let off = |kernel: u64, policy: u64| {
            let off = policy.wrapping_sub(kernel).cast_signed();
            quantity(off as f64, "ns")
        };
        [
            quantity(of.time.0 as f64, "ns"),
            task(Some(of.task)),
            quantity(of.kernel.slice as f64, "ns"),
            off(of.kernel.slice, of.policy.slice),
            off(of.kernel.vtime, of.policy.vtime),
        ]
    };
    let titles = ["at", "task", "the kernel's slice", "slice off by", "virtual time off by"];
    let far = judgement.differences.iter().filter(|of| of.size() > KEPT).map(state);
    text + &shown("Slices and virtual times that differ", &titles, far)
}

/// The first of these lines as a table with a title.
fn shown<const N: usize>(
    title: &str,
    titles: &[&str; N],
    lines: impl Iterator<Item = [String; N]>,
) -> String {
    let lines: Vec<[String; N]> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut table = Table::new(titles.map(|title| (title, Align::Left)));
    lines.iter().take(SHOWN).for_each(|line| table.row(line.clone()));
    let more = match lines.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("and {more} more\n"),
    };
    format!("\n{title}:\n\n{table}{more}")
}
