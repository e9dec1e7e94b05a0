//! Examines what this user may do, the limits, and which programs are installed.

use super::{Finding, System};
use crate::host::{limits, recorder::Recorder};
use crate::vm::scheduler;
use program::Error;

pub(super) fn examine(system: &System) -> Vec<Finding> {
    let mut findings =
        vec![real_time(system), tracing(system), counters(system), cgroup(system), tasks()];
    findings.extend(TOOLS.iter().map(|tool| tool.find()));
    findings.extend([
        ours(
            "schedlab-recorder",
            Recorder::find().map(drop),
            "recordings have no causes, and a replay is one of the schedule",
        ),
        ours(
            "schedlab-scx",
            scheduler::loader("bpf:rr").map(drop),
            "no policy of ours runs in a kernel",
        ),
    ]);
    findings
}

/// A program of this project that is built by itself.
fn ours(name: &'static str, found: Result<(), Error>, limits: &str) -> Finding {
    match found {
        Ok(()) => Finding::good(name, "there"),
        Err(why) => Finding::good(name, why.to_string())
            .limited(limits)
            .fixed_by(format!("cargo build --release -p {name}")),
    }
}

/// linux/include/uapi/linux/capability.h
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;
const CAP_SYS_ADMIN: u32 = 21;

fn has_capability(system: &System, capability: u32) -> bool {
    let effective = system.field("/proc/self/status", "CapEff");
    effective
        .and_then(|set| u64::from_str_radix(&set, 16).ok())
        .is_some_and(|set| set >> capability & 1 == 1)
}

fn real_time(system: &System) -> Finding {
    let limit = |line: &str| {
        line.strip_prefix("Max realtime priority")
            .and_then(|rest| rest.split_ascii_whitespace().next().map(str::to_string))
    };
    let most = system
        .read("/proc/self/limits")
        .and_then(|limits| limits.lines().find_map(limit))
        .unwrap_or_else(|| "0".to_string());
    match has_capability(system, CAP_SYS_NICE) {
        true => Finding::good("real-time classes", "any class, priority and nice value"),
        false if most != "0" => {
            Finding::good("real-time classes", format!("priorities up to {most}"))
                .limited("kernel:deadline and nice values below 0 are refused")
                .fixed_by("sudo schedlab …")
        }
        false => Finding::good("real-time classes", "none")
            .limited(
                "kernel:fifo, kernel:rr, kernel:deadline and nice values below 0 are refused, and \
                 the watchdog is not above what it watches",
            )
            .fixed_by("sudo setcap cap_sys_nice+ep $(which schedlab)"),
    }
}

fn tracing(system: &System) -> Finding {
    let may = has_capability(system, CAP_PERFMON) || has_capability(system, CAP_SYS_ADMIN);
    let paranoid = system
        .read("/proc/sys/kernel/perf_event_paranoid")
        .unwrap_or_else(|| "unknown".to_string());
    let (has_perf, found) = (find("perf"), format!("kernel.perf_event_paranoid is {paranoid}"));
    match (has_perf, may || paranoid == "-1") {
        (false, _) => Finding::good("tracing", format!("no perf; {found}"))
            .limited("nothing can be recorded: schedlab record, wakeup latencies of this machine")
            .fixed_by("sudo apt-get install linux-perf  # on Ubuntu linux-tools-$(uname -r)"),
        (true, true) => {
            Finding::good("tracing", format!("perf may record the scheduler's events; {found}"))
        }
        (true, false) => Finding::good("tracing", found)
            .limited("all CPUs can be recorded by root only")
            .fixed_by(
                "sudo schedlab record -- COMMAND  # or: sudo sysctl kernel.perf_event_paranoid=-1",
            ),
    }
}

fn counters(system: &System) -> Finding {
    let devices = system.names("/sys/bus/event_source/devices");
    match devices.iter().any(|device| device.starts_with("cpu") || device.starts_with("armv"))
        && hardware_counts()
    {
        true => Finding::good("hardware counters", "there"),
        false => Finding::good("hardware counters", "none")
            .limited(
                "schedlab queue counts instructions with valgrind, which is slower and as exact",
            )
            .fixed_by("schedlab queue --count instructions  # nothing to fix on a virtual machine"),
    }
}

fn hardware_counts() -> bool {
    perf_event::Builder::new(perf_event::events::Hardware::INSTRUCTIONS).build().is_ok()
}

fn cgroup(system: &System) -> Finding {
    let text = system.read("/proc/self/cgroup").unwrap_or_default();
    let path = text
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or("/")
        .trim_matches('/')
        .to_string();
    let groups = std::iter::successors(Some(path.as_str()), |path| {
        path.rsplit_once('/').map(|(parent, _)| parent)
    });
    let limit = |group: &str, file: &str| {
        let value = system.read(&format!("/sys/fs/cgroup/{group}/{file}"))?;
        (!value.starts_with("max")).then(|| format!("/sys/fs/cgroup/{group}/{file} is {value}"))
    };
    let limits: Vec<String> = groups
        .flat_map(|group| {
            ["cpu.max", "memory.max", "pids.max"]
                .into_iter()
                .filter_map(move |file| limit(group, file))
        })
        .collect();
    match limits.first() {
        None => Finding::good("cgroup", "no limits on CPU, memory or tasks"),
        Some(first) => Finding::good("cgroup", limits.join(", "))
            .limited("a group's limit on CPU time looks like a scheduler that leaves CPUs unused")
            .fixed_by(format!(
                "echo max | sudo tee {}",
                first.split(' ').next().unwrap_or_default()
            )),
    }
}

fn tasks() -> Finding {
    match limits::room_for_tasks() {
        Some((room, why)) => {
            let finding = Finding::good("tasks", format!("room for {room} at a time ({why})"));
            const MOST: u64 = 204_800;
            match room < MOST {
                true => finding
                    .limited("workloads with more tasks alive at a time are refused")
                    .fixed_by("sudo sysctl kernel.pid_max=4194304 kernel.threads-max=1000000"),
                false => finding,
            }
        }
        None => Finding::good("tasks", "no limit to be seen"),
    }
}

/// A program that a verb needs.
struct Tool {
    name: &'static str,
    program: &'static str,
    limits: &'static str,
    fix: &'static str,
}

const TOOLS: [Tool; 4] = [
    Tool {
        name: "QEMU",
        program: "qemu-system-x86_64",
        limits: "no --on vm",
        fix: "sudo apt-get install --no-install-recommends qemu-system-x86",
    },
    Tool {
        name: "clang",
        program: "clang-19",
        limits: "the schedulers in scx/ cannot be built",
        fix: "sudo apt-get install clang-19",
    },
    Tool {
        name: "valgrind",
        program: "valgrind",
        limits: "no instruction counts of ready queues",
        fix: "sudo apt-get install valgrind",
    },
    Tool {
        name: "rt-app",
        program: "rt-app",
        limits: "its files cannot be held against our running of them",
        fix: "sudo apt-get install rt-app",
    },
];

impl Tool {
    fn find(&self) -> Finding {
        match find(self.program) {
            true => Finding::good(self.name, "there"),
            false => Finding::good(self.name, format!("no {}", self.program))
                .limited(self.limits)
                .fixed_by(self.fix),
        }
    }
}

fn find(program: &str) -> bool {
    crate::host::record::find_command(program.as_ref(), "run").is_ok()
}
