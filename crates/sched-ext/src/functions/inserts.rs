//! Tasks into queues, and from one to another (`kernel/sched/ext.c`).

use super::{E2BIG, EEXIST, EINVAL, ENOENT, ENOMEM, Function, Kernel, errno};
use crate::constants::{DSQ_BUILTIN, DSQ_GLOBAL, DSQ_LOCAL, DSQ_LOCAL_ON, ENQ_PRIQ};
use crate::core::{Answer, Asked, Cursor, Custody, Decided};
use crate::memory;
use crate::queues::QueueId;
use bpf::Machine;
use schedsim::TaskId;

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("scx_bpf_create_dsq", create),
    ("scx_bpf_destroy_dsq", destroy),
    ("scx_bpf_dsq_nr_queued", length),
    ("scx_bpf_dsq_insert", insert),
    ("scx_bpf_dispatch", insert),
    ("scx_bpf_dsq_insert_vtime", insert_by_time),
    ("scx_bpf_dispatch_vtime", insert_by_time),
    ("__scx_bpf_dsq_insert_vtime", insert_by_time_with),
    ("scx_bpf_dsq_move_to_local", consume),
    ("scx_bpf_consume", consume),
    ("scx_bpf_dispatch_nr_slots", slots),
    ("scx_bpf_dispatch_cancel", cancel),
    ("bpf_iter_scx_dsq_new", iterate),
    ("bpf_iter_scx_dsq_next", next),
    ("bpf_iter_scx_dsq_destroy", end),
    ("scx_bpf_dsq_peek", peek),
    ("scx_bpf_dsq_move", move_one),
    ("scx_bpf_dispatch_from_dsq", move_one),
    ("scx_bpf_dsq_move_vtime", move_one_by_time),
    ("scx_bpf_dispatch_vtime_from_dsq", move_one_by_time),
    ("scx_bpf_dsq_move_set_slice", move_with_slice),
    ("scx_bpf_dispatch_from_dsq_set_slice", move_with_slice),
    ("scx_bpf_dsq_move_set_vtime", move_with_time),
    ("scx_bpf_dispatch_from_dsq_set_vtime", move_with_time),
    ("scx_bpf_reenqueue_local", reenqueue),
];

/// Set in the flags of an iterator: from the last task to the first (`SCX_DSQ_ITER_REV`).
const BACKWARDS: u64 = 1 << 16;

/// The most queues of a scheduler, and the most iterators that it may have open.
const MOST_QUEUES: usize = 1 << 20;
const MOST_CURSORS: usize = 1 << 10;

fn create(kernel: &mut Kernel, _: &mut Machine, [id, ..]: [u64; 5]) -> Answer<u64> {
    if id & DSQ_BUILTIN != 0 {
        return Ok(errno(EINVAL));
    }
    if kernel.core.own.contains_key(&id) {
        return Ok(errno(EEXIST));
    }
    if kernel.core.own.len() >= MOST_QUEUES {
        return Ok(errno(ENOMEM));
    }
    kernel.core.own.insert(id, Default::default());
    Ok(0)
}

fn destroy(kernel: &mut Kernel, _: &mut Machine, [id, ..]: [u64; 5]) -> Answer<u64> {
    match kernel.core.own.get(&id) {
        Some(queue) if queue.is_empty() => _ = kernel.core.own.remove(&id),
        Some(_) => kernel.core.error(format!("attempting to destroy in-use dsq {id:#018x}")),
        None => {}
    }
    Ok(0)
}

fn length(kernel: &mut Kernel, _: &mut Machine, [id, ..]: [u64; 5]) -> Answer<u64> {
    let is_local_on = id & (DSQ_BUILTIN | DSQ_LOCAL_ON) == DSQ_BUILTIN | DSQ_LOCAL_ON;
    if is_local_on && kernel.expect_cpu(id & 0xffff_ffff).is_none() || id == DSQ_GLOBAL {
        return Ok(errno(ENOENT));
    }
    let queue = kernel.core.named(id, kernel.core.this.0);
    let queue = queue.and_then(|queue| kernel.core.queue(queue));
    Ok(queue.map_or(errno(ENOENT), |queue| queue.len() as u64))
}

fn insert(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, queue, slice, flags, _]: [u64; 5],
) -> Answer<u64> {
    kernel.decide(machine, task, queue, slice, None, flags)
}

fn insert_by_time(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, queue, slice, time, flags]: [u64; 5],
) -> Answer<u64> {
    kernel.decide(machine, task, queue, slice, Some(time), flags)
}

