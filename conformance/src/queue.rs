//! The queue of a naive EEVDF: a list of tasks, all sums made anew each time, exact.
//!
//! From Stoica & Abdel-Wahab 1995, and the behaviour of Linux's `kernel/sched/fair.c`. Virtual
//! times are in ns of nice 0, rounded where the kernel rounds. A fault breaks one property, to test
//! the tests.

use crate::format::{MAX_TIME, State};
use crate::property::Property;

/// Without parity, a running task is protected so long, in ns (the kernel's base slice unscaled).
const UNSCALED_SLICE: i64 = 700_000;

/// The high-resolution timer is set no closer than this, in ns (`hrtick_start`).
const CLOSEST_TIMER: i64 = 10_000;

/// The kernel's version, where versions differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Version {
    /// Linux 6.12 to 6.16, as of 6.12.117: a running task is protected until its request is over.
    /// With a new weight, the rest of its request stays in virtual time.
    Linux6_12,
    /// Linux 6.17 and 6.18, as of 6.18.15: it is protected for the shortest request in the queue.
    /// The rest of its request stays in CPU time.
    ///
    /// The kernel keeps the shortest request in its red-black tree, and its rotations copy only the
    /// smallest vruntime of a subtree. So until the path to the root is updated, the kernel may
    /// hold a longer request to be the shortest (`tests/stale-min-slice.jsonl`, line 64).
    #[default]
    Linux6_18,
    /// Linux 7.3, as of 7.3.4: where there are shorter requests, it is protected while it is
    /// eligible. A lag is limited by the longest request in the queue. A delayed task's lag does
    /// not grow. A shorter task that preempts runs next. A timer ticks when a request is over
    /// (`HRTICK`, on where the timers' hardware allows it).
    Linux7_3,
}

/// The switches of the kernel's `features` file, and a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which kernel.
    pub version: Version,
    /// `DELAY_DEQUEUE`: a task that sleeps while it is not eligible stays in the queue until it is.
    pub delay_dequeue: bool,
    /// `RUN_TO_PARITY`: an eligible task runs on while it is protected.
    pub run_to_parity: bool,
    /// What is broken.
    pub fault: Option<Property>,
}

impl Default for Options {
    fn default() -> Self {
        let version = Version::default();
        Options { version, delay_dequeue: true, run_to_parity: true, fault: None }
    }
}

/// The queue of one CPU, and the tasks that are away. A task is named by its place in `tasks`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub options: Options,
    /// The tick's period, in ns.
    pub tick: i64,
    pub tasks: Vec<Task>,
    pub running: Option<usize>,
    /// The running task has been charged until this time.
    pub charged: i64,
    /// In 7.3: who preempted with a shorter request. It runs next while it is eligible.
    pub buddy: Option<usize>,
    /// In 7.3: when the timer ticks. It stays set while its task runs no more, until another task
    /// runs that is not alone, or the CPU idles.
    pub timer: Option<i64>,
    /// V when it was last computed.
    zero: i128,
    /// How often a task began to wait.
    waits: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub number: u32,
    pub weight: u32,
    /// Its request, in ns.
    pub slice: i64,
    pub vruntime: i128,
    pub deadline: i128,
    /// While it is away: its lag when it left. While it is delayed: when it began to sleep.
    pub lag: i128,
    pub life: Life,
    /// While it runs: until this virtual run time; in 6.12, while this is its deadline.
    pub protected: i128,
    /// When it began to wait.
    since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    Away,
    Present,
    /// It sleeps, in the queue.
    Delayed,
}

impl Queue {
    pub fn has(&self, fault: Property) -> bool {
        self.options.fault == Some(fault)
    }

    /// A task that is away.
    pub fn declare(&mut self, number: u32, weight: u32, slice: i64, lag: i64) {
        let (life, protected) = (Life::Away, 0);
        let new = Task {
            number,
            weight,
            slice,
            vruntime: 0,
            deadline: 0,
            lag: i128::from(lag),
            life,
            protected,
            since: 0,
        };
        self.tasks.push(new);
    }

    pub fn queued(&self) -> impl Iterator<Item = usize> {
        (0..self.tasks.len()).filter(|&place| self.tasks[place].life != Life::Away)
    }

    pub fn is_alone(&self) -> bool {
        self.queued().count() == 1
    }

    /// `time` of CPU as virtual time of the task.
    pub fn virtual_time(&self, place: usize, time: i64) -> i128 {
        i128::from(time) * 1024 / i128::from(self.tasks[place].weight)
    }

