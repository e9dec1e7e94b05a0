//! Measures fairness (lag, spread) and priority inversion.
//!
//! The reference is an ideal machine that serves all runnable fair tasks at once. It serves them in
//! proportion to their weights, and each with at most one CPU. This is generalised processor
//! sharing (Parekh & Gallager 1993). It does not have the CPUs that run real-time tasks. A task's
//! *lag* is the service of the ideal machine since the task became runnable, minus its real service
//! (Stoica & Abdel-Wahab 1995). The *spread* of virtual run times is the difference between the
//! most and the least served runnable task by weight. It starts anew when a task becomes runnable
//! or stops being so, because only the policy knows what came before.
//!
//! Deviations: affinity is ignored, both for shares and for inversions. On several CPUs a running
//! task's virtual run time is that of its last stop.

use crate::policy::weight;
use crate::trace::{Event, EventKind, PrevState};
use crate::workload::TaskClass;
use crate::{Nanos, TaskId, Time};
use std::collections::BTreeSet;

/// The part of a summary that requires [`Metrics::with_tasks`](super::Metrics::with_tasks).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FairnessSummary {
    /// The maximum lag of a task.
    pub behind_max: Nanos,
    /// The maximum lead of a task.
    pub ahead_max: Nanos,
    /// The maximum spread of virtual run times.
    pub spread_max: Nanos,
    /// How long tasks ran while a more important one waited, for a CPU or for a mutex.
    pub inversion: Nanos,
}

/// Follows the service of every task.
#[derive(Clone, Debug)]
pub struct Fairness {
    tasks: Vec<Task>,
    /// What each CPU runs.
    running: Vec<TaskId>,
    ideal: Ideal,
    /// The virtual run times of the tasks that have run in this epoch, and the number of runnable
    /// tasks.
    epoch: BTreeSet<(u64, TaskId)>,
    epochs: u32,
    epoch_began: Time,
    runnable: usize,
    waiting_prios: Priorities,
    running_prios: Priorities,
    inverted_since: Option<Time>,
    summary: FairnessSummary,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    prio: u8,
    /// Whether it waits for a mutex.
    contends: bool,
    /// Its weight class, if it is a fair task.
    class: Option<u8>,
    state: State,
    since: Time,
    /// The ideal service of its class when it became runnable, and its service since then.
    ideal: f64,
    served: Nanos,
    /// The epoch of its last service.
    epoch: u32,
    served_in_epoch: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Away,
    Waits,
    Runs,
}

impl Fairness {
    pub fn new(cpus: u16, tasks: impl IntoIterator<Item = (u8, TaskClass)>) -> Fairness {
        let mut ideal = Ideal::new(cpus);
        let task = |(prio, class): (u8, TaskClass)| Task {
            prio,
            contends: false,
            class: (prio >= 100).then(|| ideal.class_of(weight(prio, class))),
            state: State::Away,
            since: Time::ZERO,
            ideal: 0.0,
            served: Nanos::ZERO,
            epoch: 0,
            served_in_epoch: Nanos::ZERO,
        };
        Fairness {
            tasks: tasks.into_iter().map(task).collect(),
            running: vec![TaskId::NONE; usize::from(cpus)],
            ideal,
            epoch: BTreeSet::new(),
            epochs: 1,
            epoch_began: Time::ZERO,
            runnable: 0,
            waiting_prios: Priorities::default(),
            running_prios: Priorities::default(),
            inverted_since: None,
            summary: FairnessSummary::default(),
        }
    }

