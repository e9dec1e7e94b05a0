//! Counts that do not depend on the machine: what operations examine, and how long tasks wait.

use super::rig::{Cell, Rig};
use super::structure::Visitor;
use super::subject::Subject;
use std::collections::BTreeMap;

/// The counts of one cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    /// List elements, schedule entries or tree levels examined per operation, on average.
    pub examined_per_op: f64,
    /// For every level with tasks: the most slices from one slice of a task to its next; 0 if no
    /// task ran twice.
    pub longest_wait: Vec<(u16, u64)>,
    /// For every level with tasks: the number of slices of its tasks.
    pub turns: Vec<(u16, u64)>,
    /// Levels of the first slices, in order.
    pub order: Vec<u16>,
}

/// The number of first slices kept in [`Steps::order`].
const KEPT: usize = 2048;

/// The largest number of watched slices.
const MOST: u64 = 500_000;

/// Counts a cell.
pub fn count(cell: &Cell) -> Result<Steps, String> {
    cell.build(true, CountCell(cell))
}

struct CountCell<'a>(&'a Cell);

impl Visitor for CountCell<'_> {
    type Out = Steps;

    fn visit<S: Subject>(self, subject: S) -> Steps {
        let levels = self.0.assign();
        let slices = self.0.slices_to_watch(&levels);
        let mut rig = Rig::new(subject, &levels);
        let kept = (KEPT as u64).min(self.0.warm_up(slices));
        let order = (0..kept).map(|_| levels[rig.step().index()]).collect();
        rig.run(self.0.warm_up(slices) - kept);
        let before = rig.steps();
        let mut waits = Waits::new(levels.len());
        // Long enough for the rarest task to run three times.
        let longest_stride =
            levels.iter().map(|&level| self.0.rule().stride(level)).max().unwrap_or(1);
        let watched =
            self.0.slices_in(longest_stride.saturating_mul(4), &levels).min(MOST).max(slices);
        for slice in 0..slices {
            waits.turn(slice, rig.step().index());
        }
        let examined = rig.steps() - before;
        let turns = sum_by_level(&levels, &waits.turns);
        for slice in slices..watched {
            waits.turn(slice, rig.step().index());
        }
        let mut longest = BTreeMap::new();
        for (&level, &wait) in levels.iter().zip(&waits.longest) {
            let most = longest.entry(level).or_insert(None);
            *most = if wait == 0 || *most == Some(0) { Some(0) } else { Some(wait).max(*most) };
        }
        Steps {
            examined_per_op: examined as f64 / slices as f64,
            longest_wait: longest
                .into_iter()
                .filter_map(|(level, wait)| Some((level, wait?)))
                .collect(),
            turns,
            order,
        }
    }
}

fn sum_by_level(levels: &[u16], turns: &[u64]) -> Vec<(u16, u64)> {
    let mut sums = BTreeMap::new();
    for (&level, &turns) in levels.iter().zip(turns) {
        *sums.entry(level).or_insert(0) += turns;
    }
    sums.into_iter().collect()
}

/// For each task: its last slice, its longest wait, and its number of slices.
struct Waits {
    last: Vec<Option<u64>>,
    longest: Vec<u64>,
    turns: Vec<u64>,
}

impl Waits {
    fn new(tasks: usize) -> Waits {
        Waits { last: vec![None; tasks], longest: vec![0; tasks], turns: vec![0; tasks] }
    }

    fn turn(&mut self, slice: u64, task: usize) {
        if let Some(last) = self.last[task].replace(slice) {
            self.longest[task] = self.longest[task].max(slice - last);
        }
        self.turns[task] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::mix::Mix;
    use super::super::structure::StrideRule;
    use super::*;

    fn cell(structure: &str, tasks: u32, mix: Mix, levels: u16, strides: StrideRule) -> Cell {
        Cell { mix, levels, strides, ..Cell::new(structure, tasks) }
    }

    #[test]
    fn a_forward_walk_over_equal_keys_sees_the_whole_list() {
        let forward = count(&cell("sorted-list", 30, Mix::One(0), 1, StrideRule::Linear)).unwrap();
        let reverse =
            count(&cell("sorted-list-reverse", 30, Mix::One(0), 1, StrideRule::Linear)).unwrap();
        assert_eq!((forward.examined_per_op, reverse.examined_per_op), (29.0, 0.0));
        assert_eq!(forward.longest_wait, [(0, 30)]);
    }

    #[test]
    fn a_single_task_at_the_last_level_costs_the_whole_table() {
        assert_eq!(
            count(&cell("multilist2", 1, Mix::One(7), 8, StrideRule::Powers))
                .unwrap()
                .examined_per_op,
            255.0
        );
        assert_eq!(
            count(&cell("multilist2", 10, Mix::One(7), 8, StrideRule::Powers))
                .unwrap()
                .examined_per_op,
            25.5
        );
    }

    #[test]
    fn rates_halve_from_level_to_level() {
        let steps = count(&cell("ruler", 8, Mix::Each, 8, StrideRule::Powers)).unwrap();
        let turns: Vec<u64> = steps.turns.iter().map(|&(_, turns)| turns).collect();
        assert!(turns.windows(2).all(|pair| pair[0] == 2 * pair[1]), "{turns:?}");
        assert_eq!(steps.order[..9], [0, 0, 1, 0, 0, 1, 2, 0, 0]);
    }
}
