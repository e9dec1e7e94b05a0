//! Whose instructions they are: the side that a function belongs to, by its name.

use serde::{Deserialize, Serialize};

/// Functions of kernel/sched/ext of Linux 6.18 and 7.3 whose names have neither "scx" nor
/// "sched_ext" in them.
const SCHED_EXT: &str = include_str!("../../../data/sched_ext_functions.txt");
/// What the kernel's symbols call programs in BPF, and the trampolines by which it calls them.
const BPF: [&str; 3] = ["bpf_prog_", "bpf__", "bpf_trampoline_"];
/// What begins the names of the kernel's functions that serve programs in BPF.
const RUNTIME: [&str; 13] = [
    "bpf_",
    "__bpf_",
    "___bpf_",
    "htab_",
    "__htab_",
    "lookup_elem_raw",
    "lookup_nulls_elem_raw",
    "array_map_",
    "percpu_array_",
    "queue_stack_map_",
    "task_storage_",
    "cgrp_storage_",
    "cgroup_storage_",
];

/// Whose instructions they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The kernel, whichever scheduler it has.
    Kernel,
    /// What the kernel has for schedulers in BPF.
    SchedExt,
    /// What the kernel has for programs in BPF: entry and exit, helpers, maps.
    BpfRuntime,
    /// The scheduler's programs in BPF.
    Bpf,
    /// The scheduler's program in user space.
    Program,
    /// The tasks themselves.
    Tasks,
}

impl Side {
    /// All, from the kernel outwards.
    pub const ALL: [Side; 6] =
        [Side::Kernel, Side::SchedExt, Side::BpfRuntime, Side::Bpf, Side::Program, Side::Tasks];

    /// That of a function of the kernel's symbols.
    pub fn of_symbol(name: &str) -> Side {
        // A compiler puts `.part.0` and the like behind a name.
        let plain = name.split('.').next().unwrap_or(name);
        if BPF.iter().any(|begin| name.starts_with(begin)) {
            Side::Bpf
        } else if plain.contains("scx") || plain.contains("sched_ext") {
            Side::SchedExt
        } else if RUNTIME.iter().any(|begin| plain.starts_with(begin)) {
            Side::BpfRuntime
        } else if SCHED_EXT.lines().any(|line| line == plain) {
            Side::SchedExt
        } else {
            Side::Kernel
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Side::Kernel => "kernel",
            Side::SchedExt => "sched_ext",
            Side::BpfRuntime => "BPF runtime",
            Side::Bpf => "scheduler in BPF",
            Side::Program => "scheduler in user space",
            Side::Tasks => "tasks",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_of_a_function_follows_from_its_name() {
        for (name, side) in [
            ("__schedule", Side::Kernel),
            ("update_curr_scx", Side::SchedExt),
            ("pick_task_scx.cold", Side::SchedExt),
            ("scx_bpf_dsq_insert", Side::SchedExt),
            ("bpf_scx_is_valid_access", Side::SchedExt),
            ("dispatch_enqueue", Side::SchedExt),
            ("ops_dump_flush.part.0", Side::SchedExt),
            ("dispatch_to_local_dsq", Side::SchedExt),
            ("__bpf_prog_enter", Side::BpfRuntime),
            ("bpf_map_lookup_elem", Side::BpfRuntime),
            ("__htab_map_lookup_elem", Side::BpfRuntime),
            ("bpf_prog_483d4c8ae6effd0d_rr_select_cpu", Side::Bpf),
            ("bpf__sched_ext_ops_enqueue", Side::Bpf),
            ("bpf_trampoline_6442510881", Side::Bpf),
        ] {
            assert_eq!(Side::of_symbol(name), side, "{name}");
        }
    }
}
