//! The narrow waist: a stream of fixed-size events in chunks.
//!
//! The simulator, a recorded file, a virtual machine and the host all feed the same [`Event`]s to the same [`Observer`]s; metrics, checks
//! and exports consume nothing else. Event names are those of Linux's tracepoints, with `job_*` and `overhead` beside them for
//! producers that know more than a kernel tells. Time starts at zero with the first event and never goes backwards.

mod words;

pub use words::TraceHash;

use crate::{CpuId, Nanos, TaskId, Time};

/// How many events a producer gathers before it calls its observers.
pub const CHUNK: usize = 256;

/// Something that happened, on a CPU, at an instant. 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub time: Time,
    /// On which CPU it was seen (for a waking: the waker's CPU).
    pub cpu: CpuId,
    /// What.
    pub kind: EventKind,
}

/// What happened. [`TaskId::NONE`] stands for the idle task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The CPU went from one task to another.
    SchedSwitch {
        /// Who ran.
        prev: TaskId,
        /// Who runs now.
        next: TaskId,
        /// Why `prev` stopped.
        prev_state: PrevState,
    },
    /// A sleeping task is being woken by what runs on this CPU. From here on it is runnable.
    SchedWaking {
        /// Who is woken.
        task: TaskId,
        /// The CPU chosen for it.
        target: CpuId,
        /// Whether the running task did it or an interrupt.
        context: WakeContext,
    },
    /// The woken task is on a ready queue (recordings only; the simulator's wakings are wakeups).
    SchedWakeup {
        /// Who was woken.
        task: TaskId,
        /// Where it is queued.
        target: CpuId,
    },
    /// A new task is on a ready queue for the first time.
    SchedWakeupNew {
        /// The new task.
        task: TaskId,
        /// Where it is queued.
        target: CpuId,
    },
    /// A task was created.
    SchedProcessFork {
        /// By whom.
        parent: TaskId,
        /// The new task.
        child: TaskId,
    },
    /// A task replaced its program (and its name).
    SchedProcessExec {
        /// Which task.
        task: TaskId,
    },
    /// A task is about to end; its last switch follows.
    SchedProcessExit {
        /// Which task.
        task: TaskId,
    },
    /// A task was moved between CPUs.
    SchedMigrateTask {
        /// Which task.
        task: TaskId,
        /// From where.
        from: CpuId,
        /// To where.
        to: CpuId,
    },
    /// A task's priority changed because of who waits for a mutex that it holds, or does so no longer.
    SchedPiSetprio {
        /// Whose.
        task: TaskId,
        /// Its kernel priority until now.
        old: u8,
        /// Its kernel priority from now on.
        new: u8,
    },
    /// The running task begins to wait for a mutex; it ends with its waking (`lock:contention_begin`).
    ContentionBegin {
        /// Who waits.
        task: TaskId,
        /// Who holds the mutex.
        owner: TaskId,
        /// Which mutex of the workload.
        mutex: u32,
    },
    /// A job, the unit of response time, was released.
    JobRelease {
        /// Whose job.
        task: TaskId,
    },
    /// A job was completed.
    JobComplete {
        /// Whose job.
        task: TaskId,
        /// Its bursts and pauses before queueing and overhead.
        demand: Nanos,
    },
    /// The CPU spent time on scheduling itself, starting now.
    Overhead {
        /// On whose account, or the idle task.
        task: TaskId,
        /// What for.
        kind: OverheadKind,
        /// How long.
        spent: Nanos,
    },
}

/// Why a task stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrevState {
    /// Still runnable: preempted, slice over or yielded (`R`, `R+`). The CPU burst goes on later.
    Runnable,
    /// Waits for something (`S`, `D`, `I`, `T`, …). The CPU burst is over.
    Blocked,
    /// Ended (`X`, `Z`).
    Dead,
}

/// Who woke a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeContext {
    /// The task running on that CPU.
    Task,
    /// A softirq that interrupted or followed the running task (a timer, or a packet on the loopback that this very task sent).
    Softirq,
    /// An interrupt.
    Hardirq,
    /// The recording does not say.
    Unknown,
}

