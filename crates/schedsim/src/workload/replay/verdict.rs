//! Dependency or delay: what a waking was whose context the recording does not tell.
//!
//! An interrupt finds whoever happens to run, so its wakings name each task in proportion to the time that it ran; a task that wakes
//! another does so again and again, and is often woken by it in turn. All wakings of one task by another get the same verdict, in two
//! rounds: first the pairs for which the recording has evidence, then the others by what the first round found about the woken task.

use super::kernel_threads::is_woken_by_interrupts;
use super::log::{Deed, Kind};
use super::task::Task;
use crate::trace::TaskInfo;
use crate::{Nanos, TaskId};

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
    /// By [`Kind`]; `None` while it is open.
    verdicts: [Option<Verdict>; 3],
}

/// What the pairs of one task are judged by.
#[derive(Clone, Copy, Default)]
struct Sums {
    ran: Nanos,
    slept: Nanos,
    /// Sleeps ended by an interrupt on an idle CPU, by one whose context is recorded, or unseen.
    woken_by_nobody: u32,
    /// By [`Kind`]: wakings by tasks.
    woken: [u32; 3],
    /// By [`Kind`]: those of them that were dependencies, and delays, as far as the first round knows.
    dependencies: [u32; 3],
    delays: [u32; 3],
}

/// What the judge looks at.
struct Scene<'a> {
    tasks: &'a [Task],
    infos: &'a [TaskInfo],
    sums: Vec<Sums>,
    /// Nanoseconds of all CPUs together.
    cpu_time: f64,
    /// The share of it that no task used.
    idle: f64,
}

/// The kinds that need a verdict.
const OPEN: [Kind; 2] = [Kind::Softirq, Kind::Unknown];

/// How many times as many wakings as chance explains, and how many at least, are evidence.
const SIGNIFICANT: f64 = 3.0;

/// By which factor at most two tasks' wakings of each other differ if one answers the other.
const BALANCED: f64 = 4.0;

/// The share of CPU time that must have been idle before wakings from idle tell how often interrupts wake.
const IDLE_ENOUGH: f64 = 0.02;

/// How many wakings chance must predict before their number can acquit a pair of being dependent.
const PREDICTED: f64 = 4.0;

/// From how many known wakings of a task on the others are taken to be like most of them without doubt.
const KNOWN: u32 = 10;

impl Verdicts {
    /// Judges all pairs of a recording of `cpu_time` on all its CPUs together.
    pub fn new(tasks: &[Task], infos: &[TaskInfo], cpu_time: Nanos) -> Verdicts {
        let (mut verdicts, sums) = Verdicts::count(tasks);
        let ran: Nanos = sums.iter().map(|sums| sums.ran).sum();
        let mut scene = Scene {
            tasks,
            infos,
            sums,
            cpu_time: (cpu_time.0 as f64).max(1.0),
            idle: cpu_time.saturating_sub(ran).0 as f64 / (cpu_time.0 as f64).max(1.0),
        };
        for waker in (0..tasks.len() as u32).map(TaskId) {
            for index in verdicts.row(waker) {
                let woken = verdicts.pairs[index].task;
                for kind in OPEN {
                    let verdict = if is_woken_by_interrupts(scene.name(woken)) {
                        Some(Verdict::new(false, Sure::Inferred))
                    } else {
                        verdicts.judge(waker, &verdicts.pairs[index], kind, &scene)
                    };
                    let (pair, sums) = (&mut verdicts.pairs[index], &mut scene.sums[woken.index()]);
                    match verdict {
                        Some(verdict) if verdict.dependency => sums.dependencies[kind as usize] += pair.counts[kind as usize],
                        Some(_) => sums.delays[kind as usize] += pair.counts[kind as usize],
                        None => {}
                    }
                    pair.verdicts[kind as usize] = verdict;
                }
            }
        }
        for waker in (0..tasks.len() as u32).map(TaskId) {
            for index in verdicts.row(waker) {
                let pair = &mut verdicts.pairs[index];
                let woken = pair.task;
                for kind in OPEN {
                    pair.verdicts[kind as usize].get_or_insert_with(|| scene.sums[woken.index()].usual(kind, scene.related(waker, woken)));
                }
            }
        }
        verdicts
    }

    /// What a waking of `task` by `waker` was.
    pub fn of(&self, waker: TaskId, task: TaskId, kind: Kind) -> Verdict {
        if kind == Kind::Task {
            return Verdict::CERTAIN;
        }
        let verdict = self.pair(waker, task).and_then(|pair| pair.verdicts[kind as usize]);
        verdict.unwrap_or(Verdict::INTERRUPT)
    }

