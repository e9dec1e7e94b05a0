//! A policy in the shadow of another scheduler: it is told all that happened under that one, asked wherever that one decided, and then told what was decided.
//!
//! Two schedulers that differ once live in different worlds from then on, and a simulation that goes its own way can only be held against a recording by what both have in common. Here each
//! decision is judged in the situation in which it was taken: the tasks that waited, since when, and what each had had of the CPU are the recording's.
//!
//! A decision is a dispatch (who runs next) or a stop that the task did not want (when). Where the policy decides otherwise the difference is counted, and the policy goes on from what really
//! happened: it is asked once more while nobody else waits, and the others come back in the order in which it would have run them.

mod past;

use super::{Arrival, Live};
use crate::policy::{Policy, Stop};
use crate::seat::TaskState;
use crate::trace::{Event, EventKind, PrevState, WakeContext};
use crate::{CpuId, Machine, Nanos, TaskId, Time};
use std::collections::BTreeMap;

/// When the scheduler that was recorded decided who runs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// When a CPU switches to it, as a kernel does.
    AtTheSwitch,
    /// As soon as it is told that a CPU wants a task, as a program in user space does that is told of one event after another.
    WhenTold,
}

/// What a task is to the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// One of those that it schedules.
    Scheduled {
        /// Its attributes.
        arrival: Arrival,
        /// Whether it may yield: recordings do not tell a yield from a preemption.
        yields: bool,
    },
    /// The program that decided, which runs whenever there is something to decide.
    Program,
    /// Scheduled by somebody else, and before all others: whom it interrupts goes on behind it.
    Interrupts,
}

/// How the policy would have decided otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Otherwise {
    /// It would have dispatched another task.
    Another,
    /// It would have dispatched nobody.
    Nobody,
    /// It would have dispatched somebody, where the CPU idled.
    Somebody,
    /// It would have let a task run on that was stopped.
    RunOn,
    /// It would have stopped a task that ran on.
    Stop,
    /// One of these, but it would have decided as the kernel did, had one of the last events come up to 3 us earlier or later, or had a task that was to be stopped yielded first.
    Microseconds,
}

impl Otherwise {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Otherwise::Another => "another task",
            Otherwise::Nobody => "nobody",
            Otherwise::Somebody => "somebody",
            Otherwise::RunOn => "run on",
            Otherwise::Stop => "stop",
            Otherwise::Microseconds => "microseconds",
        }
    }
}

/// What a comparison came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judgement {
    /// How many decisions were compared.
    pub decisions: usize,
    /// Those that the policy would have taken otherwise: when, where, and how.
    pub otherwise: Vec<(Time, CpuId, Otherwise)>,
}

impl Judgement {
    /// The share of decisions that the policy would have taken as well.
    pub fn share(&self) -> f64 {
        (self.decisions - self.otherwise.len()) as f64 / self.decisions.max(1) as f64
    }

    /// How many of the others are of which kind.
    pub fn differences(&self) -> BTreeMap<Otherwise, usize> {
        let mut differences = BTreeMap::new();
        self.otherwise.iter().for_each(|(_, _, how)| *differences.entry(*how).or_default() += 1);
        differences
    }
}

/// A slice may be looked at by so much too early or too late, as times are recorded a little before or after what they are of.
const TOLERANCE: Nanos = Nanos(2_000);
/// A tick that comes no longer than so before a switch waits until that is done, and is the next task's.
const SWITCH: Nanos = Nanos(4_000);
/// A stop takes no longer from its cause until it is done.
const DONE: Nanos = Nanos(100_000);

/// See the head of the file.
#[derive(Clone)]
pub struct Shadow<P> {
    live: Live<P>,
    decides: Decides,
    tasks: Vec<Role>,
    /// How many ticks there were.
    tick: u64,
    /// By CPU: whether the policy was told anything since the program ran last.
    is_told: Vec<bool>,
    /// On whose account tasks are being woken.
    wakers: BTreeMap<TaskId, Option<CpuId>>,
    /// By CPU: what the policy was when it was asked whom to dispatch next, and who has woken since; until the switch.
    asked: Vec<Option<Asked<P>>>,
    /// By CPU: the last stop, until the switch.
    stopped: Vec<Option<Stopped<P>>>,
    /// By CPU: since when the policy wants the running task to be stopped.
    wanted: Vec<Option<Time>>,
    /// Whom the policy would have run where it decided otherwise the last time.
    preferred: Option<TaskId>,
    judgement: Judgement,
}

#[derive(Clone)]
struct Asked<P> {
    before: Live<P>,
    /// Who has woken since, and what is known of it if it came then.
    woken: Vec<(Woken, Option<Arrival>)>,
}

