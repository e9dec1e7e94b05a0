//! Judges each check by what the kernel recorded.

use super::course::{Course, Run};
use schedlab_runner::event::{Leftovers, TaskResult};
use schedlab_runner::step::Act;
use schedsim::{CpuId, Nanos, TaskId};
use serde::Serialize;
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;
/// What CPUs in lockstep may be apart, and the kernel takes to carry out a call that has returned.
const SLACK: u64 = 100_000;

/// Whether a scheduler gives what it owes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    DoesNotHold,
    /// That was not asked; the answer says why.
    NotAsked,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotAsked => "not asked",
        }
    }
}

/// What a check found.
pub struct Found {
    /// Whether it holds.
    pub verdict: Verdict,
    /// What was measured, or why it was not asked.
    pub measured: String,
}

impl Found {
    fn when(holds: bool, measured: String) -> Found {
        let verdict = if holds { Verdict::Holds } else { Verdict::DoesNotHold };
        Found { verdict, measured }
    }

    /// It does not hold.
    pub fn broken(measured: impl Into<String>) -> Found {
        Found::when(false, measured.into())
    }

    /// It was not asked.
    pub fn not_asked(why: impl Into<String>) -> Found {
        Found { verdict: Verdict::NotAsked, measured: why.into() }
    }
}

/// A step that was done.
pub struct Done<'a> {
    /// What.
    pub act: &'a Act,
    /// The clock before it.
    pub ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// Why it could not be done.
    pub error: Option<&'a str>,
}

impl Done<'_> {
    fn end(&self) -> u64 {
        self.ns + self.took_ns
    }
}

/// What is known of a job.
pub struct Scene<'a> {
    /// The most time that the question allows.
    pub bound: Nanos,
    /// The number of CPUs.
    pub cpus: u16,
    /// What became of the tasks.
    pub course: Course,
    /// By task of the recording: its number in `tasks`, if it is one of the job's.
    pub numbers: Vec<Option<u32>>,
    /// By task of the recording: its process id.
    pub pids: Vec<u32>,
    /// The results of the job's tasks.
    pub tasks: &'a [TaskResult],
    /// How long the job took.
    pub ns: u64,
    /// The steps.
    pub done: Vec<Done<'a>>,
    /// The kernel's own threads.
    pub kernel_threads: BTreeSet<u32>,
    /// Whether a scheduler of sched_ext was at work at the end, and whether it was loaded meanwhile.
    pub at_end: Option<AtEnd>,
    /// What was there before the scheduler was started, and after its end.
    pub left: Option<(&'a Leftovers, &'a Leftovers)>,
}

/// The scheduler of sched_ext at the end of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtEnd {
    /// Whether one is at work.
    pub is_enabled: bool,
    /// How often one was loaded during the job.
    pub loads: u64,
}

impl Scene<'_> {
    fn result(&self, task: TaskId) -> Option<&TaskResult> {
        let number = self.numbers.get(task.index()).copied().flatten()?;
        self.tasks.get(number as usize)
    }

    fn is_own(&self, task: TaskId) -> bool {
        self.result(task).is_some()
    }

    /// The runs of the tasks of this name.
    fn runs(&self, name: &str) -> impl Iterator<Item = &Run> {
        let is_it = move |task| self.result(task).is_some_and(|result| result.name == name);
        self.course.runs.iter().filter(move |run| is_it(run.task))
    }

    /// The longest wait of the job's tasks, in nanoseconds and in words.
    fn longest_wait(&self, counts: impl Fn(&str) -> bool) -> (u64, String) {
        let of = |task| self.result(task).is_some_and(|result| counts(&result.name));
        let Some(wait) = self.course.longest_wait(of) else {
            return (0, "nobody waited".to_string());
        };
        let name = self.result(wait.task).map_or("", |result| result.name.as_str());
        let long = wait.until - wait.since;
        let still = if wait.until == self.course.end { ", still at the end" } else { "" };
        (long, format!("longest wait {} (`{name}`{still})", Nanos(long)))
    }

    /// How long after `since` a task of this name ran, on one of `cpus` if they are given; `None` if
    /// it did not before `until`.
    fn ran_after(&self, name: &str, cpus: Option<&[u16]>, since: u64, until: u64) -> Option<u64> {
        let here = |run: &&Run| cpus.is_none_or(|cpus| cpus.contains(&run.cpu.0));
        let later = self.runs(name).filter(here).filter(|run| run.to > since && run.from < until);
        later.map(|run| run.from.saturating_sub(since)).min()
    }

    /// The first step that could not be done.
    fn undone(&self) -> Option<&str> {
        self.done.iter().find_map(|done| done.error)
    }
}

