//! Checks a simulated trace: did the engine and the policy keep the rules?
//!
//! [`Checks`] follows the event stream beside the metrics. It also knows the workload, the machine
//! and the policy's promises, and trusts nothing else. It adds up each task's work from switches
//! and overheads, and compares the sum with the scripts and with the engine's result.
//!
//! ```
//! use schedsim::checks::{Checks, Rule};
//! use schedsim::engine::Outcome;
//! use schedsim::policy::Promises;
//! use schedsim::trace::{Event, EventKind, Observer, PrevState};
//! use schedsim::workload::Workload;
//! use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
//!
//! let (workload, machine) = (Workload::default(), Machine::ideal(1));
//! let mut checks = Checks::new(&workload, &machine, Promises::default());
//! let (prev, next) = (TaskId::NONE, TaskId(7));
//! let switch = EventKind::SchedSwitch { prev, next, prev_state: PrevState::Runnable };
//! checks.events(&[Event { time: Time(3), cpu: CpuId(0), kind: switch }]);
//! let outcome = Outcome { end: Time(3), events: 1, useful: Nanos::ZERO, random: false };
//! assert_eq!(checks.finish(&outcome)[0].rule, Rule::Stream);
//! ```

mod accounts;
mod conservation;
mod deadlines;
mod inheritance;
mod quanta;
mod scene;
mod shares;
mod strict;

use crate::engine::Outcome;
use crate::policy::Promises;
use crate::trace::{Event, EventKind, Observer, PrevState};
use crate::workload::{Action, Affinity, Nudge, Start, Workload};
use crate::{CpuId, Machine, Nanos, TaskId, Time};
use accounts::Accounts;
use conservation::Conservation;
use deadlines::Deadlines;
use inheritance::Inheritance;
use quanta::Quanta;
use scene::{Running, Scene};
use shares::Shares;
use std::fmt;
use strict::Strict;
use strum::{Display, IntoStaticStr, VariantArray};

/// The maximum number of violations that are kept. The first ones are the most useful.
pub const MOST_VIOLATIONS: usize = 100;

/// Observes a simulation.
#[derive(Clone, Debug)]
pub struct Checks<'w> {
    workload: &'w Workload,
    nudge: Option<Nudge>,
    cpus: u16,
    now: Time,
    tasks: Vec<Phase>,
    /// What each CPU runs.
    running: Vec<TaskId>,
    accounts: Accounts,
    conservation: Conservation,
    scene: Scene,
    strict: Option<Strict>,
    inheritance: Option<Inheritance>,
    quanta: Option<Quanta>,
    shares: Option<Shares>,
    deadlines: Option<Deadlines>,
    violations: Vec<Violation>,
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// When it was noticed.
    pub time: Time,
    /// By which task, or [`TaskId::NONE`].
    pub task: TaskId,
    /// On which CPU, if on one.
    pub cpu: Option<CpuId>,
    /// What happened.
    pub message: String,
}

/// A rule that must hold in every simulation.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Rule {
    /// No task is on two CPUs.
    OneCpu,
    /// None runs while it is blocked, unborn or dead.
    RunsWhenReady,
    /// No task is lost: none is runnable at the end of a run with all CPUs idle, and every task
    /// starts.
    NoneLost,
    /// CPU time is conserved exactly: useful + overhead + idle = CPUs × end, and each task's work
    /// equals its script.
    CpuTime,
    /// A task runs only on CPUs that its affinity allows.
    Affinity,
    /// Where promised: no CPU idles, for longer than it takes to leave idle, while a task waits
    /// that may run there.
    WorkConserving,
    /// Where promised: the same for the CPU on which the task was placed.
    LocallyWorkConserving,
    /// Where promised: no task waits while a less important one runs on a CPU that it may use.
    StrictPriority,
    /// Where promised: strict priority also holds for inherited priorities, and a mutex holder
    /// inherits the priority that it should.
    Inherited,
    /// Where promised: real-time tasks of equal priority alternate after exactly one quantum.
    RoundRobin,
    /// Where promised: no task is further from its share of the CPU, or from another task, than the
    /// bound.
    Shares,
    /// Where promised: no task that keeps to its reservation misses a deadline.
    Deadlines,
    /// Where promised: no task gets more than it reserved.
    Bandwidth,
    /// The events fit together: times rise, a switch's `prev` ran, only sleepers are woken.
    Stream,
}

