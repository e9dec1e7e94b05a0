//! What operations on ready queues cost: from the committed record of the cost atlas.

use results::{Metric, Results, Row};
use schedsim::QueueCost;
use std::sync::LazyLock;

/// The record, which `schedlab queue` made.
pub const RECORD: &str = include_str!("../../data/queue-atlas.json");

/// Its rows.
static ROWS: LazyLock<Vec<Row>> =
    LazyLock::new(|| Results::from_json(RECORD).map_or(Vec::new(), |record| record.rows));

/// The cost of each insert and pop of the ready queue `structure`; nothing if the record does not have
/// it. The CPUs execute `mips` million instructions per second.
pub fn cost_of(structure: &str, mips: f64) -> QueueCost {
    let rows = ROWS
        .iter()
        .filter(|row| row.metric == Metric::instructions_per_op && row.candidate == structure);
    QueueCost::new(rows.filter_map(|row| Some((row.tasks_of_yield()?, row.value? * 1000.0 / mips))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::policy::{Catalog, PolicySpec};

    #[test]
    fn the_record_has_every_policy_s_structure_and_trees_cost_more_the_more_tasks_wait() {
        let at = |policy: &str, tasks| {
            let structure =
                PolicySpec::parse(policy).expect("a policy").structure().expect("a structure");
            cost_of(structure, 1000.0).of(tasks).0
        };
        assert!(Catalog::built_in().names().iter().all(|name| at(name, 100) > 0));
        assert!(
            at("cfs", 1000) > 2 * at("cfs", 10) - at("cfs", 1)
                && at("cfs", 10_000) > at("cfs", 1000)
        );
        for constant in ["o1", "mlfq", "pslist", "fifo"] {
            assert!(at(constant, 10_000).abs_diff(at(constant, 10)) <= 2, "{constant}");
            assert!(at(constant, 1000) < at("cfs", 1000));
        }
    }
}