/// The longest of some times, `None` being longer than any.
fn longest(times: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    times.collect::<Option<Vec<u64>>>().and_then(|times| times.into_iter().max())
}

fn within(time: Option<u64>) -> String {
    time.map_or("never".to_string(), |time| format!("within {}", Nanos(time)))
}

/// No task of the job waits longer than the bound.
pub fn no_long_wait(scene: &Scene<'_>) -> Found {
    let (long, words) = scene.longest_wait(|_| true);
    Found::when(long <= scene.bound.0, words)
}

/// CPUs do not idle beside waiting tasks.
pub fn no_idle_beside_waiting(scene: &Scene<'_>) -> Found {
    let (longest, sum) = scene.course.wasted(|task| scene.is_own(task));
    let share = sum as f64 / (scene.ns.max(1) as f64 * f64::from(scene.cpus));
    let holds = longest <= scene.bound.0 && share <= 0.1;
    let longest = Nanos(longest);
    let words = format!(
        "longest {longest}; in all {} ({:.1} % of the CPU time)",
        Nanos(sum),
        100.0 * share
    );
    Found::when(holds, words)
}

/// The CPU times of the tasks of a name.
fn times(tasks: &[TaskResult], name: &str) -> Vec<u64> {
    tasks.iter().filter(|task| task.name == name).map(|task| task.cpu_ns).collect()
}

/// How many times as much hogs got as polite ones, and the shares in words; `None` if the
/// polite ones got nothing.
pub fn ratio(tasks: &[TaskResult]) -> (Option<f64>, String) {
    let (hogs, polite) = (times(tasks, "hog"), times(tasks, "polite"));
    let all = hogs.iter().chain(&polite).sum::<u64>().max(1);
    let shares = |times: &[u64]| {
        let share = |time: &u64| format!("{:.1} %", 100.0 * *time as f64 / all as f64);
        times.iter().map(share).collect::<Vec<_>>().join(", ")
    };
    let of_polite = polite.iter().sum::<u64>();
    let ratio = (of_polite > 0).then(|| hogs.iter().sum::<u64>() as f64 / of_polite as f64);
    let times = ratio.map_or("all".to_string(), |ratio| format!("{ratio:.2} times as much"));
    (ratio, format!("{times} (nice 0: {}; nice 5: {})", shares(&hogs), shares(&polite)))
}

/// More weight is more CPU time.
pub fn shares_follow_weights(scene: &Scene<'_>) -> Found {
    /// `sched_prio_to_weight` of linux/kernel/sched/core.c for nice 0 and nice 5.
    const OWED: f64 = 1024.0 / 335.0;
    let (ratio, words) = ratio(scene.tasks);
    let least = times(scene.tasks, "hog").into_iter().min();
    let most = times(scene.tasks, "polite").into_iter().max();
    let is_near = ratio.is_some_and(|ratio| (OWED / 2.0..=OWED * 2.0).contains(&ratio));
    Found::when(least > most && is_near, words)
}

