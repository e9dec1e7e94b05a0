//! Idle CPUs, and kicks of CPUs (`kernel/sched/ext/idle.c`).

use super::{EBUSY, Function, Kernel, errno};
use crate::constants::{KICK_IDLE, KICK_PREEMPT};
use crate::core::Answer;
use crate::masks::Mask;
use crate::memory;
use bpf::Machine;
use schedsim::CpuId;
use schedsim::policy::Effect;

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("scx_bpf_select_cpu_dfl", choose),
    ("scx_bpf_select_cpu_and", choose_within),
    ("__scx_bpf_select_cpu_and", choose_within_with),
    ("scx_bpf_pick_idle_cpu", pick_idle),
    ("scx_bpf_pick_idle_cpu_node", pick_idle_of_node),
    ("scx_bpf_pick_any_cpu", pick_any),
    ("scx_bpf_pick_any_cpu_node", pick_any_of_node),
    ("scx_bpf_test_and_clear_cpu_idle", claim),
    ("scx_bpf_get_idle_cpumask", idle_cpus),
    ("scx_bpf_get_idle_cpumask_node", |kernel, _, _| {
        _ = kernel.tracks_idle(Some(true));
        Ok(kernel.core.idle_masks[0])
    }),
    ("scx_bpf_get_idle_smtmask", idle_cores),
    ("scx_bpf_get_idle_smtmask_node", |kernel, _, _| {
        _ = kernel.tracks_idle(Some(true));
        Ok(kernel.core.idle_masks[1])
    }),
    ("scx_bpf_put_idle_cpumask", put),
    ("scx_bpf_put_cpumask", put),
    ("scx_bpf_get_online_cpumask", all),
    ("scx_bpf_get_possible_cpumask", all),
    ("scx_bpf_kick_cpu", kick),
];

impl Kernel<'_> {
    /// Whether the core tracks idle CPUs, and by node or not as the function wants. If not, the
    /// scheduler ends.
    fn tracks_idle(&mut self, by_node: Option<bool>) -> bool {
        let wrong = match by_node {
            _ if !self.core.tracks_idle => "built-in idle tracking is disabled",
            Some(true) if !self.core.by_node => "per-node idle tracking is disabled",
            Some(false) if self.core.by_node => "per-node idle tracking is enabled",
            _ => return true,
        };
        self.core.error(wrong);
        false
    }

    fn picked(&mut self, machine: &mut Machine, cpu: Option<u16>) -> Answer<u64> {
        self.core.show_idle(machine)?;
        Ok(cpu.map_or(errno(EBUSY), u64::from))
    }

    fn chosen(
        &mut self,
        machine: &mut Machine,
        address: u64,
        prev: u64,
        within: Option<Mask>,
        (wake, flags): (u64, u64),
    ) -> Answer<Option<u16>> {
        if !self.tracks_idle(None) {
            return Ok(None);
        }
        let Some(task) = self.core.expect_task(machine, address) else { return Ok(None) };
        let prev = prev as u32 as u64;
        if prev >= self.core.cpus.len() as u64 {
            self.core.error(format!("invalid CPU {}", prev as i32));
            return Ok(None);
        }
        let allowed = self.core.allowed(machine, task)?;
        let is_bound = allowed.weight() == 1;
        let allowed = within.map_or(allowed.clone(), |within| within.and(&allowed));
        let prev = prev as u16;
        let cpu = if is_bound {
            let claims = allowed.has(prev) && self.core.idle.claim(prev);
            claims.then_some(prev)
        } else {
            self.core.choose(prev, &allowed, wake, flags)
        };
        self.core.show_idle(machine)?;
        Ok(cpu)
    }
}

/// Returns the CPU, and in `is_idle` whether it was.
fn choose(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, prev, wake, is_idle, _]: [u64; 5],
) -> Answer<u64> {
    let cpu = kernel.chosen(machine, task, prev, None, (wake, 0))?;
    memory::write(machine, is_idle, 1, cpu.is_some().into())?;
    Ok(cpu.map_or(u64::from(prev as u32), u64::from))
}

fn choose_within(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, prev, wake, mask, flags]: [u64; 5],
) -> Answer<u64> {
    let within = kernel.core.mask(machine, mask)?;
    let cpu = kernel.chosen(machine, task, prev, Some(within), (wake, flags))?;
    Ok(cpu.map_or(errno(EBUSY), u64::from))
}

/// Its arguments beside task and mask are a structure: CPU (4 bytes), flags of the wakeup, flags.
fn choose_within_with(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, mask, with, ..]: [u64; 5],
) -> Answer<u64> {
    let field = |at, size| memory::read(machine, with.wrapping_add(at), size);
    let (prev, wake, flags) = (field(0, 4)?, field(8, 8)?, field(16, 8)?);
    choose_within(kernel, machine, [task, prev, wake, mask, flags])
}

