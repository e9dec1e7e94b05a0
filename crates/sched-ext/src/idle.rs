//! Which CPUs idle, and the kernel's own choice of one (`kernel/sched/ext/idle.c`).

use super::masks::Mask;
use schedsim::{CpuId, Machine};

/// Only a CPU whose whole core idles (`SCX_PICK_IDLE_CORE`).
pub const WHOLE_CORE: u64 = 1;
/// Only a CPU of that node (`SCX_PICK_IDLE_IN_NODE`).
pub const IN_NODE: u64 = 2;

/// The machine's domains, and which CPUs idle.
#[derive(Clone, Debug)]
pub struct Idle {
    cpus: Mask,
    /// The CPUs of cores that idle as a whole.
    cores: Mask,
    /// Of each CPU: its core.
    core_of: Vec<Mask>,
    /// Of each CPU those that share its cache, where that tells CPUs apart.
    cluster_of: Option<Vec<Mask>>,
    /// Of each CPU those of its node, where that tells CPUs apart otherwise than the cache.
    node_of: Option<Vec<Mask>>,
    is_smt: bool,
    /// Of each CPU the one that it was given last (`distribute_cpu_mask_prev`).
    given: Vec<u16>,
}

impl Idle {
    /// All CPUs idle, as at the start of a scheduler.
    pub fn new(machine: &Machine) -> Idle {
        let cpus = machine.cpus;
        let all = Mask::all(cpus);
        let spans = |level: usize| -> Vec<Mask> {
            let of = |cpu: CpuId| match &machine.topology {
                None if level == 0 => {
                    let mut itself = Mask::none(cpus);
                    itself.set(cpu.0);
                    itself
                }
                None => all.clone(),
                Some(topology) => Mask::of(cpus, topology.spans(cpu)[level]),
            };
            machine.all().map(of).collect()
        };
        let (core_of, clusters, nodes) = (spans(0), spans(1), spans(2));
        let divides = |spans: &[Mask]| spans.iter().any(|span| *span != all);
        Idle {
            is_smt: core_of.iter().any(|core| core.weight() > 1),
            node_of: (divides(&nodes) && nodes != clusters).then_some(nodes),
            cluster_of: divides(&clusters).then_some(clusters),
            core_of,
            cores: all.clone(),
            cpus: all,
            given: vec![u16::MAX; usize::from(cpus)],
        }
    }

    /// The CPUs that idle, and those of cores that idle as a whole.
    pub fn masks(&self) -> [&Mask; 2] {
        [&self.cpus, if self.is_smt { &self.cores } else { &self.cpus }]
    }

    /// `cpu` begins or ends to idle.
    pub fn update(&mut self, cpu: CpuId, idles: bool) {
        let core = &self.core_of[cpu.index()];
        if idles {
            self.cpus.set(cpu.0);
            if core.is_within(&self.cpus) {
                self.cores = self.cores.or(core);
            }
        } else {
            self.cpus.clear(cpu.0);
            core.iter().for_each(|cpu| self.cores.clear(cpu.0));
        }
    }

    /// Claims `cpu` if it idles (`scx_idle_test_and_clear_cpu`).
    pub fn claim(&mut self, cpu: u16) -> bool {
        let Some(core) = self.core_of.get(usize::from(cpu)) else { return false };
        core.iter().for_each(|cpu| self.cores.clear(cpu.0));
        let idles = self.cpus.has(cpu);
        self.cpus.clear(cpu);
        idles
    }

    /// Claims an idle CPU among `allowed`, one of a wholly idle core first. Those on which `this`
    /// decides are given in turn.
    pub fn pick(&mut self, this: CpuId, allowed: &Mask, flags: u64) -> Option<u16> {
        loop {
            let whole =
                self.is_smt.then(|| self.cores.and(allowed)).filter(|mask| !mask.is_empty());
            let from = match whole {
                Some(whole) => whole,
                None if self.is_smt && flags & WHOLE_CORE != 0 => return None,
                None => self.cpus.and(allowed),
            };
            let cpu = self.distribute(this, &from)?;
            if self.claim(cpu) {
                return Some(cpu);
            }
        }
    }

    /// The next one of `mask` after the last that was given on `this` (`cpumask_any_distribute`).
    pub fn distribute(&mut self, this: CpuId, mask: &Mask) -> Option<u16> {
        let last = &mut self.given[this.index()];
        let cpu = mask.next(last.wrapping_add(1))?;
        *last = cpu;
        Some(cpu)
    }

    /// The kernel's choice for a task that the one on `this` wakes and then sleeps
    /// (`SCX_WAKE_SYNC`). It is the last CPU of the task if that idles near the waker. Else it is
    /// the waker's, if it is free and another of `among` idles. It is not free if tasks wait there,
    /// or if it is of another node than wanted.
    pub fn choose_in_sync(
        &mut self,
        this: CpuId,
        prev: u16,
        allowed: &Mask,
        (free, among): (bool, &Mask),
    ) -> Option<u16> {
        let is_near = match &self.cluster_of {
            Some(clusters) => clusters.get(this.index()).is_some_and(|near| near.has(prev)),
            None => true,
        };
        if allowed.has(prev) && is_near && self.claim(prev) {
            return Some(prev);
        }
        let stays = free && !self.cpus.and(among).is_empty() && allowed.has(this.0);
        stays.then(|| {
            self.claim(this.0);
            this.0
        })
    }

    /// The kernel's choice for a task that ran on `prev` (`scx_select_cpu_dfl`): an idle CPU, which
    /// is claimed.
    pub fn choose(&mut self, this: CpuId, prev: u16, allowed: &Mask, flags: u64) -> Option<u16> {
        let is_allowed = allowed.has(prev);
        let near = |spans: &Option<Vec<Mask>>| {
            let span = spans.as_ref()?.get(usize::from(prev))?.and(allowed);
            (!span.is_empty()).then_some(span)
        };
        let (node, cluster) = (near(&self.node_of), near(&self.cluster_of));
        let mut levels: Vec<&Mask> = cluster.iter().chain(&node).collect();
        levels.push(allowed);
        if self.is_smt {
            if is_allowed && self.cores.has(prev) && self.claim(prev) {
                return Some(prev);
            }
            let found = levels.iter().find_map(|span| self.pick(this, span, flags | WHOLE_CORE));
            if found.is_some() || flags & WHOLE_CORE != 0 {
                return found;
            }
        }
        if is_allowed && self.claim(prev) {
            return Some(prev);
        }
        if self.is_smt {
            let siblings = self.core_of.get(usize::from(prev)).map(|core| core.and(allowed));
            let siblings = siblings.into_iter().flat_map(|core| core.iter().collect::<Vec<_>>());
            if let Some(cpu) = siblings.map(|cpu| cpu.0).find(|&cpu| cpu != prev && self.claim(cpu))
            {
                return Some(cpu);
            }
        }
        levels.iter().find_map(|span| self.pick(this, span, flags))
    }
}

#[cfg(test)]
mod tests;
