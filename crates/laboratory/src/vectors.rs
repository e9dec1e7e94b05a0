//! A policy of ours as the subject of conformance vectors: one CPU, events in, decisions and state
//! out (`conformance/README.md`).

use schedsim::policy::{
    AnyPolicy, Effect, Enqueue, Kept, Policy, PolicySpec, Reweight, Stop, TaskView, Wake, weight_of,
};
use schedsim::seat::{Seat, TaskState};
use schedsim::workload::{Attributes, Slice};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use vectors::{Answer, Broken, Event, Op, State, Subject};

const CPU: CpuId = CpuId(0);

/// A policy, for every vector anew.
pub struct Played {
    spec: PolicySpec,
    seat: Seat<AnyPolicy>,
    /// The default request of the vector.
    slice: i64,
    tasks: u32,
    /// Whether the policy wants a pick.
    wants_pick: bool,
    /// When the slice of the running task is over, which the policy leaves to its driver.
    slice_ends: Time,
    /// When the running task yielded, until the next pick.
    yielded: Option<Time>,
}

impl Played {
    /// The policy that `spec` names.
    pub fn new(spec: PolicySpec) -> Played {
        let seat = seat(&spec);
        Played::of(spec, seat, 0)
    }

    fn of(spec: PolicySpec, seat: Seat<AnyPolicy>, slice: i64) -> Played {
        let slice_ends = Time::NEVER;
        Played { spec, seat, slice, tasks: 0, wants_pick: false, slice_ends, yielded: None }
    }

    /// The policy with the period of the tick and the default request of a vector, as far as it has
    /// such options.
    fn reset(&mut self, tick: i64, slice: i64) -> Result<(), Broken> {
        let mut spec = self.spec.clone();
        let has = |option: &&str| self.spec.descriptor().option(option).is_some();
        let options = [
            Some(("tick", tick)),
            ["slice", "quantum"].into_iter().find(has).map(|option| (option, slice)),
        ];
        for (option, value) in options.into_iter().flatten().filter(|(option, _)| has(option)) {
            spec = spec.with(option, &format!("{value}ns")).map_err(broken)?;
        }
        *self = Played::of(self.spec.clone(), seat(&spec), slice);
        Ok(())
    }

    /// Creates the task with this number. Or why not.
    fn create(&mut self, task: TaskId, weight: u32, slice: i64, kept: Kept) -> Result<(), String> {
        let prio = prio(weight)?;
        let own = if slice == self.slice { Slice::default() } else { request(slice)? };
        let attributes = Attributes { slice: own, ..Attributes::default() };
        let mut view = TaskView::of(prio);
        view.attributes = attributes;
        self.seat.admit(task, view);
        self.seat.init_task(task);
        self.seat.keep(task, kept);
        self.tasks = self.tasks.max(task.0);
        Ok(())
    }

    fn wake(&mut self, task: TaskId, is_new: bool) {
        let new = self.seat.state(task) == TaskState::New;
        self.seat.select_cpu(task, Wake { new, ..Wake::by(None) });
        let why = if is_new { Enqueue::New } else { Enqueue::Wakeup };
        let effect = self.seat.enqueue(task, CPU, why);
        self.apply(effect);
    }

    fn stop(&mut self, why: Stop) {
        let Some(task) = self.seat.cx().current(CPU) else { return };
        self.seat.stopping(CPU, why);
        match why.requeue() {
            Some(why) => drop(self.seat.enqueue(task, CPU, why)),
            None if why == Stop::Exited => self.seat.exit_task(task),
            None => {}
        }
    }

    fn tick(&mut self) {
        if self.seat.cx().current(CPU).is_some() {
            let effect = self.seat.tick(CPU);
            self.apply(effect);
            self.wants_pick |= self.seat.cx().now() >= self.slice_ends;
        }
    }

    fn apply(&mut self, effect: Effect) {
        let is_idle = self.seat.cx().current(CPU).is_none();
        self.wants_pick |= match effect {
            Effect::Preempt(_) => true,
            Effect::Kick(_) => is_idle,
            Effect::Nothing | Effect::KickAt(..) => false,
        };
    }

