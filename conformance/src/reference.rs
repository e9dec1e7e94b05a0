//! A naive EEVDF of one CPU, as in Linux 6.18: a list of tasks, sums anew each time, exact.
//!
//! From Stoica & Abdel-Wahab 1995, and the behaviour of `kernel/sched/fair.c`. Virtual times are
//! in ns of nice 0, rounded down where the kernel rounds. A fault breaks one property, to test the
//! tests.

use crate::format::{Answer, Event, MAX_TIME, Op, State};
use crate::property::Property;
use crate::subject::{Broken, Subject};

/// Without parity, a task is protected so long, in ns (the kernel's base slice before scaling).
const UNSCALED_SLICE: i64 = 700_000;

/// The switches of the kernel's `features` file, and a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// `DELAY_DEQUEUE`: a task that sleeps while it is not eligible stays in the queue until it is.
    pub delay_dequeue: bool,
    /// `RUN_TO_PARITY`: a task is protected for the shortest request in the queue.
    pub run_to_parity: bool,
    /// What is broken.
    pub fault: Option<Property>,
}

impl Default for Options {
    fn default() -> Self {
        Options { delay_dequeue: true, run_to_parity: true, fault: None }
    }
}

/// The reference.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    options: Options,
    tick: i64,
    slice: i64,
    tasks: Vec<Task>,
    /// The place of the running task in `tasks`.
    running: Option<usize>,
    /// The running task has been charged until this time.
    charged: i64,
    /// The mean when it was last computed.
    zero: i128,
    /// How often a task began to wait, and how many picks there were.
    waits: u64,
    picks: u64,
    wants_pick: bool,
}

#[derive(Clone, Debug)]
struct Task {
    number: u32,
    weight: u32,
    slice: i64,
    vruntime: i128,
    deadline: i128,
    /// While it is away: its lag when it left.
    lag: i128,
    life: Life,
    /// While it runs: until this virtual run time it is protected.
    protected: i128,
    /// When it began to wait.
    since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Away,
    Present,
    /// It sleeps, in the queue.
    Delayed,
}

impl Reference {
    /// The reference with these switches.
    pub fn new(options: Options) -> Reference {
        Reference { options, ..Reference::default() }
    }

    fn has(&self, fault: Property) -> bool {
        self.options.fault == Some(fault)
    }

    fn queued(&self) -> impl Iterator<Item = usize> {
        (0..self.tasks.len()).filter(|&place| self.tasks[place].life != Life::Away)
    }

