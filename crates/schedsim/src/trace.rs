//! The trace: a stream of fixed-size events in chunks.
//!
//! The simulator, recordings, virtual machines and the host all feed the same [`Event`]s to the
//! same [`Observer`]s; metrics, checks and exports consume nothing else. Events have the names of
//! Linux's tracepoints, plus `job_*` and `overhead` for producers that know more than a kernel
//! reports. Time starts at zero with the first event and never goes backwards.

mod call;
mod words;

pub use call::{Call, CallKind, Returned, Set};
pub use words::TraceHash;

use crate::{CpuId, Nanos, TaskId, Time};
use strum::{VariantArray, VariantNames};

/// How many events a producer gathers before it calls its observers.
pub const CHUNK: usize = 256;

/// An event on a CPU at an instant. 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The time.
    pub time: Time,
    /// The CPU that recorded it (for a waking: the waker's CPU).
    pub cpu: CpuId,
    /// The kind, with its data.
    pub kind: EventKind,
}

/// The kinds of events. [`TaskId::NONE`] stands for the idle task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The CPU went from one task to another.
    SchedSwitch {
        /// The task that ran.
        prev: TaskId,
        /// The task that runs now.
        next: TaskId,
        /// Why `prev` stopped.
        prev_state: PrevState,
    },
    /// The current task or interrupt of this CPU wakes a sleeping task, which becomes runnable.
    SchedWaking {
        /// The woken task.
        task: TaskId,
        /// The CPU chosen for it.
        target: CpuId,
        /// Whether the running task did it or an interrupt.
        context: WakeContext,
    },
    /// The woken task is on a ready queue (recordings only; the simulator's wakings are wakeups).
    SchedWakeup {
        /// The woken task.
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
        /// The creating task.
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
    /// Priority inheritance changed a task's priority.
    SchedPiSetprio {
        /// The task.
        task: TaskId,
        /// Its kernel priority until now.
        old: u8,
        /// Its kernel priority from now on.
        new: u8,
    },
    /// The running task starts to wait for a mutex, until its waking (`lock:contention_begin`).
    ContentionBegin {
        /// The waiting task.
        task: TaskId,
        /// The holder of the mutex.
        owner: TaskId,
        /// The mutex of the workload.
        mutex: u32,
    },
    /// A job, the unit of response time, was released.
    JobRelease {
        /// The task of the job.
        task: TaskId,
    },
    /// A job was completed.
    JobComplete {
        /// The task of the job.
        task: TaskId,
        /// Its bursts and pauses before queueing and overhead.
        demand: Nanos,
    },
    /// The CPU spent time on scheduling itself, starting now.
    Overhead {
        /// The task that pays, or the idle task.
        task: TaskId,
        /// The kind of overhead.
        kind: OverheadKind,
        /// How long.
        spent: Nanos,
    },
}

/// Why a task stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum PrevState {
    /// Still runnable: preempted, slice over or yielded (`R`, `R+`). The CPU burst continues later.
    Runnable,
    /// Waits for something (`S`, `D`, `I`, `T`, …). The CPU burst is over.
    Blocked,
    /// Ended (`X`, `Z`).
    Dead,
}

/// The source of a waking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum WakeContext {
    /// The task running on that CPU.
    Task,
    /// A softirq that interrupted or followed the running task (a timer, or a packet on the
    /// loopback that this very task sent).
    Softirq,
    /// An interrupt.
    Hardirq,
    /// The recording does not say.
    Unknown,
}

/// What scheduling overhead is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray)]
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
    /// Blocking, and waking others: the kernel's work in the task's calls.
    Calls,
    /// Spinning for a mutex.
    Spin,
}

impl OverheadKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: &'static [OverheadKind] = OverheadKind::VARIANTS;

    /// The kinds that are costs of scheduling.
    pub const OF_SCHEDULING: [OverheadKind; 6] = [
        OverheadKind::Switch,
        OverheadKind::Migration,
        OverheadKind::IdleExit,
        OverheadKind::Sharing,
        OverheadKind::Queue,
        OverheadKind::Calls,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            OverheadKind::Switch => "switch",
            OverheadKind::Migration => "migration",
            OverheadKind::IdleExit => "leaving idle",
            OverheadKind::Sharing => "shared memory",
            OverheadKind::Queue => "ready queue",
            OverheadKind::Slow => "slow CPU",
            OverheadKind::Calls => "blocking and waking",
            OverheadKind::Spin => "spinning",
        }
    }
}

/// The identity of a [`TaskId`] of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskInfo {
    /// The name; if `exec` changed it, the last one.
    pub name: String,
    /// The thread id in the recorded system; 0 where there is none.
    pub pid: u32,
    /// The process id in the recorded system; 0 where unknown.
    pub tgid: u32,
    /// Linux's kernel priority: 0…99 real-time (0 most important), 100…139 for nice −20…19.
    pub prio: u8,
}

