//! The live tasks of a model.

use super::stream::Streams;
use super::{After, Kind, Model, Stream, after, count, duration};
use crate::{Nanos, TaskId, Time};
use std::hint::black_box;

/// The stream of gaps between arrivals; no task has this number.
const ARRIVALS: u64 = u64::MAX;

/// Draws tasks, and the next burst and pause of each live one. The engine calls
/// [`arrive`](Self::arrive) for the next task, one in advance; [`next_burst`](Self::next_burst)
/// whenever a task wakes; [`leave`](Self::leave) when it has exited.
#[derive(Clone, Debug)]
pub struct Population<'m> {
    model: &'m Model,
    streams: Streams,
    gaps: Stream,
    /// The time of the last or next arrival.
    last_arrival: Time,
    /// The number of arrivals, including the one in advance: the number of the next task.
    born: u64,
    /// Measured tasks that have not left yet.
    unfinished: u64,
    lives: Vec<Life>,
    /// Free ids, used from the last on.
    free: Vec<TaskId>,
    over: bool,
}

/// The rest of a task. 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Life {
    stream: Stream,
    /// Bursts and pauses drawn so far.
    demand: Nanos,
    bursts_left: u32,
    class: u8,
    measured: bool,
}

/// The next arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub task: TaskId,
    pub time: Time,
    pub kind: Kind,
}

impl<'m> Population<'m> {
    /// No tasks yet.
    pub fn new(model: &'m Model, seed: u64) -> Population<'m> {
        Population {
            model,
            streams: Streams::new(seed),
            gaps: Stream::new(seed, ARRIVALS),
            last_arrival: Time::ZERO,
            born: 0,
            unfinished: model.length.measured,
            lives: Vec::new(),
            free: Vec::new(),
            over: false,
        }
    }

    /// The next task; `None` when all have arrived.
    #[inline(always)]
    pub fn arrive(&mut self) -> Option<Arrival> {
        let length = self.model.length;
        let all_measured = self.born >= length.warm_up.saturating_add(length.measured);
        if all_measured && length.after == After::Drain {
            return None;
        }
        self.last_arrival = after(self.last_arrival, self.model.arrivals.draw(&mut self.gaps));
        let number = self.born;
        self.born += 1;
        let mut stream = self.streams.of(number);
        let kind = self.model.begin(&mut stream);
        let bursts_left =
            count(self.model.classes[usize::from(kind.class)].bursts.draw(&mut stream));
        let life = Life {
            stream,
            demand: Nanos::ZERO,
            bursts_left,
            class: kind.class,
            measured: length.measures(number),
        };
        let task = match self.free.pop() {
            Some(task) => {
                self.lives[task.index()] = life;
                task
            }
            None => {
                self.lives.push(life);
                TaskId(self.lives.len() as u32 - 1)
            }
        };
        self.over |= self.lives.len() - self.free.len() > length.population_limit as usize;
        Some(Arrival { task, time: self.last_arrival, kind })
    }

    /// Whether a task of this kind is known as processor-intensive.
    #[inline]
    pub fn is_intensive(&self, kind: Kind) -> bool {
        self.model.classes[usize::from(kind.class)].intensive
    }

    /// The task's next burst, and the pause that follows it, or `None` if that burst is its last.
    #[inline(always)]
    pub fn next_burst(&mut self, task: TaskId) -> (Nanos, Option<Nanos>) {
        let life = &mut self.lives[task.index()];
        let class = &self.model.classes[usize::from(life.class)];
        let run = duration(class.burst.draw(&mut life.stream));
        life.demand += run;
        life.bursts_left -= 1;
        if life.bursts_left == 0 {
            return (run, None);
        }
        let pause = duration(class.pause.draw(&mut life.stream));
        life.demand += pause;
        (run, Some(pause))
    }

    /// Prefetches the state of a task for its next burst.
    pub fn fetch(&self, task: TaskId) {
        black_box(self.lives[task.index()].stream);
    }

    /// The task has exited, and its id is free. Returns the sum of its bursts and pauses.
    #[inline]
    pub fn leave(&mut self, task: TaskId) -> Nanos {
        let life = &self.lives[task.index()];
        self.unfinished -= u64::from(life.measured);
        self.over |= self.unfinished == 0;
        self.free.push(task);
        life.demand
    }

    /// Whether the run can end: all measured tasks have left, or too many tasks are alive.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over
    }
}
