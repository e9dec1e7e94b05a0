//! A naive EEVDF on one CPU: a list that is searched from end to end, and sums that are recomputed
//! each time.

use super::play::NICE_WEIGHTS;
use schedsim::policy::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Stop, Wake};
use schedsim::{CpuId, Nanos, TaskId};

pub struct Naive {
    pub tick: u64,
    pub request: u64,
    /// The requests that differ from the default.
    pub requests: Vec<(u32, u64)>,
    tasks: Vec<Task>,
    /// The waiting tasks, including those in delayed dequeue, in the order of joining.
    queue: Vec<usize>,
    running: Option<usize>,
    exec_start: u64,
}

#[derive(Clone, Default)]
struct Task {
    weight: i128,
    request: u64,
    served: i128,
    deadline: i128,
    lag: i128,
    protected: i128,
    sleeping: bool,
}

impl Naive {
    pub fn new(tick: u64, request: u64, requests: Vec<(u32, u64)>) -> Naive {
        Naive {
            tick,
            request,
            requests,
            tasks: Vec::new(),
            queue: Vec::new(),
            running: None,
            exec_start: 0,
        }
    }

    fn present(&self) -> Vec<usize> {
        self.queue.iter().copied().chain(self.running).collect()
    }

    /// The mean as a fraction.
    fn mean(&self) -> (i128, i128) {
        let present = self.present();
        let sum = present.iter().map(|&t| self.tasks[t].weight * self.tasks[t].served).sum();
        (sum, present.iter().map(|&t| self.tasks[t].weight).sum())
    }

    fn mean_floor(&self) -> i128 {
        let (sum, weight) = self.mean();
        if weight == 0 { 0 } else { sum.div_euclid(weight) }
    }

    fn eligible(&self, t: usize) -> bool {
        let (sum, weight) = self.mean();
        self.tasks[t].served * weight <= sum
    }

    fn scaled(&self, t: usize, ns: u64) -> i128 {
        i128::from(ns) * 1024 / self.tasks[t].weight
    }

    /// Charges the running task. Returns whether its slice is over.
    fn charge(&mut self, now: u64) -> bool {
        let Some(t) = self.running else { return false };
        let ran = now - self.exec_start;
        if ran == 0 {
            return false;
        }
        self.exec_start = now;
        self.tasks[t].served += self.scaled(t, ran);
        let due = self.tasks[t].served >= self.tasks[t].deadline;
        if due {
            self.tasks[t].deadline = self.tasks[t].served + self.scaled(t, self.tasks[t].request);
        }
        !self.queue.is_empty() && (due || self.tasks[t].served >= self.tasks[t].protected)
    }

    fn note_lag(&mut self, t: usize) {
        let limit = self.scaled(t, (2 * self.tasks[t].request).max(self.tick));
        self.tasks[t].lag = (self.mean_floor() - self.tasks[t].served).clamp(-limit, limit);
    }

    fn join(&mut self, t: usize, new: bool) {
        let floor = self.mean_floor();
        let weight = self.mean().1;
        let lag = if weight == 0 {
            0
        } else {
            self.tasks[t].lag * (weight + self.tasks[t].weight) / weight
        };
        let request = self.scaled(t, self.tasks[t].request);
        self.tasks[t].served = floor - lag;
        self.tasks[t].deadline = floor - lag + if new { request / 2 } else { request };
        self.queue.push(t);
    }

    fn leave(&mut self, t: usize) {
        self.note_lag(t);
        self.queue.retain(|&other| other != t);
        self.running = self.running.filter(|&other| other != t);
    }

    /// The task that should run. Of equal deadlines the first in the queue, before the running one.
    fn choose(&self, protect: bool) -> Option<usize> {
        if self.queue.is_empty() {
            return self.running;
        }
        if let (None, [only]) = (self.running, &self.queue[..]) {
            return Some(*only);
        }
        let running = self.running.filter(|&t| self.eligible(t));
        if let Some(t) = running
            && protect
            && self.tasks[t].served < self.tasks[t].protected
        {
            return running;
        }
        let candidates = self.queue.iter().copied().filter(|&t| self.eligible(t));
        candidates.chain(running).min_by_key(|&t| self.tasks[t].deadline)
    }

