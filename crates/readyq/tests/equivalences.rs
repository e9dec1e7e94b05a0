//! Structures that must have exactly the same order under any events.
#![allow(missing_docs)]

mod support;

use readyq::{
    Heap, Level, MultiList2, Node, Nodes, RbTree, ReadyQueue, RoundRobin, RoundRobinInPlace,
    RoundRobinTree, Ruler, RulerInPlace, SortedList, SortedListReverse, Strides, TaskId, Wheel,
    WideWheel,
};
use support::Lcg;
use support::models::{ListLast, Model, ruler_sequence};

/// One machine: a queue, its slab, the running task and the sleeping ones. Events come from
/// outside, so that several machines see the same ones.
trait Machine {
    /// The slice ends and the next one starts. With `stays` the running task waits again at that
    /// level; otherwise it blocks.
    fn slice(&mut self, stays: Option<u16>) -> Option<u32>;
    fn wake(&mut self, task: u32, level: u16);
    /// Removes a waiting task.
    fn kill(&mut self, task: u32);
}

struct Queued<Q> {
    queue: Q,
    slab: Vec<Node>,
    running: Option<TaskId>,
}

impl<Q: ReadyQueue> Queued<Q> {
    fn new(queue: Q) -> Self {
        Queued { queue, slab: vec![Node::NEW; TASKS], running: None }
    }
}

impl<Q: ReadyQueue> Machine for Queued<Q> {
    fn slice(&mut self, stays: Option<u16>) -> Option<u32> {
        let nodes = Nodes::from_mut(&mut self.slab);
        if let (Some(task), Some(level)) = (self.running, stays) {
            self.queue.insert(nodes, task, Level(level));
        }
        self.running = self.queue.pop(nodes);
        self.running.map(|task| task.0)
    }

    fn wake(&mut self, task: u32, level: u16) {
        self.queue.insert(Nodes::from_mut(&mut self.slab), TaskId(task), Level(level));
    }

    fn kill(&mut self, task: u32) {
        self.queue.remove(Nodes::from_mut(&mut self.slab), TaskId(task));
    }
}

/// A model in place of a queue.
struct Modelled<M> {
    model: M,
    running: Option<u32>,
}

impl<M: Model> Machine for Modelled<M> {
    fn slice(&mut self, stays: Option<u16>) -> Option<u32> {
        if let (Some(task), Some(level)) = (self.running, stays) {
            self.model.insert(task, level);
        }
        self.running = self.model.pop();
        self.running
    }

    fn wake(&mut self, task: u32, level: u16) {
        self.model.insert(task, level);
    }

    fn kill(&mut self, task: u32) {
        self.model.remove(task);
    }
}

struct InPlace {
    queue: RulerInPlace,
    slab: Vec<Node>,
    level: Vec<u16>,
}

impl Machine for InPlace {
    fn slice(&mut self, stays: Option<u16>) -> Option<u32> {
        let nodes = Nodes::from_mut(&mut self.slab);
        if let Some(task) = self.queue.running(nodes)
            && stays != Some(self.level[task.index()])
        {
            self.queue.remove(nodes, task);
            if let Some(level) = stays {
                self.level[task.index()] = level;
                self.queue.insert(nodes, task, Level(level));
            }
        }
        self.queue.rotate(nodes).map(|task| task.0)
    }

    fn wake(&mut self, task: u32, level: u16) {
        self.level[task as usize] = level;
        self.queue.insert(Nodes::from_mut(&mut self.slab), TaskId(task), Level(level));
    }

    fn kill(&mut self, task: u32) {
        self.queue.remove(Nodes::from_mut(&mut self.slab), TaskId(task));
    }
}

struct RoundInPlace {
    queue: RoundRobinInPlace,
    slab: Vec<Node>,
}

impl Machine for RoundInPlace {
    fn slice(&mut self, stays: Option<u16>) -> Option<u32> {
        let nodes = Nodes::from_mut(&mut self.slab);
        if let (Some(task), None) = (self.queue.running(nodes), stays) {
            self.queue.remove(nodes, task);
        }
        self.queue.rotate(nodes).map(|task| task.0)
    }

