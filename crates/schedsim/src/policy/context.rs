//! The information that a policy may use.

use super::Effect;
use super::loads::{Ties, pick};
use crate::seat::{Away, Breach, Callback, Ended, Rule, TaskState};
use crate::workload::{Affinity, Attributes, Cgroup, Reservation};
use crate::{CpuId, CpuSet, Machine, Random, TaskId, Time};

/// The number of kinds of domains: cores, clusters, nodes, machines.
pub const LEVELS: usize = 4;

/// The state that a policy sees: time, machine, running tasks, and random numbers.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) now: Time,
    pub(crate) machine: Machine,
    all: CpuSet,
    pub(crate) tasks: Vec<TaskView>,
    pub(crate) cpu_sets: Vec<CpuSet>,
    pub(crate) current: Vec<TaskId>,
    pub(crate) idle: CpuSet,
    /// The CPUs that are offline or taken by another class.
    pub(crate) away: Vec<(CpuId, Away)>,
    pub(crate) random: Random,
    pub(crate) reservations: Vec<Option<Reservation>>,
    pub(crate) cgroups: Vec<Cgroup>,
    /// Why the run ended early, if it did.
    pub(crate) ended: Option<Box<Ended>>,
    /// Whether the driver supplies requests.
    pub(crate) has_requests: bool,
    /// Effects beside those that callbacks return.
    pub(crate) requests: Vec<Effect>,
    /// When [`Policy::timer`](super::Policy::timer) is called next.
    pub(crate) call_at: Option<Time>,
}

/// The state of a task that a policy sees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskView {
    /// Linux's kernel priority: 0…99 real-time (0 most important), 100…139 for nice −20…19.
    pub prio: u8,
    /// Its scheduling policy and request.
    pub attributes: Attributes,
    /// Whether it is known on arrival as a task that needs the CPU all the time (Curran & Stumm's
    /// processor-intensive tasks).
    pub intensive: bool,
    /// Where it may run.
    pub affinity: Affinity,
    /// The CPU on which it last ran or waited.
    pub cpu: CpuId,
    /// Its state, which only the [seat](crate::seat) changes.
    pub(crate) state: TaskState,
}

impl TaskView {
    /// A task of this priority with default attributes and no affinity.
    pub fn of(prio: u8) -> TaskView {
        TaskView {
            prio,
            attributes: Attributes::default(),
            intensive: false,
            affinity: Affinity::Any,
            cpu: CpuId(0),
            state: TaskState::Absent,
        }
    }
}

impl Context {
    pub(crate) fn new(machine: Machine, cpu_sets: Vec<CpuSet>, random: Random) -> Context {
        let all: CpuSet = machine.all().collect();
        let current = vec![TaskId::NONE; usize::from(machine.cpus)];
        Context {
            now: Time::ZERO,
            machine,
            idle: all.clone(),
            all,
            tasks: Vec::new(),
            cpu_sets,
            current,
            away: Vec::new(),
            random,
            reservations: Vec::new(),
            cgroups: Vec::new(),
            ended: None,
            has_requests: false,
            requests: Vec::new(),
            call_at: None,
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The machine.
    #[inline]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The CPUs that share a core with `cpu`, those that share a cache, those of its node, and all
    /// CPUs. Without a topology, all CPUs share a cache.
    pub fn spans(&self, cpu: CpuId) -> [&CpuSet; LEVELS] {
        self.machine.topology.as_ref().map_or([&self.all; LEVELS], |topology| topology.spans(cpu))
    }

    /// The domains in which `cpu` balances its load, as in Linux: from near to far, each with its
    /// number and larger than the one before.
    pub fn domains(&self, cpu: CpuId) -> impl Iterator<Item = (usize, &CpuSet)> {
        let spans = self.spans(cpu);
        let first = usize::from(self.machine.topology.is_none());
        let larger = move |&index: &usize| {
            spans[index].len() > if index == first { 1 } else { spans[index - 1].len() }
        };
        (first..LEVELS).filter(larger).map(move |index| (index, spans[index]))
    }

    /// The CPUs with which `cpu` shares its last-level cache.
    pub fn cluster(&self, cpu: CpuId) -> &CpuSet {
        self.spans(cpu)[1]
    }

    /// The attributes of a task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &TaskView {
        &self.tasks[task.index()]
    }

    /// The reservation of `task`, if any.
    pub fn reservation(&self, task: TaskId) -> Option<Reservation> {
        self.reservations.get(task.index()).copied().flatten()
    }

    /// The control groups that tasks may be in.
    pub fn cgroups(&self) -> &[Cgroup] {
        &self.cgroups
    }

    /// What runs on `cpu`.
    #[inline]
    pub fn current(&self, cpu: CpuId) -> Option<TaskId> {
        let task = self.current[cpu.index()];
        (task != TaskId::NONE).then_some(task)
    }

    /// The CPU that runs or is about to run `task`, if any.
    #[inline]
    pub fn runs_on(&self, task: TaskId) -> Option<CpuId> {
        let cpu = self.tasks[task.index()].cpu;
        (self.current[cpu.index()] == task).then_some(cpu)
    }

    /// The CPUs that are idle and have not been kicked.
    #[inline]
    pub fn idle(&self) -> &CpuSet {
        &self.idle
    }

    /// Whether `cpu` is online and no better class has taken it.
    pub fn is_available(&self, cpu: CpuId) -> bool {
        self.away.iter().all(|&(other, _)| other != cpu)
    }

    /// Whether `task` may run on `cpu`.
    #[inline]
    pub fn allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        match self.tasks[task.index()].affinity {
            Affinity::Any => true,
            Affinity::Pinned(only) => only.0 % self.machine.cpus == cpu.0,
            Affinity::Set(set) => self.cpu_sets[set as usize].contains(cpu),
        }
    }