    fn least_request(&self) -> u64 {
        self.queue.iter().map(|&t| self.tasks[t].request).min().unwrap_or(u64::MAX)
    }
}

impl Policy for Naive {
    fn needs(&self) -> Needs {
        Needs { tick: Some(Nanos(self.tick)), blocking: true, ..Needs::default() }
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.tasks.resize(self.tasks.len().max(task.index() + 1), Task::default());
        let request = self
            .requests
            .iter()
            .find(|entry| entry.0 == task.0)
            .map_or(self.request, |entry| entry.1);
        self.tasks[task.index()].weight =
            i128::from(NICE_WEIGHTS[usize::from(cx.task(task).prio) - 100]);
        self.tasks[task.index()].request = request;
    }

    fn select_cpu(&mut self, _cx: &mut Context, _task: TaskId, _wake: Wake) -> CpuId {
        CpuId(0)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let (t, now) = (task.index(), cx.now().0);
        if !matches!(why, Enqueue::New | Enqueue::Wakeup) {
            return Effect::Nothing;
        }
        let mut over = false;
        if self.tasks[t].sleeping {
            self.tasks[t].sleeping = false;
            self.note_lag(t);
            if self.tasks[t].lag > 0 {
                self.tasks[t].lag = 0;
                self.queue.retain(|&other| other != t);
                self.join(t, false);
            }
            over |= self.charge(now);
        } else {
            over |= self.charge(now);
            self.join(t, why == Enqueue::New);
        }
        let Some(r) = self.running else {
            return Effect::Kick(cpu);
        };
        if over {
            return Effect::Preempt(cpu);
        }
        let short = self.tasks[t].request < self.tasks[r].request;
        let preempts = self.choose(!short) == Some(t);
        if short {
            let until = if preempts { 0 } else { self.scaled(r, self.least_request()) };
            self.tasks[r].protected = self.tasks[r].protected.min(self.tasks[r].served + until);
        }
        if preempts { Effect::Preempt(cpu) } else { Effect::Nothing }
    }

    fn dequeue(&mut self, _cx: &mut Context, _task: TaskId) {}

    fn dispatch(&mut self, cx: &mut Context, _cpu: CpuId) -> Option<Dispatch> {
        loop {
            let t = self.choose(true)?;
            if self.tasks[t].sleeping {
                self.leave(t);
                self.tasks[t].sleeping = false;
                self.tasks[t].lag = self.tasks[t].lag.min(0);
                continue;
            }
            self.exec_start = cx.now().0;
            if self.running != Some(t) {
                self.queue.extend(self.running.take());
                self.queue.retain(|&other| other != t);
                let least = self.least_request();
                let deadline = self.tasks[t].deadline;
                let until = self.tasks[t].served + self.scaled(t, least.min(self.tasks[t].request));
                self.tasks[t].protected =
                    if least < self.tasks[t].request { deadline.min(until) } else { deadline };
                self.running = Some(t);
            }
            return Some(Dispatch { task: TaskId(t as u32), slice: Nanos::MAX });
        }
    }

    fn stopping(&mut self, cx: &mut Context, _cpu: CpuId, task: TaskId, why: Stop) {
        let t = task.index();
        self.charge(cx.now().0);
        match why {
            // It counts as the running one until another starts, for the next choice.
            Stop::Blocked if !self.eligible(t) => self.tasks[t].sleeping = true,
            Stop::Blocked | Stop::Exited => self.leave(t),
            Stop::Yielded if !self.queue.is_empty() && self.eligible(t) => {
                self.tasks[t].served = self.tasks[t].deadline;
                self.tasks[t].deadline += self.scaled(t, self.tasks[t].request);
            }
            _ => {}
        }
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, _task: TaskId) -> Effect {
        if self.charge(cx.now().0) { Effect::Preempt(cpu) } else { Effect::Nothing }
    }
}