/// Consumes a trace, as metrics, checks, hashes, writers and workload builders do.
pub trait Observer {
    /// Takes the next events. Chunks come in order of time; the last one may be short.
    fn events(&mut self, chunk: &[Event]);

    /// Whether it wants calls as well.
    fn hears_calls(&self) -> bool {
        false
    }

    /// Takes a call, after all events before it.
    fn call(&mut self, _call: &Call) {}

    /// Whether the run shall end here, without a result: asked after each chunk.
    fn has_enough(&self) -> bool {
        false
    }
}

/// The destination of a producer's events. [`Trace`] passes them to any number of observers;
/// [`Direct`] compiles the producer for a single one.
pub trait Sink {
    /// The next event.
    fn push(&mut self, time: Time, cpu: CpuId, kind: EventKind);

    /// The next moment in a call. Optional: by default it is ignored, and costs nothing.
    #[inline(always)]
    fn call(&mut self, _call: Call) {}

    /// Ends the stream; a producer calls it once.
    fn flush(&mut self) {}

    /// Whether an observer [has enough](Observer::has_enough).
    #[inline(always)]
    fn is_over(&self) -> bool {
        false
    }
}

/// One observer that sees each event as it happens.
///
/// The producer pushes each kind of event from its own place, so the compiler resolves the
/// observer's match on kinds.
pub struct Direct<'a, O>(pub &'a mut O);

impl<O: Observer> Sink for Direct<'_, O> {
    #[inline(always)]
    fn push(&mut self, time: Time, cpu: CpuId, kind: EventKind) {
        self.0.events(&[Event { time, cpu, kind }]);
    }
}

/// Gathers events into chunks and passes them on.
pub struct Trace<'a> {
    /// The first `len` events are valid.
    chunk: Box<[Event; CHUNK]>,
    len: usize,
    hears_calls: bool,
    is_over: bool,
    observers: Vec<&'a mut dyn Observer>,
}

impl<'a> Trace<'a> {
    /// A stream to `observers`, which see each chunk in this order.
    pub fn new(observers: Vec<&'a mut dyn Observer>) -> Self {
        let nothing = Event {
            time: Time::ZERO,
            cpu: CpuId(0),
            kind: EventKind::JobRelease { task: TaskId::NONE },
        };
        let hears_calls = observers.iter().any(|observer| observer.hears_calls());
        let chunk = Box::new([nothing; CHUNK]);
        Trace { chunk, len: 0, hears_calls, is_over: false, observers }
    }

    /// Whether an observer wants calls.
    pub fn hears_calls(&self) -> bool {
        self.hears_calls
    }

    #[cold]
    fn pass_on(&mut self, call: &Call) {
        self.flush();
        for observer in &mut self.observers {
            observer.call(call);
        }
    }
}

/// A stream can be an observer of another: it passes chunks on as they come.
impl Observer for Trace<'_> {
    fn events(&mut self, chunk: &[Event]) {
        for observer in &mut self.observers {
            observer.events(chunk);
        }
    }

    fn hears_calls(&self) -> bool {
        self.hears_calls
    }

    fn call(&mut self, call: &Call) {
        for observer in &mut self.observers {
            observer.call(call);
        }
    }
}

impl Sink for Trace<'_> {
    /// Appends an event. Without observers a full chunk is dropped.
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

    #[inline]
    fn call(&mut self, call: Call) {
        if self.hears_calls {
            self.pass_on(&call);
        }
    }

    /// Passes on the gathered events.
    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        for observer in &mut self.observers {
            observer.events(&self.chunk[..self.len]);
        }
        self.len = 0;
        self.is_over = self.observers.iter().any(|observer| observer.has_enough());
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.is_over
    }
}

const _: () = assert!(size_of::<Event>() == 32);

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's tables find a word by the number of its variant.
    #[test]
    fn the_words_of_states_and_contexts_stand_at_their_numbers() {
        use PrevState::{Blocked, Dead, Runnable};
        use WakeContext::{Hardirq, Softirq, Task, Unknown};
        let states = [Runnable, Blocked, Dead]
            .map(|state| <PrevState as VariantNames>::VARIANTS[state as usize]);
        assert_eq!(states, ["runnable", "blocked", "dead"]);
        let contexts = [Task, Softirq, Hardirq, Unknown]
            .map(|context| <WakeContext as VariantNames>::VARIANTS[context as usize]);
        assert_eq!(contexts, ["task", "softirq", "hardirq", "unknown"]);
    }
}
