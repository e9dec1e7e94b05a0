//! The current speed of each CPU: some CPUs are slow, and busy threads share a core.
//!
//! Run times are those of the fastest CPU alone on its core. On a slower CPU the difference is
//! overhead of its task, so that work is conserved exactly. A step ends when all of its work is
//! done, rounded up to a nanosecond.

use super::Engine;
use crate::policy::Policy;
use crate::trace::{EventKind, OverheadKind, Sink};
use crate::{CpuId, CpuSet, Machine, Nanos, TaskId};

/// Empty where all CPUs are alike.
#[derive(Debug, Default)]
pub struct Rates {
    /// The speed of each CPU, in units of 2⁻²⁰ of the fastest.
    now: Vec<u32>,
    /// The threads of each CPU's core, including itself.
    threads: Vec<Vec<CpuId>>,
    /// Which CPUs run or switch to something.
    busy: CpuSet,
}

const SHIFT: u32 = 20;

impl Rates {
    pub fn new(machine: &Machine) -> Rates {
        let Some(topology) = machine.topology.as_ref().filter(|topology| topology.is_uneven())
        else {
            return Rates::default();
        };
        let now = machine.all().map(|cpu| in_units(topology.place(cpu).speed)).collect();
        let threads = machine.all().map(|cpu| topology.core(cpu).iter().collect()).collect();
        Rates { now, threads, busy: CpuSet::empty(machine.cpus) }
    }

    #[inline(always)]
    pub fn are_even(&self) -> bool {
        self.now.is_empty()
    }

    /// How long `work` takes on `cpu`.
    #[inline(always)]
    pub fn time_for(&self, cpu: CpuId, work: Nanos) -> Nanos {
        if self.are_even() { work } else { self.slowly(cpu, work) }
    }

    #[cold]
    fn slowly(&self, cpu: CpuId, work: Nanos) -> Nanos {
        Nanos((u128::from(work.0) << SHIFT).div_ceil(u128::from(self.now[cpu.index()])) as u64)
    }
}

/// Never zero, so that every step ends.
fn in_units(speed: f64) -> u32 {
    ((speed * f64::from(1 << SHIFT)) as u32).clamp(1, 1 << SHIFT)
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// `cpu` becomes busy or idle: updates the speeds of its core's threads.
    #[cold]
    pub(super) fn share_core(&mut self, cpu: CpuId, is_busy: bool) {
        if self.rates.busy.contains(cpu) == is_busy {
            return;
        }
        if is_busy {
            self.rates.busy.insert(cpu)
        } else {
            self.rates.busy.remove(cpu)
        }
        let threads = self.rates.threads[cpu.index()].len();
        let busy = self.rates.threads[cpu.index()]
            .iter()
            .filter(|&&thread| self.rates.busy.contains(thread))
            .count();
        for index in 0..threads {
            let thread = self.rates.threads[cpu.index()][index];
            self.account(thread);
            if let Some(topology) = &self.seat.cx().machine.topology {
                self.rates.now[thread.index()] =
                    in_units(topology.place(thread).speed * topology.share(busy));
            }
            if thread != cpu && self.current(thread) != TaskId::NONE {
                self.plan(thread);
            }
        }
    }

    /// The work that `task` does in `ran` on `cpu`. The rest of `ran` is overhead of a slow CPU.
    #[cold]
    pub(super) fn progress(&mut self, cpu: CpuId, task: TaskId, ran: Nanos) -> Nanos {
        let rate = u128::from(self.rates.now[cpu.index()]);
        let done = Nanos(((u128::from(ran.0) * rate) >> SHIFT) as u64)
            .min(self.tasks[task.index()].left());
        let spent = ran - done;
        if spent > Nanos::ZERO {
            self.trace.push(
                self.now(),
                cpu,
                EventKind::Overhead { task, kind: OverheadKind::Slow, spent },
            );
        }
        done
    }
}
