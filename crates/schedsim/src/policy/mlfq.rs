//! Multi-level feedback queues: a list per level, best level first, and rules that move tasks
//! between levels by their behaviour.
//!
//! All CPUs share one set of lists. A task runs until its quantum is over, it stops by itself, or a
//! task of a better level becomes ready. A preempted task stays at the head of its list and keeps
//! the rest of its quantum. A task that wakes, yields or has used its quantum goes to the tail. A
//! periodic review of all waiting tasks prevents starvation. [`Rules`] define the first level of a
//! task, the effect of waking and of a used quantum, and the review. There are two sets:
//! [`windows`] and [`textbook`].
//!
//! Cost: O(1) per decision, a bitmap and a list (plus the CPUs, where one has to be found);
//! O(tasks) per review.

pub mod textbook;
pub mod windows;

use super::{
    Context, Dispatch, Effect, Enqueue, Needs, Policy, Promises, Reweight, Scan, Stop, TaskView,
    Wake, renew,
};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use readyq::{Level, Node, Nodes, Priority, ReadyQueue};
use std::cmp::Reverse;

/// The rules that move tasks between levels.
pub trait Rules {
    /// The initial standing of a new task.
    fn admit(&self, task: &TaskView) -> Standing;

    /// `task` wakes.
    fn wakes(&self, standing: &mut Standing);

    /// `task` has used its quantum and gets another one.
    fn quantum_over(&self, standing: &mut Standing);

    /// The period of [`review`](Self::review).
    fn period(&self) -> Nanos;

    /// What becomes of a task that is ready again because of `why`. Returns whether it goes to the
    /// tail of its list; a preempted one with a rest of its quantum stays where it is.
    fn ready(&self, standing: &mut Standing, why: Enqueue) -> bool {
        if why == Enqueue::Wakeup {
            self.wakes(standing);
        }
        let is_over = standing.left == Nanos::ZERO;
        if is_over {
            self.quantum_over(standing);
        }
        is_over || why != Enqueue::Preempted
    }

    /// Called once per period for each task. `waited`: how long it has been ready without running;
    /// `None` if it runs or sleeps. Returns whether its standing changes.
    fn review(&self, standing: &mut Standing, waited: Option<Nanos>) -> bool;
}

/// The standing of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Its level without boosts; 0 is the best.
    pub base: u16,
    /// Its current level.
    pub level: u16,
    /// The length of its quanta.
    pub quantum: Nanos,
    /// What is left of the current quantum.
    pub left: Nanos,
    /// Whether it was boosted because it starved.
    pub is_rescued: bool,
}

/// A multi-level feedback queue for all CPUs.
#[derive(Clone, Debug)]
pub struct Feedback<R> {
    rules: R,
    cpus: u16,
    /// The ready and running tasks.
    queue: Priority,
    tasks: Vec<Task>,
    nodes: Vec<Node>,
    waiting: u32,
    next_review: Time,
    /// CPUs that have received a kick or preemption and have not dispatched since.
    kicked: CpuSet,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    standing: Standing,
    state: State,
    /// When it entered this state.
    since: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Away,
    Waits,
    Runs,
}

impl<R: Rules> Feedback<R> {
    /// The policy for `cpus` CPUs.
    pub fn with_rules(rules: R, cpus: u16) -> Self {
        let next_review = Time::ZERO + rules.period();
        let (queue, kicked) = (Priority::new(), CpuSet::empty(cpus));
        Feedback {
            rules,
            cpus,
            queue,
            tasks: Vec::new(),
            nodes: Vec::new(),
            waiting: 0,
            next_review,
            kicked,
        }
    }

    fn level(&self, task: TaskId) -> u16 {
        self.tasks[task.index()].standing.level
    }

    /// Inserts at the tail of its list.
    fn insert(&mut self, task: TaskId) {
        let level = Level(self.level(task));
        self.queue.insert(Nodes::from_mut(&mut self.nodes), task, level);
    }

    fn remove(&mut self, task: TaskId) {
        self.queue.remove(Nodes::from_mut(&mut self.nodes), task);
    }

    /// The first waiting task that may run on a CPU that `suits`.
    fn first_waiting(&self, suits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        if self.waiting == 0 {
            return None;
        }
        let waits = |task: TaskId| self.tasks[task.index()].state == State::Waits && suits(task);
        self.queue.find(Nodes::from_ref(&self.nodes), waits)
    }

    /// Finds a CPU for the waiting `task`: an idle one, or the one that runs the worst level, if
    /// that is worse than the task's.
    fn find_cpu(&mut self, cx: &Context, task: TaskId) -> Effect {
        if let Some(idle) = cx.idle_cpu_for(task) {
            return Effect::Kick(idle);
        }
        let running = cx.allowed_cpus(task).filter(|&cpu| !self.kicked.contains(cpu));
        let levels = running.filter_map(|cpu| Some((self.level(cx.current(cpu)?), Reverse(cpu))));
        match levels.max() {
            Some((level, Reverse(cpu))) if level > self.level(task) => {
                self.kicked.insert(cpu);
                Effect::Preempt(cpu)
            }
            _ => Effect::Nothing,
        }
    }

