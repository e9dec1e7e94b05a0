//! The partially sorted list with the post's stop rule, step by step (L-FIG05, L-FIG06).

use readyq::{Node, Nodes, PsList, ReadyQueue, Strides, TaskId};

/// By how much each task's virtual run time advances at a time: six tasks, the last the lightest.
pub const GRANULARITIES: [u64; 6] = [1, 1, 2, 2, 3, 5];

/// One turn.
pub struct Step {
    /// Who waits, the head first, with virtual run times, when it begins.
    pub list: Vec<(TaskId, u64)>,
    /// Who runs.
    pub runs: TaskId,
    /// Its virtual run time before and after.
    pub from: u64,
    /// After.
    pub to: u64,
    /// Whether it goes in front of the middle or behind everybody.
    pub to_middle: bool,
    /// The greatest difference between two virtual run times then.
    pub spread: u64,
}

/// A letter.
pub fn name(task: TaskId) -> char {
    (b'A' + task.0 as u8) as char
}

/// The turns of tasks of these granularities, which all begin with nothing.
pub fn simulate(granularities: &[u64]) -> impl Iterator<Item = Step> + use<'_> {
    let mut nodes = vec![Node::NEW; granularities.len()];
    let mut times = vec![0; granularities.len()];
    let mut list = PsList::new(Strides::Linear);
    (0..granularities.len() as u32).for_each(|task| list.insert_by(Nodes::from_mut(&mut nodes), TaskId(task), |_| false));
    std::iter::from_fn(move || {
        let nodes = Nodes::from_mut(&mut nodes);
        let runs = list.pop(nodes)?;
        let mut waiting = Vec::new();
        list.find(nodes, |task| {
            waiting.push((task, times[task.index()]));
            false
        });
        let from = times[runs.index()];
        loop {
            times[runs.index()] += granularities[runs.index()];
            if waiting.first().is_none_or(|next| times[runs.index()] > next.1) {
                break;
            }
        }
        let to = times[runs.index()];
        let mut to_middle = false;
        list.insert_by(nodes, runs, |middle| {
            to_middle = to < times[middle.index()];
            to_middle
        });
        let spread = times.iter().max()? - times.iter().min()?;
        Some(Step { list: waiting, runs, from, to, to_middle, spread })
    })
}
