//! The discrete-event engine: the only code that advances time.
//!
//! Simulates a [`Source`] of tasks on a [`Machine`] under a [`Policy`]. The next event is the
//! earliest. At equal times, a task's start or the end of a sleep comes first (in order of task
//! id). Then comes a CPU's own next event (in order of CPU number). The order is total, so a seed
//! determines the trace.

mod by_name;
mod call_costs;
mod cpu_times;
mod cpus;
mod epolls;
mod eventfds;
mod inheritance;
mod locks;
mod pipes;
mod rates;
mod requests;
mod sharing;
mod slots;
mod sockets;
mod source;
mod spinning;
mod stall;
mod step;
mod sync;
mod tasks;
mod timers;
mod wait_queue;
mod wake_latency;

pub use by_name::{simulate_named, simulate_open};
pub use source::Source;
pub use stall::{Stall, StalledTask};

use crate::admission::LAST;
use crate::policy::{Context, Policy};
use crate::seat::{self, Breach, Ended, Seat, TaskState};
use crate::trace::Sink;
use crate::{CpuId, Machine, Nanos, Random, TaskId, Ticks, Time};
use call_costs::CallWork;
use cpu_times::CpuTimes;
use cpus::Cpu;
use locks::Locks;
use rates::Rates;
use sharing::Slowdown;
use source::Load;
use std::fmt;
use std::hint::black_box;
use sync::Sync;
use tasks::Task;
use timers::Timers;
use wake_latency::Lateness;

/// Options of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seeds the random numbers that the policy may draw, and the tasks of a stochastic workload.
    pub seed: u64,
    /// Stop here even if tasks are left.
    pub until: Time,
}

/// The result of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// When it ended.
    pub end: Time,
    /// Events simulated: dispatches of tasks, ends of bursts and slices, wakeups and starts.
    pub events: u64,
    /// CPU time spent on the tasks' own work.
    pub useful: Nanos,
    /// Whether random numbers were drawn. If not, another seed gives the same trace.
    pub random: bool,
}

/// Why a simulation stopped with an error.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// The policy broke its contract.
    Policy(Breach),
    /// A task did something that no task may do.
    Task {
        /// When.
        time: Time,
        /// Which task, and what it did.
        message: String,
    },
    /// Tasks wait for one another for ever.
    Stalled(Stall),
    /// An observer of the trace had enough ([`Observer::has_enough`](crate::trace::Observer)).
    Enough {
        /// When.
        time: Time,
    },
}

/// Runs the tasks of `source` under `policy` until every task has ended or sleeps for ever, or the
/// source ends the run.
///
/// # Errors
/// If the policy breaks the contract of [`Policy`]. If a task unlocks a mutex that it does not
/// hold, or forks more tasks than there are. If tasks wait for one another for ever. With
/// [`Options::until`] set, a wait for a task that has ended is no error.
pub fn simulate<'w, P: Policy>(
    source: impl Into<Source<'w>>,
    machine: &Machine,
    policy: P,
    options: Options,
    trace: impl Sink,
) -> Result<Outcome, Error> {
    let mut engine = Engine::new(source.into(), machine, policy, options, trace);
    let outcome = engine.run();
    engine.trace.flush();
    outcome
}

/// No CPU.
const NOBODY: CpuId = CpuId(u16::MAX);

/// The state of a simulation.
struct Engine<'w, P, S> {
    load: Load<'w>,
    seat: Seat<P, seat::Engine>,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    cpu_times: CpuTimes,
    timers: Timers,
    sync: Sync,
    /// CPUs that must dispatch before time advances.
    resched: Vec<CpuId>,
    /// The CPU that a timer is interrupting now, or `NOBODY`. If it was idle, it no longer is, and
    /// its time is before the waking.
    interrupted: CpuId,
    /// When idle CPUs must dispatch; empty if the policy requests no alarms.
    alarms: Vec<Time>,
    /// Until when an interruption keeps each CPU, if its task was about to act at that moment;
    /// empty if nothing interrupts.
    kept: Vec<Time>,
    /// The locks of queues, if holding one takes time.
    locks: Option<Box<Locks>>,
    /// The distance between two ticks that matter, if any does.
    tick: Option<Nanos>,
    /// What blocking and waking cost, if anything.
    call_work: Option<Box<CallWork>>,
    /// How late CPUs choose after wakings, where that is drawn.
    lateness: Option<Box<Lateness>>,
    /// Whether the machine has costs beyond switches, migrations and leaving idle, or tasks sleep
    /// between two spins.
    costs_are_special: bool,
    slowdown: Slowdown,
    rates: Rates,
    until: Time,
    trace: S,
    events: u64,
    useful: Nanos,
}