impl Rule {
    /// All rules.
    pub const ALL: &'static [Rule] = Rule::VARIANTS;

    /// Its name in reports.
    pub fn id(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Unborn,
    Waiting,
    Running(CpuId),
    Blocked,
    Dead,
}

impl<'w> Checks<'w> {
    /// Checks a run of `workload` on `machine` under a policy with these promises.
    pub fn new(workload: &'w Workload, machine: &Machine, promises: Promises) -> Checks<'w> {
        let promises = in_groups(promises, workload);
        let tasks = workload.tasks.len();
        // Bounds and quanta hold only where slices end when they are used up.
        let is_exact = machine.ticks.is_none();
        // A task that inherits while it waits is placed again, on a CPU that no event names.
        let stays = workload.shared.inheriting().is_none();
        let locally_work_conserving = promises.locally_work_conserving && stays;
        let promises = Promises {
            shares: promises.shares.filter(|_| is_exact),
            locally_work_conserving,
            ..promises
        };
        Checks {
            workload,
            nudge: None,
            cpus: machine.cpus,
            now: Time::ZERO,
            tasks: vec![Phase::Unborn; tasks],
            running: vec![TaskId::NONE; usize::from(machine.cpus)],
            accounts: Accounts::new(machine.cpus, tasks),
            conservation: Conservation::new(machine, tasks, promises),
            scene: Scene::new(machine.cpus, tasks),
            strict: Strict::new(workload, machine, promises.strict_below),
            inheritance: Inheritance::new(workload, machine).filter(|_| promises.inherits),
            // A task that inherits a priority alternates with others for a while.
            quanta: (promises.strict_below > 0
                && workload.shared.inheriting().is_none()
                && machine.switch_cost == Nanos::ZERO
                && machine.queue_cost.is_none()
                && is_exact)
                .then(|| Quanta::new(workload, promises)),
            shares: Shares::new(workload, machine, promises),
            deadlines: Deadlines::new(workload, machine, promises),
            violations: Vec::new(),
        }
    }

    /// Checks a run with these nudges: tasks start later, and their bursts differ a little from
    /// their scripts.
    pub fn with_nudge(self, nudge: Option<Nudge>) -> Checks<'w> {
        Checks { nudge, ..self }
    }

    /// The violations in order of time, at most [`MOST_VIOLATIONS`]. Call it with the outcome of
    /// the same run.
    pub fn finish(mut self, outcome: &Outcome) -> Vec<Violation> {
        if outcome.end < self.now {
            self.report(
                Rule::Stream,
                None,
                None,
                format!("an event comes after the end, {}", Nanos(outcome.end.0)),
            );
        }
        if outcome.end > self.now {
            self.settle_inheritance();
        }
        self.now = self.now.max(outcome.end);
        let findings = self
            .conservation
            .at_end(self.now, |task, cpu| may_run(self.workload, self.cpus, task, cpu));
        self.report_all(findings);
        for cpu in 0..self.cpus {
            self.run_ends(CpuId(cpu), TaskId::NONE, PrevState::Runnable);
        }
        self.expect_none_lost();
        for cpu in 0..self.cpus {
            let finding =
                self.accounts.settle(CpuId(cpu), self.running[usize::from(cpu)], self.now);
            self.report_all(finding);
        }
        self.expect_scripts_done();
        let findings = self.accounts.compare(outcome, self.now);
        self.report_all(findings);
        self.violations
    }