    fn pick(&mut self) -> u32 {
        let is_over = self.seat.cx().now() >= self.slice_ends;
        self.stop(if is_over { Stop::SliceOver } else { Stop::Preempted });
        self.wants_pick = false;
        match self.seat.dispatch(CPU) {
            Some(next) => {
                self.seat.leave_idle(CPU);
                self.seat.occupy(CPU, next.task);
                self.seat.running(CPU);
                self.slice_ends = self.seat.cx().now() + next.slice;
                next.task.0
            }
            None => {
                self.seat.idle(CPU);
                0
            }
        }
    }

    /// Handles an event but a reset. Or why the policy cannot do it.
    fn handle(&mut self, op: Op, answer: &mut Answer) -> Result<(), String> {
        if self.yielded.is_some_and(|at| at < self.seat.cx().now()) {
            return Err("a policy has no time between a yield and the pick after it".to_string());
        }
        match op {
            Op::Reset { .. } => {}
            Op::Task { task, weight, slice, vruntime, lag } => {
                self.create(TaskId(task), weight, slice, Kept { vruntime, lag })?;
            }
            Op::Wake { task } => self.wake(TaskId(task), false),
            Op::New { task } => self.wake(TaskId(task), true),
            Op::Tick => self.tick(),
            Op::Block => self.stop(Stop::Blocked),
            Op::Exit => self.stop(Stop::Exited),
            Op::Yield => {
                self.stop(Stop::Yielded);
                self.yielded = Some(self.seat.cx().now());
            }
            Op::Weight { task, weight } => {
                let effect = self.seat.set_weight(TaskId(task), prio(weight)?, Reweight::Own);
                self.apply(effect);
            }
            Op::Slice { .. } => return Err("a task's request cannot change here".to_string()),
            Op::Pick => {
                self.yielded = None;
                answer.runs = Some(self.pick());
            }
        }
        Ok(())
    }

    fn states(&self) -> Vec<State> {
        let state = |task: u32| {
            let times = self.seat.policy().virtual_times(TaskId(task), self.seat.cx().now())?;
            let of = times.entitlement;
            Some(State {
                task,
                vruntime: Some(times.vruntime),
                deadline: of.map(|of| of.deadline),
                lag: of.map(|of| of.lag),
                eligible: of.map(|of| of.is_eligible),
            })
        };
        (1..=self.tasks).filter_map(state).collect()
    }
}

impl Subject for Played {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        let mut answer = Answer::default();
        if let Op::Reset { tick, slice } = event.op {
            self.reset(tick, slice)?;
        }
        self.seat.advance(Time(event.at.unsigned_abs()));
        if let Err(why) = self.handle(event.op, &mut answer) {
            answer.error = Some(why);
        }
        if let Some(ended) = self.seat.ended() {
            return Err(broken(ended));
        }
        answer.resched = event.op.may_resched().then_some(self.wants_pick);
        answer.tasks = self.states();
        Ok(answer)
    }
}

/// The policy on one CPU, without tasks.
fn seat(spec: &PolicySpec) -> Seat<AnyPolicy> {
    let mut seat = Seat::new(spec.policy(1), Machine::ideal(1), 1);
    // The ids of vectors begin with 1; this one never wakes.
    seat.admit(TaskId(0), TaskView::of(120));
    seat.init_task(TaskId(0));
    seat.idle(CPU);
    seat
}

/// The priority with this weight.
fn prio(weight: u32) -> Result<u8, String> {
    let found = (100..=139).find(|&prio| weight_of(prio) == weight);
    found.ok_or_else(|| format!("no nice value has the weight {weight}"))
}

fn request(slice: i64) -> Result<Slice, String> {
    let length = u32::try_from(slice).ok().filter(|&length| length > 0);
    let length = length.ok_or_else(|| format!("a request of {slice} ns is above 4.2 s"))?;
    Ok(Slice::new(Nanos(u64::from(length))))
}

fn broken(why: impl std::fmt::Display) -> Broken {
    Broken(why.to_string())
}
