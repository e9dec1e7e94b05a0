//! Parses the fields of a scheduling event as `perf script` prints them: in the kernel's format or
//! in libtraceevent's shorter one.

use schedsim::CpuId;

use super::header::number;
use crate::import::record;
use crate::import::record::{NamedTask, Sched, Tracepoint, prev_state};

/// Parses an event's fields. Text after them (symbols, further fields of newer kernels) is ignored.
#[inline]
pub(super) fn parse(tracepoint: Tracepoint, fields: &[u8]) -> Option<Sched<'_>> {
    let fields = fields.trim_ascii_start();
    match tracepoint {
        Tracepoint::Switch => switch(fields),
        Tracepoint::Waking => woken(fields).map(|(task, target)| Sched::Waking { task, target }),
        Tracepoint::Wakeup => woken(fields).map(|(task, target)| Sched::Wakeup { task, target }),
        Tracepoint::WakeupNew => {
            woken(fields).map(|(task, target)| Sched::WakeupNew { task, target })
        }
        Tracepoint::Fork => fork(fields),
        Tracepoint::Exec => exec(fields),
        Tracepoint::Exit => named(fields).map(|(task, _)| Sched::Exit { task }),
        Tracepoint::Migrate => migrate(fields),
        Tracepoint::Frequency => frequency(fields),
    }
}

/// `prev_comm=… prev_pid=… prev_prio=… prev_state=… ==> next_comm=… next_pid=… next_prio=…` or
/// `comm:pid [prio] S ==> comm:pid [prio]`.
fn switch(fields: &[u8]) -> Option<Sched<'_>> {
    if let Some(rest) = fields.strip_prefix(b"prev_comm=") {
        let (prev, rest) = task_fields(rest, b" prev_pid=", b" prev_prio=")?;
        let (state, rest) = word(rest.strip_prefix(b" prev_state=")?)?;
        let (next, _) =
            task_fields(rest.strip_prefix(b" ==> next_comm=")?, b" next_pid=", b" next_prio=")?;
        return Some(Sched::Switch { prev, prev_state: prev_state(state), next });
    }
    let (prev, rest) = short(fields)?;
    let (state, rest) = word(rest.strip_prefix(b" ")?)?;
    let (next, _) = short(rest.strip_prefix(b" ==> ")?)?;
    Some(Sched::Switch { prev, prev_state: prev_state(state), next })
}

/// Whether the state of a switch is a number, and no arrow follows it.
#[cold]
pub(super) fn has_raw_state(fields: &[u8]) -> bool {
    let state = b" prev_state=";
    let Some(place) = memchr::memmem::find(fields, state) else { return false };
    let (_, rest) = fields.split_at(place);
    let state = rest.strip_prefix(state).and_then(number);
    state.is_some_and(|(_, rest)| rest.starts_with(b" next_comm="))
}

/// `comm=… pid=… prio=… [success=1] target_cpu=…` or `comm:pid [prio] [success=1] CPU:…`.
#[inline]
fn woken(fields: &[u8]) -> Option<(NamedTask<'_>, CpuId)> {
    let (task, rest) = named(fields).or_else(|| short(fields))?;
    let rest = rest.strip_prefix(b" success=").and_then(number).map_or(rest, |(_, rest)| rest);
    let target = rest.strip_prefix(b" target_cpu=").or_else(|| rest.strip_prefix(b" CPU:"))?;
    Some((task, cpu(target)?.0))
}

/// `comm=… pid=… prio=… orig_cpu=… dest_cpu=…`.
fn migrate(fields: &[u8]) -> Option<Sched<'_>> {
    let (task, rest) = named(fields)?;
    let (from, rest) = cpu(rest.strip_prefix(b" orig_cpu=")?)?;
    let (to, _) = cpu(rest.strip_prefix(b" dest_cpu=")?)?;
    Some(Sched::Migrate { task, from, to })
}

/// `state=… cpu_id=…`.
fn frequency(fields: &[u8]) -> Option<Sched<'_>> {
    let (khz, rest) = number(fields.strip_prefix(b"state=")?)?;
    let (of, _) = cpu(rest.strip_prefix(b" cpu_id=")?)?;
    Some(Sched::Frequency { of, khz })
}

