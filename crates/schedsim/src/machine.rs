//! The machine: its CPUs, what scheduling costs on them, and how they lie to one another. When its kernel's ticks come is [`Ticks`].

mod cpu_set;
mod queue_cost;
mod ticks;
mod topology;

use crate::{CpuId, Nanos, Time};
pub use cpu_set::CpuSet;
pub use queue_cost::QueueCost;
pub use ticks::Ticks;
pub use topology::{Distance, MigrationCosts, Place, Topology};

/// N CPUs and the costs of moving work between tasks and between CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// How many CPUs.
    pub cpus: u16,
    /// Spent by a CPU each time it goes from one task to another; cannot be preempted and is not part of the slice.
    pub switch_cost: Nanos,
    /// Added to a task's CPU burst when it runs on another CPU than the time before (Curran & Stumm's TMC); part of the slice.
    pub migration_cost: Nanos,
    /// The part of `switch_cost` that the policy does not see and charges to no task: the time of a policy that decides in a program of its own, between the tasks.
    /// If it is not zero, a task that stops and is chosen again pays for a switch as others do: the program ran.
    pub unseen: Nanos,
    /// From the wakeup of an idle CPU by another one until it switches to the woken task.
    pub idle_exit: Nanos,
    /// From a waking until a CPU that is awake switches to the woken task: it was interrupted while idle, or shall preempt the task that it runs, which
    /// goes on until then. What is left of the interrupt, and the way through the scheduler.
    pub wake_cost: Nanos,
    /// For how long a waking, or a tick that the policy receives, interrupts the task of its CPU, which then goes on: the time of a policy that decides in a program of its own, to which the CPU
    /// switches and back. It is not paid twice while the program runs already, nor where the CPU goes from one task to the next. Part of the slice.
    pub interruption: Nanos,
    /// For how long the interrupt of a timer that wakes a task interrupts the task of its CPU, which then goes on. Part of the slice.
    pub timer_cost: Nanos,
    /// What it costs that the CPUs share memory.
    pub sharing: Sharing,
    /// What each dispatch costs for the insert and the pop that it took; by default nothing. It is paid by the CPU that dispatches, like a switch and also where the
    /// task goes on that ran; the number of tasks is that in the queue from which this CPU is served.
    pub queue_cost: Option<QueueCost>,
    /// For so long a dispatch holds the lock of the queue that its task comes from, for each entry that it examines there; CPUs that want the same lock spin.
    /// By default nothing, as Curran & Stumm assume; what Ni & Wu say limits a central queue. Insertions hold no lock.
    pub lock_hold: Nanos,
    /// How CPUs lie to one another, of as many as there are. By default all are alike and share one cache.
    pub topology: Option<Topology>,
    /// When its kernel's ticks come. By default only a policy's own ticks come, and a slice ends when it is used up.
    pub ticks: Option<Ticks>,
}

/// What migrations cost beyond `migration_cost`, by source (Curran & Stumm 1990, §2). Nothing by default.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sharing {
    /// The share by which CPU bursts lengthen because the bus is shared with tasks that migrate (their SMC; 0.05 in the Baseline System).
    pub slowdown: f64,
    /// Which bursts that is.
    pub slows: Slows,
    /// If set, a task that comes back to its CPU has to fetch again what it has lost: `migration_cost` × (1 − 2^(−time away / half-life)).
    pub refill_half_life: Option<Nanos>,
    /// By how much each migration delays what the other CPUs run (invalidations and updates on the bus).
    pub bus: Nanos,
    /// The share by which a burst lengthens that begins on another CPU than the task's first, near which its memory lies.
    pub remote: f64,
}

/// Which bursts pay for migrations being possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Slows {
    /// All bursts under a policy that may migrate tasks, whether or not it does: as in the paper.
    #[default]
    EveryBurst,
    /// What is left of a burst when its task migrates.
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
            interruption: Nanos::ZERO,
            timer_cost: Nanos::ZERO,
            sharing: Sharing::default(),
            queue_cost: None,
            lock_hold: Nanos::ZERO,
            topology: None,
            ticks: None,
        }
    }

    /// How far `to` is from `from`: in the same cluster, unless there is a topology that says otherwise.
    pub fn distance(&self, from: CpuId, to: CpuId) -> Distance {
        match &self.topology {
            Some(topology) => topology.distance(from, to),
            None if from == to => Distance::Itself,
            None => Distance::Cluster,
        }
    }

    /// What a migration adds to the burst of the task that comes from `from` to `to`.
    #[inline]
    pub fn migration_cost(&self, from: CpuId, to: CpuId) -> Nanos {
        self.topology.as_ref().map_or(self.migration_cost, |topology| topology.migration_cost(from, to, self.migration_cost))
    }

    /// When a slice ends that is used up on `cpu` at `due`.
    #[inline]
    pub fn slice_end(&self, cpu: CpuId, due: Time) -> Time {
        self.ticks.as_ref().map_or(due, |ticks| ticks.slice_end(cpu, due))
    }

    /// All CPUs, in order.
    pub fn all(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus).map(CpuId)
    }
}