    /// The task's request as virtual time.
    pub fn request(&self, place: usize) -> i128 {
        self.virtual_time(place, self.tasks[place].slice)
    }

    /// The shortest request in the queue, in ns.
    pub fn shortest(&self) -> i64 {
        self.queued().map(|place| self.tasks[place].slice).min().unwrap_or(i64::MAX)
    }

    /// The longest request in the queue, in ns.
    fn longest(&self) -> i64 {
        self.queued().map(|place| self.tasks[place].slice).max().unwrap_or(0)
    }

    /// The sums of weight × vruntime and of weights: V is their quotient.
    fn sums(&self) -> (i128, i128) {
        self.queued().fold((0, 0), |(sum, weights), place| {
            let Task { weight, vruntime, .. } = self.tasks[place];
            let weight = if self.has(Property::Mean) { 1 } else { i128::from(weight) };
            (sum + weight * vruntime, weights + weight)
        })
    }

    /// V, rounded down.
    pub fn mean(&mut self) -> i128 {
        let (sum, weights) = self.sums();
        self.zero = if weights == 0 { self.zero } else { sum.div_euclid(weights) };
        self.zero
    }

    pub fn is_eligible(&self, place: usize) -> bool {
        let (sum, weights) = self.sums();
        self.tasks[place].vruntime * weights <= sum || self.has(Property::Eligible)
    }

    /// The running task pays for the time since the last charge. Whether its slice is over.
    pub fn charge(&mut self, now: i64) -> bool {
        let Some(place) = self.running.filter(|_| now > self.charged) else { return false };
        let ran = now - std::mem::replace(&mut self.charged, now);
        let cost = match self.options.fault {
            Some(Property::Charge) => i128::from(ran),
            Some(Property::Share) if self.tasks[place].number % 2 == 1 => {
                self.virtual_time(place, ran / 2)
            }
            _ => self.virtual_time(place, ran),
        };
        let (request, renews) = (self.request(place), self.has(Property::Deadline));
        let task = &mut self.tasks[place];
        task.vruntime += cost;
        let is_due = task.vruntime >= task.deadline;
        if is_due || renews {
            task.deadline = task.vruntime + request;
        }
        !self.is_alone() && (is_due || self.is_unprotected(place))
    }

    /// Whether a charge asks for a pick though the request is not over.
    fn is_unprotected(&self, place: usize) -> bool {
        let task = &self.tasks[place];
        match self.options.version {
            Version::Linux6_12 => task.deadline != task.protected && !self.is_eligible(place),
            Version::Linux6_18 | Version::Linux7_3 => task.vruntime >= task.protected,
        }
    }

    /// Whether the task, which runs and is eligible, runs on.
    fn is_protected(&self, place: usize) -> bool {
        let task = &self.tasks[place];
        match self.options.version {
            Version::Linux6_12 => self.options.run_to_parity && task.deadline == task.protected,
            Version::Linux6_18 | Version::Linux7_3 => task.vruntime < task.protected,
        }
    }

    /// The task's lag is kept, within two requests or a tick. In 7.3 it is kept within the longest
    /// request and a tick. That of a delayed task has not grown, nor is it positive. Whether its
    /// vruntime is no longer where this lag would have it.
    pub fn keep_lag(&mut self, place: usize) -> bool {
        let is_7_3 = self.options.version == Version::Linux7_3;
        let limit = match is_7_3 {
            true => self.longest().saturating_add(self.tick),
            false => (2 * self.tasks[place].slice).max(self.tick),
        };
        let (limit, mean) = (self.virtual_time(place, limit), self.mean());
        let task = &mut self.tasks[place];
        let lag = (mean - task.vruntime).clamp(-limit, limit);
        let is_delayed = is_7_3 && task.life == Life::Delayed;
        task.lag = if is_delayed { lag.max(task.lag).min(0) } else { lag };
        mean - task.lag != task.vruntime
    }

    /// The task leaves the queue, with its lag.
    pub fn leave(&mut self, place: usize) {
        self.keep_lag(place);
        self.tasks[place].life = Life::Away;
        self.running = self.running.filter(|&running| running != place);
        self.buddy = self.buddy.filter(|&buddy| buddy != place);
    }

