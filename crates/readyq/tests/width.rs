//! Narrow ids and keys: the laws of the queues at the ends of their ids and where their keys wrap.
//! The suite must catch an id that is too narrow and a comparison that does not wrap.
#![allow(missing_docs)]

mod support;

use readyq::{
    Buckets, Id, Key, Level, Node, Nodes, Priority, RbTree, ReadyQueue, RoundRobin, Ruler, Strides,
    TaskId,
};
use std::fmt::Debug;
use support::Op;
use support::laws::Pair;
use support::models::model;

const TASKS: usize = 4;

/// A queue of any width that looks like one of the default width: it has its own slab, in which
/// task 0 has the id `first`.
#[derive(Clone)]
struct Narrow<Q, I, K> {
    queue: Q,
    slab: Vec<Node<I, K>>,
    first: usize,
}

impl<Q: ReadyQueue<I, K>, I: Id, K: Key> Narrow<Q, I, K> {
    fn new(queue: Q, first: usize) -> Self {
        Narrow { queue, slab: vec![Node::FRESH; first + TASKS], first }
    }

    fn id(&self, task: TaskId) -> I {
        I::from_index(self.first + task.index())
    }

    fn task(&self, id: I) -> TaskId {
        TaskId(id.index().wrapping_sub(self.first) as u32)
    }
}

impl<Q: ReadyQueue<I, K>, I: Id, K: Key> ReadyQueue for Narrow<Q, I, K> {
    fn insert(&mut self, _: &mut Nodes, task: TaskId, level: Level) {
        let id = self.id(task);
        self.queue.insert(Nodes::from_mut(&mut self.slab), id, level);
    }

    fn pop(&mut self, _: &mut Nodes) -> Option<TaskId> {
        let id = self.queue.pop(Nodes::from_mut(&mut self.slab));
        id.map(|id| self.task(id))
    }

    fn peek(&self, _: &Nodes) -> Option<TaskId> {
        self.queue.peek(Nodes::from_ref(&self.slab)).map(|id| self.task(id))
    }

    fn remove(&mut self, _: &mut Nodes, task: TaskId) {
        let id = self.id(task);
        self.queue.remove(Nodes::from_mut(&mut self.slab), id);
    }

