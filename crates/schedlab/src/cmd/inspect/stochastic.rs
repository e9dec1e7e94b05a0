//! `schedlab inspect` of a stochastic workload: its classes by their moments.

use crate::Error;
use crate::output::{Align, Format, Results, Row, Table, quantity};
use crate::workload::Stochastic;
use schedsim::workload::Class;
use std::collections::BTreeMap;

/// Prints what `workload` draws from.
pub fn inspect(workload: &Stochastic, format: Format) -> Result<(), Error> {
    let results = Results::new(rows(workload));
    results.print(format, || format!("{workload}\n\n{}", text(workload)))
}

/// The moments of a class, each with its id, its unit and its title.
fn moments(class: &Class, workload: &Stochastic) -> [(&'static str, &'static str, &'static str, f64); 8] {
    let load_share = class.share * class.cpu_time() / workload.model.mean_cpu_time();
    [
        ("share_of_tasks", "1", "tasks", class.share),
        ("share_of_load", "1", "load", load_share),
        ("bursts_mean", "count", "bursts", class.bursts.mean()),
        ("burst_ns_mean", "ns", "burst", class.burst.mean()),
        ("burst_cv_squared", "1", "its CV²", class.burst.variation_squared()),
        ("pause_ns_mean", "ns", "pause", class.pause.mean()),
        ("pause_cv_squared", "1", "its CV²", class.pause.variation_squared()),
        ("cpu_time_ns_mean", "ns", "CPU time", class.cpu_time()),
    ]
}

fn text(workload: &Stochastic) -> String {
    let classes = workload.model.classes();
    let titles = classes.first().map(|class| moments(class, workload)).into_iter().flatten().map(|(_, _, title, _)| (title, Align::Right));
    let mut table = Table::new([("class", Align::Left)].into_iter().chain(titles));
    for class in classes {
        let cells = moments(class, workload).map(|(_, unit, _, value)| quantity(value, unit));
        table.row(std::iter::once(class.name.clone()).chain(cells));
    }
    format!(
        "{table}\nA task arrives every {} and takes {} of CPU time in the mean.\n",
        ns(workload.model.gap()),
        ns(workload.model.mean_cpu_time())
    )
}

fn ns(value: f64) -> String {
    quantity(value, "ns")
}

fn rows(workload: &Stochastic) -> Vec<Row> {
    let row = |metric: &str, unit: &str, value: f64, class: Option<&Class>| Row {
        workload: workload.name.clone(),
        policy: "none".to_string(),
        backend: "model".to_string(),
        cpus: workload.machine.cpus,
        params: class.map(|class| ("class".to_string(), class.name.clone())).into_iter().collect::<BTreeMap<_, _>>(),
        metric: metric.to_string(),
        unit: unit.to_string(),
        value: Some(value),
        ..Row::default()
    };
    let load = workload.model.offered_load(workload.machine.cpus);
    let mut rows = vec![row("offered_load", "1", load, None), row("gap_ns_mean", "ns", workload.model.gap(), None)];
    for class in workload.model.classes() {
        rows.extend(moments(class, workload).map(|(id, unit, _, value)| row(id, unit, value, Some(class))));
    }
    rows
}