    /// Reviews all tasks, if it is time. Returns whether it was. Running tasks change places, too.
    fn review(&mut self, now: Time) -> bool {
        if now < self.next_review {
            return false;
        }
        self.next_review = now + self.rules.period();
        for index in 0..self.tasks.len() {
            let task = TaskId(index as u32);
            let Task { mut standing, state, since } = self.tasks[index];
            let waited = (state == State::Waits).then(|| now.since(since));
            if !self.rules.review(&mut standing, waited) {
                continue;
            }
            if state != State::Away {
                self.remove(task);
            }
            self.tasks[index].standing = standing;
            if state == State::Runs {
                self.tasks[index].since = now; // its new quantum counts from here
            }
            if state != State::Away {
                self.insert(task);
            }
        }
        true
    }
}

impl<R: Rules> Policy for Feedback<R> {
    fn needs(&self) -> Needs {
        Needs {
            tick: Some(self.rules.period()),
            blocking: true,
            alarm: false,
            most_cpus: Some(self.cpus),
            ..Needs::default()
        }
    }

    fn promises(&self) -> Promises {
        Promises {
            work_conserving: true,
            locally_work_conserving: true,
            starvation_free: true,
            hotplug: true,
            ..Promises::default()
        }
    }

    fn queue_length(&self, _cpu: CpuId) -> u32 {
        self.waiting
    }

    fn scan(&self, _cpu: CpuId) -> Scan {
        Scan { queue: CpuId(0), entries: 1 }
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        renew(&mut self.nodes, task);
        let new =
            Task { standing: self.rules.admit(cx.task(task)), state: State::Away, since: cx.now() };
        let len = self.tasks.len().max(task.index() + 1);
        self.tasks.resize(len, new);
        self.tasks[task.index()] = new;
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        cx.idle_cpu_for(task).or_else(|| cx.pinned(task)).unwrap_or(cx.task(task).cpu)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let is_here = !why.comes();
        if self.rules.ready(&mut self.tasks[task.index()].standing, why) {
            if is_here {
                self.remove(task);
            }
            self.insert(task);
        }
        let entry = &mut self.tasks[task.index()];
        (entry.state, entry.since) = (State::Waits, cx.now());
        self.waiting += 1;
        if is_here && self.first_waiting(|other| cx.allowed(other, cpu)) == Some(task) {
            return Effect::Nothing; // `cpu` itself is about to choose and finds it
        }
        self.find_cpu(cx, task)
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, _old: u8, _why: Reweight) -> Effect {
        let (base, entry) = (self.rules.admit(cx.task(task)).base, &mut self.tasks[task.index()]);
        if entry.standing.base == base {
            return Effect::Nothing;
        }
        let runs = entry.state == State::Runs;
        if runs {
            self.remove(task);
        }
        let standing = &mut self.tasks[task.index()].standing;
        (standing.base, standing.level, standing.left, standing.is_rescued) =
            (base, base, standing.quantum, false);
        if !runs {
            return Effect::Nothing;
        }
        self.tasks[task.index()].since = cx.now(); // its new quantum counts from here
        self.insert(task);
        self.first_waiting(|_| true).map_or(Effect::Nothing, |first| self.find_cpu(cx, first))
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.remove(task);
        self.waiting -= 1;
        self.tasks[task.index()].state = State::Away;
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.kicked.remove(cpu);
        let task = self.first_waiting(|task| cx.allowed(task, cpu))?;
        self.waiting -= 1;
        let entry = &mut self.tasks[task.index()];
        (entry.state, entry.since) = (State::Runs, cx.now());
        Some(Dispatch { task, slice: entry.standing.left })
    }

    fn stopping(&mut self, cx: &mut Context, _cpu: CpuId, task: TaskId, why: Stop) {
        self.review(cx.now()); // where a quantum ends at a tick, there is no tick
        let Task { standing, state, since } = &mut self.tasks[task.index()];
        standing.left = standing.left.saturating_sub(cx.now().since(*since));
        *state = State::Away;
        if !why.is_runnable() {
            self.remove(task);
        }
    }

    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        if idle || cx.idle().is_empty() {
            return Effect::Nothing;
        }
        // The CPU may have been kicked for another task than it took.
        let passed_over = self.first_waiting(|task| cx.idle_cpu_for(task).is_some());
        passed_over.and_then(|task| cx.idle_cpu_for(task)).map_or(Effect::Nothing, Effect::Kick)
    }

    fn tick(&mut self, cx: &mut Context, _cpu: CpuId, _task: TaskId) -> Effect {
        if !self.review(cx.now()) {
            return Effect::Nothing;
        }
        let first = self.first_waiting(|_| true);
        first.map_or(Effect::Nothing, |first| self.find_cpu(cx, first))
    }
}
