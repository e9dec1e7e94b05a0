//! The state of a recorded task during the conversion.

use super::Mean;
use super::log::{Deed, Kind, Log};
use super::settings::{Held, Settings};
use super::sleeps::Calls;
use super::within::Within;
use crate::trace::Set;
use crate::workload::Start;
use crate::{CpuId, Nanos, TaskId, Time};

#[derive(Debug)]
pub(super) struct Task {
    pub status: Status,
    /// Its last switch-out had the state dead. If it runs again, it had only been preempted or had
    /// slept while exiting.
    pub dead: bool,
    /// Its exit was recorded.
    pub exits: bool,
    /// Its next run starts with a switch, as it slept or is new. The log does not store such
    /// switches.
    expects_switch: bool,
    /// Switches to it since its last deed, beyond the expected one.
    switches: u32,
    /// When the unaccounted part of its run started, if it runs; otherwise when its status
    /// started.
    pub since: Time,
    /// When it last woke, and how long it has waited for a CPU since.
    woken: (Time, Nanos),
    /// Its run time since its last deed, as the fastest CPU would take.
    run: Nanos,
    /// The speed of the CPU on which it runs.
    speed: f64,
    pub log: Log,
    /// A waking of it was recorded, but no sleep yet.
    pub pending: Option<Pending>,
    pub start: Start,
    /// When it got its CPU for the first time, if nothing was recorded of it before.
    pub seen: Time,
    pub parent: TaskId,
    /// When it was forked; zero if it was there before.
    pub born: Time,
    /// Where it runs or ran last.
    pub cpu: CpuId,
    /// Where it was first.
    pub first_cpu: Option<CpuId>,
    /// Where it was created, before a CPU was chosen for it.
    pub created_on: Option<CpuId>,
    /// The mean of its completely recorded runs.
    pub runs: Mean,
    pub calls: Calls,
    pub settings: Settings,
    /// All its run time so far.
    ran: Nanos,
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
    /// The position in the log of the waker.
    pub at: u32,
    /// What the waker's call is about.
    pub object: Option<u32>,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            status: Status::Unknown,
            dead: false,
            exits: false,
            expects_switch: true,
            switches: 0,
            since: Time::ZERO,
            woken: (Time::ZERO, Nanos::ZERO),
            run: Nanos::ZERO,
            speed: 1.0,
            log: Log::default(),
            pending: None,
            start: Start::At(Time::ZERO),
            seen: Time::ZERO,
            parent: TaskId::NONE,
            born: Time::ZERO,
            cpu: CpuId(0),
            first_cpu: None,
            created_on: None,
            runs: Mean::default(),
            calls: Calls::default(),
            settings: Settings::default(),
            ran: Nanos::ZERO,
        }
    }
}

impl Task {
    /// Accounts for its run until now.
    #[inline]
    pub fn charge(&mut self, now: Time) {
        if self.status == Status::Running && now > self.since {
            let run = now.since(self.since);
            self.run +=
                if self.speed < 1.0 { Nanos((run.0 as f64 * self.speed) as u64) } else { run };
            self.ran += now.since(self.since);
            self.since = now;
        }
    }

    /// Takes up to `time` off its run since the last deed. Returns how much that was.
    pub fn take_off(&mut self, time: Nanos) -> Nanos {
        let taken = time.min(self.run);
        self.run -= taken;
        taken
    }

    /// Something is set for it.
    pub fn set(&mut self, set: Set, now: Time) {
        self.charge(now);
        self.settings.change(set, self.ran);
    }

    /// What was set for most of its run time, and whether that changed on the way.
    pub fn usual_settings(&self) -> (Held, bool) {
        self.settings.usual(self.ran)
    }

    /// Logs a deed, with the run since the last one.
    #[inline]
    pub fn put(&mut self, deed: Deed) -> u32 {
        let mut run = std::mem::take(&mut self.run);
        if self.switches > 0 {
            let switches = std::mem::take(&mut self.switches);
            self.log.push(std::mem::take(&mut run), Deed::Ran { switches });
        }
        self.log.push(run, deed)
    }

    /// Its sleep is over. Returns the position in its log.
    pub fn wake(&mut self, waker: TaskId, kind: Kind, now: Time) -> u32 {
        let pause = now.since(self.since);
        if self.log.is_empty() && !self.expects_switch && self.run == Nanos::ZERO {
            self.put(Deed::Ran { switches: 0 }); // it ran before it slept, if only for an instant
        }
        let at = self.put(Deed::Slept { waker, kind, pause, within: Within::Nothing });
        self.status = Status::Ready;
        self.since = now;
        self.woken = (now, Nanos::ZERO);
        self.dead = false;
        self.expects_switch = true;
        at
    }

    /// Where no wakeup is recorded, a task that gets its CPU for the first time has slept, and not
    /// waited since the recording began.
    pub fn start_where_seen(&mut self) {
        if self.seen > Time::ZERO && self.start == Start::At(Time::ZERO) {
            self.start = Start::Asleep(self.seen);
        }
    }

    /// It runs from now on.
    pub fn switch_in(&mut self, cpu: CpuId, speed: f64, now: Time) {
        self.speed = speed;
        self.live_on(cpu);
        if self.status == Status::Ready {
            self.woken.1 += now.since(self.since);
        }
        self.status = Status::Running;
        self.since = now;
        self.cpu = cpu;
        if !std::mem::replace(&mut self.expects_switch, false) {
            self.switches += 1;
        }
    }

    /// When it last woke, and how long it has waited for a CPU since.
    pub fn lateness(&self) -> (Time, Nanos) {
        self.woken
    }

    /// It is or will be on this CPU.
    #[inline]
    pub fn live_on(&mut self, cpu: CpuId) {
        self.first_cpu.get_or_insert(cpu);
    }

    /// Logs the rest of its run. Returns how it ended.
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

/// The state of a task at the end of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Exited,
    Asleep,
    /// Runnable. Its script ends with its work so far.
    Unfinished,
}
