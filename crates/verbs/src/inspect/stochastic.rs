//! `schedlab inspect` of a stochastic workload: the moments of its classes.

use crate::output::Format;
use formats::workload::Stochastic;
use program::Error;
use results::{Align, Metric, Results, Row, SubjectKind, Table, World, quantity};
use schedsim::workload::Class;

/// Prints the distributions of `workload`.
pub fn inspect(workload: &Stochastic, format: Format) -> Result<(), Error> {
    let results = Results::new(rows(workload));
    format.print(&results, || format!("{workload}\n\n{}", text(workload)))
}

/// The moments of a class, with their titles.
fn moments(class: &Class, workload: &Stochastic) -> [(Metric, &'static str, f64); 8] {
    let load_share = class.share * class.cpu_time() / workload.model.mean_cpu_time();
    [
        (Metric::share_of_tasks, "tasks", class.share),
        (Metric::share_of_load, "load", load_share),
        (Metric::bursts_mean, "bursts", class.bursts.mean()),
        (Metric::burst_ns_mean, "burst", class.burst.mean()),
        (Metric::burst_cv_squared, "its CV²", class.burst.variation_squared()),
        (Metric::pause_ns_mean, "pause", class.pause.mean()),
        (Metric::pause_cv_squared, "its CV²", class.pause.variation_squared()),
        (Metric::cpu_time_ns_mean, "CPU time", class.cpu_time()),
    ]
}

fn text(workload: &Stochastic) -> String {
    let classes = workload.model.classes();
    let titles = classes
        .first()
        .map(|class| moments(class, workload))
        .into_iter()
        .flatten()
        .map(|(_, title, _)| (title, Align::Right));
    let mut table = Table::new([("class", Align::Left)].into_iter().chain(titles));
    for class in classes {
        let cells =
            moments(class, workload).map(|(metric, _, value)| quantity(value, metric.unit()));
        table.row(std::iter::once(class.name.clone()).chain(cells));
    }
    format!(
        "{table}\nOn average a task arrives every {} and needs {} of CPU time.\n",
        ns(workload.model.gap()),
        ns(workload.model.mean_cpu_time())
    )
}

fn ns(value: f64) -> String {
    quantity(value, "ns")
}

fn rows(workload: &Stochastic) -> Vec<Row> {
    let row = |metric: Metric, value: f64| Row {
        workload: workload.name.clone(),
        candidate: "none".to_string(),
        cpus: workload.machine.cpus,
        value: Some(value),
        ..Row::new(World::Model, metric)
    };
    let load = workload.model.offered_load(workload.machine.cpus);
    let mut rows =
        vec![row(Metric::offered_load, load), row(Metric::gap_ns_mean, workload.model.gap())];
    for class in workload.model.classes() {
        rows.extend(
            moments(class, workload)
                .map(|(metric, _, value)| row(metric, value).of(SubjectKind::Class, &class.name)),
        );
    }
    rows
}
