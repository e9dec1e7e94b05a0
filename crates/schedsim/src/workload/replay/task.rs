//! A recorded task while its events come in.

use super::Mean;
use super::log::{Deed, Kind, Log};
use crate::workload::Start;
use crate::{CpuId, Nanos, TaskId, Time};

#[derive(Debug)]
pub(super) struct Task {
    pub status: Status,
    /// Its last switch-out said that it ended. If it is seen again, it had only been preempted or had slept on its way out.
    pub dead: bool,
    /// A switch to it is due before its next run, as it slept or is new. Such switches go without saying in the log.
    expects_switch: bool,
    /// Switches to it since its last deed, beyond the expected one.
    switches: u32,
    /// From when on its run is not accounted for, if it runs; else since when its status is what it is.
    pub since: Time,
    /// Its run since its last deed.
    run: Nanos,
    pub log: Log,
    /// It was seen being woken, but not yet asleep.
    pub pending: Option<Pending>,
    pub start: Start,
    pub parent: TaskId,
    /// Where it runs or ran last.
    pub cpu: CpuId,
    /// Where it was first.
    pub first_cpu: Option<CpuId>,
    /// Its runs that were seen whole.
    pub runs: Mean,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// Not seen yet.
    Unknown,
    /// Forked, but not yet runnable.
    Unborn,
    Ready,
    Running,
    /// Asleep or dead.
    Asleep,
}

/// A waking that came before the sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub waker: TaskId,
    pub kind: Kind,
    /// Where it stands in the log of the waker.
    pub at: u32,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            status: Status::Unknown,
            dead: false,
            expects_switch: true,
            switches: 0,
            since: Time::ZERO,
            run: Nanos::ZERO,
            log: Log::default(),
            pending: None,
            start: Start::At(Time::ZERO),
            parent: TaskId::NONE,
            cpu: CpuId(0),
            first_cpu: None,
            runs: Mean::default(),
        }
    }
}

impl Task {
    /// Accounts for what it ran until now.
    #[inline]
    pub fn charge(&mut self, now: Time) {
        if self.status == Status::Running && now > self.since {
            self.run += now.since(self.since);
            self.since = now;
        }
    }

    /// It does something, having run since it last did.
    #[inline]
    pub fn put(&mut self, deed: Deed) -> u32 {
        let mut run = std::mem::take(&mut self.run);
        if self.switches > 0 {
            let switches = std::mem::take(&mut self.switches);
            self.log.push(std::mem::take(&mut run), Deed::Ran { switches });
        }
        self.log.push(run, deed)
    }

    /// Its sleep is over; says where that stands in its log.
    pub fn wake(&mut self, waker: TaskId, kind: Kind, now: Time) -> u32 {
        let pause = now.since(self.since);
        if self.log.is_empty() && !self.expects_switch && self.run == Nanos::ZERO {
            self.put(Deed::Ran { switches: 0 }); // it ran before it slept, if only for an instant
        }
        let at = self.put(Deed::Slept { waker, kind, pause });
        self.status = Status::Ready;
        self.since = now;
        self.dead = false;
        self.expects_switch = true;
        at
    }

    /// It runs from now on.
    pub fn switch_in(&mut self, cpu: CpuId, now: Time) {
        self.live_on(cpu);
        self.status = Status::Running;
        self.since = now;
        self.cpu = cpu;
        if !std::mem::replace(&mut self.expects_switch, false) {
            self.switches += 1;
        }
    }

    /// It is or will be on this CPU.
    #[inline]
    pub fn live_on(&mut self, cpu: CpuId) {
        self.first_cpu.get_or_insert(cpu);
    }

    /// Puts the rest of its run into the log; says how it ended.
    pub fn close(&mut self) -> Ending {
        let ending = match self.status {
            Status::Asleep if self.dead => Ending::Exited,
            Status::Asleep | Status::Unknown | Status::Unborn => Ending::Asleep,
            Status::Ready | Status::Running => Ending::Unfinished,
        };
        if self.run > Nanos::ZERO || self.switches > 0 {
            self.put(Deed::Ran { switches: 0 });
        }
        ending
    }
}

/// What a task was at the end of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Exited,
    Asleep,
    /// Runnable. Its script ends with what it had done by then.
    Unfinished,
}
