//! What `/proc` and `/sys` say when a recording begins.

pub mod snapshot;

use recording::{Conditions, Event, Machine, Overhead, What};
use std::fs;
use std::path::Path;

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub fn now() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// The CPU time of this thread, in nanoseconds.
pub fn thread_time() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The CPU time of this process, in nanoseconds.
pub fn process_time() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// A clock of the system, in nanoseconds.
pub fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time outlives the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The threads of a process.
pub fn threads(pid: u32) -> impl Iterator<Item = u32> + use<> {
    numbers(format!("/proc/{pid}/task"))
}

/// All tasks with their names, as events.
pub fn tasks(time: u64) -> Vec<Event> {
    let mut tasks = Vec::new();
    for tgid in numbers("/proc".to_string()) {
        for tid in threads(tgid) {
            // One that has ended meanwhile is of no interest.
            let Ok(name) = fs::read(format!("/proc/{tgid}/task/{tid}/comm")) else { continue };
            let mut comm = [0; 16];
            let name = name.strip_suffix(b"\n").unwrap_or(&name);
            let length = name.len().min(15);
            comm[..length].copy_from_slice(&name[..length]);
            let what = What::Task { comm, tgid };
            tasks.push(Event { time, cpu: 0, context: 0, tid, what });
        }
    }
    tasks
}

/// The machine and its kernel.
pub fn machine(start: u64, causes_of: &str, overhead: Option<Overhead>) -> Machine {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_string());
    let cpus: u16 =
        libbpf_rs::num_possible_cpus().ok().and_then(|n| n.try_into().ok()).unwrap_or(0);
    let of = |cpu: u16, name: &str| {
        read(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}"))
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    };
    let scheduler = read("/sys/kernel/sched_ext/root/ops").ok().filter(|name| !name.is_empty());
    Machine {
        release: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_string(),
        cpus,
        topology: (0..cpus)
            .map(|cpu| (of(cpu, "core_id"), of(cpu, "physical_package_id")))
            .collect(),
        scheduler: scheduler.unwrap_or_else(|| "fair".to_string()),
        causes_of: causes_of.to_string(),
        start,
        overhead,
        light: None,
        conditions: Conditions::default(),
    }
}

fn numbers(directory: String) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(Path::new(&directory)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