#[derive(Clone)]
struct Stopped<P> {
    before: Live<P>,
    task: TaskId,
    why: Stop,
}

/// An event, and what its recording does not tell of it.
#[derive(Clone, Copy)]
struct Told {
    event: Event,
    /// Whether the task that stops has yielded, although the policy wanted it to be stopped anyway.
    yielded: bool,
}

#[derive(Clone, Copy)]
struct Woken {
    time: Time,
    task: TaskId,
    new: bool,
    waker: Option<CpuId>,
}

impl<P: Policy + Clone> Shadow<P> {
    /// `policy` beside whoever was recorded on `machine`, which `decides` as that says. `tasks` are known by their ids in the recording.
    ///
    /// # Panics
    /// If the machine has more CPUs than [`MOST_CPUS`](super::MOST_CPUS).
    pub fn new(policy: P, machine: Machine, seed: u64, decides: Decides, tasks: Vec<Role>) -> Shadow<P> {
        let cpus = usize::from(machine.cpus);
        let mut live = Live::new(policy, machine, seed);
        live.wanting = Some(Vec::new());
        Shadow {
            live,
            decides,
            tasks,
            tick: 0,
            is_told: vec![false; cpus],
            wakers: BTreeMap::new(),
            asked: none(cpus),
            stopped: none(cpus),
            wanted: none(cpus),
            preferred: None,
            judgement: Judgement::default(),
        }
    }

    /// When the policy takes over, at time zero, `task` runs on `cpu`.
    pub fn begins(&mut self, cpu: CpuId, task: TaskId) {
        if self.is_ours(task) {
            self.unseen(task).into_iter().for_each(|arrival| self.live.arrive(task, arrival));
            self.live.wake(task, true, None);
            self.live.seat.leave_idle(cpu);
            self.live = self.live.dispatching(cpu, task);
            self.live.running(cpu, task);
        }
    }

    fn hears(&mut self, Told { event, yielded }: Told) {
        let is_late = self.ticks_until(&event);
        let (time, cpu) = (event.time, event.cpu);
        match event.kind {
            EventKind::SchedWaking { task, context, .. } => {
                self.wakers.insert(task, (context == WakeContext::Task).then_some(cpu));
            }
            EventKind::SchedWakeup { task, .. } => {
                let waker = self.wakers.remove(&task).flatten();
                self.wakes(cpu, Woken { time, task, new: false, waker });
            }
            EventKind::SchedWakeupNew { task, .. } => self.wakes(cpu, Woken { time, task, new: true, waker: Some(cpu) }),
            EventKind::SchedSwitch { prev, next, prev_state } => self.switches(time, cpu, (prev, prev_state, yielded), next),
            _ => {}
        }
        if is_late {
            self.ticks(cpu);
        }
        self.program_decides();
    }

    /// What is to be decided at once.
    fn program_decides(&mut self) {
        if self.decides == Decides::WhenTold {
            self.live.wanting.clone().into_iter().flatten().for_each(|cpu| self.ask(cpu));
        }
        self.live.decisions.clear();
    }

    fn switches(&mut self, time: Time, cpu: CpuId, (prev, state, yielded): (TaskId, PrevState, bool), next: TaskId) {
        let is_interrupted = next != TaskId::NONE && !self.is_ours(next);
        if self.is_ours(prev) {
            self.live.at(time);
            match state {
                PrevState::Runnable if yielded && self.may_have_yielded(cpu, prev) => {
                    self.answers(cpu, time);
                    self.has_stopped(cpu, Stop::Yielded);
                }
                PrevState::Runnable if is_interrupted && self.live.current(cpu) == Some(prev) => self.is_interrupted(cpu, prev, next),
                _ => self.stops(cpu, prev, state),
            }
        } else if !is_interrupted && let Some(kept) = self.live.kept(cpu).filter(|&kept| kept != next) {
            // It does not go on: that was decided when the policy was told what it was told last.
            self.stops(cpu, kept, PrevState::Runnable);
        }
        self.program_decides();
        self.live.at(time);
        if self.is_ours(next) {
            self.runs(cpu, next);
        } else if next == TaskId::NONE {
            self.idles(cpu);
        }
        if self.tasks.get(prev.index()) == Some(&Role::Program) && !is_interrupted {
            self.is_told[cpu.index()] = false;
        }
    }

