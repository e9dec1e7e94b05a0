//! User-level threads with real switches: the cost of a slice besides the queue.
//!
//! Every task is a coroutine with its own stack that does some work and yields, repeatedly. The
//! scheduler runs between two of them: it accounts for the slice, checks for real-time threads
//! (there are none), and calls the queue. Omitting one part at a time gives the cost of each.
//! Porter could not measure this ("I do not know how to accurately measure the fixed cost per
//! time-slice").
//!
//! A run begins as his does: the idle thread takes the one slice in which no thread is ready, then
//! all threads arrive. It never runs again: a second slice of it means that a thread was lost.

use super::opaque::opaque;
use super::subject::Subject;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use readyq::{Level, Node, Nodes, TaskId};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// What happens between two slices.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Debug,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Part {
    /// A switch to the scheduler and one back, always to the same thread.
    Switch,
    /// Also the queue.
    Queue,
    /// Also accounting: the slices of this thread and of all threads.
    Accounting,
    /// Also the check for real-time threads.
    #[strum(serialize = "real-time-check")]
    RealTime,
}

impl Part {
    /// All parts; each includes those before it.
    pub const ALL: &'static [Part] = Part::VARIANTS;

    /// The name in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

const STACK_BYTES: usize = 16 * 1024;

/// Threads under a structure.
pub struct Threads<S> {
    subject: S,
    slab: Vec<Node>,
    levels: Vec<Level>,
    threads: Vec<Coroutine<(), (), ()>>,
    slices_of: Vec<u64>,
    slices: u64,
    idle: Coroutine<(), (), ()>,
    idle_slices: u32,
    real_time_waiting: u32,
}

impl<S: Subject> Threads<S> {
    /// One thread for each level; each works for `work` rounds of a loop before it yields.
    pub fn new(subject: S, levels: &[u16], work: u32) -> std::io::Result<Threads<S>> {
        let mut slab = vec![Node::NEW; levels.len() + 1];
        let levels: Vec<Level> = levels.iter().map(|&level| Level(level)).collect();
        let thread = |work: u32| {
            let body = move |yielder: &Yielder<(), ()>, ()| loop {
                (0..work).for_each(|round| {
                    opaque(round);
                });
                yielder.suspend(());
            };
            Ok(Coroutine::with_stack(DefaultStack::new(STACK_BYTES)?, body))
        };
        let all = levels.iter().map(|_| thread(work)).collect::<std::io::Result<Vec<_>>>()?;
        let mut threads = Threads {
            slices_of: vec![0; levels.len()],
            subject,
            slab: Vec::new(),
            levels,
            threads: all,
            slices: 0,
            idle: thread(0)?,
            idle_slices: 0,
            real_time_waiting: 0,
        };
        threads.run_idle();
        let nodes = Nodes::from_mut(&mut slab);
        for (task, &level) in threads.levels.iter().enumerate() {
            threads.subject.arrive(nodes, TaskId(task as u32), level);
        }
        threads.slab = slab;
        Ok(threads)
    }

    /// A slice of the idle thread: the first is before threads arrive, and there is no second.
    #[cold]
    #[inline(never)]
    fn run_idle(&mut self) {
        self.idle_slices += 1;
        assert!(self.idle_slices == 1, "no thread is ready: the structure lost one");
        self.idle.resume(());
    }

    /// Runs threads for `slices` slices.
    pub fn run(&mut self, part: Part, slices: u64) {
        match part {
            Part::Switch => self.schedule::<0>(slices),
            Part::Queue => self.schedule::<1>(slices),
            Part::Accounting => self.schedule::<2>(slices),
            Part::RealTime => self.schedule::<3>(slices),
        }
    }

    #[inline(never)]
    fn schedule<const PARTS: u8>(&mut self, slices: u64) {
        for _ in 0..slices {
            let nodes = Nodes::from_mut(&mut self.slab);
            // There is never a real-time thread, but the compiler must not know that.
            if PARTS >= 3 && opaque(self.real_time_waiting) != 0 {
                self.real_time_waiting -= 1;
                continue;
            }
            let task = if PARTS >= 1 { self.subject.take(nodes) } else { Some(TaskId(opaque(0))) };
            let Some(task) = task else { return self.run_idle() };
            self.threads[task.index()].resume(());
            if PARTS >= 2 {
                self.slices_of[task.index()] += 1;
                self.slices += 1;
            }
            if PARTS >= 1 {
                self.subject.put(Nodes::from_mut(&mut self.slab), task, self.levels[task.index()]);
            }
        }
    }

    /// The slices counted by the accounting: of each thread, and of all without the idle one's.
    pub fn accounts(&self) -> (&[u64], u64) {
        (&self.slices_of, self.slices)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subject::Queue;
    use super::*;

    #[test]
    fn threads_run_in_the_order_of_the_queue() {
        let mut threads = Threads::new(Queue(readyq::Ruler::new()), &[0, 1, 2], 3).unwrap();
        threads.run(Part::RealTime, 7 * 10);
        assert_eq!(threads.accounts(), (&[40, 20, 10][..], 70));
    }

    /// The canary of the rig: a structure that forgets every task after its first slice.
    #[test]
    #[should_panic(expected = "no thread is ready: the structure lost one")]
    fn a_second_slice_of_the_idle_thread_is_an_error() {
        struct Forgetful(Queue<readyq::Ruler>);
        impl Subject for Forgetful {
            fn arrive(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
                self.0.arrive(nodes, task, level);
            }
            fn take(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
                self.0.take(nodes)
            }
            fn put(&mut self, _: &mut Nodes, _: TaskId, _: Level) {}
        }
        let mut threads = Threads::new(Forgetful(Queue(readyq::Ruler::new())), &[0, 1], 0).unwrap();
        threads.run(Part::RealTime, 3);
    }
}