/// Tasks run where they may, soon after that changes.
pub fn affinity_holds(scene: &Scene<'_>) -> Found {
    if let Some(error) = scene.undone() {
        return Found::broken(error);
    }
    let (mut waits, mut astray) = (Vec::new(), 0);
    for (at, done) in scene.done.iter().enumerate() {
        let Act::Affinity { task, cpus } = done.act else { continue };
        let is_next = |next: &&Done<'_>| matches!(next.act, Act::Affinity { task: other, .. } if other == task);
        let until =
            scene.done[at + 1..].iter().find(is_next).map_or(scene.course.end, |next| next.ns);
        let since = done.end();
        waits.push(scene.ran_after(task, Some(cpus), since, until));
        let elsewhere = scene.runs(task).filter(|run| !cpus.contains(&run.cpu.0));
        let strays = elsewhere.map(|run| run.to.min(until).saturating_sub(run.from.max(since)));
        astray = strays.fold(astray, u64::max);
    }
    let (longest, (waited, words)) = (longest(waits.into_iter()), scene.longest_wait(|_| true));
    let holds = longest.is_some_and(|long| long <= scene.bound.0)
        && astray <= SLACK
        && waited <= scene.bound.0;
    let ran = within(longest);
    let astray =
        if astray > SLACK { format!("; astray for {}", Nanos(astray)) } else { String::new() };
    Found::when(holds, format!("ran after a change: {ran}{astray}; {words}"))
}

/// The kernel's own threads run beside hogs.
pub fn kernel_threads_are_served(scene: &Scene<'_>) -> Found {
    if let Some(error) = scene.undone() {
        return Found::not_asked(error);
    }
    let longest = scene.done.iter().map(|done| done.took_ns).max().unwrap_or(u64::MAX);
    let is_kernel = |task: TaskId| {
        scene.pids.get(task.index()).is_some_and(|pid| scene.kernel_threads.contains(pid))
    };
    let wait = scene.course.longest_wait(is_kernel).map_or(0, |wait| wait.until - wait.since);
    let bound = scene.bound.0;
    let words = format!(
        "the longest work took {}; a thread of the kernel waited for {} at most",
        Nanos(longest),
        Nanos(wait)
    );
    Found::when(longest <= bound && wait <= bound, words)
}

/// All tasks of storms end.
pub fn storms_pass(scene: &Scene<'_>) -> Found {
    if let Some(error) = scene.undone() {
        return Found::broken(error);
    }
    let left = scene.tasks.iter().filter(|task| task.ended_ns.is_none()).count();
    let programs = scene.done.iter().map(|done| done.took_ns).max();
    let words = format!(
        "{} tasks ended, {left} did not, after {}; the programs ended: {}",
        scene.tasks.len() - left,
        Nanos(scene.ns),
        within(programs)
    );
    Found::when(left == 0 && scene.tasks.len() > 240 && programs.is_some(), words)
}

/// Stopped tasks stop, and continued ones run.
pub fn suspended_tasks_return(scene: &Scene<'_>) -> Found {
    const STOPS_WITHIN: u64 = 200 * MS;
    if let Some(error) = scene.undone() {
        return Found::broken(error);
    }
    let (mut back, mut on) = (Vec::new(), 0);
    for (at, done) in scene.done.iter().enumerate() {
        match done.act {
            Act::Stop(task) => {
                let is_end = |next: &&Done<'_>| *next.act == Act::Continue(task.clone());
                let until =
                    scene.done[at..].iter().find(is_end).map_or(scene.course.end, |next| next.ns);
                let ends = scene.runs(task).filter(|run| run.from < until && run.to > done.end());
                let late = ends.map(|run| run.to.min(until) - done.end());
                on = late.fold(on, u64::max);
            }
            Act::Continue(task) => {
                back.push(scene.ran_after(task, None, done.ns, scene.course.end));
            }
            _ => {}
        }
    }
    let back = longest(back.into_iter());
    let holds = on <= STOPS_WITHIN && back.is_some_and(|back| back <= scene.bound.0);
    let back = within(back);
    Found::when(holds, format!("stopped within {}; ran again: {back}", Nanos(on)))
}

