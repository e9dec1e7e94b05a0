//! Reads the scheduling attributes of tasks and their phases: policy, priority, reservation, slice,
//! CPUs, group. A task keeps one of each for its lifetime here, so that phases may repeat them, and
//! not change them.

use super::grammar::{self, Place};
use super::json::{Entry, Json, Value};
use program::Error;
use schedsim::Nanos;
use schedsim::admission::{CpuNumber, duration};
use schedsim::workload::{ReservationOptions, SchedulingPolicy};
use std::collections::BTreeSet;

/// The slices that Linux gives; it moves others to the nearest.
const SLICES: (Nanos, Nanos) = (Nanos(100_000), Nanos(100_000_000));
/// The largest utilisation that can be requested.
const MOST_UTILISATION: i64 = 1024;

/// A policy of rt-app.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// One of Linux's with a name here.
    Of(SchedulingPolicy),
    /// `SCHED_DEADLINE`.
    Deadline,
}

/// What rt-app asks the kernel for.
#[derive(Clone, PartialEq, Debug)]
pub struct Attributes {
    /// The policy.
    pub policy: Policy,
    /// A nice value or priority, if it is given.
    pub priority: Option<i64>,
    runtime: Nanos,
    period: Nanos,
    deadline: Nanos,
}

/// The keys that [`Attributes`] come from.
const KEYS: [&str; 5] = ["policy", "priority", "dl-runtime", "dl-period", "dl-deadline"];

/// The first entry named `key`.
pub fn find<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.key == key)
}

/// The first entry that asks for another policy, priority or reservation.
pub fn scheduling(entries: &[Entry]) -> Option<&Entry> {
    entries.iter().find(|entry| KEYS.contains(&entry.key.as_str()))
}

/// The policy that an entry names.
///
/// # Errors
/// If there is none of that name.
pub fn policy(json: &Json, entry: &Entry) -> Result<Policy, Error> {
    Ok(match json.text(entry)? {
        "SCHED_OTHER" => Policy::Of(SchedulingPolicy::Other),
        "SCHED_BATCH" => Policy::Of(SchedulingPolicy::Batch),
        "SCHED_IDLE" => Policy::Of(SchedulingPolicy::Idle),
        "SCHED_FIFO" => Policy::Of(SchedulingPolicy::Fifo),
        "SCHED_RR" => Policy::Of(SchedulingPolicy::Rr),
        "SCHED_DEADLINE" => Policy::Deadline,
        other => {
            let message = grammar::unknown(&[Place::Policy], "scheduling policy", other);
            return Err(json.wrong(entry.line, &message));
        }
    })
}

impl Policy {
    /// Whether it has priorities from 1 to 99.
    pub fn is_real_time(self) -> bool {
        matches!(self, Policy::Of(SchedulingPolicy::Fifo | SchedulingPolicy::Rr))
    }
}

impl Attributes {
    /// Those of a task.
    ///
    /// # Errors
    /// If a value is of another type, or out of range.
    pub fn of_task(json: &Json, entries: &[Entry], default: Policy) -> Result<Attributes, Error> {
        let given = |key: &str| find(entries, key);
        let policy = given("policy").map_or(Ok(default), |entry| policy(json, entry))?;
        // The grammar before `dl-`, which newer versions still look for where that is zero.
        let span = |keys: [&str; 2], otherwise| {
            for entry in keys.iter().filter_map(|key| given(key)) {
                match span(json, entry)? {
                    Nanos::ZERO => {}
                    span => return Ok(span),
                }
            }
            Ok::<_, Error>(otherwise)
        };
        let runtime = span(["dl-runtime", "runtime"], Nanos::ZERO)?;
        let period = span(["dl-period", "period"], runtime)?;
        let deadline = span(["dl-deadline", "deadline"], period)?;
        let priority = given("priority").map(|entry| json.integer(entry)).transpose()?;
        Ok(Attributes { policy, priority, runtime, period, deadline })
    }

    /// Those that a phase of a task with these has.
    ///
    /// # Errors
    /// If a value is of another type, or out of range.
    pub fn in_phase(&self, json: &Json, entries: &[Entry]) -> Result<Attributes, Error> {
        let given = |key: &str| find(entries, key);
        let named = given("policy").map(|entry| policy(json, entry)).transpose()?;
        let policy = named.unwrap_or(self.policy);
        let priority = given("priority").map(|entry| json.integer(entry)).transpose()?;
        let span = |key: &str| given(key).map(|entry| span(json, entry)).transpose();
        let spans = [span("dl-runtime")?, span("dl-period")?, span("dl-deadline")?];
        if policy != Policy::Deadline {
            // Without policy and priority rt-app asks the kernel for nothing.
            let priority = match (priority, named) {
                (None, None) => return Ok(self.clone()),
                (None, Some(_)) if self.effective_priority() == default_priority(policy) => {
                    self.priority
                }
                (None, Some(_)) => Some(default_priority(policy)),
                (given, _) => given,
            };
            let runtime = spans[0].unwrap_or(self.runtime);
            return Ok(Attributes { policy, priority, runtime, ..self.clone() });
        }
        if spans == [None; 3] {
            return Ok(Attributes { policy, ..self.clone() });
        }
        let runtime = spans[0].unwrap_or_default();
        let period = spans[1].unwrap_or(runtime);
        let deadline = spans[2].unwrap_or(period);
        Ok(Attributes { policy, runtime, period, deadline, ..self.clone() })
    }

