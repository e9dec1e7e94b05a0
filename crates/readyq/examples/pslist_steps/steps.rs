//! The partially sorted list with the post's stop rule, step by step (L-FIG05, L-FIG06).

use readyq::{Node, Nodes, PsList, ReadyQueue, Strides, TaskId};

/// How much each task's virtual run time advances per slice: six tasks, the last the lightest.
pub const GRANULARITIES: [u64; 6] = [1, 1, 2, 2, 3, 5];

/// One slice.
pub struct Step {
    /// The waiting tasks with their virtual run times at the start, head first.
    pub list: Vec<(TaskId, u64)>,
    /// The running task.
    pub runs: TaskId,
    /// Its virtual run time before the slice.
    pub from: u64,
    /// And after it.
    pub to: u64,
    /// Whether it is inserted before the middle, not at the tail.
    pub to_middle: bool,
    /// The maximum difference between two virtual run times after the slice.
    pub spread: u64,
}

/// The task's letter.
pub fn name(task: TaskId) -> char {
    (b'A' + task.0 as u8) as char
}

/// The slices of tasks with these granularities, which all start at zero.
pub fn simulate(granularities: &[u64]) -> impl Iterator<Item = Step> + use<'_> {
    let mut nodes = vec![Node::NEW; granularities.len()];
    let mut times = vec![0; granularities.len()];
    let mut list = PsList::new(Strides::Linear);
    (0..granularities.len() as u32)
        .for_each(|task| list.insert_by(Nodes::from_mut(&mut nodes), TaskId(task), |_| false));
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
