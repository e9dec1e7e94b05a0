//! Sets of CPUs (`kernel/bpf/cpumask.c`).

use super::{Function, Kernel};
use crate::core::Answer;
use crate::masks::Mask;
use crate::memory;
use bpf::{Address, Machine};

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("bpf_cpumask_create", create),
    ("bpf_cpumask_acquire", itself),
    ("bpf_cpumask_release", release),
    ("bpf_cpumask_release_dtor", release),
    ("bpf_cpumask_first", |kernel, machine, [mask, ..]| {
        let mask = kernel.core.mask(machine, mask)?;
        Ok(kernel.or_past_all(mask.next(0)))
    }),
    ("bpf_cpumask_first_zero", |kernel, machine, [mask, ..]| {
        let (mask, cpus) = (kernel.core.mask(machine, mask)?, kernel.cpus());
        Ok(kernel.or_past_all((0..cpus).find(|&cpu| !mask.has(cpu))))
    }),
    ("bpf_cpumask_first_and", |kernel, machine, [a, b, ..]| {
        let both = kernel.both(machine, a, b)?;
        Ok(kernel.or_past_all(both.next(0)))
    }),
    ("bpf_cpumask_set_cpu", |kernel, machine, [cpu, mask, ..]| {
        kernel.change(machine, mask, cpu, Some(true)).map(|_| 0)
    }),
    ("bpf_cpumask_clear_cpu", |kernel, machine, [cpu, mask, ..]| {
        kernel.change(machine, mask, cpu, Some(false)).map(|_| 0)
    }),
    ("bpf_cpumask_test_cpu", |kernel, machine, [cpu, mask, ..]| {
        kernel.change(machine, mask, cpu, None)
    }),
    ("bpf_cpumask_test_and_set_cpu", |kernel, machine, [cpu, mask, ..]| {
        kernel.change(machine, mask, cpu, Some(true))
    }),
    ("bpf_cpumask_test_and_clear_cpu", |kernel, machine, [cpu, mask, ..]| {
        kernel.change(machine, mask, cpu, Some(false))
    }),
    ("bpf_cpumask_setall", |kernel, machine, [mask, ..]| {
        let all = Mask::all(kernel.cpus());
        machine.write(Address(mask), &all.to_bytes()).map(|()| 0)
    }),
    ("bpf_cpumask_clear", |kernel, machine, [mask, ..]| {
        let none = Mask::none(kernel.cpus());
        machine.write(Address(mask), &none.to_bytes()).map(|()| 0)
    }),
    ("bpf_cpumask_and", |kernel, machine, [to, a, b, ..]| {
        let both = kernel.both(machine, a, b)?;
        machine.write(Address(to), &both.to_bytes())?;
        Ok((!both.is_empty()).into())
    }),
    ("bpf_cpumask_or", |kernel, machine, [to, a, b, ..]| {
        let (a, b) = (kernel.core.mask(machine, a)?, kernel.core.mask(machine, b)?);
        machine.write(Address(to), &a.or(&b).to_bytes()).map(|()| 0)
    }),
    ("bpf_cpumask_xor", |kernel, machine, [to, a, b, ..]| {
        let (a, b) = (kernel.core.mask(machine, a)?, kernel.core.mask(machine, b)?);
        machine.write(Address(to), &a.xor(&b).to_bytes()).map(|()| 0)
    }),
    ("bpf_cpumask_copy", |kernel, machine, [to, from, ..]| {
        let mask = kernel.core.mask(machine, from)?;
        machine.write(Address(to), &mask.to_bytes()).map(|()| 0)
    }),
    ("bpf_cpumask_equal", |kernel, machine, [a, b, ..]| {
        Ok((kernel.core.mask(machine, a)? == kernel.core.mask(machine, b)?).into())
    }),
    ("bpf_cpumask_intersects", |kernel, machine, [a, b, ..]| {
        Ok((!kernel.both(machine, a, b)?.is_empty()).into())
    }),
    ("bpf_cpumask_subset", |kernel, machine, [a, b, ..]| {
        let (a, b) = (kernel.core.mask(machine, a)?, kernel.core.mask(machine, b)?);
        Ok(a.is_within(&b).into())
    }),
    ("bpf_cpumask_empty", |kernel, machine, [mask, ..]| {
        Ok(kernel.core.mask(machine, mask)?.is_empty().into())
    }),
    ("bpf_cpumask_full", |kernel, machine, [mask, ..]| {
        let mask = kernel.core.mask(machine, mask)?;
        Ok((mask.weight() == u32::from(kernel.cpus())).into())
    }),
    ("bpf_cpumask_weight", |kernel, machine, [mask, ..]| {
        Ok(kernel.core.mask(machine, mask)?.weight().into())
    }),
    ("bpf_cpumask_any_distribute", |kernel, machine, [mask, ..]| {
        let mask = kernel.core.mask(machine, mask)?;
        let cpu = kernel.core.idle.distribute(kernel.core.this, &mask);
        Ok(kernel.or_past_all(cpu))
    }),
    ("bpf_cpumask_any_and_distribute", |kernel, machine, [a, b, ..]| {
        let both = kernel.both(machine, a, b)?;
        let cpu = kernel.core.idle.distribute(kernel.core.this, &both);
        Ok(kernel.or_past_all(cpu))
    }),
];

impl Kernel<'_> {
    fn cpus(&self) -> u16 {
        self.core.cpus.len() as u16
    }

    /// A CPU, or the number of all of them if there is none.
    fn or_past_all(&self, cpu: Option<u16>) -> u64 {
        cpu.unwrap_or(self.cpus()).into()
    }

    fn both(&self, machine: &Machine, a: u64, b: u64) -> Answer<Mask> {
        Ok(self.core.mask(machine, a)?.and(&self.core.mask(machine, b)?))
    }

    /// Whether a CPU is in the set at `mask`, before it is put there or taken out. One that does not
    /// exist is in no set.
    fn change(&self, machine: &mut Machine, mask: u64, cpu: u64, to: Option<bool>) -> Answer<u64> {
        let cpu = u64::from(cpu as u32);
        if cpu >= u64::from(self.cpus()) {
            return Ok(0);
        }
        let (at, bit) = (mask.wrapping_add(cpu / 8), cpu % 8);
        let byte = memory::read(machine, at, 1)?;
        match to {
            Some(true) => memory::write(machine, at, 1, byte | 1 << bit)?,
            Some(false) => memory::write(machine, at, 1, byte & !(1 << bit))?,
            None => {}
        }
        Ok(byte >> bit & 1)
    }
}

fn create(kernel: &mut Kernel, machine: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    Ok(machine.allocate("a bpf_cpumask", kernel.core.layout.mask_size + 8)?.0)
}

fn itself(_: &mut Kernel, _: &mut Machine, [address, ..]: [u64; 5]) -> Answer<u64> {
    Ok(address)
}

/// Masks are few, and kept: others may have acquired them.
fn release(_: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    Ok(0)
}