/// What scheduling overhead is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverheadKind {
    /// Switching from one task to another.
    Switch,
    /// Refilling caches after a migration.
    Migration,
    /// Leaving idle.
    IdleExit,
    /// Working slower because memory is shared with tasks that migrate.
    Sharing,
    /// Putting a task into a ready queue and taking one out.
    Queue,
    /// Working slower than on the fastest CPU: this one is slow, or a busy thread shares its core.
    Slow,
}

impl OverheadKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [OverheadKind; 6] = [
        OverheadKind::Switch,
        OverheadKind::Migration,
        OverheadKind::IdleExit,
        OverheadKind::Sharing,
        OverheadKind::Queue,
        OverheadKind::Slow,
    ];

    /// Those that scheduling is to blame for.
    pub const OF_SCHEDULING: [OverheadKind; 5] =
        [OverheadKind::Switch, OverheadKind::Migration, OverheadKind::IdleExit, OverheadKind::Sharing, OverheadKind::Queue];

    /// What it is called where a person reads it.
    pub fn name(self) -> &'static str {
        match self {
            OverheadKind::Switch => "switch",
            OverheadKind::Migration => "migration",
            OverheadKind::IdleExit => "leaving idle",
            OverheadKind::Sharing => "shared memory",
            OverheadKind::Queue => "ready queue",
            OverheadKind::Slow => "slow CPU",
        }
    }
}

/// Who a [`TaskId`] of a trace is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskInfo {
    /// The name, the last one when `exec` changed it.
    pub name: String,
    /// The thread id in the recorded system; 0 where there is none.
    pub pid: u32,
    /// The process id in the recorded system; 0 where unknown.
    pub tgid: u32,
    /// Linux's kernel priority: 0…99 real-time (0 most important), 100…139 for nice −20…19.
    pub prio: u8,
}

/// Consumes a trace: metrics, checks, hashes, writers, workload builders.
pub trait Observer {
    /// Takes the next events. Chunks come in order of time; the last one may be short.
    fn events(&mut self, chunk: &[Event]);
}

/// Where a producer's events go. [`Trace`] takes them to any number of observers; with [`Direct`] the producer is compiled for one.
pub trait Sink {
    /// The next event.
    fn push(&mut self, time: Time, cpu: CpuId, kind: EventKind);

    /// There are no more; a producer calls it once at its end.
    fn flush(&mut self) {}
}

/// One observer that sees each event as it happens.
///
/// The producer knows where it pushes which kind of event, so that the observer's choice between kinds is made by the compiler.
pub struct Direct<'a, O>(pub &'a mut O);

impl<O: Observer> Sink for Direct<'_, O> {
    #[inline(always)]
    fn push(&mut self, time: Time, cpu: CpuId, kind: EventKind) {
        self.0.events(&[Event { time, cpu, kind }]);
    }
}

/// Gathers events into chunks and hands them on.
pub struct Trace<'a> {
    /// Of which the first `len` are gathered.
    chunk: Box<[Event; CHUNK]>,
    len: usize,
    observers: Vec<&'a mut dyn Observer>,
}

impl<'a> Trace<'a> {
    /// A stream to `observers`, which see each chunk in this order.
    pub fn new(observers: Vec<&'a mut dyn Observer>) -> Self {
        let nothing = Event { time: Time::ZERO, cpu: CpuId(0), kind: EventKind::JobRelease { task: TaskId::NONE } };
        Trace { chunk: Box::new([nothing; CHUNK]), len: 0, observers }
    }
}

impl Sink for Trace<'_> {
    /// Appends an event. If nobody looks, none is written once the chunk is full.
    #[inline]
    fn push(&mut self, time: Time, cpu: CpuId, kind: EventKind) {
        if self.len >= CHUNK {
            if self.observers.is_empty() {
                return;
            }
            self.flush();
        }
        self.chunk[self.len] = Event { time, cpu, kind };
        self.len += 1;
    }

    /// Hands on what is gathered.
    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        for observer in &mut self.observers {
            observer.events(&self.chunk[..self.len]);
        }
        self.len = 0;
    }
}

const _: () = assert!(size_of::<Event>() == 32);