/// Its arguments are a structure: queue, slice, time, flags.
fn insert_by_time_with(
    kernel: &mut Kernel,
    machine: &mut Machine,
    [task, with, ..]: [u64; 5],
) -> Answer<u64> {
    let mut words = [0; 4];
    for (index, word) in words.iter_mut().enumerate() {
        *word = memory::read(machine, with.wrapping_add(8 * index as u64), 8)?;
    }
    let [queue, slice, time, flags] = words;
    kernel.decide(machine, task, queue, slice, Some(time), flags)
}

impl Kernel<'_> {
    /// The scheduler decides where `task` waits (`scx_dsq_insert_commit`).
    fn decide(
        &mut self,
        machine: &mut Machine,
        address: u64,
        queue: u64,
        slice: u64,
        time: Option<u64>,
        flags: u64,
    ) -> Answer<u64> {
        let core = &mut *self.core;
        let Some(task) = core.expect_task(machine, address) else { return Ok(0) };
        if flags >> 56 != 0 {
            core.error(format!("invalid enq_flags {flags:#x}"));
            return Ok(0);
        }
        let slice = if slice == 0 { core.slice(machine, task)?.max(1) } else { slice };
        core.set_slice(machine, task, slice)?;
        let flags = match time {
            None => flags,
            Some(time) => {
                memory::set(machine, address, core.layout.vtime, time)?;
                flags | ENQ_PRIQ
            }
        };
        match core.asked {
            Asked::Place(asked) if asked == task => {
                core.asked = Asked::Placed(task);
                core.tasks[task.index()].direct = Some((queue, flags));
            }
            Asked::Place(asked) => {
                let (asked, other) = (core.name(asked), core.name(task));
                core.error(format!("scheduling for {asked} but trying to direct-dispatch {other}"));
                return Ok(0);
            }
            Asked::Placed(_) => {
                let name = core.name(task);
                core.error(format!("{name} already direct-dispatched"));
                return Ok(0);
            }
            Asked::Dispatch(cpu) => {
                let turn = core.tasks[task.index()].turn;
                let decided = &mut core.cpus[cpu.index()].decided;
                if decided.len() >= core.most_decided {
                    core.error("dispatch buffer overflow");
                    return Ok(0);
                }
                decided.push(Decided { task, turn, queue, flags });
            }
            Asked::Otherwise => {
                core.error(
                    "scx_bpf_dsq_insert() is for select_cpu, enqueue and dispatch: here no task \
                     can be inserted",
                );
                return Ok(0);
            }
        }
        Ok(1)
    }

    /// Moves `task`, at which `iterator` is, to another queue (`scx_dsq_move`).
    fn move_on(
        &mut self,
        machine: &mut Machine,
        [iterator, address, queue, flags, _]: [u64; 5],
        by_time: bool,
    ) -> Answer<u64> {
        let Some(cursor) = self.core.cursors.get_mut(&iterator) else { return Ok(0) };
        let (slice, time) = (cursor.slice.take(), cursor.time.take());
        let (from, arrivals) = (QueueId::Own(cursor.queue), cursor.arrivals);
        if flags >> 56 != 0 {
            self.core.error(format!("invalid enq_flags {flags:#x}"));
            return Ok(0);
        }
        let Some(task) = self.core.expect_task(machine, address) else { return Ok(0) };
        // It may have left the queue since, and may have come again.
        let is_there = self.core.tasks[task.index()].waits.is_some_and(|(queue, place)| {
            queue == from
                && self.core.queue(queue).is_some_and(|queue| queue.came_within(place, arrivals))
        });
        if !is_there {
            return Ok(0);
        }
        if let Some(slice) = slice {
            self.core.set_slice(machine, task, slice)?;
        }
        memory::set(
            machine,
            address,
            self.core.layout.vtime.filter(|_| time.is_some()),
            time.unwrap_or(0),
        )?;
        self.core.take_out(task);
        let flags = if by_time { flags | ENQ_PRIQ } else { flags };
        let this = self.core.this;
        let of = if queue == DSQ_LOCAL { this.0 } else { self.core.tasks[task.index()].cpu };
        self.core.put(machine, self.cx, task, queue, of, flags)?;
        Ok(1)
    }
}

fn consume(kernel: &mut Kernel, machine: &mut Machine, [id, ..]: [u64; 5]) -> Answer<u64> {
    let Asked::Dispatch(cpu) = kernel.core.asked else {
        kernel.core.error("scx_bpf_dsq_move_to_local() is for dispatch");
        return Ok(0);
    };
    kernel.core.flush(machine, kernel.cx, cpu)?;
    if !kernel.core.own.contains_key(&id) {
        kernel.core.error(format!("invalid DSQ ID {id:#018x}"));
        return Ok(0);
    }
    let moved = kernel.core.consume(machine, kernel.cx, cpu, QueueId::Own(id))?;
    kernel.core.cpus[cpu.index()].brought += u32::from(moved);
    Ok(moved.into())
}

