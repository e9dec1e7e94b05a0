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
    /// By waker, then by woken task and kind.
    pairs: Vec<Pair>,
    /// Where the pairs of each waker begin.
    rows: Vec<u32>,
}

/// A waker's wakings of one task in one [`Kind`] of context. Eight bytes, as a long recording may have as many pairs as wakings.
#[derive(Clone, Copy)]
struct Pair {
    /// `task << 2 | kind`.
    key: u32,
    /// `count << 3 | verdict`; 0 is an open verdict, else bit 2 is set, and the others are its parts.
    count: u32,
}

impl Pair {
    fn new(task: TaskId, kind: Kind, count: u32) -> Pair {
        Pair { key: task.0 << 2 | kind as u32, count: count.min(u32::MAX >> 3) << 3 }
    }

    fn task(self) -> TaskId {
        TaskId(self.key >> 2)
    }

    fn kind(self) -> Kind {
        Kind::from_bits(u64::from(self.key & 3))
    }

    fn count(self) -> u32 {
        self.count >> 3
    }

    fn verdict(self) -> Option<Verdict> {
        let sure = if self.count & 2 == 0 { Sure::Inferred } else { Sure::Doubtful };
        (self.count & 4 != 0).then_some(Verdict::new(self.count & 1 != 0, sure))
    }

    fn decide(&mut self, verdict: Verdict) {
        self.count = self.count & !7 | 4 | u32::from(verdict.sure == Sure::Doubtful) << 1 | u32::from(verdict.dependency);
    }
}

/// What the pairs of one task are judged by.
#[derive(Clone, Copy, Default)]
struct Sums {
    ran: Nanos,
    slept: Nanos,
    /// Sleeps ended by an interrupt on an idle CPU, by one whose context is recorded, or unseen.
    woken_by_nobody: u32,
    /// It is of a kind that only interrupts wake.
    by_interrupts: bool,
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
        let (mut verdicts, mut sums) = Verdicts::count(tasks);
        for (sums, info) in sums.iter_mut().zip(infos) {
            sums.by_interrupts = is_woken_by_interrupts(&info.name);
        }
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
                let pair = verdicts.pairs[index];
                let Some(verdict) = verdicts.judge(waker, pair, &scene) else { continue };
                verdicts.pairs[index].decide(verdict);
                let sums = &mut scene.sums[pair.task().index()];
                let known = if verdict.dependency { &mut sums.dependencies } else { &mut sums.delays };
                known[pair.kind() as usize] += pair.count();
            }
        }
        for waker in (0..tasks.len() as u32).map(TaskId) {
            for index in verdicts.row(waker) {
                let pair = verdicts.pairs[index];
                if pair.verdict().is_none() {
                    let related = scene.related(waker, pair.task());
                    verdicts.pairs[index].decide(scene.sums[pair.task().index()].usual(pair.kind(), related));
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
        let row = &self.pairs[self.row(waker)];
        let found = row.binary_search_by_key(&Pair::new(task, kind, 0).key, |pair| pair.key);
        found.ok().and_then(|index| row[index].verdict()).unwrap_or(Verdict::INTERRUPT)
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
            for task in woken.drain(..) {
                let counts = std::mem::take(&mut counts[task.index()]);
                let pairs = [Kind::Task, Kind::Softirq, Kind::Unknown].map(|kind| Pair::new(task, kind, counts[kind as usize]));
                verdicts.pairs.extend(pairs.into_iter().filter(|pair| pair.count() > 0));
            }
            verdicts.rows.push(verdicts.pairs.len() as u32);
        }
        (verdicts, sums)
    }

    fn row(&self, waker: TaskId) -> std::ops::Range<usize> {
        self.rows[waker.index()] as usize..self.rows[waker.index() + 1] as usize
    }

    /// How often `waker` woke `task` in the like of `kind`. In a softirq that is the loopback, which answers in softirqs; else anything.
    fn wakings(&self, waker: TaskId, task: TaskId, kind: Kind) -> u32 {
        let row = &self.pairs[self.row(waker)];
        let first = row.partition_point(|pair| pair.task() < task);
        let pairs = row[first..].iter().take_while(|pair| pair.task() == task);
        pairs.filter(|pair| pair.kind().is_like(kind)).map(|pair| pair.count()).sum()
    }

    /// The first round: whether the recording has evidence on the wakings of one task by another.
    fn judge(&self, waker: TaskId, pair: Pair, scene: &Scene) -> Option<Verdict> {
        let kind = pair.kind();
        let verdict = |dependency| Some(Verdict::new(dependency, Sure::Inferred));
        if kind == Kind::Task {
            return verdict(true);
        }
        let (wakes, woken) = (&scene.sums[waker.index()], &scene.sums[pair.task().index()]);
        if woken.by_interrupts {
            return verdict(false);
        }
        let count = f64::from(pair.count());
        let all = f64::from(woken.woken[kind as usize] + woken.woken_by_nobody);

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
        let back = if count >= SIGNIFICANT { f64::from(self.wakings(pair.task(), waker, kind)) } else { 0.0 };
        let like = [Kind::Task, Kind::Softirq, Kind::Unknown].into_iter().filter(|other| other.is_like(kind));
        let all_back = f64::from(like.map(|like| wakes.woken[like as usize]).sum::<u32>() + wakes.woken_by_nobody);
        let balanced = BALANCED * count.min(back) > count.max(back);
        let dominant = 2.0 * count > all || 2.0 * back > all_back;
        if back >= SIGNIFICANT && (balanced || dominant) {
            return verdict(true);
        }
        // Named as often as chance has it, by a task that it has nothing to do with.
        (!scene.related(waker, pair.task()) && expected >= PREDICTED && all > count).then(|| Verdict::new(false, Sure::Inferred))
    }
}

impl Scene<'_> {
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