    /// A task that runs on `cpu` is kept from that by one that the policy does not schedule: it goes on, unless it has yielded, or the policy decides otherwise.
    fn is_interrupted(&mut self, cpu: CpuId, task: TaskId, by: TaskId) {
        self.answers(cpu, self.live.now());
        let by_program = self.tasks[by.index()] == Role::Program;
        // Where the slice is nearly over, who runs next says whether it was.
        let (had, left) = self.live.slice(cpu);
        let is_wanted = self.live.cpus[cpu.index()].preempted || had >= left;
        if by_program && !is_wanted && !self.is_told[cpu.index()] && self.yields(task) {
            return self.has_stopped(cpu, Stop::Yielded);
        }
        if is_wanted {
            return self.stops(cpu, task, PrevState::Runnable);
        }
        self.live.paused(cpu);
    }

    /// Whether `task`, which stops on `cpu`, may have yielded where the policy wanted it to be stopped: its program is told of a yield before all.
    fn may_have_yielded(&self, cpu: CpuId, task: TaskId) -> bool {
        self.live.current(cpu) == Some(task) && self.yields(task) && (self.live.cpus[cpu.index()].preempted || self.live.is_over(cpu))
    }

    fn is_ours(&self, task: TaskId) -> bool {
        matches!(self.tasks.get(task.index()), Some(Role::Scheduled { .. }))
    }

    fn yields(&self, task: TaskId) -> bool {
        matches!(self.tasks.get(task.index()), Some(Role::Scheduled { yields: true, .. }))
    }

    /// What is known of a task that has not been seen.
    fn unseen(&self, task: TaskId) -> Option<Arrival> {
        match self.tasks.get(task.index()) {
            Some(Role::Scheduled { arrival, .. }) if self.live.seat.state(task) == TaskState::Absent => Some(*arrival),
            _ => None,
        }
    }

    fn wakes(&mut self, cpu: CpuId, woken: Woken) {
        if !self.is_ours(woken.task) {
            return;
        }
        self.live.at(woken.time);
        let unseen = self.unseen(woken.task);
        unseen.into_iter().for_each(|arrival| self.live.arrive(woken.task, arrival));
        self.asked.iter_mut().flatten().for_each(|asked| asked.woken.push((woken, unseen)));
        if matches!(self.live.seat.state(woken.task), TaskState::New | TaskState::Asleep) {
            self.is_told[cpu.index()] = true;
        }
        self.live.wake(woken.task, woken.new, woken.waker);
    }

    /// Whether there is one CPU only, so that nothing else happens meanwhile.
    fn is_alone(&self) -> bool {
        self.asked.len() == 1
    }

    /// A task stops that ran on `cpu`.
    fn stops(&mut self, cpu: CpuId, task: TaskId, state: PrevState) {
        self.answers(cpu, self.live.now());
        if self.live.current(cpu) != Some(task) {
            // It ran before the recording began.
            self.unseen(task).into_iter().for_each(|arrival| self.live.arrive(task, arrival));
            if state == PrevState::Runnable {
                self.live.wake(task, false, None);
            }
            return;
        }
        let why = match state {
            PrevState::Blocked => Stop::Blocked,
            PrevState::Dead => Stop::Exited,
            PrevState::Runnable if self.live.cpus[cpu.index()].preempted => Stop::Preempted,
            PrevState::Runnable if self.live.is_over(cpu) => Stop::SliceOver,
            PrevState::Runnable if self.yields(task) => Stop::Yielded,
            PrevState::Runnable => {
                self.otherwise(cpu, Otherwise::RunOn);
                Stop::Preempted
            }
        };
        self.judgement.decisions += usize::from(matches!(why, Stop::Preempted | Stop::SliceOver));
        self.has_stopped(cpu, why);
    }

    fn has_stopped(&mut self, cpu: CpuId, why: Stop) {
        let task = self.live.seat.cx().current[cpu.index()];
        self.wanted[cpu.index()] = None;
        self.stopped[cpu.index()] = self.is_alone().then(|| Stopped { before: self.live.clone(), task, why });
        self.live.stopped(cpu, why);
    }

    /// The task that the policy wanted to be stopped on `cpu` was not.
    fn lets_run_on(&mut self, cpu: CpuId, stopped: Stopped<P>) {
        let now = self.live.now();
        let woken = self.asked[cpu.index()].take().map_or(Vec::new(), |asked| asked.woken);
        self.live = stopped.before;
        self.live.cpus[cpu.index()].preempted = false;
        self.live.paused(cpu);
        self.live.hear(&woken, now);
        self.live.cpus[cpu.index()].preempted = false;
    }

    fn otherwise(&mut self, cpu: CpuId, how: Otherwise) {
        self.judgement.otherwise.push((self.live.now(), cpu, how));
    }

