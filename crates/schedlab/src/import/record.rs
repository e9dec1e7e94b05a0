//! A scheduling event as recorded: pids and names, not yet tasks.

use schedsim::CpuId;
use schedsim::admission::{CpuNumber, Pid};
use schedsim::trace::{PrevState, WakeContext};

/// A scheduling event with where and when it was seen.
pub(super) struct Record<'a> {
    /// The recorded clock, in nanoseconds.
    pub time: u64,
    /// The CPU on which it was seen.
    pub cpu: CpuId,
    /// Whether an interrupt was being served.
    pub context: WakeContext,
    /// The running task, if the record says both its ids.
    pub current: Option<Current>,
    /// What happened.
    pub what: Sched<'a>,
}

/// Who ran when an event happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Current {
    pub tgid: u32,
    pub pid: u32,
}

/// What happened. `pid` is what the kernel calls so: the id of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sched<'a> {
    Switch {
        prev: Who<'a>,
        prev_state: PrevState,
        next: Who<'a>,
    },
    Waking {
        task: Who<'a>,
        target: CpuId,
    },
    Wakeup {
        task: Who<'a>,
        target: CpuId,
    },
    WakeupNew {
        task: Who<'a>,
        target: CpuId,
    },
    Fork {
        parent: u32,
        child: u32,
        comm: &'a [u8],
    },
    /// `old_pid` differs when a thread that does not lead its process calls exec: it takes over the leader's pid.
    Exec {
        pid: u32,
        old_pid: u32,
    },
    Exit {
        task: Who<'a>,
    },
    Migrate {
        task: Who<'a>,
        from: CpuId,
        to: CpuId,
    },
}

/// A task as an event names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Who<'a> {
    pub comm: &'a [u8],
    pub pid: u32,
    pub prio: i32,
}

/// The tracepoints that are imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tracepoint {
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Fork,
    Exec,
    Exit,
    Migrate,
}

impl Tracepoint {
    /// The one called `name`, with or without `sched:` before it.
    pub fn named(name: &[u8]) -> Option<Self> {
        let name = name.strip_prefix(b"sched:").unwrap_or(name);
        Some(match name.strip_prefix(b"sched_")? {
            b"switch" => Tracepoint::Switch,
            b"waking" => Tracepoint::Waking,
            b"wakeup" => Tracepoint::Wakeup,
            b"wakeup_new" => Tracepoint::WakeupNew,
            b"process_fork" => Tracepoint::Fork,
            b"process_exec" => Tracepoint::Exec,
            b"process_exit" => Tracepoint::Exit,
            b"migrate_task" => Tracepoint::Migrate,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Tracepoint::Switch => "sched_switch",
            Tracepoint::Waking => "sched_waking",
            Tracepoint::Wakeup => "sched_wakeup",
            Tracepoint::WakeupNew => "sched_wakeup_new",
            Tracepoint::Fork => "sched_process_fork",
            Tracepoint::Exec => "sched_process_exec",
            Tracepoint::Exit => "sched_process_exit",
            Tracepoint::Migrate => "sched_migrate_task",
        }
    }
}

/// Why a task stopped, from the letters the kernel prints: `R`, `R+`, `S`, `D|W`, `x`, ….
#[inline]
pub(super) fn prev_state(letters: &[u8]) -> PrevState {
    match letters {
        [b'R', ..] | [.., b'+'] => PrevState::Runnable,
        _ if letters.iter().any(|letter| b"XZx".contains(letter)) => PrevState::Dead,
        _ => PrevState::Blocked,
    }
}

/// Adds one; a count of what a file holds does not come near the end of 64 bits.
#[inline]
pub(super) fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

/// A CPU that a file names, if there can be one of that number.
#[inline]
pub(super) fn cpu(number: u64) -> Option<CpuId> {
    u16::try_from(number).ok().filter(|&cpu| CpuNumber::has(cpu)).map(CpuId)
}

/// A pid that a file names, if there can be one.
#[inline]
pub(super) fn pid(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&pid| Pid::has(pid))
}