    fn count(tasks: &[Task]) -> (Verdicts, Vec<Sums>) {
        let mut verdicts = Verdicts { pairs: Vec::new(), rows: vec![0] };
        let mut sums = vec![Sums::default(); tasks.len()];
        let mut counts = vec![[0u32; 3]; tasks.len()];
        let mut woken = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            for (run, deed) in task.log.entries() {
                sums[index].ran += run;
                match deed {
                    Deed::Woke { task, kind } => {
                        if counts[task.index()] == [0; 3] {
                            woken.push(task);
                        }
                        counts[task.index()][kind as usize] += 1;
                        sums[task.index()].woken[kind as usize] += 1;
                    }
                    Deed::Slept { waker, pause, .. } => {
                        sums[index].slept += pause;
                        sums[index].woken_by_nobody += u32::from(waker == TaskId::NONE);
                    }
                    Deed::Ran { .. } | Deed::Forked(_) => {}
                }
            }
            woken.sort_unstable();
            verdicts.pairs.extend(woken.drain(..).map(|task| Pair {
                task,
                counts: std::mem::take(&mut counts[task.index()]),
                verdicts: [None; 3],
            }));
            verdicts.rows.push(verdicts.pairs.len() as u32);
        }
        (verdicts, sums)
    }

    fn row(&self, waker: TaskId) -> std::ops::Range<usize> {
        self.rows[waker.index()] as usize..self.rows[waker.index() + 1] as usize
    }

    fn pair(&self, waker: TaskId, task: TaskId) -> Option<&Pair> {
        let row = &self.pairs[self.row(waker)];
        row.binary_search_by_key(&task, |pair| pair.task).ok().map(|index| &row[index])
    }

    /// The first round: whether the recording has evidence on the wakings of one task by another.
    fn judge(&self, waker: TaskId, pair: &Pair, kind: Kind, scene: &Scene) -> Option<Verdict> {
        let (wakes, woken) = (&scene.sums[waker.index()], &scene.sums[pair.task.index()]);
        let count = f64::from(pair.counts[kind as usize]);
        let all = f64::from(woken.woken[kind as usize] + woken.woken_by_nobody);
        let verdict = |dependency| Some(Verdict::new(dependency, Sure::Inferred));

        // If interrupts woke the sleeper, then at most the share of its sleep during which the waker ran would name the waker.
        let share = (wakes.ran.0 as f64 / (woken.slept.0 as f64).max(1.0)).min(1.0);
        let expected = all * share;
        if count > SIGNIFICANT * (expected + 1.0) {
            return verdict(true);
        }
        // Interrupts wake the sleeper while CPUs are idle, too, and at the same rate.
        let by_nobody = f64::from(woken.woken_by_nobody);
        let while_it_ran = by_nobody * wakes.ran.0 as f64 / (scene.idle * scene.cpu_time);
        if scene.idle > IDLE_ENOUGH && by_nobody >= SIGNIFICANT && count <= while_it_ran {
            return verdict(false);
        }
        // A waker that runs most of the time proves nothing by being named often. But do the two answer one another?
        let back = self.pair(pair.task, waker).map_or(0.0, |back| f64::from(back.counts.iter().sum::<u32>()));
        let all_back = f64::from(wakes.woken.iter().sum::<u32>() + wakes.woken_by_nobody);
        let balanced = BALANCED * count.min(back) > count.max(back);
        let dominant = 2.0 * count > all || 2.0 * back > all_back;
        if count.min(back) >= SIGNIFICANT && (balanced || dominant) {
            return verdict(true);
        }
        // Named as often as chance has it, by a task that it has nothing to do with.
        (!scene.related(waker, pair.task) && expected >= PREDICTED && all > count).then(|| Verdict::new(false, Sure::Inferred))
    }
}

impl Scene<'_> {
    fn name(&self, task: TaskId) -> &str {
        self.infos.get(task.index()).map_or("", |info| info.name.as_str())
    }

    /// Whether two tasks are of one process, or of processes one of which forked the other.
    fn related(&self, one: TaskId, other: TaskId) -> bool {
        let process = |task: TaskId| match self.infos.get(task.index()) {
            Some(info) if info.tgid != 0 => Some(info.tgid),
            _ => None,
        };
        let same = |one: TaskId, other: TaskId| one == other || process(one).is_some() && process(one) == process(other);
        let parent = |task: TaskId| self.tasks[task.index()].parent;
        same(one, other) || same(parent(one), other) || same(one, parent(other))
    }
}

impl Sums {
    /// The second round: without evidence about the pair, a waking of this task is what its others mostly are.
    fn usual(&self, kind: Kind, related: bool) -> Verdict {
        let (dependencies, delays) = (self.dependencies[kind as usize], self.delays[kind as usize] + self.woken_by_nobody);
        let known = dependencies + delays;
        let dependency = match kind {
            // A softirq is as a rule not about the task that it interrupts.
            Kind::Softirq => dependencies > delays,
            _ => dependencies > delays || related || known == 0,
        };
        let clear = known >= KNOWN && 10 * dependencies.max(delays) >= 9 * known;
        Verdict::new(dependency, if clear { Sure::Inferred } else { Sure::Doubtful })
    }
}
