//! Compares each decision of the kernel with that of the simulated policy in its place.
//!
//! The policy receives the events of the guest, and is compared at each of the kernel's decisions
//! ([`Shadow`]). Tasks that no policy schedules are left out as in [`super::as_recorded`].

use super::background_load::is_unscheduled;
use super::closed::Traced;
use super::witness::Witness;
use crate::experiment::Candidate;
use program::Error;
use schedlab_runner::event::TaskResult;
use schedsim::live::{Arrival, Decides, Judgement, Role, Shadow};
use schedsim::trace::{Event, EventKind, TaskInfo};
use schedsim::workload::Workload;
use schedsim::{Machine, TaskId, Ticks, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Compares `policy` with the decisions before `until` in a guest like `machine`, where `results`
/// are those of the tasks. The program named `left_out`, if there is one, decided for the kernel.
///
/// # Errors
/// [`Error::Policy`] with the rule that the policy broke.
pub fn judge(
    traced: &Traced,
    (scripts, results): (&Workload, &[TaskResult]),
    machine: &Machine,
    (policy, seed): (&dyn Candidate, u64),
    (program, left_out): (Option<&str>, Option<&str>),
    (witness, until): (Witness, Time),
) -> Result<Judgement, Error> {
    let recorded = &traced.recording.tasks;
    let yields = |task| {
        let number = traced.number(task).map(|number| number as usize);
        number
            .and_then(|number| results.get(number))
            .is_none_or(|result| result.operations.contains_key("yield"))
    };
    let role = |(task, info): (TaskId, &TaskInfo)| {
        if is_unscheduled(recorded, task, left_out) {
            return if info.prio >= 100 { Role::Program } else { Role::Interrupts };
        }
        let spec = traced.number(task).and_then(|number| scripts.tasks.get(number as usize));
        let attributes = spec.map(|spec| spec.attributes).unwrap_or_default();
        let prio = spec.map_or(info.prio, |spec| spec.info.prio);
        Role::Scheduled {
            arrival: Arrival { prio, attributes, ..Arrival::default() },
            yields: yields(task),
        }
    };
    let tasks = (0..).map(TaskId).zip(recorded).map(role).collect();
    let mut events = traced.events.clone();
    // One of our schedulers starts anew at the announcement of a job; one of its threads has
    // received that.
    let announces = |task: TaskId| {
        recorded
            .get(task.index())
            .is_some_and(|task| task.prio < 100 && program == Some(&task.name))
    };
    let is_told = |event: &Event| matches!(event.kind, EventKind::SchedSwitch { prev, .. } if announces(prev));
    let at = events.iter().position(is_told).map_or(0, |at| at + 1);
    let begin = if at == 0 { Time::ZERO } else { events[at - 1].time };
    events.drain(..at);
    events.retain(|event| event.time < until);
    events.iter_mut().for_each(|event| event.time = Time(event.time.since(begin).0));
    let ticks = &traced.ticks;
    let first = ticks.time_of(ticks.until(begin)).since(begin);
    let ticks = Ticks::new(ticks.period, Time(first.0));
    // The running tasks at the begin of the recording.
    let mut running = BTreeMap::new();
    for event in &events {
        if let EventKind::SchedSwitch { prev, .. } = event.kind {
            running.entry(event.cpu).or_insert(prev);
        }
    }
    let decides = if left_out.is_some() { Decides::AtEvent } else { Decides::AtSwitch };
    let machine = Machine { ticks: Some(ticks), ..machine.clone() };
    let made = policy.policy(machine.cpus).ok_or_else(|| {
        Error::Usage(format!("{policy} cannot be judged: only the engine drives it"))
    })?;
    let mut shadow = Shadow::new(made, machine, seed, decides, tasks);
    // Only a scheduler that begins at time zero can have one.
    shadow.knows(witness.known(&traced.events, recorded));
    // Any scheduler of sched_ext has all tasks from its beginning on that are not created later.
    if program.is_some() && begin == Time::ZERO {
        let is_new = |event: &Event| match event.kind {
            EventKind::SchedWakeupNew { task, .. } => Some(task),
            _ => None,
        };
        let new: BTreeSet<TaskId> = events.iter().filter_map(is_new).collect();
        let known = (0..recorded.len() as u32).map(TaskId).filter(|task| !new.contains(task));
        known.for_each(|task| shadow.has(task));
    }
    running.into_iter().for_each(|(cpu, task)| shadow.begins(cpu, task));
    let judgement = shadow.judge(&events);
    judgement.map_err(|ended| {
        Error::Policy(format!("the policy {policy} cannot be judged on what was recorded: {ended}"))
    })
}
