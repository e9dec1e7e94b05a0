//! Calls and their objects, from whatever recorded them, on their way to the observers.

use super::calls::{Calls, Ended};
use crate::import::recorder::Recorder;
use ::recording::{What, lock};
use schedsim::trace::CallKind;
use schedsim::{CpuId, Nanos};

/// What is known of the calls of a recording.
pub(in crate::import) struct Causes {
    calls: Calls,
    /// What recording a call took.
    cost: Nanos,
    /// What recording a call of the C library's locks took.
    lock_cost: Nanos,
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
        Causes { calls, cost: Nanos::ZERO, lock_cost: Nanos::ZERO }
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
        let returned = self.calls.end(&ended, |pid| recorder.task_of(pid));
        let kind = CallKind::Ends { since, call, returned, recording };
        recorder.call(time, cpu, ended.tid, kind);
    }

    /// All calls are known: hands over their objects.
    pub fn finish(mut self, recorder: &mut Recorder<'_>) {
        self.calls.judge_futexes();
        recorder.object_names = self.calls.names();
        recorder.objects = self.calls.finish();
    }
}