fn pick_idle(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [mask, flags, ..]: [u64; 5],
) -> Answer<u64> {
    if !kernel.tracks_idle(Some(false)) {
        return Ok(errno(EBUSY));
    }
    let mask = kernel.core.mask(machine, mask)?;
    let cpu = kernel.core.idle.pick(kernel.core.this, &mask, flags);
    kernel.picked(machine, cpu)
}

fn pick_idle_of_node(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [mask, node, flags, ..]: [u64; 5],
) -> Answer<u64> {
    if !kernel.tracks_idle(Some(true)) {
        return Ok(errno(EBUSY));
    }
    let mask = kernel.core.mask(machine, mask)?;
    let near = kernel.of_node(&mask, node);
    let mut cpu = kernel.core.idle.pick(kernel.core.this, &near, flags);
    if cpu.is_none() && flags & crate::idle::IN_NODE == 0 {
        cpu = kernel.core.idle.pick(kernel.core.this, &mask, flags);
    }
    kernel.picked(machine, cpu)
}

impl Kernel<'_> {
    /// The CPUs of `mask` that are of this node.
    fn of_node(&self, mask: &Mask, node: u64) -> Mask {
        let mut near = Mask::none(self.core.cpus.len() as u16);
        let is_near = |cpu: &CpuId| u64::from(self.core.node_of[cpu.index()]) == node;
        mask.iter().filter(is_near).for_each(|cpu| near.set(cpu.0));
        near
    }
}

fn pick_any(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [mask, flags, ..]: [u64; 5],
) -> Answer<u64> {
    let mask = kernel.core.mask(machine, mask)?;
    let idle = if kernel.core.tracks_idle {
        kernel.core.idle.pick(kernel.core.this, &mask, flags)
    } else {
        None
    };
    let cpu = idle.or_else(|| kernel.core.idle.distribute(kernel.core.this, &mask));
    kernel.picked(machine, cpu)
}

fn pick_any_of_node(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [mask, node, flags, ..]: [u64; 5],
) -> Answer<u64> {
    let idle = pick_idle_of_node(kernel, machine, [mask, node, flags, 0, 0])?;
    if idle != errno(EBUSY) {
        return Ok(idle);
    }
    pick_any(kernel, machine, [mask, flags, 0, 0, 0])
}

fn claim(kernel: &mut Kernel, machine: &mut Machine, [cpu, ..]: [u64; 5]) -> Answer<u64> {
    if !kernel.tracks_idle(None) {
        return Ok(0);
    }
    let Some(cpu) = kernel.expect_cpu(cpu) else { return Ok(0) };
    let claimed = kernel.core.idle.claim(cpu);
    kernel.core.show_idle(machine)?;
    Ok(claimed.into())
}

impl Kernel<'_> {
    /// The CPU of this number; if there is none, the scheduler ends.
    pub fn expect_cpu(&mut self, cpu: u64) -> Option<u16> {
        let cpu = cpu as u32;
        let found = u16::try_from(cpu).ok().filter(|&cpu| usize::from(cpu) < self.core.cpus.len());
        if found.is_none() {
            self.core.error(format!("invalid CPU {}", cpu as i32));
        }
        found
    }
}

fn idle_cpus(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    _ = kernel.tracks_idle(Some(false));
    Ok(kernel.core.idle_masks[0])
}

fn idle_cores(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    _ = kernel.tracks_idle(Some(false));
    Ok(kernel.core.idle_masks[1])
}

fn all(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    Ok(kernel.core.all_mask)
}

fn put(_: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    Ok(0)
}

/// A CPU looks for another task: an idle one only, or one whose task's slice is over. It does when
/// the event is over, as the kernel does it in an interrupt of its own (`kick_cpus_irq_workfn`).
fn kick(kernel: &mut Kernel, _: &mut Machine, [cpu, flags, ..]: [u64; 5]) -> Answer<u64> {
    let Some(cpu) = kernel.expect_cpu(cpu) else { return Ok(0) };
    if flags & KICK_IDLE != 0 {
        if flags & KICK_PREEMPT != 0 {
            kernel.core.error("PREEMPT/WAIT cannot be used with SCX_KICK_IDLE");
        }
        kernel.cx.also(Effect::Kick(CpuId(cpu)));
        return Ok(0);
    }
    kernel.core.cpus[usize::from(cpu)].is_cut |= flags & KICK_PREEMPT != 0;
    kernel.cx.also(Effect::Preempt(CpuId(cpu)));
    Ok(0)
}
