//! The reference: Linux's EEVDF on one CPU, as its events come.

use crate::format::{Answer, Event, Op};
use crate::property::Property;
use crate::queue::{Life, Options, Queue, Task, Version};
use crate::subject::{Broken, Subject};

/// A naive EEVDF, as in Linux 6.12, 6.18 or 7.3.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    queue: Queue,
    /// The default request, in ns.
    slice: i64,
    picks: u64,
    wants_pick: bool,
    /// Why it refuses every event, if it does.
    refuses: Option<String>,
}

impl Reference {
    /// The reference with these switches.
    pub fn new(options: Options) -> Reference {
        let mut reference = Reference::default();
        reference.queue.options = options;
        reference
    }

    /// The reference for vectors that claim `claims`, of the version that they mean: Linux 6.12 to
    /// 6.18, Linux 7.3, the paper's EEVDF, or any proportional-share scheduler. Others it refuses.
    pub fn claiming(claims: &str, options: Options) -> Reference {
        let linux = || {
            let version = claims.strip_prefix("linux-")?.strip_suffix("-eevdf")?;
            let (major, minor) = version.split_once('.')?;
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        };
        let version = match (claims, linux()) {
            ("eevdf" | "proportional", _) => Some(Version::default()),
            (_, Some((6, 17 | 18))) => Some(Version::Linux6_18),
            (_, Some((6, 12..=16))) => Some(Version::Linux6_12),
            (_, Some((7, 3))) => Some(Version::Linux7_3),
            _ => None,
        };
        let mut reference =
            Reference::new(Options { version: version.unwrap_or_default(), ..options });
        if version.is_none() {
            reference.refuses = Some(format!("the reference is no {claims}"));
        }
        reference
    }

    fn pick(&mut self, now: i64) -> u32 {
        let queue = &mut self.queue;
        queue.charge(now);
        self.wants_pick = false;
        self.picks += 1;
        let Some(place) = queue.next(true) else {
            queue.timer = None;
            return 0;
        };
        if queue.has(Property::Conserve) && self.picks.is_multiple_of(8) {
            return 0;
        }
        queue.charged = now;
        if queue.running != Some(place) {
            if let Some(before) = queue.running {
                queue.wait(before);
            }
            queue.run(place);
        }
        queue.tasks[place].number
    }

    /// A task wakes, or joins for the first time.
    fn wake(&mut self, place: usize, is_new: bool, now: i64) {
        let queue = &mut self.queue;
        let is_7_3 = queue.options.version == Version::Linux7_3;
        let is_delayed = queue.tasks[place].life == Life::Delayed;
        let mut is_over = (is_7_3 || !is_delayed) && queue.charge(now);
        if is_delayed {
            // It may have slept longer than it owed; that is not credited.
            let moves = match is_7_3 {
                true => queue.keep_lag(place),
                false => queue.mean() > queue.tasks[place].vruntime,
            };
            queue.tasks[place].life = Life::Present;
            if moves {
                let lag = if is_7_3 { queue.tasks[place].lag } else { 0 };
                queue.leave(place);
                queue.tasks[place].lag = lag;
                queue.join(place, None);
            }
        } else {
            let is_half = is_new && !queue.has(Property::New);
            let half = queue.virtual_time(place, queue.tasks[place].slice) / 2;
            queue.join(place, is_half.then_some(half));
            queue.set_timer_if_none();
        }
        is_over |= queue.charge(now);
        let hears = !queue.has(Property::Preempt);
        self.wants_pick |= is_over && hears;
        let preempts = self.preempts(place, is_new);
        self.wants_pick |= preempts && hears;
    }

    /// Whether a task that waits from now on runs before the running one.
    fn preempts(&mut self, place: usize, is_new: bool) -> bool {
        let queue = &mut self.queue;
        let Some(running) = queue.running else { return true };
        let is_7_3 = queue.options.version == Version::Linux7_3;
        if self.wants_pick && !is_7_3 {
            return true;
        }
        let is_short = queue.tasks[place].slice < queue.tasks[running].slice;
        match queue.options.version {
            Version::Linux6_12 => {
                let due = |place: usize| queue.tasks[place].deadline;
                if is_short
                    && queue.is_eligible(place)
                    && (due(place) < due(running) || !queue.is_eligible(running))
                {
                    queue.tasks[running].protected = due(running) + 1; // protected no more
                }
                queue.choose(true) == Some(place)
            }
            Version::Linux6_18 => {
                let preempts = queue.choose(!is_short) == Some(place);
                if is_short && (preempts || queue.options.run_to_parity) {
                    let shortest = queue.virtual_time(running, queue.shortest());
                    let Task { vruntime, protected, .. } = &mut queue.tasks[running];
                    *protected = (*vruntime + if preempts { 0 } else { shortest }).min(*protected);
                }
                preempts
            }
            Version::Linux7_3 => self.preempts_7_3(place, running, is_new),
        }
    }

    /// The same in 7.3. A new task preempts only with a shorter request, one that still sleeps not
    /// at all. The end of the running task's protection comes nearer in any case.
    fn preempts_7_3(&mut self, place: usize, running: usize, is_new: bool) -> bool {
        let queue = &mut self.queue;
        let is_short = queue.tasks[place].slice < queue.tasks[running].slice;
        let may = queue.tasks[place].life == Life::Present && (is_short || !is_new);
        let preempts =
            may && (queue.next(!is_short) == Some(place) || is_short && queue.is_eligible(place));
        let vruntime = queue.tasks[running].vruntime;
        let until = if preempts {
            vruntime
        } else if queue.options.run_to_parity {
            let shortest = queue.virtual_time(running, queue.shortest());
            vruntime.min(queue.mean()) + shortest
        } else {
            i128::MAX
        };
        let protected = &mut queue.tasks[running].protected;
        *protected = until.min(*protected);
        let slice = |place: usize| queue.tasks[place].slice;
        if preempts && is_short && queue.buddy.is_none_or(|buddy| slice(buddy) >= slice(place)) {
            queue.buddy = Some(place);
        }
        preempts
    }

