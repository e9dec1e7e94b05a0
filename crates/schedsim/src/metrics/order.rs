//! Compares the order in which tasks end with the order in which they started.

use super::TaskSummary;

/// The share of pairs of exited tasks in which the later-seen task (ties: the higher id) exited
/// first; this is Kendall's distance. Parents of other tasks are excluded, since most wait for
/// their children. `None` if fewer than two tasks are left.
pub fn completion_inversions(tasks: &[TaskSummary]) -> Option<f64> {
    let mut exited: Vec<&TaskSummary> =
        tasks.iter().filter(|task| task.exit.is_some() && !task.is_parent).collect();
    exited.sort_by_key(|task| (task.first, task.task));
    let pairs = exited.len() * exited.len().saturating_sub(1) / 2;
    let reversed = sort(&mut exited.iter().filter_map(|task| task.exit).collect::<Vec<_>>());
    (pairs > 0).then(|| reversed as f64 / pairs as f64)
}

/// Merge sort; returns the number of pairs in the wrong order.
fn sort(exits: &mut [u32]) -> u64 {
    if exits.len() < 2 {
        return 0;
    }
    let (left, right) = exits.split_at_mut(exits.len() / 2);
    let mut reversed = sort(left) + sort(right);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let mut rest = right.iter().copied().peekable();
    for (index, &exit) in left.iter().enumerate() {
        while let Some(earlier) = rest.next_if(|&other| other < exit) {
            reversed += (left.len() - index) as u64;
            merged.push(earlier);
        }
        merged.push(exit);
    }
    merged.extend(rest);
    exits.copy_from_slice(&merged);
    reversed
}