    pub fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                    self.comes(task, event.time)
                }
                EventKind::ContentionBegin { task, .. } => self.contend(task, event.time),
                EventKind::SchedSwitch { next, prev_state, .. } => {
                    self.switch(event.cpu.index(), next, prev_state, event.time)
                }
                _ => {}
            }
        }
    }

    /// The trace ends here.
    pub fn finish(mut self, end: Time) -> FairnessSummary {
        for cpu in 0..self.running.len() {
            self.stop(cpu, PrevState::Runnable, end);
        }
        for index in 0..self.tasks.len() {
            self.look(TaskId(index as u32), end);
        }
        self.note_inversion(end);
        self.summary
    }

    /// A running task starts to wait for a mutex; for inversions this counts as waiting.
    fn contend(&mut self, task: TaskId, now: Time) {
        if let Some(entry) = self.tasks.get_mut(task.index()) {
            entry.contends = true;
            self.waiting_prios.add(entry.prio);
            self.note_inversion(now);
        }
    }

    fn comes(&mut self, task: TaskId, now: Time) {
        let Some(&Task { state: State::Away, class, prio, .. }) = self.tasks.get(task.index())
        else {
            return;
        };
        if let Some(class) = class {
            self.begin_epoch(now);
            self.runnable += 1;
            self.ideal.add(class, now);
        }
        let ideal = class.map_or(0.0, |class| self.ideal.served(class, now));
        let entry = &mut self.tasks[task.index()];
        if std::mem::take(&mut entry.contends) {
            self.waiting_prios.remove(prio);
        }
        (entry.state, entry.since, entry.ideal, entry.served) =
            (State::Waits, now, ideal, Nanos::ZERO);
        self.waiting_prios.add(prio);
        self.note_inversion(now);
    }

    fn switch(&mut self, cpu: usize, next: TaskId, prev_state: PrevState, now: Time) {
        if cpu >= self.running.len() {
            return;
        }
        self.stop(cpu, prev_state, now);
        if let Some(&Task { state: State::Waits, class, prio, .. }) = self.tasks.get(next.index()) {
            self.look(next, now);
            self.waiting_prios.remove(prio);
            self.running_prios.add(prio);
            if class.is_none() {
                self.ideal.take_cpu(now);
            }
            let entry = &mut self.tasks[next.index()];
            (entry.state, entry.since) = (State::Runs, now);
            self.running[cpu] = next;
        }
        self.note_inversion(now);
    }

    /// What runs on `cpu` stops.
    fn stop(&mut self, cpu: usize, prev_state: PrevState, now: Time) {
        let task = std::mem::replace(&mut self.running[cpu], TaskId::NONE);
        if task == TaskId::NONE {
            return;
        }
        let entry = &mut self.tasks[task.index()];
        let (ran, class, prio) = (now.since(entry.since), entry.class, entry.prio);
        entry.served += ran;
        entry.since = now;
        let stays = prev_state == PrevState::Runnable;
        entry.state = if stays { State::Waits } else { State::Away };
        self.running_prios.remove(prio);
        if stays {
            self.waiting_prios.add(prio);
        }
        match class {
            Some(class) => {
                self.look(task, now);
                self.advance(task, ran.min(now.since(self.epoch_began)));
                if !stays {
                    self.begin_epoch(now);
                    self.runnable -= 1;
                    self.ideal.remove(class, now);
                }
            }
            None => self.ideal.give_cpu(now),
        }
    }

    /// Updates the maxima with the lag of `task`.
    fn look(&mut self, task: TaskId, now: Time) {
        let Task { class: Some(class), state, ideal, served, .. } = self.tasks[task.index()] else {
            return;
        };
        if state == State::Away && now > self.tasks[task.index()].since {
            return;
        }
        let lag = self.ideal.served(class, now) - ideal - served.0 as f64;
        let summary = &mut self.summary;
        summary.behind_max = summary.behind_max.max(Nanos(lag.max(0.0) as u64));
        summary.ahead_max = summary.ahead_max.max(Nanos((-lag).max(0.0) as u64));
    }

    /// `task` has run for `ran`: updates its virtual run time and the spread.
    fn advance(&mut self, task: TaskId, ran: Nanos) {
        let entry = &mut self.tasks[task.index()];
        let weight = entry.class.map_or(1, |class| self.ideal.classes[usize::from(class)].weight);
        let virtual_time =
            |served: Nanos| (u128::from(served.0) * 1024 / u128::from(weight)) as u64;
        if entry.epoch == self.epochs {
            self.epoch.remove(&(virtual_time(entry.served_in_epoch), task));
        } else {
            (entry.epoch, entry.served_in_epoch) = (self.epochs, Nanos::ZERO);
        }
        entry.served_in_epoch += ran;
        self.epoch.insert((virtual_time(entry.served_in_epoch), task));
        let least = if self.epoch.len() < self.runnable {
            0
        } else {
            self.epoch.first().map_or(0, |first| first.0)
        };
        let most = self.epoch.last().map_or(0, |last| last.0);
        self.summary.spread_max = self.summary.spread_max.max(Nanos(most - least));
    }

    fn begin_epoch(&mut self, now: Time) {
        self.epochs += 1;
        self.epoch.clear();
        self.epoch_began = now;
    }

    fn note_inversion(&mut self, now: Time) {
        if let Some(since) = self.inverted_since.take() {
            self.summary.inversion += now.since(since);
        }
        let (best, worst) = (self.waiting_prios.best(), self.running_prios.worst());
        self.inverted_since = best.zip(worst).filter(|(best, worst)| best < worst).map(|_| now);
    }
}

