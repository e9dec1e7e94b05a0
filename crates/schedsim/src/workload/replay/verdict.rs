//! Dependency or delay: what a waking was whose context the recording does not tell.
//!
//! An interrupt finds whoever happens to run, so its wakings name each task in proportion to the CPU time that it had; a task that wakes
//! another does so again and again, and often the other way round. All wakings of one task by another get the same verdict.

use super::kernel_threads::is_woken_by_interrupts;
use super::log::{Deed, Kind};
use super::task::Task;
use crate::TaskId;
use crate::trace::TaskInfo;

/// What a waking was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    pub dependency: bool,
    pub sure: Sure,
}

/// How sure a verdict is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sure {
    Recorded,
    Inferred,
    Doubtful,
}

impl Verdict {
    const CERTAIN: Verdict = Verdict::new(true, Sure::Recorded);
    /// A sleep that no running task ended.
    pub const INTERRUPT: Verdict = Verdict::new(false, Sure::Recorded);

    const fn new(dependency: bool, sure: Sure) -> Verdict {
        Verdict { dependency, sure }
    }
}

/// The verdicts on all pairs of tasks.
pub(super) struct Verdicts {
    /// By waker, then by woken task.
    pairs: Vec<Pair>,
    /// Where the pairs of each waker begin.
    rows: Vec<u32>,
}

/// A waker and a task that it woke.
struct Pair {
    task: TaskId,
    /// Wakings by [`Kind`].
    counts: [u32; 3],
    softirq: Verdict,
    unknown: Verdict,
}

impl Verdicts {
    pub fn new(tasks: &[Task], infos: &[TaskInfo]) -> Verdicts {
        let mut verdicts = Verdicts {
            pairs: Vec::new(),
            rows: vec![0],
        };
        let mut scratch = vec![[0u32; 3]; tasks.len()];
        let mut woken = Vec::new();
        for task in tasks {
            for (_, deed) in task.log.entries() {
                if let Deed::Woke { task, kind } = deed {
                    let counts = &mut scratch[task.index()];
                    if *counts == [0; 3] {
                        woken.push(task);
                    }
                    counts[kind as usize] += 1;
                }
            }
            woken.sort_unstable();
            verdicts.pairs.extend(woken.drain(..).map(|task| Pair {
                task,
                counts: std::mem::take(&mut scratch[task.index()]),
                softirq: Verdict::new(false, Sure::Doubtful),
                unknown: Verdict::new(true, Sure::Doubtful),
            }));
            verdicts.rows.push(verdicts.pairs.len() as u32);
        }
        for waker in 0..tasks.len() {
            for index in verdicts.row(TaskId(waker as u32)) {
                let (softirq, unknown) = verdicts.judge(TaskId(waker as u32), &verdicts.pairs[index], tasks, infos);
                verdicts.pairs[index].softirq = softirq;
                verdicts.pairs[index].unknown = unknown;
            }
        }
        verdicts
    }

    /// What a waking of `task` by `waker` was.
    pub fn of(&self, waker: TaskId, task: TaskId, kind: Kind) -> Verdict {
        match (kind, self.pair(waker, task)) {
            (Kind::Task, _) => Verdict::CERTAIN,
            (Kind::Softirq, Some(pair)) => pair.softirq,
            (Kind::Unknown, Some(pair)) => pair.unknown,
            (_, None) => Verdict::INTERRUPT,
        }
    }

    fn row(&self, waker: TaskId) -> std::ops::Range<usize> {
        self.rows[waker.index()] as usize..self.rows[waker.index() + 1] as usize
    }

    fn pair(&self, waker: TaskId, task: TaskId) -> Option<&Pair> {
        let row = &self.pairs[self.row(waker)];
        row.binary_search_by_key(&task, |pair| pair.task).ok().map(|index| &row[index])
    }

    /// The verdicts on wakings of one task by another in a softirq and in unknown context.
    fn judge(&self, waker: TaskId, pair: &Pair, tasks: &[Task], infos: &[TaskInfo]) -> (Verdict, Verdict) {
        let woken = pair.task;
        let info = |task: TaskId| infos.get(task.index());
        if info(woken).is_some_and(|info| is_woken_by_interrupts(&info.name)) {
            let delay = Verdict::new(false, Sure::Inferred);
            return (delay, delay);
        }
        let back = self.pair(woken, waker).map_or([0; 3], |pair| pair.counts);
        let process = |task| info(task).map_or(0, |info| info.tgid);
        let same_process = process(waker) != 0 && process(waker) == process(woken);
        let kin = tasks[waker.index()].parent == woken || tasks[woken.index()].parent == waker;
        let reciprocal = back.iter().sum::<u32>() > 0;
        let evidence = same_process || kin || reciprocal;
        let sure = if evidence { Sure::Inferred } else { Sure::Doubtful };
        (Verdict::new(reciprocal, sure), Verdict::new(true, sure))
    }
}