/// `comm=… pid=… child_comm=… child_pid=…`.
fn fork(fields: &[u8]) -> Option<Sched<'_>> {
    let (_, (parent, rest)) = name_then(fields.strip_prefix(b"comm=")?, b" pid=", |rest| {
        let (parent, rest) = pid(rest)?;
        Some((parent, rest.strip_prefix(b" child_comm=")?))
    })?;
    let (comm, (child, _)) = name_then(rest, b" child_pid=", pid)?;
    Some(Sched::Fork { parent, child, comm })
}

/// `filename=… pid=… old_pid=…`; a file name may contain anything, so this is parsed from the end.
fn exec(fields: &[u8]) -> Option<Sched<'_>> {
    let file = fields.strip_prefix(b"filename=")?;
    let (file, old) = file.split_at(memchr::memmem::rfind(file, b" old_pid=")?);
    let (old_pid, _) = pid(old.strip_prefix(b" old_pid=")?)?;
    let (_, new) = file.split_at(memchr::memmem::rfind(file, b" pid=")?);
    let (pid, b"") = pid(new.strip_prefix(b" pid=")?)? else {
        return None;
    };
    Some(Sched::Exec { pid, old_pid })
}

/// `comm=… pid=… prio=…`.
#[inline]
fn named(fields: &[u8]) -> Option<(NamedTask<'_>, &[u8])> {
    task_fields(fields.strip_prefix(b"comm=")?, b" pid=", b" prio=")
}

/// Splits a name, a pid, a priority and the text between them.
#[inline]
fn task_fields<'a>(
    fields: &'a [u8],
    pid_is: &[u8],
    prio_is: &[u8],
) -> Option<(NamedTask<'a>, &'a [u8])> {
    let (comm, (pid, prio, rest)) = name_then(fields, pid_is, |rest| {
        let (pid, rest) = pid(rest)?;
        let (prio, rest) = prio(rest.strip_prefix(prio_is)?)?;
        Some((pid, prio, rest))
    })?;
    Some((NamedTask { comm, pid, prio }, rest))
}

/// `comm:pid [prio]`.
fn short(fields: &[u8]) -> Option<(NamedTask<'_>, &[u8])> {
    let (comm, (pid, prio, rest)) = name_then(fields, b":", |rest| {
        let (pid, rest) = pid(rest)?;
        let (prio, rest) = prio(rest.strip_prefix(b" [")?)?;
        Some((pid, prio, rest.strip_prefix(b"]")?))
    })?;
    Some((NamedTask { comm, pid, prio }, rest))
}

/// A name may contain anything, including `separator`: it ends where the next expected part
/// follows.
#[inline]
fn name_then<'a, T>(
    bytes: &'a [u8],
    separator: &[u8],
    follows: impl Fn(&'a [u8]) -> Option<T>,
) -> Option<(&'a [u8], T)> {
    const LONGEST_NAME: usize = 64;
    let within = &bytes[..bytes.len().min(LONGEST_NAME)];
    let mut ends = memchr::memchr_iter(separator[0], within);
    ends.find_map(|end| Some((&bytes[..end], follows(bytes[end..].strip_prefix(separator)?)?)))
}

#[inline]
fn pid(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (pid, rest) = number(bytes)?;
    Some((record::pid(pid)?, rest))
}

#[inline]
fn prio(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let digits = bytes.strip_prefix(b"-");
    let (value, rest) = number(digits.unwrap_or(bytes))?;
    let value = i32::try_from(value).ok()?;
    Some((if digits.is_some() { value.checked_neg()? } else { value }, rest))
}

#[inline]
fn cpu(bytes: &[u8]) -> Option<(CpuId, &[u8])> {
    let (cpu, rest) = number(bytes)?;
    Some((record::cpu(cpu)?, rest))
}

#[inline]
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', bytes)?;
    (end > 0).then(|| bytes.split_at(end))
}