    fn event(&mut self, event: &Event) {
        if event.time < self.now {
            self.report(Rule::Stream, None, Some(event.cpu), "time goes backwards".into());
        }
        if event.time > self.now {
            self.settle_inheritance();
        }
        self.now = self.now.max(event.time);
        if event.cpu.0 >= self.cpus {
            return self.report(Rule::Stream, None, Some(event.cpu), "there is no such CPU".into());
        }
        if let Some(inheritance) = &mut self.inheritance {
            let finding = inheritance.event(event);
            self.report_all(finding);
        }
        if let Some(deadlines) = &mut self.deadlines {
            let findings = deadlines.event(event);
            self.report_all(findings);
        }
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                self.switch(event.cpu, prev, next, prev_state)
            }
            EventKind::SchedWaking { task, target, .. }
            | EventKind::SchedWakeupNew { task, target } => self.ready(task, target),
            EventKind::Overhead { task, spent, .. } => {
                if task != self.running[event.cpu.index()] {
                    self.report(
                        Rule::CpuTime,
                        Some(task),
                        Some(event.cpu),
                        "pays for overhead while it does not run".into(),
                    );
                }
                self.accounts.overhead(event.cpu, spent);
            }
            EventKind::SchedPiSetprio { task, new, .. } if self.known(task, event.cpu) => {
                self.set_prio(task, new)
            }
            _ => {}
        }
    }

    fn settle_inheritance(&mut self) {
        let finding = self.inheritance.as_mut().and_then(Inheritance::settle);
        self.report_all(finding);
    }

    /// The priority of `task` changes to `prio`. Its wait or run so far is judged by the old one.
    fn set_prio(&mut self, task: TaskId, prio: u8) {
        let (workload, cpus, now) = (self.workload, self.cpus, self.now);
        let Some(strict) = &mut self.strict else { return };
        let finding = match self.tasks[task.index()] {
            Phase::Waiting => {
                let waited = self.scene.waits_anew(task, now);
                strict.wait_ends(&self.scene, waited, now, |cpu| may_run(workload, cpus, task, cpu))
            }
            Phase::Running(cpu) => {
                let ran = self.scene.running[cpu.index()].replace(Running { task, since: now });
                ran.and_then(|ran| {
                    strict.run_ends(&self.scene, cpu, ran, now, |task| {
                        may_run(workload, cpus, task, cpu)
                    })
                })
            }
            Phase::Unborn | Phase::Blocked | Phase::Dead => None,
        };
        strict.set_prio(task, prio);
        self.report_all(finding);
    }

    fn switch(&mut self, cpu: CpuId, prev: TaskId, next: TaskId, prev_state: PrevState) {
        let ran = self.running[cpu.index()];
        if prev != ran {
            self.report(
                Rule::Stream,
                Some(prev),
                Some(cpu),
                format!("leaves the CPU, on which {} ran", named(ran)),
            );
        }
        let finding = self.accounts.settle(cpu, ran, self.now);
        self.report_all(finding);
        self.run_ends(cpu, next, prev_state);
        if next != TaskId::NONE {
            self.dispatched(next, cpu);
        }
        // Before `prev` starts to wait, since by then the CPU is taken already.
        if ran == TaskId::NONE && next != TaskId::NONE {
            let (workload, cpus) = (self.workload, self.cpus);
            let findings = self
                .conservation
                .idle_ends(cpu, self.now, |task| may_run(workload, cpus, task, cpu));
            self.report_all(findings);
        }
        if next == TaskId::NONE && ran != TaskId::NONE {
            self.conservation.idle_begins(cpu, self.now);
        }
        if prev != TaskId::NONE
            && self.known(prev, cpu)
            && self.tasks[prev.index()] == Phase::Running(cpu)
        {
            self.tasks[prev.index()] = match prev_state {
                PrevState::Runnable => Phase::Waiting,
                PrevState::Blocked => Phase::Blocked,
                PrevState::Dead => Phase::Dead,
            };
            if prev_state == PrevState::Runnable {
                self.conservation.wait_begins(prev, cpu, self.now);
                self.scene.wait_begins(prev, cpu, self.now);
            }
        }
        self.running[cpu.index()] = next;
    }

    /// What ran on `cpu` stops, and `next` follows.
    fn run_ends(&mut self, cpu: CpuId, next: TaskId, prev_state: PrevState) {
        let (workload, cpus, now) = (self.workload, self.cpus, self.now);
        let mut findings = Vec::new();
        let ran = self.scene.running[cpu.index()].take();
        if let Some(ran) = ran {
            let strict = self.strict.as_ref();
            findings.extend(strict.and_then(|strict| {
                strict
                    .run_ends(&self.scene, cpu, ran, now, |task| may_run(workload, cpus, task, cpu))
            }));
            let stays_runnable = prev_state == PrevState::Runnable;
            findings.extend(self.quanta.as_mut().and_then(|quanta| {
                quanta.switch(&self.scene, cpu, ran, next, stays_runnable, now)
            }));
        }
        if let Some(strict) =
            self.strict.as_ref().filter(|strict| next != TaskId::NONE && strict.is_lenient())
        {
            self.scene.pass_over(now, |task| {
                (ran.is_none() || !strict.matters_more(task, next))
                    && may_run(workload, cpus, task, cpu)
            });
        }
        let gone = ran.filter(|_| prev_state != PrevState::Runnable).map(|ran| ran.task);
        findings
            .extend(self.shares.as_mut().and_then(|shares| shares.switch(cpu, next, gone, now)));
        self.report_all(findings);
    }

    fn dispatched(&mut self, task: TaskId, cpu: CpuId) {
        if !self.known(task, cpu) {
            return;
        }
        match self.tasks[task.index()] {
            Phase::Waiting => {
                let (workload, cpus) = (self.workload, self.cpus);
                let finding = self
                    .conservation
                    .wait_ends(task, self.now, |cpu| may_run(workload, cpus, task, cpu));
                self.report_all(finding);
                let waited = self.scene.wait_ends(task);
                let strict = self.strict.as_ref();
                let finding = strict.and_then(|strict| {
                    strict.wait_ends(&self.scene, waited, self.now, |cpu| {
                        may_run(workload, cpus, task, cpu)
                    })
                });
                self.report_all(finding);
                self.scene.running[cpu.index()] = Some(Running { task, since: self.now });
            }
            Phase::Running(other) => {
                self.report(
                    Rule::OneCpu,
                    Some(task),
                    Some(cpu),
                    format!("is dispatched while it runs on CPU {}", other.0),
                );
            }
            phase @ (Phase::Unborn | Phase::Blocked | Phase::Dead) => {
                self.report(
                    Rule::RunsWhenReady,
                    Some(task),
                    Some(cpu),
                    format!("is dispatched while it is {phase:?}"),
                );
            }
        }
        if !may_run(self.workload, self.cpus, task, cpu) {
            let affinity = self.workload.tasks[task.index()].affinity;
            self.report(
                Rule::Affinity,
                Some(task),
                Some(cpu),
                format!("runs there, and its affinity is {affinity:?}"),
            );
        }
        self.tasks[task.index()] = Phase::Running(cpu);
    }

    /// `task` is new or woken, and waits on `target`.
    fn ready(&mut self, task: TaskId, target: CpuId) {
        if !self.known(task, target) {
            return;
        }
        match self.tasks[task.index()] {
            Phase::Unborn | Phase::Blocked => {
                self.tasks[task.index()] = Phase::Waiting;
                self.conservation.wait_begins(task, target, self.now);
                self.scene.wait_begins(task, target, self.now);
                let finding = self.shares.as_mut().and_then(|shares| shares.comes(task, self.now));
                self.report_all(finding);
            }
            phase => self.report(
                Rule::Stream,
                Some(task),
                Some(target),
                format!("is woken while it is {phase:?}"),
            ),
        }
    }

    /// Whether the workload has this task and the machine this CPU.
    fn known(&mut self, task: TaskId, cpu: CpuId) -> bool {
        let known = task.index() < self.tasks.len() && cpu.0 < self.cpus;
        if !known {
            self.report(Rule::Stream, Some(task), Some(cpu), "there is no such task or CPU".into());
        }
        known
    }

    fn expect_none_lost(&mut self) {
        let late = self.nudge.map_or(Nanos::ZERO, |nudge| nudge.latest_start());
        for task in self.workload.ids() {
            let spec = &self.workload.tasks[task.index()];
            let pauses_first = self.workload.background.has(task)
                || spec.script.steps().next().is_some_and(|step| {
                    step.run == Nanos::ZERO && matches!(step.then, Action::Sleep(_) | Action::Wait)
                });
            match (self.tasks[task.index()], spec.start) {
                (Phase::Waiting, _)
                    if self.conservation.is_lost(task, self.now)
                        && !is_limited(self.workload, task) =>
                {
                    self.report(
                        Rule::NoneLost,
                        Some(task),
                        None,
                        "is ready at the end, with all CPUs idle".into(),
                    );
                }
                (Phase::Unborn, Start::At(time) | Start::Asleep(time))
                    if time + late < self.now && !pauses_first =>
                {
                    self.report(
                        Rule::NoneLost,
                        Some(task),
                        None,
                        format!("should have come into being at {}", Nanos(time.0)),
                    );
                }
                _ => {}
            }
        }
    }

    /// A task that has ended did all work of its script; no task did more.
    fn expect_scripts_done(&mut self) {
        for task in self.workload.ids() {
            if self.workload.background.has(task) {
                continue; // what it does is drawn
            }
            let (useful, demand) =
                (self.accounts.useful(task), self.workload.tasks[task.index()].script.demand());
            let dead = self.tasks[task.index()] == Phase::Dead;
            let off = self.nudge.map_or(Nanos::ZERO, |nudge| nudge.most_of(demand));
            if useful > demand.saturating_add(off) || dead && useful < demand.saturating_sub(off) {
                self.report(
                    Rule::CpuTime,
                    Some(task),
                    None,
                    format!("did {useful} of work, but its script needs {demand}"),
                );
            }
        }
    }

    #[cold]
    fn report(&mut self, rule: Rule, task: Option<TaskId>, cpu: Option<CpuId>, message: String) {
        self.report_all([Finding { rule, task, cpu, message }]);
    }

    fn report_all(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for Finding { rule, task, cpu, message } in findings {
            if self.violations.len() < MOST_VIOLATIONS {
                let task = task.unwrap_or(TaskId::NONE);
                self.violations.push(Violation { rule, time: self.now, task, cpu, message });
            }
        }
    }
}

