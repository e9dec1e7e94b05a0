//! Recognises kernel threads by their names.

use crate::CpuId;
use crate::trace::TaskInfo;

/// Per-CPU kernel threads: `name/CPU`.
const PER_CPU: [&str; 9] = [
    "migration",
    "ksoftirqd",
    "cpuhp",
    "rcuc",
    "idle_inject",
    "irq_work",
    "watchdog",
    "ktimers",
    "backlog_napi",
];

/// The CPU that a kernel thread is bound to, from its name: `migration/3`, `kworker/3:1H`. Not
/// `kworker/u8:2` (unbound) nor `rcuop/3` (bound to a CPU's callbacks, not to the CPU).
///
/// A user's program can have such a name. A task whose process id is known to differ from its
/// thread id does not count.
pub(super) fn bound_cpu(task: &TaskInfo) -> Option<CpuId> {
    let (name, rest) = task.name.split_once('/')?;
    if task.tgid != 0 && task.tgid != task.pid {
        return None;
    }
    let digits = match name {
        "kworker" => rest.split_once(':')?.0,
        _ if PER_CPU.contains(&name) => rest,
        _ => return None,
    };
    digits.parse().ok().map(CpuId)
}

/// Kernel threads that timers and interrupts wake, whatever task runs at that moment: such a waking
/// says nothing about the running task.
pub(super) fn is_woken_by_interrupts(name: &str) -> bool {
    const NAMES: [&str; 6] =
        ["rcu_preempt", "rcu_sched", "rcu_bh", "khugepaged", "kcompactd", "watchdogd"];
    const FAMILIES: [&str; 6] =
        ["rcuc/", "rcuop/", "rcuog/", "ksoftirqd/", "ktimers/", "kcompactd"];
    NAMES.contains(&name)
        || FAMILIES.iter().any(|family| name.starts_with(family))
        || name.starts_with("irq/")
}

/// Whether the kernel gives such names to its threads. Recordings do not say which tasks these are.
pub fn is_kernel_thread_name(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "swapper",
        "<idle>",
        "<kernel>",
        "kthreadd",
        "khungtaskd",
        "ksmd",
        "kauditd",
        "kdevtmpfs",
        "oom_reaper",
        "hwrng",
    ];
    const FAMILIES: [&str; 7] =
        ["swapper/", "kworker/", "jbd2/", "rcu_", "kswapd", "kdamond", "psimon"];
    let is_per_cpu =
        |name: &str| name.split_once('/').is_some_and(|(name, _)| PER_CPU.contains(&name));
    is_woken_by_interrupts(name)
        || NAMES.contains(&name)
        || FAMILIES.iter().any(|begin| name.starts_with(begin))
        || is_per_cpu(name)
}

/// The same of a recorded task, which is none of a program's further threads.
pub(super) fn is_kernel_thread(task: &TaskInfo) -> bool {
    (task.tgid == 0 || task.tgid == task.pid) && is_kernel_thread_name(&task.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str) -> TaskInfo {
        TaskInfo { name: name.into(), pid: 18, tgid: 18, prio: 120 }
    }

    #[test]
    fn per_cpu_kernel_threads_are_known_by_name() {
        for (name, cpu) in [
            ("migration/0", Some(0)),
            ("ksoftirqd/13", Some(13)),
            ("cpuhp/1", Some(1)),
            ("kworker/1:1H", Some(1)),
            ("kworker/1:1H-kblockd", Some(1)),
            ("kworker/u8:2", None),
            ("kworker/R-rcu_g", None),
            ("rcu_preempt", None),
            ("a/0", None),
            ("migration/", None),
        ] {
            assert_eq!(bound_cpu(&task(name)), cpu.map(CpuId), "{name}");
        }
        let mut thread = task("migration/0");
        thread.tgid = 7;
        assert_eq!(bound_cpu(&thread), None);
    }

    #[test]
    fn threads_of_the_kernel_are_known_and_those_of_programs_are_not() {
        for name in [
            "kworker/u8:2",
            "rcu_preempt",
            "migration/0",
            "kswapd0",
            "jbd2/sda1-8",
            "irq/9-acpi",
            "ksmd",
        ] {
            assert!(is_kernel_thread(&task(name)), "{name}");
        }
        for name in ["kworkers", "xz", "migration", "a/0", "jbd2", "redis-server", "ksmtuned"] {
            assert!(!is_kernel_thread(&task(name)), "{name}");
        }
        assert!(!is_kernel_thread(&TaskInfo { tgid: 7, ..task("kworker/0:1") }));
    }
}
