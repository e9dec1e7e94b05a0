//! The machine: its CPUs, its scheduling costs, and its topology. [`Ticks`] are its kernel's ticks.

mod call_costs;
mod cpu_set;
mod queue_cost;
mod ticks;
mod topology;
mod wake_latency;

use crate::{CpuId, Nanos, Time};
pub use call_costs::{CallCosts, Spread};
pub use cpu_set::CpuSet;
pub use queue_cost::QueueCost;
use std::num::NonZero;
pub use ticks::Ticks;
pub use topology::{Distance, MigrationCosts, Place, Topology};
pub use wake_latency::{ByIdleTime, IdleTime, WakeLatency};

/// N CPUs and the costs of moving work between tasks and between CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// How many CPUs.
    pub cpus: u16,
    /// The cost of a switch from one task to another; it cannot be preempted and is not part of
    /// the slice.
    pub switch_cost: Nanos,
    /// Added to a task's CPU burst when it runs on another CPU than last time (Curran & Stumm's
    /// TMC); part of the slice.
    pub migration_cost: Nanos,
    /// The part of `switch_cost` that the policy does not see and no task pays. It is the time of a
    /// policy in a user-space program, between the tasks. If it is not zero, a task that stops and
    /// is chosen again pays for a switch as others do, because the program ran.
    pub unseen: Nanos,
    /// The time from the wakeup of an idle CPU by another CPU to its switch to the woken task.
    pub idle_exit: Nanos,
    /// The time from a waking to the switch to the woken task on an awake CPU. That is one whose
    /// idleness an interrupt ended, or one that will preempt its task, which runs until then. It is
    /// the rest of the interrupt and the path through the scheduler.
    pub wake_cost: Nanos,
    /// Both as distributions, by what the CPU does and who wakes; where they are unknown, the two
    /// numbers hold.
    pub latency: WakeLatency,
    /// How long a waking, or a tick that the policy receives, interrupts the task of its CPU, which
    /// then continues. It is the time of a policy in a user-space program, to which the CPU
    /// switches and back. It is not paid while the program runs already, nor where the CPU switches
    /// to another task. Part of the slice.
    pub interruption: Nanos,
    /// How long a timer interrupt that wakes a task interrupts the task of its CPU, which then
    /// continues. Part of the slice.
    pub timer_cost: Nanos,
    /// What blocking and waking take of the task that does it.
    pub calls: CallCosts,
    /// The costs of memory shared between CPUs.
    pub sharing: Sharing,
    /// The cost of the insert and the pop of each dispatch; nothing by default. The CPU that
    /// dispatches pays it, like a switch, even where the same task continues. It depends on the
    /// number of tasks in the queue that serves this CPU.
    pub queue_cost: Option<QueueCost>,
    /// How long a dispatch holds the lock of its task's queue, per entry that it examines; CPUs
    /// that want the same lock spin. Nothing by default, as Curran & Stumm assume; Ni & Wu name it
    /// as the limit of a central queue. Insertions hold no lock.
    pub lock_hold: Nanos,
    /// The share by which a hold lengthens for each other CPU that is at the lock already (Anderson
    /// 1990). Nothing by default.
    pub lock_contention: f64,
    /// How many CPUs make scheduling decisions (Wendorf 1987): at most this number of dispatches is
    /// at locks at a time. By default every CPU decides for itself. What decisions for others take
    /// of a decider's own task is not modelled.
    pub deciders: Option<NonZero<u16>>,
    /// The topology of the CPUs. By default all CPUs are alike and share one cache.
    pub topology: Option<Topology>,
    /// The kernel's ticks. By default only a policy's own ticks come, and a slice ends when it is
    /// used up.
    pub ticks: Option<Ticks>,
}

/// The costs of migrations beyond `migration_cost`, to the source, the destination and others
/// (Curran & Stumm 1990, §2). Nothing by default.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sharing {
    /// The share by which CPU bursts lengthen because the bus is shared with migrating tasks
    /// (their SMC; 0.05 in the Baseline System).
    pub slowdown: f64,
    /// Which bursts lengthen.
    pub slows: Slows,
    /// If set, a task that returns to its CPU refills what its cache has lost: `migration_cost` ×
    /// (1 − 2^(−time away / half-life)).
    pub refill_half_life: Option<Nanos>,
    /// How much each migration delays the tasks of the other CPUs (invalidations and updates on
    /// the bus).
    pub bus: Nanos,
    /// The share by which a burst lengthens on a CPU other than the task's first, near which its
    /// memory is.
    pub remote: f64,
}

/// Which bursts pay for possible migrations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Slows {
    /// All bursts under a policy that may migrate tasks, whether or not it does: as in the paper.
    #[default]
    EveryBurst,
    /// The rest of a burst after its task migrates.
    MigratedBursts,
}

impl Machine {
    /// `cpus` CPUs on which scheduling costs nothing.
    pub fn ideal(cpus: u16) -> Machine {
        Machine {
            cpus,
            switch_cost: Nanos::ZERO,
            unseen: Nanos::ZERO,
            migration_cost: Nanos::ZERO,
            idle_exit: Nanos::ZERO,
            wake_cost: Nanos::ZERO,
            latency: WakeLatency::default(),
            interruption: Nanos::ZERO,
            timer_cost: Nanos::ZERO,
            calls: CallCosts::default(),
            sharing: Sharing::default(),
            queue_cost: None,
            lock_hold: Nanos::ZERO,
            lock_contention: 0.0,
            deciders: None,
            topology: None,
            ticks: None,
        }
    }

    /// The distance from `from` to `to`: the same cluster, unless a topology says otherwise.
    pub fn distance(&self, from: CpuId, to: CpuId) -> Distance {
        match &self.topology {
            Some(topology) => topology.distance(from, to),
            None if from == to => Distance::Itself,
            None => Distance::Cluster,
        }
    }

    /// The cost of a migration from `from` to `to`, added to the task's burst.
    #[inline]
    pub fn migration_cost(&self, from: CpuId, to: CpuId) -> Nanos {
        self.topology.as_ref().map_or(self.migration_cost, |topology| {
            topology.migration_cost(from, to, self.migration_cost)
        })
    }

    /// The longest time from a waking to the choice of the next task of a CPU that is to run it.
    pub fn longest_wake(&self) -> Nanos {
        self.idle_exit.max(self.wake_cost).max(self.latency.most())
    }

    /// When a slice that is used up on `cpu` at `due` ends.
    #[inline]
    pub fn slice_end(&self, cpu: CpuId, due: Time) -> Time {
        self.ticks.as_ref().map_or(due, |ticks| ticks.slice_end(cpu, due))
    }

    /// All CPUs, in order.
    pub fn all(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus).map(CpuId)
    }
}