    fn wake(&mut self, task: u32, _level: u16) {
        self.queue.insert(Nodes::from_mut(&mut self.slab), TaskId(task));
    }

    fn kill(&mut self, task: u32) {
        self.queue.remove(Nodes::from_mut(&mut self.slab), TaskId(task));
    }
}

/// Multi-List-2 as a virtual clock: the order of (key, level, arrival), where a task's key is the
/// next multiple of 2^level at which its level has not been served yet.
struct Keyed {
    waiting: Vec<(u64, u16, u64, u32)>,
    now: (u64, u16),
    arrivals: u64,
}

impl Model for Keyed {
    fn boxed_clone(&self) -> Box<dyn Model> {
        unreachable!()
    }

    fn insert(&mut self, task: u32, level: u16) {
        let stride = 1 << level;
        let mut key = self.now.0.next_multiple_of(stride);
        if (key, level) <= self.now {
            key += stride;
        }
        self.arrivals += 1;
        self.waiting.push((key, level, self.arrivals, task));
    }

    fn pop(&mut self) -> Option<u32> {
        let index = (0..self.waiting.len()).min_by_key(|&index| self.waiting[index])?;
        let (key, level, _, task) = self.waiting.remove(index);
        self.now = (key, level);
        Some(task)
    }

    fn remove(&mut self, task: u32) {
        self.waiting.retain(|&(.., other)| other != task);
    }
}

const TASKS: usize = 12;

/// Applies the same random events to all machines and compares every slice. `levels` is the number
/// of levels used.
fn all_alike(machines: &mut [(&str, Box<dyn Machine>)], levels: u64, events: u64, seed: u64) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Asleep,
        Waiting,
        Running,
    }
    let mut random = Lcg(seed);
    let mut state = [State::Asleep; TASKS];
    let mut level: Vec<u16> = (0..TASKS).map(|_| random.below(levels) as u16).collect();
    for event in 0..events {
        let task = random.below(TASKS as u64) as usize;
        if random.below(20) == 0 {
            level[task] = random.below(levels) as u16;
        }
        match (random.below(12), state[task]) {
            (0..4, State::Asleep) => {
                state[task] = State::Waiting;
                machines.iter_mut().for_each(|(_, machine)| machine.wake(task as u32, level[task]));
            }
            (0, State::Waiting) => {
                // Also while no task, or a task of no list, runs: the paper's third case.
                state[task] = State::Asleep;
                machines.iter_mut().for_each(|(_, machine)| machine.kill(task as u32));
            }
            _ => {
                let running = state.iter().position(|&state| state == State::Running);
                let stays = running.filter(|_| random.below(5) > 0).map(|running| level[running]);
                if let Some(running) = running {
                    state[running] = if stays.is_some() { State::Waiting } else { State::Asleep };
                }
                let expected = machines[0].1.slice(stays);
                for (name, machine) in &mut machines[1..] {
                    assert_eq!(
                        machine.slice(stays),
                        expected,
                        "{name} at event {event}, seed {seed}"
                    );
                }
                if let Some(task) = expected {
                    state[task as usize] = State::Running;
                }
            }
        }
    }
}

fn queued<Q: ReadyQueue + 'static>(queue: Q) -> Box<dyn Machine> {
    Box::new(Queued::new(queue))
}

#[test]
fn ruler_is_multilist2_under_block_wake_kill_and_level_changes() {
    for seed in 0..10 {
        let mut machines: Vec<(_, Box<dyn Machine>)> = vec![
            ("multilist2", queued(MultiList2::new())),
            ("ruler", queued(Ruler::new())),
            (
                "listLast",
                Box::new(Modelled { model: ListLast::new(ruler_sequence(8)), running: None }),
            ),
            (
                "virtual clock",
                Box::new(Modelled {
                    model: Keyed { waiting: vec![], now: (0, u16::MAX), arrivals: 0 },
                    running: None,
                }),
            ),
            (
                "in place",
                Box::new(InPlace {
                    queue: RulerInPlace::new(),
                    slab: vec![Node::NEW; TASKS],
                    level: vec![0; TASKS],
                }),
            ),
        ];
        all_alike(&mut machines, 8, 20_000, seed);
    }
}

