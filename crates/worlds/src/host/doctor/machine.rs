//! Examines the hardware and its load.

use super::{Finding, System};
use std::collections::BTreeSet;

pub(super) fn examine(system: &System) -> Vec<Finding> {
    vec![
        cpu(system),
        smt(system),
        governor(system),
        boost(system),
        throttling(system),
        load(system),
        memory(system),
    ]
}

const CPUS: &str = "/sys/devices/system/cpu";

/// The directories of single CPUs.
fn each_cpu(system: &System) -> impl Iterator<Item = String> {
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu").is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    system.names(CPUS).into_iter().filter(is_cpu).map(|name| format!("{CPUS}/{name}"))
}

fn cpu(system: &System) -> Finding {
    let info = system.read("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        info.lines()
            .find(|line| line.starts_with(key))
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
    };
    let allowed = system
        .field("/proc/self/status", "Cpus_allowed_list")
        .unwrap_or_else(|| "unknown".to_string());
    let finding = Finding::good(
        "CPU",
        format!("{}; may be used: {allowed}", field("model name").unwrap_or("unknown")),
    );
    match field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        true => finding.limited(format!(
            "a hypervisor may take the CPUs away at any time ({} so far): look at the stolen \
             share of each result",
            stolen(system).unwrap_or_else(|| "it does not say how much".to_string())
        )),
        false => finding,
    }
}

/// The stolen share since the boot.
fn stolen(system: &System) -> Option<String> {
    let stat = system.read("/proc/stat")?;
    let ticks: Vec<f64> = stat
        .lines()
        .next()?
        .split_ascii_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|word| word.parse().ok())
        .collect();
    Some(format!("{:.2}% of their time", 100.0 * ticks.get(7)? / ticks.iter().sum::<f64>()))
}

fn smt(system: &System) -> Finding {
    match system.number(&format!("{CPUS}/smt/active")) {
        Some(1) => Finding::good("SMT", "on: CPUs are threads that share a core")
            .limited("a task's speed depends on what its sibling does")
            .fixed_by(format!("echo off | sudo tee {CPUS}/smt/control")),
        Some(_) => Finding::good("SMT", "off"),
        None => Finding::good("SMT", "unknown: the kernel does not report it"),
    }
}

fn governor(system: &System) -> Finding {
    let governors: BTreeSet<String> = each_cpu(system)
        .filter_map(|cpu| system.read(&format!("{cpu}/cpufreq/scaling_governor")))
        .collect();
    let names = governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match governors.iter().all(|governor| governor == "performance") {
        _ if governors.is_empty() => Finding::good(
            "governor",
            "none to be seen: the frequency is the hardware's or the hypervisor's affair",
        ),
        true => Finding::good("governor", names),
        false => Finding::good("governor", names)
            .limited("the frequency follows the load, so that time depends on what ran before")
            .fixed_by(format!("echo performance | sudo tee {CPUS}/cpu*/cpufreq/scaling_governor")),
    }
}

fn boost(system: &System) -> Finding {
    let limited = |file: &str, value: &str| {
        Finding::good("boost", "on")
            .limited("the frequency depends on how many CPUs are busy and how hot they are")
            .fixed_by(format!("echo {value} | sudo tee {CPUS}/{file}"))
    };
    match (
        system.number(&format!("{CPUS}/intel_pstate/no_turbo")),
        system.number(&format!("{CPUS}/cpufreq/boost")),
    ) {
        (Some(0), _) => limited("intel_pstate/no_turbo", "1"),
        (_, Some(1)) => limited("cpufreq/boost", "0"),
        (Some(_), _) | (_, Some(_)) => Finding::good("boost", "off"),
        (None, None) => Finding::good("boost", "unknown: the kernel does not report it"),
    }
}

fn throttling(system: &System) -> Finding {
    let counts = each_cpu(system)
        .filter_map(|cpu| system.number(&format!("{cpu}/thermal_throttle/core_throttle_count")));
    match counts.reduce(|sum, count| sum + count) {
        None => Finding::good("throttling", "unknown: the kernel does not report it"),
        Some(0) => Finding::good("throttling", "never since the boot"),
        Some(count) => Finding::good("throttling", format!("{count} times since the boot"))
            .limited(
                "a CPU that gets too hot is slowed down: repeat, and look whether the count rises",
            ),
    }
}

fn load(system: &System) -> Finding {
    let average = system.read("/proc/loadavg").unwrap_or_default();
    let load: f64 =
        average.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN);
    let finding = Finding::good("load", format!("{load:.2} in the last minute"));
    if load > 0.3 {
        return finding
            .limited(
                "what else runs takes the CPUs from what is measured; A/A comparisons show by how \
                 much",
            )
            .fixed_by("top  # see what it is and stop it");
    }
    finding
}

fn memory(system: &System) -> Finding {
    let mib = |key| {
        system
            .field("/proc/meminfo", key)?
            .split(' ')
            .next()?
            .parse::<u64>()
            .ok()
            .map(|kib| kib >> 10)
    };
    let (Some(all), Some(available)) = (mib("MemTotal"), mib("MemAvailable")) else {
        return Finding::good("memory", "unknown: there is no /proc/meminfo");
    };
    const FEW: u64 = 1024;
    let finding = Finding::good("memory", format!("{available} of {all} MiB available"));
    if available < FEW {
        finding.limited(
            "a guest takes 512 MiB, and what is swapped out is not measured but waited for",
        )
    } else {
        finding
    }
}