    /// `time` of CPU as virtual time of the task.
    fn virtual_time(&self, place: usize, time: i64) -> i128 {
        i128::from(time) * 1024 / i128::from(self.tasks[place].weight)
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
    fn mean(&mut self) -> i128 {
        let (sum, weights) = self.sums();
        self.zero = if weights == 0 { self.zero } else { sum.div_euclid(weights) };
        self.zero
    }

    fn is_eligible(&self, place: usize) -> bool {
        let (sum, weights) = self.sums();
        self.tasks[place].vruntime * weights <= sum || self.has(Property::Eligible)
    }

    /// The running task pays for the time since the last charge. Whether its slice is over.
    fn charge(&mut self, now: i64) -> bool {
        let Some(place) = self.running.filter(|_| now > self.charged) else {
            return false;
        };
        let ran = now - std::mem::replace(&mut self.charged, now);
        let cost = match self.options.fault {
            Some(Property::Charge) => i128::from(ran),
            Some(Property::Share) if self.tasks[place].number % 2 == 1 => {
                self.virtual_time(place, ran / 2)
            }
            _ => self.virtual_time(place, ran),
        };
        let request = self.virtual_time(place, self.tasks[place].slice);
        let renews = self.has(Property::Deadline);
        let task = &mut self.tasks[place];
        task.vruntime += cost;
        let is_due = task.vruntime >= task.deadline;
        if is_due || renews {
            task.deadline = task.vruntime + request;
        }
        let is_over = is_due || task.vruntime >= task.protected;
        is_over && self.queued().count() > 1
    }

    /// The task leaves the queue. Its lag is kept, within two requests or a tick.
    fn leave(&mut self, place: usize) {
        let limit = self.virtual_time(place, (2 * self.tasks[place].slice).max(self.tick));
        let mean = self.mean();
        let task = &mut self.tasks[place];
        task.lag = (mean - task.vruntime).clamp(-limit, limit);
        task.life = Life::Away;
        self.running = self.running.filter(|&running| running != place);
    }

    /// The task joins the queue with its lag; its request is due after `due`, if that is given.
    fn join(&mut self, place: usize, due: Option<i128>) {
        let (mean, weights) = (self.mean(), self.sums().1);
        let request = self.virtual_time(place, self.tasks[place].slice);
        let forgets = self.has(Property::Place);
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

    fn wait(&mut self, place: usize) {
        self.waits += 1;
        self.tasks[place].since = self.waits;
    }

    /// The task runs, protected for the shortest request.
    fn run(&mut self, place: usize) {
        let shortest = match self.options.run_to_parity {
            true => self.queued().map(|place| self.tasks[place].slice).min().unwrap_or(i64::MAX),
            false => UNSCALED_SLICE,
        };
        let Task { vruntime, deadline, slice, .. } = self.tasks[place];
        self.tasks[place].protected = match shortest < slice {
            true => deadline.min(vruntime + self.virtual_time(place, shortest)),
            false => deadline,
        };
        self.running = Some(place);
    }

    /// Who should run. With `protect`, the running task does within its protected time.
    fn choose(&self, protect: bool) -> Option<usize> {
        if self.queued().count() == 1 {
            return self.queued().next();
        }
        let all = self.has(Property::Pick);
        let running = self.running.filter(|&place| all || self.is_eligible(place));
        if let Some(place) = running.filter(|_| protect && !all)
            && self.tasks[place].vruntime < self.tasks[place].protected
        {
            return running;
        }
        let waiting = self.queued().filter(|&place| self.running != Some(place));
        let best = waiting
            .filter(|&place| all || self.is_eligible(place))
            .min_by_key(|&place| (self.tasks[place].deadline, self.tasks[place].since));
        match (best, running) {
            (Some(best), Some(running))
                if self.tasks[running].deadline < self.tasks[best].deadline =>
            {
                Some(running)
            }
            (best, running) => best.or(running),
        }
    }

    fn pick(&mut self, now: i64) -> u32 {
        self.charge(now);
        self.wants_pick = false;
        self.picks += 1;
        let place = loop {
            let Some(place) = self.choose(true) else { return 0 };
            if self.tasks[place].life == Life::Present {
                break place;
            }
            self.leave(place); // it owes nothing any more
            self.tasks[place].lag = self.tasks[place].lag.min(0);
        };
        if self.has(Property::Conserve) && self.picks.is_multiple_of(8) {
            return 0;
        }
        self.charged = now;
        if self.running != Some(place) {
            if let Some(before) = self.running {
                self.wait(before);
            }
            self.run(place);
        }
        self.tasks[place].number
    }

    /// A task wakes, or joins for the first time.
    fn wake(&mut self, place: usize, is_new: bool, now: i64) {
        let mut is_over = false;
        if self.tasks[place].life == Life::Delayed {
            let mean = self.mean();
            self.tasks[place].life = Life::Present;
            if mean > self.tasks[place].vruntime {
                self.leave(place); // it has slept longer than it owed; the surplus is not credited
                self.tasks[place].lag = 0;
                self.join(place, None);
            }
        } else {
            is_over = self.charge(now);
            let request = self.virtual_time(place, self.tasks[place].slice);
            let is_half = is_new && !self.has(Property::New);
            self.join(place, is_half.then_some(request / 2));
        }
        is_over |= self.charge(now);
        let preempts = is_over || self.preempts(place);
        self.wants_pick |= preempts && !self.has(Property::Preempt);
    }

    /// Whether a task that waits from now on runs before the running one.
    fn preempts(&mut self, place: usize) -> bool {
        let Some(running) = self.running else { return true };
        if self.wants_pick {
            return true;
        }
        let is_short = self.tasks[place].slice < self.tasks[running].slice;
        let preempts = self.choose(!is_short) == Some(place);
        if is_short {
            let shortest = self.queued().map(|place| self.tasks[place].slice).min().unwrap_or(0);
            let more = if preempts { 0 } else { self.virtual_time(running, shortest) };
            let task = &mut self.tasks[running];
            if preempts || self.options.run_to_parity {
                task.protected = task.protected.min(task.vruntime + more);
            }
        }
        preempts
    }

    fn yields(&mut self, now: i64) {
        self.charge(now);
        let Some(place) = self.running.filter(|_| self.queued().count() > 1) else { return };
        if self.is_eligible(place) && !self.has(Property::Yield) {
            let request = self.virtual_time(place, self.tasks[place].slice);
            let task = &mut self.tasks[place];
            task.vruntime = task.deadline;
            task.deadline += request;
        }
    }

    fn block(&mut self, now: i64) {
        self.charge(now);
        let Some(place) = self.running else { return };
        let delays = self.options.delay_dequeue && !self.has(Property::Delay);
        if delays && !self.is_eligible(place) {
            self.tasks[place].life = Life::Delayed;
            self.running = None;
            self.wait(place);
        } else {
            self.leave(place);
        }
    }

    /// A new weight or request. The lag in CPU time and the rest of the request stay.
    fn change(&mut self, place: usize, weight: u32, slice: i64, now: i64) {
        let is_over = self.charge(now);
        let Task { weight: old, life, vruntime, deadline, .. } = self.tasks[place];
        let runs = self.running == Some(place);
        if life == Life::Away {
            let task = &mut self.tasks[place];
            task.lag = task.lag * i128::from(old) / i128::from(weight);
        } else if !self.has(Property::Weight) {
            self.leave(place);
        }
        (self.tasks[place].weight, self.tasks[place].slice) = (weight, slice);
        if life != Life::Away && !self.has(Property::Weight) {
            let scaled = |time: i128| time * i128::from(old) / i128::from(weight);
            self.tasks[place].lag = scaled(self.tasks[place].lag);
            self.join(place, Some(scaled(deadline - vruntime)));
            self.tasks[place].life = life;
            if runs {
                self.run(place);
            }
        }
        let preempts = weight != old
            && self.queued().count() > 1
            && match runs {
                true => weight < old,
                false => life == Life::Present && self.preempts(place),
            };
        self.wants_pick |= is_over || preempts;
    }

    fn place(&self, number: u32) -> Result<usize, Broken> {
        let place = self.tasks.iter().position(|task| task.number == number);
        place.ok_or_else(|| Broken(format!("task {number} is unknown")))
    }

    /// The state of all tasks in the queue.
    fn states(&self) -> Result<Vec<State>, ()> {
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
        self.queued().map(|place| state(place).ok_or(())).collect()
    }
}

impl Subject for Reference {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        let now = event.at;
        let mut answer = Answer::default();
        match event.op {
            Op::Reset { tick, slice } => {
                *self = Reference { tick, slice, ..Reference::new(self.options) };
            }
            Op::Task { task: number, weight, slice, lag, .. } => {
                let slice = match self.options.fault {
                    Some(Property::Slice) => self.slice,
                    Some(Property::LagBound) => slice.saturating_mul(16),
                    _ => slice,
                };
                self.tasks.push(Task {
                    number,
                    weight,
                    slice,
                    vruntime: 0,
                    deadline: 0,
                    lag: i128::from(lag),
                    life: Life::Away,
                    protected: 0,
                    since: 0,
                });
            }
            Op::Wake { task } => self.wake(self.place(task)?, false, now),
            Op::New { task } => self.wake(self.place(task)?, true, now),
            Op::Tick => self.wants_pick |= self.charge(now) && !self.has(Property::Tick),
            Op::Block => self.block(now),
            Op::Exit => {
                self.charge(now);
                if let Some(place) = self.running {
                    self.leave(place);
                }
            }
            Op::Yield => self.yields(now),
            Op::Weight { task, weight } => {
                let place = self.place(task)?;
                if weight != self.tasks[place].weight {
                    self.change(place, weight, self.tasks[place].slice, now);
                }
            }
            Op::Slice { task, slice } => {
                let place = self.place(task)?;
                if slice != self.tasks[place].slice && !self.has(Property::Slice) {
                    self.change(place, self.tasks[place].weight, slice, now);
                }
            }
            Op::Pick => answer.runs = Some(self.pick(now)),
        }
        answer.resched = event.op.may_resched().then_some(self.wants_pick);
        match self.states() {
            Ok(tasks) => answer.tasks = tasks,
            Err(()) => answer.error = Some("a virtual time is beyond ±2^62 ns".into()),
        }
        Ok(answer)
    }
}