    fn find(&self, _: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let accept = |id| accept(self.task(id));
        self.queue.find(Nodes::from_ref(&self.slab), accept).map(|id| self.task(id))
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Something to do with each structure of a width, at two levels.
trait Each {
    fn check<Q: ReadyQueue + Clone>(
        &self,
        name: &str,
        strides: Strides,
        queue: Q,
    ) -> Result<(), String>;

    fn each<I: Id, K: Key>(&self, first: usize) -> Result<(), String> {
        let linear = Strides::Linear;
        let narrow = |queue| Narrow::<_, I, K>::new(queue, first);
        self.check("rr", linear, narrow(RoundRobin::EMPTY))?;
        self.check(
            "priority",
            linear,
            Narrow::<_, I, K>::new(Priority::<8, _, _>::default(), first),
        )?;
        self.check(
            "priority",
            linear,
            Narrow::<_, I, K>::new(Priority::<256, _, _>::default(), first),
        )?;
        self.check("ruler", linear, Narrow::<_, I, K>::new(Ruler::<8, _, _>::default(), first))?;
        self.check("ruler", linear, Narrow::<_, I, K>::new(Ruler::<32, _, _>::default(), first))?;
        self.clocks::<I, K>(first)
    }

    /// The structures with keys.
    fn clocks<I: Id, K: Key>(&self, first: usize) -> Result<(), String> {
        for strides in [Strides::Linear, Strides::PowersOfTwo] {
            let wheel = Buckets::<32, _, _>::new(strides);
            self.check("wheel", strides, Narrow::<_, I, K>::new(wheel, first))?;
            let wheel = Buckets::<128, _, _>::new(strides);
            self.check("wheel", strides, Narrow::<_, I, K>::new(wheel, first))?;
            let tree = RbTree::with_probe(strides, ());
            self.check("rbtree", strides, Narrow::<_, I, K>::new(tree, first))?;
        }
        Ok(())
    }
}

/// All sequences of so many operations, from the start.
struct Short(usize);

impl Each for Short {
    fn check<Q: ReadyQueue + Clone>(
        &self,
        name: &str,
        strides: Strides,
        queue: Q,
    ) -> Result<(), String> {
        let pair = Pair::new(queue, model(name, 2, strides), TASKS, 2);
        pair.check_all(self.0).map(|_| ()).map_err(|fault| format!("{name}: {fault}"))
    }
}

#[test]
fn each_width_has_the_order_of_the_models() {
    Short(5).each::<u8, u16>(0).unwrap();
    Short(5).each::<u16, u32>(0).unwrap();
    Short(4).each::<u16, u64>(0).unwrap();
    Short(4).each::<TaskId, u16>(0).unwrap();
}

#[test]
fn ids_are_right_up_to_their_end() {
    assert_eq!((Nodes::<u8, u16>::MOST, Nodes::<u16, u16>::MOST), (192, 65_472));
    for first in 0..=u8::MOST - TASKS {
        Short(3).each::<u8, u16>(first).unwrap();
    }
    Short(4).each::<u8, u16>(u8::MOST - TASKS).unwrap();
    let error = Short(3).each::<Seven, u16>(u8::MOST - TASKS).unwrap_err();
    assert!(error.starts_with("rr: "), "{error}");
}

/// An id that loses its highest bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seven(u8);

impl Id for Seven {
    const NONE: Self = Seven(u8::NONE);
    const MOST: usize = u8::MOST;
    const BEYOND: [Self; 64] = [Seven(255); 64];

    fn index(self) -> usize {
        self.0.into()
    }

    fn from_index(index: usize) -> Self {
        Seven(if index < u8::MOST { index as u8 & 127 } else { index as u8 })
    }
}

/// All short sequences at every virtual time around the end of 16 bits.
struct AroundTheWrap;

impl Each for AroundTheWrap {
    fn check<Q: ReadyQueue + Clone>(
        &self,
        name: &str,
        strides: Strides,
        queue: Q,
    ) -> Result<(), String> {
        let longest = 16;
        let level_of = |stride: u32| match strides {
            Strides::Linear => stride as u16 - 1,
            Strides::PowersOfTwo => stride.ilog2() as u16,
        };
        // All tasks run at one level, so that the keys of all are the sum of their strides.
        let round = |stride| {
            let inserts = (0..TASKS as u32).map(move |task| Op::Insert(task, level_of(stride)));
            inserts.chain([Op::Pop; TASKS])
        };
        let mut pair = Pair::new(queue, model(name, 16, strides), TASKS, 16);
        let near = (1 << 16) - 2 * longest;
        for _ in 0..near / longest {
            pair.then(&round(longest).collect::<Vec<_>>(), 16)?;
        }
        for time in near..(1 << 16) + 2 * longest {
            let length = if time.abs_diff(1 << 16) < 4 { 4 } else { 3 };
            pair.then(&[], 2)?;
            pair.check_all(length).map_err(|fault| format!("{name} at {time}: {fault}"))?;
            pair.then(&round(1).collect::<Vec<_>>(), 16)?;
        }
        Ok(())
    }
}

#[test]
fn keys_are_right_where_they_wrap() {
    AroundTheWrap.clocks::<u8, u16>(0).unwrap();
    let error = AroundTheWrap.clocks::<u8, Flat>(0).unwrap_err();
    assert!(error.contains(" at 655"), "a comparison that does not wrap: {error}");
}

/// A key that is compared by its value, not by its difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Flat(u16);

impl Key for Flat {
    const ZERO: Self = Flat(0);
    const LONGEST_STRIDE: u64 = u16::LONGEST_STRIDE;

    fn is_before(self, other: Self) -> bool {
        self.0 < other.0
    }

    fn next(self, last: Self, stride: Self) -> Self {
        Flat(self.0.next(last.0, stride.0))
    }

    fn linear(level: Level) -> Self {
        Flat(u16::linear(level))
    }

    fn power(level: Level) -> Self {
        Flat(u16::power(level))
    }

    fn low_bits(self) -> usize {
        self.0.into()
    }
}
