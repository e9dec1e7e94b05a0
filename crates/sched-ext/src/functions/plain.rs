//! Everything else: time, CPUs, tasks, groups, ends.

use super::{Function, Kernel, errno};
use crate::core::Answer;
use crate::memory;
use bpf::{Address, Machine};

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("scx_bpf_now", now),
    ("scx_bpf_nr_cpu_ids", |kernel, _, _| Ok(kernel.core.cpus.len() as u64)),
    ("scx_bpf_nr_node_ids", |kernel, _, _| Ok(kernel.core.global.len() as u64)),
    ("scx_bpf_cpu_node", cpu_node),
    ("scx_bpf_cpuperf_cap", |_, _, _| Ok(1024)),
    ("scx_bpf_cpuperf_cur", |_, _, _| Ok(1024)),
    ("scx_bpf_cpuperf_set", nothing),
    ("scx_bpf_task_running", task_running),
    ("scx_bpf_task_cpu", task_cpu),
    ("scx_bpf_task_cgroup", |kernel, _, _| Ok(kernel.core.root_cgroup)),
    ("scx_bpf_task_set_slice", set_slice),
    ("scx_bpf_task_set_dsq_vtime", set_time),
    ("scx_bpf_cpu_rq", cpu_rq),
    ("scx_bpf_locked_rq", |kernel, _, _| Ok(kernel.core.cpus[kernel.core.this.index()].rq)),
    ("scx_bpf_cpu_curr", cpu_current),
    ("scx_bpf_error_bstr", error),
    ("scx_bpf_exit_bstr", exit),
    ("scx_bpf_dump_bstr", nothing),
    ("scx_bpf_events", events),
    ("bpf_task_acquire", itself),
    ("bpf_task_release", nothing),
    ("bpf_task_from_pid", task_from_pid),
    ("bpf_task_from_vpid", task_from_pid),
    ("bpf_rcu_read_lock", nothing),
    ("bpf_rcu_read_unlock", nothing),
    ("bpf_preempt_disable", nothing),
    ("bpf_preempt_enable", nothing),
    ("bpf_cgroup_acquire", itself),
    ("bpf_cgroup_release", nothing),
    ("bpf_cgroup_from_id", |kernel, _, _| Ok(kernel.core.root_cgroup)),
    ("bpf_cgroup_ancestor", |kernel, _, _| Ok(kernel.core.root_cgroup)),
    ("bpf_iter_num_new", numbers),
    ("bpf_iter_num_next", next_number),
    ("bpf_iter_num_destroy", nothing),
];

fn nothing(_: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    Ok(0)
}

fn itself(_: &mut Kernel, _: &mut Machine, [address, ..]: [u64; 5]) -> Answer<u64> {
    Ok(address)
}

fn now(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    Ok(kernel.cx.now().0)
}

fn cpu_node(kernel: &mut Kernel, _: &mut Machine, [cpu, ..]: [u64; 5]) -> Answer<u64> {
    let cpu = kernel.expect_cpu(cpu);
    Ok(cpu.map_or(errno(super::EINVAL), |cpu| kernel.core.node_of[usize::from(cpu)].into()))
}

fn task_running(kernel: &mut Kernel, machine: &mut Machine, [task, ..]: [u64; 5]) -> Answer<u64> {
    let Some(task) = kernel.core.expect_task(machine, task) else { return Ok(0) };
    let cpu = &kernel.core.cpus[usize::from(kernel.core.tasks[task.index()].cpu)];
    Ok((cpu.runs == Some(task)).into())
}

fn task_cpu(kernel: &mut Kernel, machine: &mut Machine, [task, ..]: [u64; 5]) -> Answer<u64> {
    let task = kernel.core.expect_task(machine, task);
    Ok(task.map_or(0, |task| kernel.core.tasks[task.index()].cpu.into()))
}

fn set_slice(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, slice, ..]: [u64; 5],
) -> Answer<u64> {
    let Some(task) = kernel.core.expect_task(machine, task) else { return Ok(0) };
    kernel.core.set_slice(machine, task, slice)?;
    Ok(1)
}

fn set_time(kernel: &mut Kernel, machine: &mut Machine, [task, time, ..]: [u64; 5]) -> Answer<u64> {
    memory::set(machine, task, kernel.core.layout.vtime, time)?;
    Ok(1)
}

fn cpu_rq(kernel: &mut Kernel, _: &mut Machine, [cpu, ..]: [u64; 5]) -> Answer<u64> {
    let cpu = kernel.expect_cpu(cpu);
    Ok(cpu.map_or(0, |cpu| kernel.core.cpus[usize::from(cpu)].rq))
}

fn cpu_current(kernel: &mut Kernel, _: &mut Machine, [cpu, ..]: [u64; 5]) -> Answer<u64> {
    let Some(cpu) = kernel.expect_cpu(cpu) else { return Ok(0) };
    Ok(kernel.core.current(cpu))
}

/// The scheduler ends itself, with a text of its own.
fn error(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [format, data, size, ..]: [u64; 5],
) -> Answer<u64> {
    let text = crate::helpers::formatted(machine, format, data, size)?;
    kernel.core.error(text);
    Ok(0)
}

fn exit(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [code, format, data, size, _]: [u64; 5],
) -> Answer<u64> {
    let text = crate::helpers::formatted(machine, format, data, size)?;
    kernel.core.error(format!("unregistered from BPF, code {code:#x}: {text}"));
    Ok(0)
}

/// Counters of the core, all zero.
fn events(_: &mut Kernel, machine: &mut Machine, [to, size, ..]: [u64; 5]) -> Answer<u64> {
    machine.write(Address(to), &vec![0; size.min(4096) as usize]).map(|()| 0)
}

fn task_from_pid(kernel: &mut Kernel, _: &mut Machine, [pid, ..]: [u64; 5]) -> Answer<u64> {
    let index = (pid as u32).checked_sub(1).map(|index| index as usize);
    Ok(index.and_then(|index| kernel.core.tasks.get(index)).map_or(0, |task| task.address))
}

/// The most numbers of an iterator (`BPF_MAX_LOOPS`).
const MOST_ROUNDS: i64 = 8 << 20;

/// An iterator over numbers: the next one and the end, four bytes each.
fn numbers(
    _: &mut Kernel,
    machine: &mut Machine,
    [iterator, start, end, ..]: [u64; 5],
) -> Answer<u64> {
    let (start, end) = (start as i32, end as i32);
    let failed = match i64::from(end) - i64::from(start) {
        ..0 => errno(super::EINVAL),
        0..=MOST_ROUNDS => 0,
        _ => errno(super::E2BIG),
    };
    let (start, end) = if failed == 0 { (start, end) } else { (0, 0) };
    memory::write(machine, iterator, 4, start.wrapping_sub(1) as u32 as u64)?;
    memory::write(machine, iterator.wrapping_add(4), 4, end as u32 as u64)?;
    Ok(failed)
}

/// Returns where the number is.
fn next_number(_: &mut Kernel, machine: &mut Machine, [iterator, ..]: [u64; 5]) -> Answer<u64> {
    let (last, end) = (
        memory::read(machine, iterator, 4)? as i32,
        memory::read(machine, iterator.wrapping_add(4), 4)? as i32,
    );
    if i64::from(last) + 1 >= i64::from(end) {
        memory::write(machine, iterator.wrapping_add(4), 4, 0)?;
        memory::write(machine, iterator, 4, 0)?;
        return Ok(0);
    }
    memory::write(machine, iterator, 4, last.wrapping_add(1) as u32 as u64)?;
    Ok(iterator)
}