    /// Asks the policy what `cpu` shall run.
    fn ask(&mut self, cpu: CpuId) {
        self.live.seat.leave_idle(cpu);
        self.asked[cpu.index()] = Some(Asked { before: self.live.clone(), woken: Vec::new() });
        self.live.ask(cpu);
    }

    /// `cpu` runs `task` from now on.
    fn runs(&mut self, cpu: CpuId, task: TaskId) {
        let unheard = matches!(self.live.seat.state(task), TaskState::Absent | TaskState::New | TaskState::Asleep);
        if unheard {
            // It has waited since before the recording began.
            let unseen = self.unseen(task);
            self.asked.iter_mut().flatten().for_each(|asked| asked.before.bring(task, unseen));
            self.live.bring(task, unseen);
        }
        let goes_on = self.live.kept(cpu) == Some(task);
        if self.live.current(cpu) != Some(task) {
            if self.live.current(cpu).is_none() {
                self.ask(cpu);
            }
            let chosen = self.live.current(cpu);
            if chosen != Some(task) {
                let ran_on = self.stopped[cpu.index()].take_if(|stopped| stopped.task == task && stopped.why != Stop::Yielded);
                let how = match chosen {
                    _ if ran_on.is_some() => Otherwise::Stop,
                    Some(_) => Otherwise::Another,
                    None => Otherwise::Nobody,
                };
                if !unheard {
                    self.preferred = chosen;
                    self.otherwise(cpu, how);
                }
                match ran_on {
                    Some(stopped) => self.lets_run_on(cpu, stopped),
                    None => self.adopts(cpu, task),
                }
            }
        }
        self.judgement.decisions += usize::from(!unheard && !goes_on);
        self.asked[cpu.index()] = None;
        self.stopped[cpu.index()] = None;
        self.live.running(cpu, task);
    }

    /// The policy goes on as if it had dispatched `task` to `cpu`.
    fn adopts(&mut self, cpu: CpuId, task: TaskId) {
        let Some(Asked { mut before, woken }) = self.asked[cpu.index()].take() else { return };
        before.hear(&woken, self.live.now());
        self.live = before.dispatching(cpu, task);
    }

    /// `cpu` idles from now on.
    fn idles(&mut self, cpu: CpuId) {
        if self.live.current(cpu).is_none() && !self.live.seat.cx().idle().contains(cpu) {
            self.ask(cpu);
        }
        if self.decides == Decides::AtTheSwitch && self.live.current(cpu).is_some() {
            self.preferred = self.live.current(cpu);
            self.otherwise(cpu, Otherwise::Somebody);
            self.judgement.decisions += 1;
            let Some(asked) = self.asked[cpu.index()].take() else { return };
            self.live = asked.before;
            self.live.seat.idle(cpu);
        }
    }

    /// All ticks before `event`, of which the policy is told if it wants them; and whether it wants a task stopped that runs on. Whether there is one that comes right behind the event.
    fn ticks_until(&mut self, event: &Event) -> bool {
        let (end, is_switch) = (event.time, matches!(event.kind, EventKind::SchedSwitch { .. }));
        let Some(ticks) = self.live.machine().ticks.clone() else { return false };
        let cpus = (0..self.live.machine().cpus).map(CpuId);
        let mut is_late = false;
        while ticks.time_of(self.tick) < end {
            let time = ticks.time_of(self.tick);
            cpus.clone().for_each(|cpu| self.answers(cpu, time));
            is_late = is_switch && end.since(time) <= SWITCH;
            self.live.at(time);
            self.tick += 1;
            cpus.clone().filter(|&cpu| !is_late || cpu != event.cpu).for_each(|cpu| self.ticks(cpu));
        }
        cpus.for_each(|cpu| self.answers(cpu, end));
        is_late
    }

    /// The last tick is `cpu`'s now.
    fn ticks(&mut self, cpu: CpuId) {
        let now = self.live.now();
        if !self.live.current(cpu).is_some_and(|task| self.live.seat.state(task) == TaskState::Running) || self.live.kept(cpu).is_some() {
            return;
        }
        let Some(ticks) = &self.live.machine().ticks else { return };
        let each = self.live.seat.policy().needs().tick.map(|period| ticks.within(period));
        if each.is_some_and(|each| self.tick.is_multiple_of(each)) {
            self.is_told[cpu.index()] = true;
            self.live.tick(cpu);
        }
        if self.live.cpus[cpu.index()].preempted || self.live.is_over(cpu) {
            self.wanted[cpu.index()] = Some(now);
        }
    }