    /// Whether the kernel treats a task with these as one with the others.
    pub fn is_same(&self, other: &Attributes) -> bool {
        let reservation = |of: &Attributes| of.reservation();
        self.policy == other.policy
            && (self.policy == Policy::Deadline
                || self.effective_priority() == other.effective_priority())
            && reservation(self) == reservation(other)
            && self.requested_slice() == other.requested_slice()
    }

    /// The nice value or priority.
    pub fn effective_priority(&self) -> i64 {
        self.priority.unwrap_or(default_priority(self.policy))
    }

    /// CPU time in each period.
    pub fn reservation(&self) -> Option<ReservationOptions> {
        let &Attributes { runtime, period, deadline, .. } = self;
        let deadline = Some(deadline).filter(|deadline| *deadline != period);
        (self.policy == Policy::Deadline).then_some(ReservationOptions {
            runtime,
            period,
            deadline,
        })
    }

    /// The slice that the task gets, and whether it is another than the one that it requests.
    pub fn slice(&self) -> Option<(Nanos, bool)> {
        let requested = self.requested_slice()?;
        let given = requested.clamp(SLICES.0, SLICES.1);
        Some((given, given != requested))
    }

    fn requested_slice(&self) -> Option<Nanos> {
        let has_slice =
            matches!(self.policy, Policy::Of(SchedulingPolicy::Other | SchedulingPolicy::Batch));
        Some(self.runtime).filter(|runtime| has_slice && *runtime > Nanos::ZERO)
    }
}

fn default_priority(policy: Policy) -> i64 {
    if policy.is_real_time() { 10 } else { 0 }
}

fn span(json: &Json, entry: &Entry) -> Result<Nanos, Error> {
    json.admit(entry, duration(json.integer(entry)?.into(), Nanos(1_000)))
}

/// The CPUs of a task or phase, each with its line; `None` if they are not given.
///
/// # Errors
/// If it is no list of numbers of CPUs.
pub fn cpus(json: &Json, entries: &[Entry]) -> Result<Option<BTreeSet<(u16, usize)>>, Error> {
    let Some(entry) = find(entries, "cpus") else { return Ok(None) };
    let wrong = || {
        let how = "cpus: give a list of numbers from 0 to 4095, as in [0, 2]";
        json.wrong(entry.line, how)
    };
    let Value::Array(cpus) = &entry.value else { return Err(wrong()) };
    let cpu = |value: &Value| match value {
        Value::Number(number) => number.parse().ok().map(|cpu: CpuNumber| (cpu.get(), entry.line)),
        _ => None,
    };
    let cpus: Option<BTreeSet<_>> = cpus.iter().map(cpu).collect();
    cpus.filter(|cpus| !cpus.is_empty()).map(Some).ok_or_else(wrong)
}

/// The control group that a task or phase asks for: `/` is the root; `None` if it asks for none.
///
/// # Errors
/// If it is no path.
pub fn group<'e>(json: &Json, entries: &'e [Entry]) -> Result<Option<&'e str>, Error> {
    let Some(entry) = find(entries, "taskgroup") else { return Ok(None) };
    match json.text(entry)? {
        "" => Ok(None),
        path if path.starts_with('/') => {
            Ok(Some(path.trim_end_matches('/'))
                .map(|path| if path.is_empty() { "/" } else { path }))
        }
        path => {
            Err(json.wrong(entry.line, &format!("taskgroup: `{path}` has to start with a slash")))
        }
    }
}

/// Checks what is ignored, and returns a note for each.
///
/// # Errors
/// If rt-app would refuse it.
pub fn ignored(json: &Json, entries: &[Entry]) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for key in ["util_min", "util_max"] {
        let Some(entry) = find(entries, key) else { continue };
        if json.integer(entry)? > MOST_UTILISATION {
            let how = format!("{key}: give a number up to {MOST_UTILISATION}");
            return Err(json.wrong(entry.line, &how));
        }
        notes.push(format!("{key} is ignored: frequencies are not modelled"));
    }
    if let Some(entry) = find(entries, "nodes_membind") {
        let Value::Array(_) = entry.value else {
            let how = "nodes_membind: give a list of numbers, as in [0, 1]";
            return Err(json.wrong(entry.line, how));
        };
        notes.push("nodes_membind is ignored: memory has no place here".to_string());
    }
    Ok(notes)
}
