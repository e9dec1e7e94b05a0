//! What a recorded call costs: a loop of calls, timed without and with the probes.
//!
//! It is this thread's CPU time that is measured, so that other tasks that run meanwhile do not
//! count.

use crate::error::Error;
use crate::machine;
use crate::probe::Probe;
use recording::Overhead;
use std::io::{Read, Write};

const BATCHES: usize = 32;
const PAIRS: u32 = 250;

/// Nanoseconds a call, by batch: a byte is written into a pipe and read again.
pub fn batches() -> Vec<f64> {
    let Ok((mut reader, mut writer)) = std::io::pipe() else { return Vec::new() };
    let mut batch = || {
        let begin = machine::thread_time();
        let mut byte = [0];
        for _ in 0..PAIRS {
            // A pipe of one's own has room for a byte, and then has it.
            let _ = writer.write_all(&byte);
            let _ = reader.read_exact(&mut byte);
        }
        (machine::thread_time() - begin) as f64 / f64::from(2 * PAIRS)
    };
    (0..BATCHES).map(|_| batch()).collect()
}

/// Nanoseconds a call of a lock, by batch: a mutex that no other task has.
fn locks() -> Vec<f64> {
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    let mut batch = || {
        let begin = machine::thread_time();
        for _ in 0..PAIRS {
            // SAFETY: the mutex outlives the calls, and does not move.
            unsafe {
                libc::pthread_mutex_lock(&raw mut mutex);
                libc::pthread_mutex_unlock(&raw mut mutex);
            }
        }
        (machine::thread_time() - begin) as f64 / f64::from(2 * PAIRS)
    };
    (0..BATCHES).map(|_| batch()).collect()
}

/// The difference that the probes make, once they are attached.
///
/// # Errors
/// If this task cannot be traced for that while.
pub fn overhead(
    before: &[f64],
    probe: &Probe,
    with_locks: bool,
) -> Result<Option<Overhead>, Error> {
    // SAFETY: it has no arguments and cannot fail.
    let tid = unsafe { libc::gettid() }.cast_unsigned();
    probe.trace(tid)?;
    let after = batches();
    // Without probes it takes a few nanoseconds.
    let mut locked = if with_locks { locks() } else { Vec::new() };
    probe.forget(tid)?;
    let mut added: Vec<f64> =
        after.iter().zip(before).map(|(after, before)| after - before).collect();
    added.sort_by(f64::total_cmp);
    let at = |quarter: usize| added.get(added.len() * quarter / 4).copied();
    let (Some(call_ns_q1), Some(call_ns), Some(call_ns_q3)) = (at(1), at(2), at(3)) else {
        return Ok(None);
    };
    locked.sort_by(f64::total_cmp);
    let lock_ns = locked.get(locked.len() / 2).copied();
    Ok(Some(Overhead { call_ns, call_ns_q1, call_ns_q3, batches: BATCHES as u32, lock_ns }))
}
