//! What ready queues cost in simulated time: the committed record of the cost atlas, on CPUs of a given speed.

use schedsim::{Machine, QueueCost};

/// The record, which `schedlab queue` made: instructions per operation by structure and number of tasks.
const RECORD: &str = include_str!("../../../../docs/queue-atlas.md");
/// The heading of its table.
const TABLE: &str = "instructions per operation, without the loop";

/// `machine`, on which each insert and pop of the ready queue `structure` is charged, at so many million instructions per second.
pub fn charge_queues(machine: &Machine, structure: &str, mips: f64) -> Machine {
    Machine { queue_cost: Some(cost_of(structure, mips)), ..machine.clone() }
}

/// The cost of the operations of `structure`; none if the record does not have it.
fn cost_of(structure: &str, mips: f64) -> QueueCost {
    let mut lines = RECORD.lines().skip_while(|line| *line != TABLE).skip(1).take_while(|line| !line.is_empty());
    let counts = |line: &str| line.split_whitespace().filter_map(|word| word.strip_prefix("N=")?.parse::<u32>().ok()).collect::<Vec<_>>();
    let header = lines.next().map(counts).unwrap_or_default();
    let row = lines.find(|line| line.split_whitespace().next() == Some(structure)).unwrap_or_default();
    let values = row.split_whitespace().skip(1).filter(|word| !word.starts_with('±')).map_while(|word| word.parse::<f64>().ok());
    QueueCost::new(header.into_iter().zip(values.map(|instructions| instructions * 1000.0 / mips)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::policy::{Catalog, PolicySpec};

    #[test]
    fn the_record_has_every_policy_s_structure_and_trees_cost_more_the_more_tasks_wait() {
        let at = |policy: &str, tasks| {
            let structure = PolicySpec::parse(policy).expect("a policy").structure().expect("a structure");
            cost_of(structure, 1000.0).of(tasks).0
        };
        assert!(Catalog::built_in().names().iter().all(|name| at(name, 100) > 0), "{TABLE}");
        assert!(at("cfs", 1000) > 2 * at("cfs", 10) - at("cfs", 1) && at("cfs", 10_000) > at("cfs", 1000));
        for constant in ["o1", "mlfq", "pslist", "fifo"] {
            assert!(at(constant, 10_000).abs_diff(at(constant, 10)) <= 2, "{constant}");
            assert!(at(constant, 1000) < at("cfs", 1000));
        }
    }
}