    /// The task joins with its lag; its request is due after `due`, by default a whole request.
    pub fn join(&mut self, place: usize, due: Option<i128>) {
        let (mean, weights) = (self.mean(), self.sums().1);
        let (request, forgets) = (self.request(place), self.has(Property::Place));
        let task = &mut self.tasks[place];
        // By joining, it moves V towards itself; so it is put further away.
        let lag = match weights {
            0 => 0,
            _ => task.lag * (weights + i128::from(task.weight)) / weights,
        };
        task.vruntime = mean - if forgets { 0 } else { lag };
        task.deadline = task.vruntime + due.unwrap_or(request);
        task.life = Life::Present;
        self.wait(place);
    }

    pub fn wait(&mut self, place: usize) {
        self.waits += 1;
        self.tasks[place].since = self.waits;
    }

    /// The task runs, and is protected from now on.
    pub fn run(&mut self, place: usize) {
        let Task { vruntime, deadline, slice, .. } = self.tasks[place];
        let least = if self.options.run_to_parity { self.shortest() } else { UNSCALED_SLICE };
        let until = match self.options.version {
            Version::Linux6_18 if least < slice => vruntime + self.virtual_time(place, least),
            Version::Linux7_3 if least < slice => self.ineligible(place),
            _ => deadline,
        };
        self.tasks[place].protected = until.min(deadline);
        self.running = Some(place);
        self.buddy = self.buddy.filter(|&buddy| buddy != place);
        self.set_timer(place);
    }

    /// In 7.3: the timer ticks when the request of the running task is over, if it is not alone.
    pub fn set_timer(&mut self, place: usize) {
        let Task { vruntime, deadline, weight, .. } = self.tasks[place];
        let rest = (deadline - vruntime) * i128::from(weight) / 1024;
        if self.options.version == Version::Linux7_3 && !self.is_alone() && rest >= 0 {
            let rest = i64::try_from(rest).unwrap_or(i64::MAX).max(CLOSEST_TIMER);
            self.timer = Some(self.charged.saturating_add(rest));
        }
    }

    /// A task has joined the running one: the timer is set, unless it is.
    pub fn set_timer_if_none(&mut self) {
        if let (Some(running), None) = (self.running, self.timer) {
            self.set_timer(running);
        }
    }

    /// The first vruntime at which the task would not be eligible: beyond the mean of the others.
    fn ineligible(&self, place: usize) -> i128 {
        let (sum, weights) = self.sums();
        let Task { weight, vruntime, .. } = self.tasks[place];
        let others = weights - i128::from(weight);
        if others == 0 {
            return vruntime + 1;
        }
        (sum - i128::from(weight) * vruntime).div_euclid(others) + 1
    }

    /// Who should run. A delayed task that should leaves; it owes nothing any more.
    pub fn next(&mut self, protect: bool) -> Option<usize> {
        loop {
            let place = self.choose(protect)?;
            if self.tasks[place].life == Life::Present {
                return Some(place);
            }
            self.leave(place);
            self.tasks[place].lag = self.tasks[place].lag.min(0);
        }
    }

    /// Who should run: of the eligible tasks, the one with the earliest deadline. With `protect`,
    /// the running task while it is protected.
    pub fn choose(&self, protect: bool) -> Option<usize> {
        if self.is_alone() {
            return self.queued().next();
        }
        let all = self.has(Property::Pick);
        if let Some(buddy) = self.buddy.filter(|&buddy| protect && self.is_eligible(buddy)) {
            return Some(buddy);
        }
        let running = self.running.filter(|&place| all || self.is_eligible(place));
        if running.is_some_and(|place| protect && !all && self.is_protected(place)) {
            return running;
        }
        let waiting = self.queued().filter(|&place| self.running != Some(place));
        let best = waiting
            .filter(|&place| all || self.is_eligible(place))
            .min_by_key(|&place| (self.tasks[place].deadline, self.tasks[place].since));
        let deadline = |place: usize| self.tasks[place].deadline;
        match (best, running) {
            (Some(best), Some(running)) if deadline(running) < deadline(best) => Some(running),
            (best, running) => best.or(running),
        }
    }

    /// The state of all tasks in the queue; none if a time is beyond what the format has.
    pub fn states(&self) -> Option<Vec<State>> {
        let (sum, weights) = self.sums();
        let narrow = |time: i128| i64::try_from(time).ok().filter(|time| time.abs() <= MAX_TIME);
        let state = |place: usize| {
            let task = &self.tasks[place];
            Some(State {
                task: task.number,
                vruntime: Some(narrow(task.vruntime)?),
                deadline: Some(narrow(task.deadline)?),
                lag: Some(narrow(sum.div_euclid(weights) - task.vruntime)?),
                eligible: Some(task.vruntime * weights <= sum || self.has(Property::Eligible)),
            })
        };
        self.queued().map(state).collect()
    }
}