fn slots(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    let used = kernel.core.cpus[kernel.core.this.index()].decided.len();
    Ok(kernel.core.most_decided.saturating_sub(used) as u64)
}

fn cancel(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    if kernel.core.cpus[kernel.core.this.index()].decided.pop().is_none() {
        kernel.core.error("dispatch buffer underflow");
    }
    Ok(0)
}

fn iterate(
    kernel: &mut Kernel,
    _: &mut Machine,
    [iterator, queue, flags, ..]: [u64; 5],
) -> Answer<u64> {
    // Whatever was there before is over, so that a failed iterator brings nothing.
    kernel.core.cursors.remove(&iterator);
    let Some(of) = kernel.core.own.get(&queue) else { return Ok(errno(ENOENT)) };
    if flags & !BACKWARDS != 0 {
        return Ok(errno(EINVAL));
    }
    if kernel.core.cursors.len() >= MOST_CURSORS {
        return Ok(errno(E2BIG));
    }
    let cursor = Cursor {
        queue,
        backwards: flags & BACKWARDS != 0,
        place: None,
        arrivals: of.arrivals(),
        slice: None,
        time: None,
    };
    kernel.core.cursors.insert(iterator, cursor);
    Ok(0)
}

fn next(kernel: &mut Kernel, _: &mut Machine, [iterator, ..]: [u64; 5]) -> Answer<u64> {
    let core = &mut *kernel.core;
    let Some(cursor) = core.cursors.get_mut(&iterator) else { return Ok(0) };
    let Some(queue) = core.own.get(&cursor.queue) else { return Ok(0) };
    while let Some((place, task)) = queue.next(cursor.place, cursor.backwards) {
        cursor.place = Some(place);
        if queue.came_within(place, cursor.arrivals) {
            return Ok(core.tasks[task.index()].address);
        }
    }
    core.cursors.remove(&iterator);
    Ok(0)
}

fn end(kernel: &mut Kernel, _: &mut Machine, [iterator, ..]: [u64; 5]) -> Answer<u64> {
    kernel.core.cursors.remove(&iterator);
    Ok(0)
}

/// The first task of a queue.
fn peek(kernel: &mut Kernel, _: &mut Machine, [id, ..]: [u64; 5]) -> Answer<u64> {
    let Some(queue) = kernel.core.own.get(&id) else {
        kernel.core.error(format!("peek on non-existent DSQ {id:#x}"));
        return Ok(0);
    };
    let first = queue.first().map(|(_, task)| task);
    Ok(first.map_or(0, |task: TaskId| kernel.core.tasks[task.index()].address))
}

fn move_one(kernel: &mut Kernel, machine: &mut Machine, arguments: [u64; 5]) -> Answer<u64> {
    kernel.move_on(machine, arguments, false)
}

fn move_one_by_time(
    kernel: &mut Kernel,
    machine: &mut Machine,
    arguments: [u64; 5],
) -> Answer<u64> {
    kernel.move_on(machine, arguments, true)
}

fn move_with_slice(
    kernel: &mut Kernel,
    _: &mut Machine,
    [iterator, slice, ..]: [u64; 5],
) -> Answer<u64> {
    if let Some(cursor) = kernel.core.cursors.get_mut(&iterator) {
        cursor.slice = Some(slice);
    }
    Ok(0)
}

fn move_with_time(
    kernel: &mut Kernel,
    _: &mut Machine,
    [iterator, time, ..]: [u64; 5],
) -> Answer<u64> {
    if let Some(cursor) = kernel.core.cursors.get_mut(&iterator) {
        cursor.time = Some(time);
    }
    Ok(0)
}

/// Tasks of this CPU's local queue go back to the scheduler, later.
fn reenqueue(kernel: &mut Kernel, _: &mut Machine, _: [u64; 5]) -> Answer<u64> {
    let this = kernel.core.this;
    let tasks: Vec<TaskId> =
        kernel.core.cpus[this.index()].local.iter().map(|(_, task)| task).collect();
    for &task in &tasks {
        kernel.core.take_out(task);
        kernel.core.tasks[task.index()].custody = Custody::Core;
    }
    let count = tasks.len() as u64;
    kernel.core.again.extend(tasks);
    Ok(count)
}
