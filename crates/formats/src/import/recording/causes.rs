//! Calls and their objects, from whatever recorded them, on their way to the observers.

use super::calls::{Calls, Ended};
use crate::import::recorder::Recorder;
use ::recording::{What, lock};
use schedsim::trace::CallKind;
use schedsim::{CpuId, Nanos};
use std::collections::HashMap;

/// What is known of the calls of a recording.
pub(in crate::import) struct Causes {
    calls: Calls,
    /// What recording a call took.
    cost: Nanos,
    /// What recording a call of the C library's locks took.
    lock_cost: Nanos,
    namespaces: Namespaces,
}

/// Namespaces of pids other than the first: what their tasks call other tasks.
#[derive(Default)]
struct Namespaces {
    /// Of tasks that are in one.
    of: HashMap<u32, u32>,
    /// The task by namespace and number there.
    tasks: HashMap<(u32, u32), u32>,
    /// Settings of tasks that are not known by that number.
    unknown: u64,
}

impl Namespaces {
    /// The task that another one calls by this number.
    fn task(&self, by: u32, number: u32) -> Option<u32> {
        let Some(namespace) = self.of.get(&by) else { return Some(number) };
        self.tasks.get(&(*namespace, number)).copied()
    }
}

impl Causes {
    /// For the calls of an architecture; if that is unknown, the report says so.
    pub fn new(architecture: &str, recorder: &mut Recorder<'_>) -> Causes {
        let (calls, is_known) = Calls::new(architecture);
        if !is_known {
            recorder.report.warnings.push(format!(
                "the numbers of system calls of the architecture {architecture} are not known: \
                 their causes are not used"
            ));
        }
        Causes {
            calls,
            cost: Nanos::ZERO,
            lock_cost: Nanos::ZERO,
            namespaces: Namespaces::default(),
        }
    }

    /// A task forks another, with a number in its namespace of pids; 0 is the first namespace.
    pub fn born(&mut self, parent: u32, child: u32, number: u32, namespace: u32) {
        let Namespaces { of, tasks, .. } = &mut self.namespaces;
        if namespace == 0 {
            of.remove(&child);
            return;
        }
        of.insert(child, namespace);
        if number != child || of.contains_key(&parent) {
            // One that was there before is in a namespace, too, if it sees another number.
            let namespace = *of.entry(parent).or_insert(namespace);
            tasks.insert((namespace, number), child);
        }
    }

    /// A task continues under another number of the kernel's.
    pub fn continues(&mut self, old: u32, new: u32) {
        if let Some(namespace) = self.namespaces.of.remove(&old) {
            self.namespaces.of.insert(new, namespace);
        }
    }

    /// The task whose setting a call changes, by the number that the call had: its own, or another's.
    pub fn meant(&mut self, caller: u32, number: u32) -> Option<u32> {
        let task =
            if number == caller { Some(number) } else { self.namespaces.task(caller, number) };
        if task.is_none() {
            self.namespaces.unknown = self.namespaces.unknown.saturating_add(1);
        }
        task
    }

    /// Whether its tasks wait for signals as recorded, whatever they find.
    pub fn is_simulated(&mut self, is: bool) {
        self.calls.is_simulated = is;
    }

    /// What recording took: a call, and a call of the C library's locks.
    pub fn cost(&mut self, call: Nanos, lock: Nanos) {
        (self.cost, self.lock_cost) = (call, lock);
    }

    /// An object, or what belongs to the call that begins.
    pub fn take(&mut self, recorder: &mut Recorder<'_>, tid: u32, what: &What) {
        self.calls.take(tid, what);
        recorder.report.count_cause();
    }

    /// The task is in a call about this object when it sleeps or wakes another; 0 is none.
    pub fn within(
        &mut self,
        recorder: &mut Recorder<'_>,
        (time, cpu): (u64, CpuId),
        tid: u32,
        object: u64,
    ) {
        if let Ok(number @ 1..) = u32::try_from(object) {
            let channel = u32::try_from(self.calls.channel(object)).unwrap_or(number);
            recorder.call(time, cpu, tid, CallKind::Within { object: number, channel });
        }
    }

    /// A call ends. Its beginning since the first event is found here.
    pub fn end(
        &mut self,
        recorder: &mut Recorder<'_>,
        (time, cpu): (u64, CpuId),
        mut ended: Ended,
    ) {
        recorder.report.count_cause();
        let Some(since) = recorder.since(ended.entered) else { return };
        ended.since = since;
        let recording = if ended.op >= lock::LOCK { self.lock_cost } else { self.cost };
        let call = u32::from(ended.number) << 16 | u32::from(ended.op);
        let (namespaces, tid) = (&self.namespaces, ended.tid);
        let task = |pid| namespaces.task(tid, pid).and_then(|task| recorder.task_of(task));
        let returned = self.calls.end(&ended, task);
        let kind = CallKind::Ends { since, call, returned, recording };
        recorder.call(time, cpu, ended.tid, kind);
    }

    /// All calls are known: hands over their objects.
    pub fn finish(mut self, recorder: &mut Recorder<'_>) {
        if self.namespaces.unknown > 0 {
            recorder.report.warnings.push(format!(
                "{} settings of tasks in another namespace of pids are not used: who they are is \
                 not recorded",
                self.namespaces.unknown
            ));
        }
        self.calls.judge_futexes();
        recorder.object_names = self.calls.names();
        recorder.objects = self.calls.finish();
    }
}