    /// The only CPU on which `task` may run, if there is just one.
    #[inline]
    pub fn pinned(&self, task: TaskId) -> Option<CpuId> {
        match self.tasks[task.index()].affinity {
            Affinity::Pinned(only) => Some(CpuId(only.0 % self.machine.cpus)),
            _ => None,
        }
    }

    /// Whether there is a CPU on which `task` may not run.
    #[inline]
    pub fn is_restricted(&self, task: TaskId) -> bool {
        self.tasks[task.index()].affinity != Affinity::Any
    }

    /// The CPU with the minimum `load` among those on which `task` may run. It examines all of
    /// them; for loads that are counts, [`Loads`](super::loads::Loads) is faster.
    pub(super) fn least(
        &mut self,
        task: TaskId,
        ties: Ties,
        load: impl Fn(&Context, CpuId) -> u64,
    ) -> CpuId {
        let (mut best, mut equals) = (u64::MAX, Vec::new());
        for cpu in self.allowed_cpus(task) {
            let load = load(self, cpu);
            if load < best {
                (best, equals) = (load, Vec::new());
            }
            if load == best {
                equals.push(cpu);
            }
        }
        if equals.is_empty() {
            self.tasks[task.index()].cpu
        } else {
            pick(&equals, ties, &mut self.random)
        }
    }

    /// The CPU that `task` last used if that is idle, else the lowest idle CPU that it may use.
    #[inline(always)]
    pub fn idle_cpu_for(&self, task: TaskId) -> Option<CpuId> {
        if self.idle.is_empty() {
            return None;
        }
        let last = self.tasks[task.index()].cpu;
        if self.idle.contains(last) && self.allowed(task, last) {
            return Some(last);
        }
        match self.tasks[task.index()].affinity {
            Affinity::Any => self.idle.first(),
            Affinity::Pinned(_) => self.pinned(task).filter(|&cpu| self.idle.contains(cpu)),
            Affinity::Set(_) => self.idle.iter().find(|&cpu| self.allowed(task, cpu)),
        }
    }

    /// The CPUs on which `task` may run.
    pub fn allowed_cpus(&self, task: TaskId) -> impl Iterator<Item = CpuId> + '_ {
        self.machine.all().filter(move |&cpu| self.allowed(task, cpu))
    }

    /// Asks for one more effect. It takes place when the event that is handled now is over.
    pub fn also(&mut self, effect: Effect) {
        if self.supplies(effect != Effect::Nothing) {
            self.requests.push(effect);
        }
    }

    /// Asks for a call of [`Policy::timer`](super::Policy::timer) at `time`, not in the past. This
    /// replaces an earlier request.
    pub fn call_at(&mut self, time: Time) {
        if self.supplies(true) {
            self.call_at = Some(time);
        }
    }

    /// Whether a request may be made; if not, the run ends.
    fn supplies(&mut self, asks: bool) -> bool {
        if asks && !self.has_requests {
            let message = "the policy makes requests beside its answers (Context::also, call_at): \
                           its `needs` do not declare `requests`, or this driver does not grant \
                           them";
            self.fail(Callback::Needs, message);
        }
        asks && self.has_requests
    }

    /// Random numbers of this run.
    #[inline]
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Refuses a task: the run ends with this message, which blames the workload and not the
    /// policy. The first end is kept.
    pub fn refuse(&mut self, message: impl Into<String>) {
        let ended = Ended::Refused { time: self.now, message: message.into() };
        self.ended.get_or_insert_with(|| Box::new(ended));
    }

    /// Gives up in `callback`: the run ends with this message. The first end is kept.
    pub fn fail(&mut self, callback: Callback, message: impl Into<String>) {
        let rule = Rule::GivesUp { message: message.into() };
        let breach = Breach { callback, rule, task: None, cpu: None, time: self.now };
        self.ended.get_or_insert_with(|| Box::new(Ended::Breach(breach)));
    }
}
