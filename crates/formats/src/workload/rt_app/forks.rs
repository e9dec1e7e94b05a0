//! Tasks that others fork: how many there are, and what they are called.

use schedsim::workload::{Closed, Phase};
use std::collections::{BTreeMap, BTreeSet};

/// The most tasks of one name that rt-app forks.
pub const MOST: u64 = 1024;

/// How often each task is forked, up to a little more than [`MOST`]; `asleep` are those that only a
/// fork begins.
pub fn counts(closed: &Closed, asleep: &BTreeMap<String, usize>) -> BTreeMap<String, u64> {
    let mut forks = Vec::new();
    for tasks in &closed.tasks {
        for place in closed.reached_by(tasks, "") {
            let Phase::Fork(name) = place.phase else { continue };
            forks.push((tasks, name, place.times));
        }
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    // After as many rounds as there are tasks all counts are final, unless tasks fork each other
    // in a circle: then each round adds a generation, up to the limit.
    let rounds = closed.tasks.len().saturating_add(MOST.try_into().unwrap_or(usize::MAX));
    for _ in 0..=rounds {
        let mut next: BTreeMap<String, u64> = BTreeMap::new();
        for &(by, name, times) in &forks {
            let at_start = if asleep.contains_key(&by.name) { 0 } else { u64::from(by.count) };
            let all = at_start.saturating_add(counts.get(&by.name).copied().unwrap_or(0));
            if all > 0 {
                let count = next.entry(name.clone()).or_default();
                *count = count.saturating_add(times.saturating_mul(all));
            }
        }
        if next == counts {
            break;
        }
        counts = next;
        if counts.values().any(|count| *count > MOST) {
            break;
        }
    }
    counts
}

/// Removes tasks, and moves the lines of those behind them.
pub fn remove(closed: &mut Closed, lines: &mut BTreeMap<String, usize>, gone: &BTreeSet<usize>) {
    if gone.is_empty() {
        return;
    }
    let moved = |key: &str| -> Option<String> {
        let rest = key.strip_prefix("task[")?;
        let (number, rest) = rest.split_once(']')?;
        let number: usize = number.parse().ok()?;
        let before = gone.range(..number).count();
        (!gone.contains(&number)).then(|| format!("task[{}]{rest}", number.saturating_sub(before)))
    };
    *lines = std::mem::take(lines)
        .into_iter()
        .filter_map(|(key, line)| Some((moved(&key)?, line)))
        .collect();
    let mut number = 0usize;
    closed.tasks.retain(|_| {
        let stays = !gone.contains(&number);
        number = number.saturating_add(1);
        stays
    });
    let members: BTreeSet<&String> =
        closed.tasks.iter().filter_map(|tasks| tasks.cgroup.as_ref()).collect();
    closed.cgroups.retain(|name, _| members.contains(name));
    let uses = |phase: &Phase| match phase {
        Phase::Post { eventfd, .. } | Phase::Take { eventfd } => Some(eventfd.clone()),
        _ => None,
    };
    let used: BTreeSet<String> = closed
        .tasks
        .iter()
        .flat_map(|tasks| closed.reached_by(tasks, ""))
        .filter_map(|place| uses(place.phase))
        .collect();
    closed.eventfds.retain(|name, _| used.contains(name));
}

/// Gives the tasks that phases fork other names.
pub fn rename(phases: &mut [Phase], names: &BTreeMap<String, String>) {
    for phase in phases {
        match phase {
            Phase::Fork(name) => {
                if let Some(new) = names.get(name) {
                    name.clone_from(new);
                }
            }
            Phase::Loop(inner) => rename(&mut inner.phases, names),
            _ => {}
        }
    }
}
