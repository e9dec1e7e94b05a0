//! Classifies wakings of unknown context as dependencies or delays.
//!
//! An interrupt can hit any running task, so its wakings name each task in proportion to the task's
//! run time. A task that wakes another does so repeatedly, and is often woken by it in return. All
//! wakings of one task by another get the same verdict, in two rounds. The first decides the pairs
//! for which the recording has evidence. The second decides the others by the results of the first
//! round for the woken task.

use super::kernel_threads::is_woken_by_interrupts;
use super::log::{Deed, Kind};
use super::task::Task;
use crate::trace::TaskInfo;
use crate::{Nanos, TaskId};

/// The classification of a waking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    pub dependency: bool,
    pub sure: Sure,
}

/// The certainty of a verdict.
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
    /// The index of each waker's first pair.
    rows: Vec<u32>,
}

/// A waker's wakings of one task in one [`Kind`] of context. Eight bytes, as a long recording may
/// have as many pairs as wakings.
#[derive(Clone, Copy)]
struct Pair {
    /// `task << 2 | kind`.
    key: u32,
    /// `count << 3 | verdict`; 0 is an open verdict, otherwise bit 2 is set, and the others encode
    /// it.
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
        self.count = self.count & !7
            | 4
            | u32::from(verdict.sure == Sure::Doubtful) << 1
            | u32::from(verdict.dependency);
    }
}

/// The counts by which the pairs of one task are judged.
#[derive(Clone, Copy, Default)]
struct Sums {
    ran: Nanos,
    slept: Nanos,
    /// Sleeps ended by an interrupt on an idle CPU, by an interrupt with a recorded context, or
    /// unseen.
    woken_by_nobody: u32,
    /// Whether only interrupts wake this kind of task.
    by_interrupts: bool,
    /// Wakings by tasks, by [`Kind`].
    woken: [u32; 3],
    /// Dependencies and delays among them, by [`Kind`], as far as the first round decides.
    dependencies: [u32; 3],
    delays: [u32; 3],
}

/// The input of the verdicts.
struct Scene<'a> {
    tasks: &'a [Task],
    infos: &'a [TaskInfo],
    sums: Vec<Sums>,
    /// Nanoseconds of all CPUs.
    cpu_time: f64,
    /// The share of it that no task used.
    idle: f64,
}

/// Wakings are evidence if they are this many times as many as by chance, and at least this many.
const SIGNIFICANT: f64 = 3.0;

/// If two tasks answer each other, their counts of wakings differ at most by this factor.
const BALANCED: f64 = 4.0;

/// The share of idle CPU time above which wakings from idle CPUs show how often interrupts wake.
const IDLE_ENOUGH: f64 = 0.02;

/// The expected number of wakings by chance from which on the real number can rule out a
/// dependency.
const PREDICTED: f64 = 4.0;

/// The number of known wakings of a task from which on its unknown ones are classified like most of
/// them, as certain.
const KNOWN: u32 = 10;

impl Verdicts {
    /// Judges all pairs of a recording; `cpu_time` is the sum over its CPUs.
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
                let known =
                    if verdict.dependency { &mut sums.dependencies } else { &mut sums.delays };
                known[pair.kind() as usize] += pair.count();
            }
        }
        for waker in (0..tasks.len() as u32).map(TaskId) {
            for index in verdicts.row(waker) {
                let pair = verdicts.pairs[index];
                if pair.verdict().is_none() {
                    let related = scene.related(waker, pair.task());
                    verdicts.pairs[index]
                        .decide(scene.sums[pair.task().index()].usual(pair.kind(), related));
                }
            }
        }
        verdicts
    }

    /// The verdict on wakings of `task` by `waker`.
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
                    Deed::Ran { .. }
                    | Deed::Forked(_)
                    | Deed::Explained { .. }
                    | Deed::Called { .. } => {}
                }
            }
            woken.sort_unstable();
            for task in woken.drain(..) {
                let counts = std::mem::take(&mut counts[task.index()]);
                let pairs = [Kind::Task, Kind::Softirq, Kind::Unknown]
                    .map(|kind| Pair::new(task, kind, counts[kind as usize]));
                verdicts.pairs.extend(pairs.into_iter().filter(|pair| pair.count() > 0));
            }
            verdicts.rows.push(verdicts.pairs.len() as u32);
        }
        (verdicts, sums)
    }

    fn row(&self, waker: TaskId) -> std::ops::Range<usize> {
        self.rows[waker.index()] as usize..self.rows[waker.index() + 1] as usize
    }

    /// How often `waker` woke `task` in a context like `kind`. A softirq counts only softirqs,
    /// since the loopback answers in these; other kinds count everything.
    fn wakings(&self, waker: TaskId, task: TaskId, kind: Kind) -> u32 {
        let row = &self.pairs[self.row(waker)];
        let first = row.partition_point(|pair| pair.task() < task);
        let pairs = row[first..].iter().take_while(|pair| pair.task() == task);
        pairs.filter(|pair| pair.kind().is_like(kind)).map(|pair| pair.count()).sum()
    }

    /// The first round: the verdict on one pair, if the recording has evidence.
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

        // If interrupts woke the sleeper, they would name the waker at most in proportion to its
        // share of the sleep.
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
        // For a waker that runs most of the time, being named often proves nothing. But the two may
        // answer each other.
        let back = if count >= SIGNIFICANT {
            f64::from(self.wakings(pair.task(), waker, kind))
        } else {
            0.0
        };
        let like = [Kind::Task, Kind::Softirq, Kind::Unknown]
            .into_iter()
            .filter(|other| other.is_like(kind));
        let all_back = f64::from(
            like.map(|like| wakes.woken[like as usize]).sum::<u32>() + wakes.woken_by_nobody,
        );
        let balanced = BALANCED * count.min(back) > count.max(back);
        let dominant = 2.0 * count > all || 2.0 * back > all_back;
        if back >= SIGNIFICANT && (balanced || dominant) {
            return verdict(true);
        }
        // Named as often as by chance, by an unrelated task.
        (!scene.related(waker, pair.task()) && expected >= PREDICTED && all > count)
            .then(|| Verdict::new(false, Sure::Inferred))
    }
}

impl Scene<'_> {
    /// Whether two tasks belong to one process, or to a process and its child.
    fn related(&self, one: TaskId, other: TaskId) -> bool {
        let process = |task: TaskId| match self.infos.get(task.index()) {
            Some(info) if info.tgid != 0 => Some(info.tgid),
            _ => None,
        };
        let same = |one: TaskId, other: TaskId| {
            one == other || process(one).is_some() && process(one) == process(other)
        };
        let parent = |task: TaskId| self.tasks[task.index()].parent;
        same(one, other) || same(parent(one), other) || same(one, parent(other))
    }
}

impl Sums {
    /// The second round: without evidence about the pair, the verdict of most other wakings of this
    /// task.
    fn usual(&self, kind: Kind, related: bool) -> Verdict {
        let (dependencies, delays) =
            (self.dependencies[kind as usize], self.delays[kind as usize] + self.woken_by_nobody);
        let known = dependencies + delays;
        let dependency = match kind {
            // A softirq usually has nothing to do with the task that it interrupts.
            Kind::Softirq => dependencies > delays,
            _ => dependencies > delays || related || known == 0,
        };
        let clear = known >= KNOWN && 10 * dependencies.max(delays) >= 9 * known;
        Verdict::new(dependency, if clear { Sure::Inferred } else { Sure::Doubtful })
    }
}
