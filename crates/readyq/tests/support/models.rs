//! The oracles: each structure's order, in vectors and searches.

use readyq::{Strides, schedules};

/// An order over tasks, as simple as possible.
pub trait Model {
    fn insert(&mut self, task: u32, level: u16);
    fn pop(&mut self) -> Option<u32>;
    fn remove(&mut self, task: u32);
    fn boxed_clone(&self) -> Box<dyn Model>;
}

impl Clone for Box<dyn Model> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// The model of the structure called `name` in the catalogue.
pub fn model(name: &str, levels: u32, strides: Strides) -> Box<dyn Model> {
    match name {
        "rr" | "rr-rbtree" => Box::new(Fifo::default()),
        "sorted-list" | "sorted-list-reverse" | "rbtree" | "wheel" | "heap" => {
            Box::new(VirtualClock::new(strides))
        }
        "multilist1" => {
            let entries = schedules::for_levels(levels).iter();
            Box::new(ListLast::new(
                entries
                    .flat_map(|visit| vec![visit.level as usize; visit.passes as usize])
                    .collect(),
            ))
        }
        "multilist2" => Box::new(ListLast::new(ruler_sequence(8))),
        "ruler" => Box::new(ListLast::new(ruler_sequence(12))),
        "priority" => Box::new(Strict::default()),
        "pslist" => Box::new(PartiallySorted::new(strides, false)),
        "pslist with stop rule" => Box::new(PartiallySorted::new(strides, true)),
        _ => panic!("no model of {name}"),
    }
}

/// `A AB A ABC …` for one period of `levels` levels.
pub fn ruler_sequence(levels: u32) -> Vec<usize> {
    (1u32..1 << (levels - 1))
        .chain([1 << (levels - 1)])
        .flat_map(|tick| 0..=tick.trailing_zeros() as usize)
        .collect()
}

#[derive(Clone, Default)]
pub struct Fifo(Vec<u32>);

impl Model for Fifo {
    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn insert(&mut self, task: u32, _level: u16) {
        self.0.push(task);
    }

    fn pop(&mut self) -> Option<u32> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    fn remove(&mut self, task: u32) {
        self.0.retain(|&other| other != task);
    }
}

/// The best level first, in each level the first that came.
#[derive(Clone, Default)]
pub struct Strict(Vec<(u16, u32)>);

impl Model for Strict {
    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn insert(&mut self, task: u32, level: u16) {
        self.0.push((level, task));
    }

    fn pop(&mut self) -> Option<u32> {
        let best = self.0.iter().map(|&(level, _)| level).min()?;
        let index = self.0.iter().position(|&(level, _)| level == best)?;
        Some(self.0.remove(index).1)
    }

    fn remove(&mut self, task: u32) {
        self.0.retain(|&(_, other)| other != task);
    }
}

/// Keys of tasks, as the decisions on virtual clocks have them: `clamp(last key + stride, clock,
/// clock + stride)`.
#[derive(Clone)]
pub struct Keys {
    strides: Strides,
    last: Vec<u64>,
    clock: u64,
}

impl Keys {
    fn new(strides: Strides) -> Self {
        Keys { strides, last: vec![0; 64], clock: 0 }
    }

    fn at_insert(&mut self, task: u32, level: u16) -> u64 {
        let stride = match self.strides {
            Strides::Linear => level as u64 + 1,
            Strides::PowersOfTwo => 2u64.pow(level as u32),
        };
        let key = (self.last[task as usize] + stride).clamp(self.clock, self.clock + stride);
        self.last[task as usize] = key;
        key
    }
}

/// The minimum key first, FIFO among equal keys.
#[derive(Clone)]
pub struct VirtualClock {
    keys: Keys,
    pub waiting: Vec<(u64, u32)>,
}

impl VirtualClock {
    pub fn new(strides: Strides) -> Self {
        VirtualClock { keys: Keys::new(strides), waiting: vec![] }
    }
}

impl Model for VirtualClock {
    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn insert(&mut self, task: u32, level: u16) {
        self.waiting.push((self.keys.at_insert(task, level), task));
    }

    fn pop(&mut self) -> Option<u32> {
        let least = self.waiting.iter().map(|&(key, _)| key).min()?;
        self.keys.clock = least;
        let index = self.waiting.iter().position(|&(key, _)| key == least)?;
        Some(self.waiting.remove(index).1)
    }

    fn remove(&mut self, task: u32) {
        self.waiting.retain(|&(_, other)| other != task);
    }
}

/// Before the middle if less than the middle, otherwise at the tail.
#[derive(Clone)]
pub struct PartiallySorted {
    keys: Keys,
    stop_rule: bool,
    running: Option<u32>,
    pub list: Vec<(u64, u32)>,
}

impl PartiallySorted {
    pub fn new(strides: Strides, stop_rule: bool) -> Self {
        PartiallySorted { keys: Keys::new(strides), stop_rule, running: None, list: vec![] }
    }
}

impl Model for PartiallySorted {
    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn insert(&mut self, task: u32, level: u16) {
        let key = self.keys.at_insert(task, level);
        let runs_on = self.stop_rule && self.running == Some(task);
        if runs_on {
            self.running = None;
        }
        let middle = self.list.len() / 2;
        let place = match self.list.first() {
            Some(&(head, _)) if runs_on && key <= head => 0,
            Some(_) if key < self.list[middle].0 => middle,
            _ => self.list.len(),
        };
        self.list.insert(place, (key, task));
    }

    fn pop(&mut self) -> Option<u32> {
        if self.list.is_empty() {
            return None;
        }
        let (key, task) = self.list.remove(0);
        self.keys.clock = key;
        self.running = Some(task);
        Some(task)
    }

    fn remove(&mut self, task: u32) {
        self.list.retain(|&(_, other)| other != task);
    }
}

/// A multi-list with the paper's mark, `listLast`, and the corrected rule: when it blocks while it
/// runs, the pass ends; when it is removed from the list, its predecessor takes its place, or the
/// running task if it has none, so that the pass ends.
#[derive(Clone)]
pub struct ListLast {
    schedule: Vec<usize>,
    index: usize,
    lists: Vec<Vec<u32>>,
    this_level: usize,
    list_last: Option<u32>,
}

impl ListLast {
    /// `schedule`: the level of each pass in one period.
    pub fn new(schedule: Vec<usize>) -> Self {
        let levels = schedule.iter().max().unwrap() + 1;
        ListLast {
            index: schedule.len() - 1,
            schedule,
            lists: vec![vec![]; levels],
            this_level: 0,
            list_last: None,
        }
    }
}

impl Model for ListLast {
    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn insert(&mut self, task: u32, level: u16) {
        self.lists[level as usize].push(task);
    }

    fn pop(&mut self) -> Option<u32> {
        if self.lists.iter().all(Vec::is_empty) {
            return None;
        }
        while self.list_last.is_none() {
            self.index = (self.index + 1) % self.schedule.len();
            self.this_level = self.schedule[self.index];
            self.list_last = self.lists[self.this_level].last().copied();
        }
        let task = self.lists[self.this_level].remove(0);
        if self.list_last == Some(task) {
            self.list_last = None;
        }
        Some(task)
    }

    fn remove(&mut self, task: u32) {
        for list in &mut self.lists {
            if let Some(position) = list.iter().position(|&other| other == task) {
                list.remove(position);
                if self.list_last == Some(task) {
                    self.list_last = position.checked_sub(1).map(|before| list[before]);
                }
            }
        }
    }
}
