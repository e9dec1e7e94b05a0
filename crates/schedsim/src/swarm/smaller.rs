//! Lists the cases that are slightly smaller than a given one, the largest omissions first.
//!
//! Related phases are removed together (the two ends of a pipe, lock and unlock, fork and join), so
//! that no smaller case stalls.

use super::Case;
use super::draw::declare;
use crate::workload::{Closed, LoopPhase, Phase, SchedulingPolicy, Tasks};
use crate::{Machine, Nanos};

/// All smaller cases. Some may be invalid and cannot run.
pub fn cases(case: &Case) -> impl Iterator<Item = Case> + '_ {
    let of_workload = without_tasks(&case.workload)
        .chain(without_phases(&case.workload))
        .chain(simpler_tasks(&case.workload))
        .chain(sooner(&case.workload))
        .map(|mut workload| {
            declare(&mut workload);
            Case { workload, machine: case.machine.clone() }
        });
    of_workload.chain(machines(case))
}

fn without_tasks(closed: &Closed) -> impl Iterator<Item = Closed> + '_ {
    (0..closed.tasks.len()).map(|index| {
        let mut smaller = closed.clone();
        let removed = smaller.tasks.remove(index);
        removed.phases.iter().for_each(|phase| forget(&mut smaller, phase));
        forget(&mut smaller, &Phase::Fork(removed.name));
        smaller
    })
}

/// Without each phase. A task without any phase is invalid.
fn without_phases(closed: &Closed) -> impl Iterator<Item = Closed> + '_ {
    places(closed).map(|(task, place)| {
        let mut smaller = closed.clone();
        let removed = smaller.tasks[task].phases.remove(place);
        if let Phase::Lock(mutex) | Phase::Unlock(mutex) = &removed {
            let is_other = |phase: &Phase| !matches!(phase, Phase::Lock(name) | Phase::Unlock(name) if name == mutex);
            smaller.tasks[task].phases.retain(is_other);
        }
        forget(&mut smaller, &removed);
        smaller
    })
}

fn places(closed: &Closed) -> impl Iterator<Item = (usize, usize)> + '_ {
    closed
        .tasks
        .iter()
        .enumerate()
        .flat_map(|(task, tasks)| (0..tasks.phases.len()).map(move |place| (task, place)))
}

/// Removes every phase that belongs to a removed phase.
fn forget(closed: &mut Closed, gone: &Phase) {
    let keeps = |phase: &Phase| match (gone, phase) {
        (
            Phase::Read { pipe: gone, .. } | Phase::Write { pipe: gone, .. },
            Phase::Read { pipe, .. } | Phase::Write { pipe, .. },
        ) => pipe != gone,
        (Phase::Fork(gone), Phase::Fork(name) | Phase::Join(name)) => name != gone,
        _ => true,
    };
    closed.tasks.iter_mut().for_each(|tasks| tasks.phases.retain(keeps));
    if let Phase::Fork(name) = gone {
        closed
            .tasks
            .iter_mut()
            .filter(|tasks| tasks.name == *name)
            .for_each(|tasks| tasks.forked = false);
    }
}

/// With one special attribute of a task removed, or a loop replaced by one phase.
fn simpler_tasks(closed: &Closed) -> impl Iterator<Item = Closed> + '_ {
    let attributes: [fn(&mut Tasks); 6] = [
        |task| (task.policy, task.priority) = (SchedulingPolicy::Other, None),
        |task| task.nice = None,
        |task| task.slice = None,
        |task| task.affinity = None,
        |task| task.affinity.iter_mut().for_each(|cpus| cpus.truncate(1)),
        |task| task.start = Nanos::ZERO,
    ];
    let plain =
        (0..closed.tasks.len()).flat_map(move |task| attributes.map(|change| (task, change)));
    let plain = plain.filter_map(|(task, change)| {
        let mut smaller = closed.clone();
        change(&mut smaller.tasks[task]);
        (smaller != *closed).then_some(smaller)
    });
    let unrolled = places(closed).filter_map(|(task, place)| {
        let mut smaller = closed.clone();
        let Phase::Loop(LoopPhase { phases, .. }) = smaller.tasks[task].phases.remove(place) else {
            return None;
        };
        smaller.tasks[task].phases.splice(place..place, phases);
        Some(smaller)
    });
    plain.chain(unrolled)
}

/// With one duration halved or rounded.
fn sooner(closed: &Closed) -> impl Iterator<Item = Closed> + '_ {
    let endless = closed.duration.map(|_| Closed { duration: None, ..closed.clone() });
    let spans = places(closed).flat_map(move |(task, place)| {
        let shorter = |span: Nanos| {
            let rounded = [1_000_000, 1_000]
                .map(|unit| span.0 - span.0 % unit)
                .into_iter()
                .filter(move |&ns| 0 < ns && ns < span.0);
            rounded.chain((span.0 > 1).then_some(span.0 / 2)).map(Nanos).collect::<Vec<_>>()
        };
        let phase = &closed.tasks[task].phases[place];
        let phases: Vec<Phase> = match phase {
            Phase::Run(span) => shorter(*span).into_iter().map(Phase::Run).collect(),
            Phase::Sleep(span) => shorter(*span).into_iter().map(Phase::Sleep).collect(),
            _ => Vec::new(),
        };
        phases.into_iter().map(move |phase| {
            let mut smaller = closed.clone();
            smaller.tasks[task].phases[place] = phase;
            smaller
        })
    });
    endless.into_iter().chain(spans)
}

/// With fewer CPUs or costs.
fn machines(case: &Case) -> impl Iterator<Item = Case> + '_ {
    let costs: [fn(&mut Machine); 5] = [
        |machine| machine.cpus -= 1,
        |machine| machine.switch_cost = Nanos::ZERO,
        |machine| machine.migration_cost = Nanos::ZERO,
        |machine| machine.idle_exit = Nanos::ZERO,
        |machine| machine.wake_cost = Nanos::ZERO,
    ];
    costs.into_iter().filter_map(|change| {
        let mut smaller = case.clone();
        change(&mut smaller.machine);
        smaller.workload.cpus = Some(smaller.machine.cpus);
        (smaller != *case && smaller.machine.cpus > 0).then_some(smaller)
    })
}
