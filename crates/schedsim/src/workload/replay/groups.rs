//! The groups of tasks that others wait for.
//!
//! A recording names tasks that a task waits for by ranges of ids, which may overlap. A workload's
//! groups do not, and if there are any, every forked task is in one.

use crate::TaskId;
use crate::workload::Group;
use std::collections::{BTreeMap, BTreeSet};

/// A script can name this many.
const MOST: u32 = 1 << 24;

/// The groups of the workload, by range of the recording.
pub(super) struct Groups {
    ranges: Vec<std::ops::Range<u32>>,
    /// By task that another one waits for.
    ends: BTreeMap<TaskId, std::ops::Range<u32>>,
}

impl Groups {
    /// Replaces `ranges` by groups; `forked` says which tasks are forked, `joined` for which others
    /// wait one by one.
    pub fn arrange(ranges: &mut Vec<Group>, forked: &[bool], joined: &BTreeSet<TaskId>) -> Groups {
        let recorded = ranges.len();
        ranges.extend(joined.iter().map(|task| Group {
            name: String::new(),
            first: *task,
            count: 1,
            daemon: false,
        }));
        if ranges.is_empty() {
            return Groups { ranges: Vec::new(), ends: BTreeMap::new() };
        }
        let tasks = forked.len() as u32;
        let clamped = |group: &Group| {
            let first = group.first.0.min(tasks);
            first..first.saturating_add(group.count).min(tasks)
        };
        let wanted: Vec<std::ops::Range<u32>> = ranges.iter().map(clamped).collect();
        let mut cuts: BTreeSet<u32> =
            wanted.iter().flat_map(|range| [range.start, range.end]).collect();
        let mut covered = vec![false; forked.len()];
        for range in &wanted {
            covered[range.start as usize..range.end as usize].fill(true);
        }
        for (task, _) in
            forked.iter().enumerate().filter(|&(task, forked)| *forked && !covered[task])
        {
            cuts.extend([task as u32, task as u32 + 1]);
        }
        let cuts: Vec<u32> = cuts.into_iter().collect();
        let mut groups = Vec::new();
        for cut in cuts.windows(2) {
            let (first, end) = (cut[0], cut[1]);
            if covered[first as usize] || forked[first as usize] {
                groups.push(Group {
                    name: format!("tasks from {first}"),
                    first: TaskId(first),
                    count: end - first,
                    daemon: false,
                });
            }
        }
        let place = |cut: u32| groups.partition_point(|group| group.first.0 < cut) as u32;
        let all = wanted.into_iter().map(|range| place(range.start)..place(range.end));
        let mut all: Vec<std::ops::Range<u32>> = all.collect();
        let ends = joined.iter().copied().zip(all.split_off(recorded)).collect();
        *ranges = groups;
        Groups { ranges: all, ends }
    }

    /// The groups in a range.
    pub fn of(&self, range: u32) -> std::ops::Range<u32> {
        limited(self.ranges.get(range as usize))
    }

    /// The group of a task that another one waits for.
    pub fn end_of(&self, task: TaskId) -> std::ops::Range<u32> {
        limited(self.ends.get(&task))
    }
}

fn limited(groups: Option<&std::ops::Range<u32>>) -> std::ops::Range<u32> {
    groups.map_or(0..0, |groups| groups.start.min(MOST)..groups.end.min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_become_groups_that_do_not() {
        let range = |first, count| Group {
            name: String::new(),
            first: TaskId(first),
            count,
            daemon: false,
        };
        let mut ranges = vec![range(2, 4), range(4, 4), range(2, 4), range(90, 9)];
        let forked: Vec<bool> = (0..10).map(|task| task > 0).collect();
        let groups = Groups::arrange(&mut ranges, &forked, &[TaskId(5)].into());
        let spans: Vec<(u32, u32)> =
            ranges.iter().map(|group| (group.first.0, group.count)).collect();
        assert_eq!(spans, [(1, 1), (2, 2), (4, 1), (5, 1), (6, 2), (8, 1), (9, 1)]);
        assert_eq!(
            (groups.of(0), groups.of(1), groups.of(2), groups.of(3)),
            (1..4, 2..5, 1..4, 7..7)
        );
        assert_eq!(groups.of(77), 0..0);
        assert_eq!((groups.end_of(TaskId(5)), groups.end_of(TaskId(6))), (3..4, 0..0));
    }
}