/// A real-time task gets a mutex from an ordinary one, which continues afterwards.
pub fn owners_are_lifted(scene: &Scene<'_>) -> Found {
    const BACK_WITHIN: u64 = 120 * MS;
    let mut runs: Vec<&Run> = scene.runs("urgent").collect();
    runs.sort_unstable_by_key(|run| run.from);
    let ends = runs.iter().map(|run| run.to);
    let begins = runs.iter().skip(1).map(|run| run.from).chain([scene.course.end]);
    let gap = ends.zip(begins).map(|(end, begin)| begin.saturating_sub(end)).max();
    let (waited, words) = scene.longest_wait(|name| name == "owner");
    let holds = gap.is_some_and(|gap| gap <= BACK_WITHIN) && waited <= scene.bound.0;
    let gap = within(gap);
    Found::when(holds, format!("the real-time task was back: {gap}; the owner: {words}"))
}

/// CPUs go and come.
pub fn hotplug_passes(scene: &Scene<'_>) -> Found {
    /// How long switching may take.
    const WITHIN: u64 = 2_000 * MS;
    let [off, on] = &scene.done[..] else {
        return Found::broken("the CPU was not switched off and on");
    };
    match (off.error, on.error) {
        (Some(error), _) if error.contains("No such file") => return Found::not_asked(error),
        (Some(error), _) | (_, Some(error)) => return Found::broken(error),
        (None, None) => {}
    }
    let last = CpuId(scene.cpus - 1);
    let here = || scene.course.runs.iter().filter(|run| run.cpu == last && scene.is_own(run.task));
    let while_off = here().any(|run| run.from.max(off.end()) + SLACK < run.to.min(on.ns));
    let used = here().filter(|run| run.to > on.end()).map(|run| run.from.saturating_sub(on.end()));
    let used = used.min();
    let (waited, words) = scene.longest_wait(|_| true);
    let took = off.took_ns.max(on.took_ns);
    let bound = scene.bound.0;
    let (is_there, fate) = match scene.at_end {
        None | Some(AtEnd { is_enabled: true, loads: 0 }) => (true, ""),
        Some(AtEnd { is_enabled: true, .. }) => (true, "; it was loaded again"),
        Some(AtEnd { is_enabled: false, .. }) => (false, "; it is gone, and was not loaded again"),
    };
    let holds = !while_off
        && is_there
        && took <= WITHIN
        && waited <= bound
        && used.is_some_and(|used| used <= bound);
    let (astray, used) =
        (if while_off { "; a task ran on it while it was off" } else { "" }, within(used));
    let took = Nanos(took);
    Found::when(holds, format!("switched within {took}; used again: {used}; {words}{astray}{fate}"))
}

/// An end leaves nothing, and tasks continue.
pub fn nothing_is_left(scene: &Scene<'_>) -> Found {
    /// How long the end may take.
    const WITHIN: u64 = 5_000 * MS;
    if let Some(error) = scene.undone() {
        return Found::broken(error);
    }
    let took = scene.done.iter().map(|done| done.took_ns).max().unwrap_or(u64::MAX);
    let (waited, words) = scene.longest_wait(|_| true);
    let Some((before, after)) = scene.left else {
        return Found::broken("the guest did not live to say what is left");
    };
    let left = left_in_words(before, after);
    let holds = left.is_empty() && took <= WITHIN && waited <= scene.bound.0;
    let left =
        if left.is_empty() { "nothing is left".to_string() } else { format!("left: {left}") };
    Found::when(holds, format!("gone after {}; {words}; {left}", Nanos(took)))
}

/// What there is more than before.
fn left_in_words(before: &Leftovers, after: &Leftovers) -> String {
    let counts = [
        ("BPF programs", before.programs, after.programs),
        ("BPF maps", before.maps, after.maps),
        ("BPF links", before.links, after.links),
    ];
    let mut left: Vec<String> = counts
        .iter()
        .filter(|(_, before, after)| after > before)
        .map(|(what, before, after)| format!("{} {what}", after - before))
        .collect();
    let names =
        [("pin", &before.pins, &after.pins), ("process", &before.processes, &after.processes)];
    for (what, before, after) in names.into_iter().chain([("file", &before.files, &after.files)]) {
        let more = after.iter().filter(|name| !before.contains(name));
        left.extend(more.map(|name| format!("{what} {name}")));
    }
    left.join(", ")
}
