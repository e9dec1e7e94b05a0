//! Examines the kernel and what its scheduler supports.

use super::{Finding, System};
use crate::vm::release::fair_model;

pub(super) fn examine(system: &System) -> Vec<Finding> {
    vec![
        kernel(system),
        scheduler(system),
        sched_ext(system),
        schedstat(system),
        autogroup(system),
        throttling(system),
        fair_server(system),
    ]
}

fn release(system: &System) -> String {
    system.read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_string())
}

/// `(6, 18)`.
fn version(system: &System) -> Option<(u32, u32)> {
    let release = release(system);
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn kernel(system: &System) -> Finding {
    let hz = system
        .config("CONFIG_HZ")
        .map_or("ticks unknown".to_string(), |hz| format!("{hz} ticks a second"));
    let models = [
        ("CONFIG_PREEMPT_RT", "fully preemptible"),
        ("CONFIG_PREEMPT_DYNAMIC", "preemption chosen at boot"),
        ("CONFIG_PREEMPT_NONE", "no preemption"),
    ];
    let preemption = models
        .iter()
        .find(|(option, _)| system.config(option).is_some())
        .map_or("preemption unknown", |(_, model)| model);
    Finding::good("kernel", format!("{}, {hz}, {preemption}", release(system)))
}

impl System {
    /// The policy that matches its fair scheduler.
    pub fn fair_model(&self) -> &'static str {
        version(self).map_or("eevdf", |_| fair_model(&release(self)))
    }
}

fn scheduler(system: &System) -> Finding {
    match version(system) {
        Some(version) if version >= (2, 6) => {
            let model = system.fair_model();
            Finding::good("scheduler", format!("{} (simulated by {model})", model.to_uppercase()))
        }
        _ => Finding::good("scheduler", "unknown"),
    }
}

fn sched_ext(system: &System) -> Finding {
    let has_types = system.has("/sys/kernel/btf/vmlinux");
    match system.read("/sys/kernel/sched_ext/state") {
        Some(state) if has_types => Finding::good("sched_ext", format!("there, {state}")),
        Some(_) => Finding::good("sched_ext", "there, without type information").limited(
            "schedulers in BPF cannot be loaded: the kernel was built without \
             CONFIG_DEBUG_INFO_BTF",
        ),
        None => Finding::good("sched_ext", "not in this kernel")
            .limited(
                "policies of ours cannot schedule this machine (CONFIG_SCHED_CLASS_EXT, from 6.12 \
                 on); they can in a guest",
            )
            .fixed_by("schedlab compare yield:2,8 --on vm --kernel 6.18"),
    }
}

fn schedstat(system: &System) -> Finding {
    match system.has("/proc/self/schedstat") {
        true => Finding::good("run delay", "kept for each task (schedstat)"),
        false => Finding::good("run delay", "not kept (CONFIG_SCHED_INFO)")
            .limited("run delay is known from recordings only"),
    }
}

fn autogroup(system: &System) -> Finding {
    match system.number("/proc/sys/kernel/sched_autogroup_enabled") {
        Some(1) => Finding::good("autogroup", "on: each session has its own share of the CPUs")
            .limited("nice values count within a session only, and each run is a session")
            .fixed_by("sudo sysctl kernel.sched_autogroup_enabled=0"),
        Some(_) => Finding::good("autogroup", "off"),
        None => Finding::good("autogroup", "not in this kernel"),
    }
}

fn throttling(system: &System) -> Finding {
    let file = |name: &str| system.number(&format!("/proc/sys/kernel/sched_rt_{name}_us"));
    match (file("runtime"), file("period")) {
        (Some(-1), _) => Finding::good("real-time throttling", "off")
            .limited("a real-time task that never waits locks the machine up")
            .fixed_by("sudo sysctl kernel.sched_rt_runtime_us=950000"),
        (Some(runtime), Some(period)) => Finding::good(
            "real-time throttling",
            format!(
                "fifo, rr and deadline get {:.1}% of the time ({runtime} of {period} us)",
                100.0 * runtime as f64 / period as f64
            ),
        ),
        _ => Finding::good("real-time throttling", "unknown: the kernel does not report it"),
    }
}

/// From 6.12 on a deadline server guarantees time to waiting fair tasks, and only groups are
/// throttled.
fn fair_server(system: &System) -> Finding {
    let directory = "/sys/kernel/debug/sched/fair_server";
    match (
        system.number(&format!("{directory}/cpu0/runtime")),
        system.number(&format!("{directory}/cpu0/period")),
    ) {
        (Some(runtime), Some(period)) => Finding::good(
            "fair server",
            format!(
                "fair tasks that wait get {:.1}% of the time",
                100.0 * runtime as f64 / period.max(1) as f64
            ),
        ),
        _ if version(system).is_some_and(|version| version >= (6, 12)) => Finding::good(
            "fair server",
            "in this kernel; what it gives is in debugfs, which is not to be seen",
        ),
        _ => Finding::good("fair server", "not in this kernel"),
    }
}
