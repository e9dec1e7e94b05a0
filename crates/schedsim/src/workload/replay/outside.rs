//! The tasks of a recording that are not of the program.
//!
//! A recorder takes the calls of the program's tasks alone. So a task with calls is the program's,
//! and so is one that such a task has forked. A task that a sleep of the program depends on is part
//! of it, too. So is one that the program wakes most of the time: the kernel thread that writes a
//! file, for example.

use super::KernelWork;
use super::kernel_threads::is_kernel_thread;
use super::log::{Deed, Kind};
use super::task::Task;
use super::verdict::Verdicts;
use crate::metrics::Histogram;
use crate::trace::TaskInfo;
use crate::workload::{Noise, NoiseClass};
use crate::{Nanos, TaskId, Time};
use std::collections::BTreeMap;

/// By task: its class, if it is not of the program. Empty if the recording has no calls.
pub(super) fn classes(
    tasks: &[Task],
    infos: &[TaskInfo],
    verdicts: &Verdicts,
) -> Vec<Option<NoiseClass>> {
    let mut inside: Vec<bool> = tasks.iter().map(|task| task.calls.traced).collect();
    if !inside.contains(&true) {
        return Vec::new();
    }
    let mut grows = true;
    while std::mem::take(&mut grows) {
        for (child, task) in tasks.iter().enumerate() {
            // A parent may have a higher id than its child, and be found later.
            if !inside[child] && inside.get(task.parent.index()).copied().unwrap_or(false) {
                (inside[child], grows) = (true, true);
            }
        }
    }
    let edges = edges(tasks, verdicts);
    loop {
        let mut found = Vec::new();
        for task in (0..tasks.len()).filter(|&task| !inside[task]) {
            let woken = edges.by_sleeper(task);
            let (all, by_program) = woken.fold((0, 0), |(all, inner), (waker, count)| {
                let is_inner = inside.get(waker as usize).copied().unwrap_or(false);
                (all + count, inner + if is_inner { count } else { 0 })
            });
            let wakes_program = edges.wakes[task].iter().any(|sleeper| inside[*sleeper as usize]);
            if wakes_program || 2 * by_program > all {
                found.push(task);
            }
        }
        if found.is_empty() {
            break;
        }
        found.into_iter().for_each(|task| inside[task] = true);
    }
    let class = |task: usize| match infos.get(task) {
        Some(info) if is_kernel_thread(info) => NoiseClass::KernelThread,
        _ => NoiseClass::Program,
    };
    inside.iter().enumerate().map(|(task, inside)| (!inside).then(|| class(task))).collect()
}

/// Who ended whose sleeps.
struct Edges {
    /// By sleeper and waker, how often; all wakers that are no task are the idle task.
    counts: BTreeMap<(u32, u32), u32>,
    /// By waker: whose sleeps depend on it.
    wakes: Vec<Vec<u32>>,
}

impl Edges {
    fn by_sleeper(&self, task: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let task = task as u32;
        self.counts.range((task, 0)..=(task, u32::MAX)).map(|((_, waker), count)| (*waker, *count))
    }
}

fn edges(tasks: &[Task], verdicts: &Verdicts) -> Edges {
    let mut edges = Edges { counts: BTreeMap::new(), wakes: vec![Vec::new(); tasks.len()] };
    for (sleeper, task) in tasks.iter().enumerate() {
        for (_, deed) in task.log.entries() {
            let Deed::Slept { waker, kind, .. } = deed else { continue };
            let depends = waker != TaskId::NONE
                && waker.index() < tasks.len()
                && (kind == Kind::Task
                    || verdicts.of(waker, TaskId(sleeper as u32), kind).dependency);
            let waker = if depends { waker } else { TaskId::NONE };
            let count = edges.counts.entry((sleeper as u32, waker.0)).or_insert(0);
            if depends && *count == 0 {
                edges.wakes[waker.index()].push(sleeper as u32);
            }
            *count = count.saturating_add(1);
        }
    }
    edges
}

/// Less than one part in this of its time.
const HARDLY: u64 = 64;

/// The noise that a task makes; `None` if it never ran.
pub(super) fn noise(
    id: TaskId,
    class: NoiseClass,
    task: &Task,
    (switch, work): (Nanos, KernelWork),
    end: Time,
) -> Option<Noise> {
    let (mut pauses, mut bursts) = (Histogram::default(), Histogram::default());
    let mut burst = None;
    let besides = switch + work.block;
    let mut end_burst = |burst: &mut Option<Nanos>| {
        if let Some(burst) = burst.take() {
            bursts.record(burst.saturating_sub(besides));
        }
    };
    for (run, deed) in task.log.entries() {
        if run > Nanos::ZERO || matches!(deed, Deed::Ran { .. }) {
            *burst.get_or_insert(Nanos::ZERO) += run;
        }
        if let Deed::Slept { pause, .. } = deed {
            end_burst(&mut burst);
            pauses.record(pause);
        }
    }
    end_burst(&mut burst);
    // Before it was born and after its end it is as if it slept.
    let died = if task.dead { task.since.min(end) } else { end };
    let lived = died.since(task.born);
    let absent = end.since(Time::ZERO).saturating_sub(lived);
    if absent > Nanos::ZERO {
        pauses.record(absent);
    }
    // One that is never seen to sleep and hardly ran was not ready all the time.
    let ran = bursts.total();
    if pauses.count() == 0 && ran.0.saturating_mul(HARDLY) < lived.0 {
        pauses.record(lived - ran);
    }
    (bursts.count() > 0).then(|| Noise::fit(id, class, (&pauses, &bursts)))
}