#[test]
fn the_exact_virtual_clocks_are_alike() {
    for seed in 0..6 {
        for (strides, levels) in
            [(Strides::Linear, 10), (Strides::Linear, 63), (Strides::PowersOfTwo, 6)]
        {
            let mut machines = vec![
                ("sorted-list", queued(SortedList::new(strides))),
                ("sorted-list-reverse", queued(SortedListReverse::new(strides))),
                ("rbtree", queued(RbTree::new(strides))),
                ("wheel", queued(Wheel::new(strides))),
                ("wide wheel", queued(WideWheel::new(strides))),
                ("heap", queued(Heap::new(strides))),
            ];
            all_alike(&mut machines, levels, 5_000, seed);
        }
        let strides = Strides::PowersOfTwo;
        let mut machines = vec![
            ("rbtree", queued(RbTree::new(strides))),
            ("wide wheel", queued(WideWheel::new(strides))),
        ];
        all_alike(&mut machines, 12, 5_000, seed);
    }
}

#[test]
fn the_round_robins_are_alike() {
    for seed in 0..10 {
        let mut machines: Vec<(_, Box<dyn Machine>)> = vec![
            ("rr", queued(RoundRobin::new())),
            ("rr-rbtree", queued(RoundRobinTree::new())),
            (
                "in place",
                Box::new(RoundInPlace {
                    queue: RoundRobinInPlace::new(),
                    slab: vec![Node::NEW; TASKS],
                }),
            ),
        ];
        all_alike(&mut machines, 1, 10_000, seed);
    }
}

#[test]
fn under_yield_multilist2_is_the_virtual_clock_with_first_key_and_stride_two_to_the_level() {
    // All tasks arrive at time 0, so the clamped key is the multiple of the stride; ties go to the
    // better level, then to the first.
    let mut random = Lcg(7);
    for _ in 0..50 {
        let levels: Vec<u16> = (0..1 + random.below(12)).map(|_| random.below(8) as u16).collect();
        let mut slab = vec![Node::NEW; levels.len()];
        let order =
            support::yielding(&mut MultiList2::new(), Nodes::from_mut(&mut slab), &levels, 2000);
        let mut waiting: Vec<(u64, u16, usize, u32)> = levels
            .iter()
            .enumerate()
            .map(|(task, &level)| (1 << level, level, task, task as u32))
            .collect();
        for (slice, chosen) in order.into_iter().enumerate() {
            let index = (0..waiting.len()).min_by_key(|&index| waiting[index]).unwrap();
            let (key, level, _, task) = waiting[index];
            assert_eq!(chosen, task);
            waiting[index] = (key + (1 << level), level, levels.len() + slice, task);
        }
    }
}

#[test]
fn tasks_that_move_between_queues_of_one_slab_keep_both_in_order() {
    let mut slab = vec![Node::NEW; 8];
    let nodes = Nodes::from_mut(&mut slab);
    let mut clock_far_ahead = RbTree::new(Strides::Linear);
    clock_far_ahead.insert(nodes, TaskId(0), Level(9));
    for _ in 0..1000 {
        let task = clock_far_ahead.pop(nodes).unwrap();
        clock_far_ahead.insert(nodes, task, Level(9));
    }
    let mut fresh = Wheel::new(Strides::Linear);
    clock_far_ahead.remove(nodes, TaskId(0));
    fresh.insert(nodes, TaskId(1), Level(9));
    fresh.insert(nodes, TaskId(0), Level(0));
    // From far ahead it waits one stride, not ten thousand.
    assert_eq!(fresh.pop(nodes), Some(TaskId(0)));
    clock_far_ahead.insert(nodes, TaskId(2), Level(3));
    assert_eq!(clock_far_ahead.pop(nodes), Some(TaskId(2)));
    fresh.insert(nodes, TaskId(2), Level(0));
    assert_eq!(
        [fresh.pop(nodes), fresh.pop(nodes), fresh.pop(nodes)],
        [Some(TaskId(2)), Some(TaskId(1)), None]
    );
}
