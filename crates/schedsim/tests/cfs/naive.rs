//! A naive CFS on one CPU: a list that is sorted for each choice, and sums that are recomputed each
//! time.

use schedsim::policy::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Stop, Wake};
use schedsim::{CpuId, Nanos, TaskId};

pub struct Naive {
    tick: i128,
    latency: i128,
    granularity: i128,
    wakeup: i128,
    /// By task: weight and virtual run time.
    tasks: Vec<(i128, i128)>,
    has_joined: Vec<bool>,
    /// The waiting tasks, in the order of joining or being put back.
    waiting: Vec<usize>,
    running: Option<usize>,
    /// Whether the running task was preempted and has not stopped yet.
    told: bool,
    charged: i128,
    ran: i128,
    floor: i128,
    /// The buddies `next`, `last` and `skip`.
    wishes: [Option<usize>; 3],
}

impl Naive {
    pub fn new(tick: u64, latency: u64, granularity: u64, wakeup: u64) -> Naive {
        let [tick, latency, granularity, wakeup] =
            [tick, latency, granularity, wakeup].map(i128::from);
        Naive {
            tick,
            latency,
            granularity,
            wakeup,
            tasks: Vec::new(),
            has_joined: Vec::new(),
            waiting: Vec::new(),
            running: None,
            told: false,
            charged: 0,
            ran: 0,
            floor: 0,
            wishes: [None; 3],
        }
    }

    /// The present tasks by virtual run time; of equals the one that has waited longer first, the
    /// running one last.
    fn sorted(&self) -> Vec<usize> {
        let mut present: Vec<usize> = self.waiting.iter().copied().chain(self.running).collect();
        present.sort_by_key(|&t| self.tasks[t].1);
        present
    }

    fn fitting(&self) -> i128 {
        (self.latency + self.granularity - 1) / self.granularity
    }

    /// The slice of `t`, which counts as present.
    fn slice(&self, t: usize) -> i128 {
        let mut present = self.sorted();
        if !present.contains(&t) {
            present.push(t);
        }
        let count = present.len() as i128;
        let period = if count > self.fitting() { count * self.granularity } else { self.latency };
        let weight: i128 = present.iter().map(|&t| self.tasks[t].0).sum();
        (period * self.tasks[t].0 / weight).max(self.granularity)
    }

    fn raise_floor(&mut self) {
        if let Some(&first) = self.sorted().first() {
            self.floor = self.floor.max(self.tasks[first].1);
        }
    }

    fn charge(&mut self, now: u64) {
        let ran = i128::from(now) - self.charged;
        if let Some(t) = self.running
            && ran > 0
        {
            self.charged += ran;
            self.ran += ran;
            self.tasks[t].1 += ran * 1024 / self.tasks[t].0;
            self.raise_floor();
        }
    }

    fn exceeds(&self, t: usize, other: usize) -> bool {
        self.tasks[t].1 - self.tasks[other].1 > self.wakeup * 1024 / self.tasks[other].0
    }

    fn unwish(&mut self, t: usize) {
        self.wishes = self.wishes.map(|wish| wish.filter(|&other| other != t));
    }

    fn choose(&self) -> Option<usize> {
        let sorted = self.sorted();
        let least = *sorted.first()?;
        let [next, last, skip] = self.wishes;
        for wish in [next, last].into_iter().flatten() {
            if !self.exceeds(wish, least) {
                return Some(wish);
            }
        }
        match sorted.get(1) {
            Some(&second) if skip == Some(least) && !self.exceeds(second, least) => Some(second),
            _ => Some(least),
        }
    }
}

impl Policy for Naive {
    fn needs(&self) -> Needs {
        Needs { tick: Some(Nanos(self.tick as u64)), blocking: true, ..Needs::default() }
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.tasks.resize(self.tasks.len().max(task.index() + 1), (0, 0));
        self.has_joined.resize(self.tasks.len(), false);
        self.tasks[task.index()].0 = crate::weight(cx.task(task).prio);
    }

    fn select_cpu(&mut self, _cx: &mut Context, _task: TaskId, _wake: Wake) -> CpuId {
        CpuId(0)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let t = task.index();
        if !matches!(why, Enqueue::New | Enqueue::Wakeup) {
            return Effect::Nothing;
        }
        self.charge(cx.now().0);
        let debit = self.slice(t) * 1024 / self.tasks[t].0;
        let parent = self.running.map_or(0, |r| self.tasks[r].1);
        self.tasks[t].1 = match (why, self.has_joined[t]) {
            (Enqueue::New, _) => parent.max(self.floor + debit),
            (_, false) => self.floor - self.latency / 2,
            (_, true) => self.tasks[t].1.max(self.floor - self.latency / 2),
        };
        self.has_joined[t] = true;
        self.waiting.push(t);
        let Some(r) = self.running else {
            return Effect::Kick(cpu);
        };
        if self.told || !self.exceeds(r, t) {
            return Effect::Nothing;
        }
        self.wishes[0] = Some(t);
        if self.sorted().len() as i128 >= self.fitting() {
            self.wishes[1] = Some(r);
        }
        self.told = true;
        Effect::Preempt(cpu)
    }

    fn dequeue(&mut self, _cx: &mut Context, _task: TaskId) {}

    fn dispatch(&mut self, cx: &mut Context, _cpu: CpuId) -> Option<Dispatch> {
        self.told = false;
        let t = self.choose()?;
        self.charged = i128::from(cx.now().0);
        if self.running != Some(t) {
            self.unwish(t);
            self.waiting.extend(self.running.take());
            self.waiting.retain(|&other| other != t);
            (self.running, self.ran) = (Some(t), 0);
        }
        Some(Dispatch { task: TaskId(t as u32), slice: Nanos::MAX })
    }

    fn stopping(&mut self, cx: &mut Context, _cpu: CpuId, task: TaskId, why: Stop) {
        let t = task.index();
        self.charge(cx.now().0);
        match why {
            Stop::Blocked | Stop::Exited => {
                self.unwish(t);
                self.running = None;
                self.raise_floor();
            }
            Stop::Yielded if !self.waiting.is_empty() => {
                self.unwish(t);
                self.wishes[2] = Some(t);
            }
            _ => {}
        }
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        let t = task.index();
        self.charge(cx.now().0);
        if self.waiting.is_empty() {
            return Effect::Nothing;
        }
        let slice = self.slice(t).min(self.latency);
        let first = self.waiting.iter().map(|&other| self.tasks[other].1).min().unwrap();
        if self.ran > slice {
            self.unwish(t);
            Effect::Preempt(cpu)
        } else if self.ran >= self.granularity && self.tasks[t].1 - first > slice {
            Effect::Preempt(cpu)
        } else {
            Effect::Nothing
        }
    }
}
