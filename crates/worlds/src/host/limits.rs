//! Checks a workload against the limits on the number of tasks, before anything starts.

use program::Error;
use schedsim::workload::{Closed, LoopPhase, Phase};
use std::collections::BTreeMap;
use std::fs;

/// The most tasks of a workload that can be alive at a time. Forks are followed through the phases;
/// a join ends all tasks of its name.
pub fn most_alive(workload: &Closed) -> u64 {
    let own = workload.tasks.iter().filter(|task| !task.forked);
    let forked = |name: &String| {
        workload
            .tasks
            .iter()
            .find(|task| task.name == *name)
            .map_or(0, |task| u64::from(task.count))
    };
    let mut most: BTreeMap<String, u64> = BTreeMap::new();
    for task in &workload.tasks {
        let mut alive = BTreeMap::new();
        follow(&task.phases, &mut alive, &mut most);
    }
    own.map(|task| u64::from(task.count)).sum::<u64>()
        + most.iter().map(|(name, count)| (*count).min(forked(name))).sum::<u64>()
}

fn follow(phases: &[Phase], alive: &mut BTreeMap<String, u64>, most: &mut BTreeMap<String, u64>) {
    for phase in phases {
        match phase {
            Phase::Fork(name) => {
                let count = alive.entry(name.clone()).or_default();
                *count = count.saturating_add(1);
                let most = most.entry(name.clone()).or_default();
                *most = (*most).max(*count);
            }
            Phase::Join(name) => drop(alive.remove(name)),
            Phase::Loop(LoopPhase { times, phases }) => {
                let before = alive.clone();
                follow(phases, alive, most);
                // What one round leaves behind, each further round leaves behind again.
                let rounds = times.unwrap_or(u64::MAX).saturating_sub(1);
                for (name, count) in alive.iter_mut() {
                    let grown = count.saturating_sub(before.get(name).copied().unwrap_or(0));
                    *count = count.saturating_add(grown.saturating_mul(rounds));
                    let most = most.entry(name.clone()).or_default();
                    *most = (*most).max(*count);
                }
            }
            Phase::Serve(serve) => {
                serve.handle.iter().for_each(|phases| follow(phases, alive, most));
            }
            Phase::EventLoop(event_loop) => {
                event_loop.handle.iter().flatten().for_each(|round| follow(round, alive, most));
            }
            _ => {}
        }
    }
}

/// The lowest limit on the number of tasks: how many more there may be, and its source.
pub fn room_for_tasks() -> Option<(u64, String)> {
    let number =
        |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let there = fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(['/', ' ']).nth(4)?.parse::<u64>().ok())
        .unwrap_or(0);
    let system = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    let of_system = system.iter().filter_map(|path| {
        Some((number(path)?.saturating_sub(there), format!("{path} is {}", number(path)?)))
    });
    let of_groups = cgroups().into_iter().filter_map(|group| {
        let (most, now) = (
            number(&format!("{group}/pids.max"))?,
            number(&format!("{group}/pids.current")).unwrap_or(0),
        );
        Some((most.saturating_sub(now), format!("{group}/pids.max is {most}")))
    });
    of_system.chain(of_groups).chain(of_user()).min()
}

/// `Max processes` holds only for users other than root.
fn of_user() -> Option<(u64, String)> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let most: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    (!rustix::process::geteuid().is_root()).then(|| (most, format!("ulimit -u is {most}")))
}

/// The directories of this process's control groups that limit pids, with their parents.
fn cgroups() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            "pids" => "/sys/fs/cgroup/pids",
            _ => return None,
        };
        Some((root, path.trim_matches('/').to_string()))
    };
    let of_line = |line| {
        group(line).into_iter().flat_map(|(root, path)| {
            let parents: Vec<String> = path
                .match_indices('/')
                .map(|(at, _)| path[..at].to_string())
                .chain([path.clone()])
                .collect();
            parents
                .into_iter()
                .filter(|path| !path.is_empty())
                .map(move |path| format!("{root}/{path}"))
        })
    };
    text.lines().flat_map(of_line).collect()
}

/// Refuses a workload with more tasks than the limits allow.
///
/// # Errors
/// [`Error::Usage`] with both numbers.
pub fn require_room(name: &str, workload: &Closed) -> Result<(), Error> {
    let wanted = most_alive(workload);
    match room_for_tasks() {
        Some((room, why)) if wanted > room => Err(Error::Usage(format!(
            "{name} has up to {wanted} tasks alive at a time and this machine has room for \
             {room}: {why}; raise it, or give fewer tasks (of pythagoras, ?alive={})",
            (room / 2).max(1)
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::workload::Tasks;

    fn workload(phases: Vec<Phase>) -> Closed {
        let job = Tasks { count: 1000, forked: true, ..Tasks::new("job", vec![]) };
        Closed {
            tasks: vec![job, Tasks { count: 2, ..Tasks::new("main", phases) }],
            ..Closed::default()
        }
    }

    #[test]
    fn forks_are_counted_until_they_are_joined() {
        let fork = || Phase::Fork("job".to_string());
        let join = || Phase::Join("job".to_string());
        assert_eq!(most_alive(&workload(vec![])), 2);
        assert_eq!(
            most_alive(&workload(vec![Phase::repeat(
                10,
                vec![Phase::repeat(7, vec![fork()]), join()]
            )])),
            2 + 7
        );
        assert_eq!(
            most_alive(&workload(vec![Phase::repeat(10, vec![fork(), fork()]), join(), fork()])),
            2 + 20
        );
        assert_eq!(most_alive(&workload(vec![Phase::forever(vec![fork()])])), 2 + 1000);
        assert_eq!(most_alive(&workload(vec![fork(), join(), fork(), join()])), 2 + 1);
    }

    #[test]
    fn a_million_tasks_are_refused_with_the_number() {
        let workload = Closed {
            tasks: vec![Tasks { count: 100_000_000, ..Tasks::new("many", vec![]) }],
            ..Closed::default()
        };
        let error = require_room("many", &workload).expect_err("no machine has room");
        assert!(
            error.to_string().contains("up to 100000000 tasks alive") && error.exit_code() == 2,
            "{error}"
        );
    }
}