impl<'w, P: Policy, S: Sink> Engine<'w, P, S> {
    fn new(source: Source<'w>, machine: &Machine, policy: P, options: Options, trace: S) -> Self {
        machine.ticks.iter().for_each(Ticks::expect_in_order);
        let cpu_sets = if let Source::Scripts(workload, _) = source {
            workload.cpu_sets.clone()
        } else {
            Vec::new()
        };
        let rates = Rates::new(machine);
        let costly_ticks = machine.ticks.as_ref().filter(|ticks| ticks.have_costs());
        let interrupts = machine.unseen > Nanos::ZERO
            || machine.interruption > Nanos::ZERO
            || machine.timer_cost > Nanos::ZERO
            || costly_ticks.is_some();
        let mut cx = Context::new(machine.clone(), cpu_sets, Random::new(options.seed));
        if let Source::Scripts(workload, _) = source {
            cx.reservations = workload.reservations.clone();
            cx.cgroups = workload.cgroups.clone();
        }
        let load = Load::new(source, options);
        let sleeps_between_spins = load
            .shared()
            .mutexes
            .iter()
            .any(|mutex| mutex.spin.is_some_and(|spin| spin.sleep.is_some()));
        // The calls for which a policy asks are the events of one more CPU.
        let calls = u16::from(policy.needs().requests);
        let mut engine = Engine {
            load,
            tick: costly_ticks.map(|ticks| ticks.period).or(policy.needs().tick),
            costs_are_special: machine.queue_cost.is_some()
                || machine.lock_hold > Nanos::ZERO
                || interrupts
                || !machine.calls.are_free()
                || !machine.latency.is_unknown()
                || !rates.are_even()
                || sleeps_between_spins,
            call_work: CallWork::new(&machine.calls),
            lateness: Lateness::new(&machine.latency, machine.cpus),
            slowdown: Slowdown::new(machine, policy.migrates()),
            rates,
            seat: Seat::with_context(policy, cx),
            tasks: Vec::new(),
            cpus: vec![Cpu::IDLE; usize::from(machine.cpus + calls)],
            cpu_times: CpuTimes::new(machine.cpus + calls),
            timers: Timers::new(),
            sync: if let Source::Scripts(workload, _) = source {
                Sync::new(workload)
            } else {
                Sync::default()
            },
            resched: Vec::new(),
            interrupted: NOBODY,
            alarms: Vec::new(),
            kept: if interrupts { vec![Time::ZERO; usize::from(machine.cpus)] } else { Vec::new() },
            locks: Locks::new(machine).map(Box::new),
            until: options.until.min(LAST),
            trace,
            events: 0,
            useful: Nanos::ZERO,
        };
        if engine.seat.has_alarms() {
            engine.alarms = vec![Time::NEVER; engine.cpus.len()];
        }
        engine.expect_inheritance();
        engine.admit_first();
        engine
    }

    fn run(&mut self) -> Result<Outcome, Error> {
        while !self.seat.has_ended() && !self.trace.is_over() {
            let (timer, (cpu_time, cpu)) = (self.timers.earliest(), self.cpu_times.earliest());
            let now = timer.min(cpu_time);
            if now > self.until || now == Time::NEVER {
                break;
            }
            self.seat.advance(now);
            if timer <= cpu_time {
                let task = self.timers.pop();
                self.fetch_next();
                match self.seat.state(task) {
                    TaskState::Absent => self.arrive(task),
                    _ => {
                        self.interrupted = self.interrupted_for(task);
                        self.wake(task, None);
                        self.interrupted = NOBODY;
                    }
                }
            } else {
                self.cpu_event(cpu);
            }
            loop {
                while let Some(cpu) = self.resched.pop() {
                    self.reschedule(cpu);
                }
                if !self.seat.has_requests() {
                    break;
                }
                self.grant_requests();
            }
        }
        self.expect_no_end()?;
        if self.trace.is_over() {
            return Err(Error::Enough { time: self.now() });
        }
        self.expect_no_stall()?;
        if self.until == LAST {
            self.expect_time_enough()?;
            self.seat.expect_none_lost();
            self.expect_no_end()?;
        } else {
            self.seat.advance(self.until);
            self.machine().all().for_each(|cpu| self.account(cpu));
        }
        let random = self.seat.cx().random.drawn() || matches!(self.load, Load::Drawn(_));
        Ok(Outcome { end: self.now(), events: self.events, useful: self.useful, random })
    }

    fn expect_no_end(&self) -> Result<(), Error> {
        match self.seat.ended() {
            None => Ok(()),
            Some(Ended::Breach(breach)) => Err(Error::Policy(breach.clone())),
            Some(Ended::Refused { time, message }) => {
                Err(Error::Task { time: *time, message: message.clone() })
            }
        }
    }

    #[inline(always)]
    fn now(&self) -> Time {
        self.seat.cx().now
    }

    #[inline(always)]
    fn machine(&self) -> &Machine {
        &self.seat.cx().machine
    }

    /// The task on `cpu`, or [`TaskId::NONE`].
    #[inline(always)]
    fn current(&self, cpu: CpuId) -> TaskId {
        self.seat.cx().current[cpu.index()]
    }

    /// Prefetches the state of the tasks that come next, where their number makes each a cache
    /// miss. The processor overlaps these loads; later they would come one after another.
    #[inline(always)]
    fn fetch_next(&mut self) {
        if let Some(tasks) = self.timers.came_near() {
            for task in tasks {
                black_box((self.tasks[task.index()].work, self.seat.cx().task(task).prio));
                self.load.fetch(task);
                self.seat.policy().fetch(task);
            }
        }
    }

    /// An error if the run reached the limit of time.
    fn expect_time_enough(&self) -> Result<(), Error> {
        let next = self.timers.earliest().min(self.cpu_times.earliest().0);
        if next == Time::NEVER && self.seat.cx().current.iter().all(|&task| task == TaskId::NONE) {
            return Ok(());
        }
        let message = format!(
            "the tasks need more time than the longest run, {}: give shorter durations, fewer \
             rounds, or a `duration` after which it is stopped",
            Nanos(LAST.0)
        );
        Err(Error::Task { time: self.now(), message })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Policy(breach) => breach.fmt(f),
            Error::Task { time, message } => write!(f, "at {}: {message}", Nanos(time.0)),
            Error::Stalled(stall) => stall.fmt(f),
            Error::Enough { time } => {
                write!(f, "at {}: stopped by the limit of its caller", Nanos(time.0))
            }
        }
    }
}

impl std::error::Error for Error {}
