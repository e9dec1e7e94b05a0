//! What ready queues cost in simulated time: the committed record of the cost atlas, on CPUs of a given speed.

use crate::atlas::text::tasks;
use crate::output::{Metric, Results, Row};
use schedsim::{Machine, QueueCost};
use std::sync::LazyLock;

/// The record, which `schedlab queue` made.
pub const RECORD: &str = include_str!("../../data/queue-atlas.json");

/// Its rows.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Results::from_json(RECORD).map_or(Vec::new(), |record| record.rows));

/// `machine`, on which each insert and pop of the ready queue `structure` is charged, at so many million instructions per second.
pub fn charge_queues(machine: &Machine, structure: &str, mips: f64) -> Machine {
    Machine { queue_cost: Some(cost_of(structure, mips)), ..machine.clone() }
}

/// The cost of the operations of `structure`; none if the record does not have it.
fn cost_of(structure: &str, mips: f64) -> QueueCost {
    let rows = ROWS.iter().filter(|row| row.metric == Metric::instructions_per_op && row.candidate == structure);
    QueueCost::new(rows.filter_map(|row| Some((tasks(row)?, row.value? * 1000.0 / mips))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::text;
    use schedsim::policy::{Catalog, PolicySpec};
    use std::fs;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/queue-atlas.md");

    /// `schedlab queue --record docs/queue-atlas.json` prints what stands in the document.
    #[test]
    fn the_tables_of_the_document_are_those_of_the_record() {
        let record = Results::from_json(RECORD).unwrap();
        let tables = |rows: &[Row]| format!("{}\nReproduce: {}\n", text::render(rows), record.command);
        let document = fs::read_to_string(DOCUMENT).unwrap();
        let (before, rest) = document.split_once("```text\n").unwrap();
        let (shown, after) = rest.split_once("```\n").unwrap();
        let current = tables(&record.rows);
        if std::env::var_os("UPDATE_ATLAS").is_some() {
            fs::write(DOCUMENT, format!("{before}```text\n{current}```\n{after}")).unwrap();
        } else {
            assert!(shown == current, "docs/queue-atlas.md is out of date: UPDATE_ATLAS=1 cargo test -p schedlab --lib record");
        }
        let mut changed = record.rows.clone();
        let cost = changed.iter_mut().find(|row| row.metric == Metric::instructions_per_op).unwrap();
        cost.value = cost.value.map(|value| value + 0.1);
        assert_ne!(tables(&changed), current, "a changed digit is seen");
    }

    #[test]
    fn the_record_has_every_policy_s_structure_and_trees_cost_more_the_more_tasks_wait() {
        let at = |policy: &str, tasks| {
            let structure = PolicySpec::parse(policy).expect("a policy").structure().expect("a structure");
            cost_of(structure, 1000.0).of(tasks).0
        };
        assert!(Catalog::built_in().names().iter().all(|name| at(name, 100) > 0));
        assert!(at("cfs", 1000) > 2 * at("cfs", 10) - at("cfs", 1) && at("cfs", 10_000) > at("cfs", 1000));
        for constant in ["o1", "mlfq", "pslist", "fifo"] {
            assert!(at(constant, 10_000).abs_diff(at(constant, 10)) <= 2, "{constant}");
            assert!(at(constant, 1000) < at("cfs", 1000));
        }
    }
}
