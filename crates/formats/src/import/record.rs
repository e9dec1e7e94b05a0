//! A scheduling event as recorded, with pids and names instead of tasks.

use schedsim::CpuId;
use schedsim::admission::{CpuNumber, Pid};
use schedsim::trace::{PrevState, WakeContext};

/// A scheduling event with its time and CPU.
pub(super) struct Record<'a> {
    /// The recorded clock, in nanoseconds.
    pub time: u64,
    /// The CPU on which it was seen.
    pub cpu: CpuId,
    /// Whether it happened in an interrupt.
    pub context: WakeContext,
    /// The running task, if the record has both of its ids.
    pub current: Option<Current>,
    /// The event.
    pub what: Sched<'a>,
}

/// The running task during an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Current {
    pub tgid: u32,
    pub pid: u32,
}

impl Current {
    /// The task of these ids, if they are in range.
    #[inline]
    pub fn of(tgid: u64, tid: u64) -> Option<Self> {
        Some(Current { tgid: pid(tgid)?, pid: pid(tid)? })
    }
}

/// The event. `pid` is the kernel's term: the id of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sched<'a> {
    Switch {
        prev: NamedTask<'a>,
        prev_state: PrevState,
        next: NamedTask<'a>,
    },
    Waking {
        task: NamedTask<'a>,
        target: CpuId,
    },
    Wakeup {
        task: NamedTask<'a>,
        target: CpuId,
    },
    WakeupNew {
        task: NamedTask<'a>,
        target: CpuId,
    },
    Fork {
        parent: u32,
        child: u32,
        comm: &'a [u8],
    },
    /// `old_pid` differs if a thread other than the leader calls exec: it takes the leader's pid.
    Exec {
        pid: u32,
        old_pid: u32,
    },
    Exit {
        task: NamedTask<'a>,
    },
    Migrate {
        task: NamedTask<'a>,
        from: CpuId,
        to: CpuId,
    },
    /// The frequency of a CPU changes.
    Frequency {
        of: CpuId,
        khz: u64,
    },
}

/// A task as named in an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NamedTask<'a> {
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
    Frequency,
}

impl Tracepoint {
    /// The tracepoint with this name, with or without its system before it.
    pub fn named(name: &[u8]) -> Option<Self> {
        if name.strip_prefix(b"power:").unwrap_or(name) == b"cpu_frequency" {
            return Some(Tracepoint::Frequency);
        }
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
            Tracepoint::Frequency => "cpu_frequency",
        }
    }
}

/// The state of a task that stopped, from the letters that the kernel prints: `R`, `R+`, `S`,
/// `D|W`, `x`, ….
#[inline]
pub(super) fn prev_state(letters: &[u8]) -> PrevState {
    match letters {
        [b'R', ..] | [.., b'+'] => PrevState::Runnable,
        _ if letters.iter().any(|letter| b"XZx".contains(letter)) => PrevState::Dead,
        _ => PrevState::Blocked,
    }
}

/// Adds one. A count of events in a file cannot overflow 64 bits.
#[inline]
pub(super) fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

/// The CPU with this number, if the number is in range.
#[inline]
pub(super) fn cpu(number: u64) -> Option<CpuId> {
    u16::try_from(number).ok().filter(|&cpu| CpuNumber::has(cpu)).map(CpuId)
}

/// The pid, if the number is in range.
#[inline]
pub(super) fn pid(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&pid| Pid::has(pid))
}