    /// Whether `cpu` has stopped its task where the policy wanted that, by `now`.
    fn answers(&mut self, cpu: CpuId, now: Time) {
        let Some(since) = self.wanted[cpu.index()].filter(|&since| now.since(since) > DONE) else { return };
        self.wanted[cpu.index()] = None;
        let Some(task) = self.live.current(cpu) else { return };
        // The policy may choose the same task again: then there is no switch to be seen.
        let before = self.live.clone();
        let why = if self.live.cpus[cpu.index()].preempted { Stop::Preempted } else { Stop::SliceOver };
        self.live.stopped(cpu, why);
        self.live.ask(cpu);
        self.judgement.decisions += 1;
        if self.live.current(cpu) == Some(task) {
            self.live.running(cpu, task);
            self.live.cpus[cpu.index()].since = Some(since);
        } else {
            self.preferred = self.live.current(cpu);
            self.live = before;
            self.otherwise(cpu, Otherwise::Stop);
            let state = &mut self.live.cpus[cpu.index()];
            (state.preempted, state.left) = (false, Nanos::MAX);
        }
    }
}

impl<P: Policy + Clone> Live<P> {
    /// A task waits of which nobody has said so.
    fn bring(&mut self, task: TaskId, unseen: Option<Arrival>) {
        unseen.into_iter().for_each(|arrival| self.arrive(task, arrival));
        self.wake(task, false, None);
    }

    /// These have woken, before `now`.
    fn hear(&mut self, woken: &[(Woken, Option<Arrival>)], now: Time) {
        for &(Woken { time, task, new, waker }, unseen) in woken {
            self.at(time);
            unseen.into_iter().for_each(|arrival| self.arrive(task, arrival));
            self.wake(task, new, waker);
        }
        self.at(now);
    }

    /// Whom the policy would run on `cpu` from now on, one after another, if each went to sleep.
    fn order(&self, cpu: CpuId) -> Vec<TaskId> {
        let (mut ahead, mut order) = (self.clone(), Vec::new());
        loop {
            ahead.ask(cpu);
            let Some(task) = ahead.current(cpu) else { return order };
            order.push(task);
            ahead.running(cpu, task);
            ahead.cpus[cpu.index()].preempted = false;
            ahead.stopped(cpu, Stop::Blocked);
        }
    }

    /// What the task that runs on `cpu`, or is kept from that, has had of its slice, and what was left of that.
    fn slice(&self, cpu: CpuId) -> (Nanos, Nanos) {
        let state = self.cpus[cpu.index()];
        (state.since.map_or(Nanos::ZERO, |since| self.now().since(since)), state.left)
    }

    /// Whether the slice of the task that runs on `cpu`, or is kept from that, is over, or nearly.
    fn is_over(&self, cpu: CpuId) -> bool {
        let (had, left) = self.slice(cpu);
        had + TOLERANCE >= left
    }

    /// The policy as if it had dispatched `task` to `cpu`, with as little as can be changed of the order in which it would run the others.
    fn dispatching(&self, cpu: CpuId, task: TaskId) -> Live<P> {
        let mut others = self.order(cpu);
        others.retain(|&other| other != task);
        let preferred = self.without_preferred(cpu, task);
        let keeps_order = |live: &Live<P>| {
            let mut after = live.clone();
            after.running(cpu, task);
            after.stopped(cpu, Stop::Blocked);
            after.order(cpu) == others
        };
        if keeps_order(&preferred) {
            return preferred;
        }
        let alone = self.without_others(cpu, &others);
        if alone.current(cpu) == Some(task) && keeps_order(&alone) { alone } else { preferred }
    }

    /// Whom the policy prefers to `task` is away for a moment.
    fn without_preferred(&self, cpu: CpuId, task: TaskId) -> Live<P> {
        let (mut live, mut away) = (self.clone(), Vec::new());
        loop {
            live.ask(cpu);
            match live.current(cpu) {
                Some(chosen) if chosen == task => break,
                Some(other) => {
                    away.push(other);
                    live.taken(other);
                }
                None => {
                    live.seat.expect_none_lost();
                    break;
                }
            }
        }
        live.back(cpu, &away);
        live
    }

    /// All `others` are away for a moment, and come back in this order.
    fn without_others(&self, cpu: CpuId, others: &[TaskId]) -> Live<P> {
        let mut live = self.clone();
        others.iter().for_each(|&other| live.taken(other));
        live.ask(cpu);
        live.back(cpu, others);
        live
    }

    fn back(&mut self, cpu: CpuId, away: &[TaskId]) {
        away.iter().for_each(|&task| self.wake(task, false, None));
        self.cpus[cpu.index()].preempted = false;
    }
}

fn none<T>(count: usize) -> Vec<Option<T>> {
    (0..count).map(|_| None).collect()
}