/// A violation at the current time.
struct Finding {
    rule: Rule,
    task: Option<TaskId>,
    cpu: Option<CpuId>,
    message: String,
}

/// Whether `task` may run on `cpu` of a machine of `cpus` CPUs.
fn may_run(workload: &Workload, cpus: u16, task: TaskId, cpu: CpuId) -> bool {
    match workload.tasks[task.index()].affinity {
        Affinity::Any => true,
        Affinity::Pinned(only) => only.0 % cpus == cpu.0,
        Affinity::Set(set) => workload.cpu_sets[set as usize].contains(cpu),
    }
}

fn named(task: TaskId) -> String {
    if task == TaskId::NONE { "no task".into() } else { format!("task {}", task.0) }
}

/// The promises that hold with groups. Shares differ from those of tasks alone, and a throttled
/// group waits beside an idle CPU.
fn in_groups(promises: Promises, workload: &Workload) -> Promises {
    let conserves = workload.cgroups.iter().all(|cgroup| cgroup.max.is_none());
    Promises {
        shares: promises.shares.filter(|_| workload.cgroups.is_empty()),
        work_conserving: promises.work_conserving && conserves,
        locally_work_conserving: promises.locally_work_conserving && conserves,
        ..promises
    }
}

/// Whether the group of `task` has a quota.
fn is_limited(workload: &Workload, task: TaskId) -> bool {
    let group = workload.tasks[task.index()].attributes.membership.group();
    group.is_some_and(|group| workload.cgroups[group].max.is_some())
}

impl Observer for Checks<'_> {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            self.event(event);
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ns: {}", self.rule, self.time.0, named(self.task))?;
        if let Some(cpu) = self.cpu {
            write!(f, ", CPU {}", cpu.0)?;
        }
        write!(f, ": {}", self.message)
    }
}
