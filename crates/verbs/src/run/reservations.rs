//! Tasks that reserve CPU time: compares theory with the run.

use results::{Align, Table};
use schedsim::metrics::Summary;
use schedsim::workload::{Reservation, Schedulability, Workload};
use std::fmt::Write;

/// A table of the tasks, and the known bounds for all of them together; empty if there are none.
pub fn text(summary: &Summary, workload: &Workload, cpus: u16) -> String {
    let tasks = &summary.deadlines;
    if tasks.is_empty() {
        return String::new();
    }
    let set: Vec<Reservation> = tasks.iter().map(|task| task.reservation).collect();
    let known = Schedulability::of(&set, cpus);
    let right = |title| (title, Align::Right);
    let mut table = Table::new(
        [("reservation", Align::Left)].into_iter().chain(
            [
                "runtime",
                "deadline",
                "period",
                "used",
                "jobs",
                "missed",
                "longest response",
                "at most, rate monotonic on one CPU",
            ]
            .map(right),
        ),
    );
    for (task, response) in tasks.iter().zip(&known.response_times) {
        let Reservation { runtime, deadline, period } = task.reservation;
        table.row([
            workload.tasks[task.task.index()].info.name.clone(),
            runtime.to_string(),
            deadline.to_string(),
            period.to_string(),
            format!("{:.1}%", 100.0 * task.used),
            task.jobs.to_string(),
            task.missed.to_string(),
            task.response.to_string(),
            response.map_or("misses".to_string(), |response| response.to_string()),
        ]);
    }
    let mut text = format!("\n{table}\n");
    let edf = match known.edf {
        Some(true) => "EDF keeps all deadlines",
        Some(false) => "EDF cannot keep all deadlines",
        None => "the tests do not decide whether EDF keeps all deadlines",
    };
    let monotonic = if known.rate_monotonic() { "does" } else { "does not" };
    let _ = writeln!(
        text,
        "{:.4} of {cpus} CPU{} reserved: on {} {edf}; on one rate monotonic {monotonic}, by \
         response times (Liu & Layland: guaranteed up to {:.4}).",
        known.utilisation,
        if cpus == 1 { "" } else { "s" },
        if cpus == 1 { "it" } else { "them" },
        known.liu_layland
    );
    text
}