/// The ideal machine: the service of one task of each weight since the start, if it was always
/// runnable.
#[derive(Clone, Debug)]
struct Ideal {
    /// In order of weight, the heaviest first once they are used.
    classes: Vec<Class>,
    /// From the heaviest to the lightest.
    order: Vec<u8>,
    cpus: u32,
    weight: u64,
    runnable: u32,
    updated: Time,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    weight: u32,
    runnable: u32,
    /// Up to the last change.
    served: f64,
    /// From then on, as a share of a CPU.
    rate: f64,
}

impl Ideal {
    fn new(cpus: u16) -> Ideal {
        Ideal {
            classes: Vec::new(),
            order: Vec::new(),
            cpus: u32::from(cpus),
            weight: 0,
            runnable: 0,
            updated: Time::ZERO,
        }
    }

    fn class_of(&mut self, weight: u32) -> u8 {
        let known = self.classes.iter().position(|class| class.weight == weight);
        let class = known.unwrap_or_else(|| {
            self.classes.push(Class { weight, runnable: 0, served: 0.0, rate: 0.0 });
            let index = self.classes.len() - 1;
            self.order.push(index as u8);
            self.order
                .sort_by_key(|&class| std::cmp::Reverse(self.classes[usize::from(class)].weight));
            index
        });
        class as u8
    }

    fn served(&self, class: u8, now: Time) -> f64 {
        let class = &self.classes[usize::from(class)];
        class.served + class.rate * now.since(self.updated).0 as f64
    }

    fn add(&mut self, class: u8, now: Time) {
        self.change(now, |ideal| {
            ideal.classes[usize::from(class)].runnable += 1;
            ideal.weight += u64::from(ideal.classes[usize::from(class)].weight);
            ideal.runnable += 1;
        });
    }

    fn remove(&mut self, class: u8, now: Time) {
        self.change(now, |ideal| {
            ideal.classes[usize::from(class)].runnable -= 1;
            ideal.weight -= u64::from(ideal.classes[usize::from(class)].weight);
            ideal.runnable -= 1;
        });
    }

    /// A real-time task runs on one more CPU.
    fn take_cpu(&mut self, now: Time) {
        self.change(now, |ideal| ideal.cpus -= 1);
    }

    fn give_cpu(&mut self, now: Time) {
        self.change(now, |ideal| ideal.cpus += 1);
    }

    /// Updates all classes, applies a change, and computes the new rates. A task that would get
    /// more than one CPU gets one, and the others share the rest.
    fn change(&mut self, now: Time, change: impl FnOnce(&mut Ideal)) {
        let passed = now.since(self.updated).0 as f64;
        self.updated = now;
        self.classes.iter_mut().for_each(|class| class.served += class.rate * passed);
        change(self);
        let (mut cpus, mut weight) = (f64::from(self.cpus), self.weight as f64);
        for &index in &self.order {
            let class = &mut self.classes[usize::from(index)];
            if class.runnable == 0 {
                class.rate = 0.0;
                continue;
            }
            let share = f64::from(class.weight) * cpus / weight.max(1.0);
            class.rate = share.min(1.0);
            if share > 1.0 {
                cpus -= f64::from(class.runnable);
                weight -= f64::from(class.weight) * f64::from(class.runnable);
            }
        }
    }
}

/// How many tasks there are of each priority.
#[derive(Clone, Debug)]
struct Priorities {
    counts: [u32; 256],
    present: [u64; 4],
}

impl Default for Priorities {
    fn default() -> Self {
        Priorities { counts: [0; 256], present: [0; 4] }
    }
}

impl Priorities {
    fn add(&mut self, prio: u8) {
        self.counts[usize::from(prio)] += 1;
        self.present[usize::from(prio / 64)] |= 1 << (prio % 64);
    }

    fn remove(&mut self, prio: u8) {
        let count = &mut self.counts[usize::from(prio)];
        *count -= 1;
        if *count == 0 {
            self.present[usize::from(prio / 64)] &= !(1 << (prio % 64));
        }
    }

    fn best(&self) -> Option<u32> {
        let word = self.present.iter().position(|&word| word != 0)?;
        Some(word as u32 * 64 + self.present[word].trailing_zeros())
    }

    fn worst(&self) -> Option<u32> {
        let word = self.present.iter().rposition(|&word| word != 0)?;
        Some(word as u32 * 64 + 63 - self.present[word].leading_zeros())
    }
}