    fn yields(&mut self, now: i64) {
        let queue = &mut self.queue;
        let Some(place) = queue.running.filter(|_| !queue.is_alone()) else { return };
        queue.charge(now);
        if queue.has(Property::Yield) {
            return;
        }
        if queue.is_eligible(place) {
            let request = queue.request(place);
            let task = &mut queue.tasks[place];
            task.vruntime = task.deadline;
            task.deadline += request;
        }
    }

    fn block(&mut self, now: i64, ends: bool) {
        let queue = &mut self.queue;
        queue.charge(now);
        let Some(place) = queue.running else { return };
        queue.keep_lag(place);
        let delays = queue.options.delay_dequeue && !queue.has(Property::Delay) && !ends;
        if delays && !queue.is_eligible(place) {
            queue.tasks[place].life = Life::Delayed;
            queue.running = None;
            queue.wait(place);
        } else {
            queue.leave(place);
        }
    }

    /// A new weight or request. The lag in CPU time stays, and the rest of the request: in 6.12 in
    /// virtual time, later in CPU time too. In 7.3 a running task's protection stays as it is.
    fn change(&mut self, place: usize, weight: u32, slice: i64, now: i64) {
        let queue = &mut self.queue;
        let Task { weight: old, slice: old_slice, life, .. } = queue.tasks[place];
        if (weight, slice) == (old, old_slice) {
            return;
        }
        self.wants_pick |= life != Life::Away && queue.charge(now);
        let rest = queue.tasks[place].deadline - queue.tasks[place].vruntime;
        let (runs, keeps) = (queue.running == Some(place), queue.has(Property::Weight));
        if life != Life::Away && !keeps {
            queue.leave(place);
        }
        let scaled = |time: i128| time * i128::from(old) / i128::from(weight);
        let task = &mut queue.tasks[place];
        (task.weight, task.slice, task.lag) = (weight, slice, scaled(task.lag));
        if life != Life::Away && !keeps {
            let rest = match queue.options.version {
                Version::Linux6_12 => rest,
                Version::Linux6_18 | Version::Linux7_3 => scaled(rest),
            };
            queue.join(place, Some(rest));
            queue.tasks[place].life = life;
            match queue.options.version {
                _ if !runs => {}
                Version::Linux7_3 => queue.running = Some(place),
                _ => queue.run(place),
            }
            queue.set_timer_if_none();
        }
        let is_looked_at = life == Life::Present
            || life == Life::Delayed && queue.options.version == Version::Linux7_3;
        if weight != old && !queue.is_alone() && (runs || is_looked_at) {
            self.wants_pick |= if runs { weight < old } else { self.preempts(place, false) };
        }
    }

    fn place(&self, number: u32) -> Result<usize, Broken> {
        let place = self.queue.tasks.iter().position(|task| task.number == number);
        place.ok_or_else(|| Broken(format!("task {number} is unknown")))
    }
}

impl Subject for Reference {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        if let Some(why) = &self.refuses {
            return Ok(Answer { error: Some(why.clone()), ..Answer::default() });
        }
        let now = event.at;
        let mut answer = Answer::default();
        match event.op {
            Op::Reset { tick, slice } => {
                *self = Reference::new(self.queue.options);
                (self.queue.tick, self.slice) = (tick, slice);
            }
            Op::Task { task: number, weight, slice, lag, .. } => {
                let slice = match self.queue.options.fault {
                    Some(Property::Slice) => self.slice,
                    Some(Property::LagBound) => slice.saturating_mul(4),
                    _ => slice,
                };
                self.queue.declare(number, weight, slice, lag);
            }
            Op::Wake { task } => self.wake(self.place(task)?, false, now),
            Op::New { task } => self.wake(self.place(task)?, true, now),
            Op::Tick => {
                let is_timer = self.queue.timer.take_if(|due| *due <= now).is_some();
                let is_over = self.queue.charge(now) || is_timer;
                self.wants_pick |= is_over && !self.queue.has(Property::Tick);
            }
            Op::Block => self.block(now, false),
            Op::Exit => self.block(now, true),
            Op::Yield => self.yields(now),
            Op::Weight { task, weight } => {
                let place = self.place(task)?;
                self.change(place, weight, self.queue.tasks[place].slice, now);
            }
            Op::Slice { task, slice } => {
                let place = self.place(task)?;
                if !self.queue.has(Property::Slice) {
                    self.change(place, self.queue.tasks[place].weight, slice, now);
                } else if self.queue.tasks[place].life != Life::Away {
                    self.wants_pick |= self.queue.charge(now); // that is no fault
                }
            }
            Op::Pick => answer.runs = Some(self.pick(now)),
        }
        answer.resched = event.op.may_resched().then_some(self.wants_pick);
        match self.queue.states() {
            Some(tasks) => answer.tasks = tasks,
            None => answer.error = Some("a virtual time is beyond ±2^62 ns".into()),
        }
        Ok(answer)
    }
}
