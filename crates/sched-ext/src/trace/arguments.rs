//! What the kernel calls the arguments of operations, functions and helpers.

use crate::callbacks::Op;

/// Those of an operation, and whether it has a result.
pub fn of_operation(op: Op) -> (&'static str, bool) {
    match op {
        Op::SelectCpu => ("p prev_cpu wake_flags", true),
        Op::Enqueue | Op::Runnable => ("p enq_flags", false),
        Op::Dequeue | Op::Quiescent => ("p deq_flags", false),
        Op::Dispatch => ("cpu prev", false),
        Op::Tick | Op::Running | Op::Enable | Op::Disable => ("p", false),
        Op::Stopping => ("p runnable", false),
        Op::Yield => ("from to", true),
        Op::SetWeight => ("p weight", false),
        Op::SetCpumask => ("p cpumask", false),
        Op::UpdateIdle => ("cpu idle", false),
        Op::CpuAcquire | Op::CpuRelease => ("cpu args", false),
        Op::InitTask => ("p args", true),
        Op::ExitTask => ("p args", false),
        Op::CgroupInit => ("cgrp args", true),
        Op::Init => ("", true),
        Op::Exit => ("ei", false),
    }
}

/// The structure that `args` of an operation are.
pub fn structure_of(op: Op) -> Option<&'static str> {
    match op {
        Op::InitTask => Some("scx_init_task_args"),
        Op::ExitTask => Some("scx_exit_task_args"),
        Op::CgroupInit => Some("scx_cgroup_init_args"),
        Op::CpuAcquire => Some("scx_cpu_acquire_args"),
        Op::CpuRelease => Some("scx_cpu_release_args"),
        _ => None,
    }
}

/// Those of the function of a timer.
pub const OF_TIMER: &str = "map key value";

/// Functions of the kernel.
const FUNCTIONS: &[(&str, &str)] = &[
    ("scx_bpf_create_dsq", "dsq_id node"),
    ("scx_bpf_destroy_dsq scx_bpf_dsq_nr_queued scx_bpf_dsq_peek", "dsq_id"),
    ("scx_bpf_dsq_move_to_local scx_bpf_consume", "dsq_id"),
    ("scx_bpf_dsq_insert scx_bpf_dispatch", "p dsq_id slice enq_flags"),
    ("scx_bpf_dsq_insert_vtime scx_bpf_dispatch_vtime", "p dsq_id slice vtime enq_flags"),
    ("__scx_bpf_dsq_insert_vtime", "p args"),
    ("bpf_iter_scx_dsq_new", "it dsq_id flags"),
    ("bpf_iter_scx_dsq_next bpf_iter_scx_dsq_destroy", "it"),
    ("scx_bpf_dsq_move scx_bpf_dispatch_from_dsq", "it p dsq_id enq_flags"),
    ("scx_bpf_dsq_move_vtime scx_bpf_dispatch_vtime_from_dsq", "it p dsq_id enq_flags"),
    ("scx_bpf_dsq_move_set_slice scx_bpf_dispatch_from_dsq_set_slice", "it slice"),
    ("scx_bpf_dsq_move_set_vtime scx_bpf_dispatch_from_dsq_set_vtime", "it vtime"),
    ("scx_bpf_select_cpu_dfl", "p prev_cpu wake_flags is_idle"),
    ("scx_bpf_select_cpu_and", "p prev_cpu wake_flags cpus_allowed pick_flags"),
    ("__scx_bpf_select_cpu_and", "p cpus_allowed args"),
    ("scx_bpf_pick_idle_cpu scx_bpf_pick_any_cpu", "cpus_allowed pick_flags"),
    ("scx_bpf_pick_idle_cpu_node scx_bpf_pick_any_cpu_node", "cpus_allowed node pick_flags"),
    ("scx_bpf_test_and_clear_cpu_idle scx_bpf_cpu_node", "cpu"),
    ("scx_bpf_cpuperf_cap scx_bpf_cpuperf_cur scx_bpf_cpu_rq scx_bpf_cpu_curr", "cpu"),
    ("scx_bpf_cpuperf_set", "cpu perf"),
    ("scx_bpf_get_idle_cpumask_node scx_bpf_get_idle_smtmask_node", "node"),
    ("scx_bpf_put_idle_cpumask scx_bpf_put_cpumask", "cpumask"),
    ("scx_bpf_kick_cpu", "cpu kick_flags"),
    ("scx_bpf_task_running scx_bpf_task_cpu scx_bpf_task_cgroup", "p"),
    ("bpf_task_acquire bpf_task_release", "p"),
    ("bpf_task_from_pid bpf_task_from_vpid", "pid"),
    ("scx_bpf_task_set_slice", "p slice"),
    ("scx_bpf_task_set_dsq_vtime", "p vtime"),
    ("scx_bpf_error_bstr scx_bpf_dump_bstr", "fmt"),
    ("scx_bpf_exit_bstr", "exit_code fmt"),
    ("bpf_cgroup_acquire bpf_cgroup_release", "cgrp"),
    ("bpf_cgroup_from_id", "cgid"),
    ("bpf_cgroup_ancestor", "cgrp level"),
    ("bpf_iter_num_new", "it start end"),
    ("bpf_iter_num_next bpf_iter_num_destroy", "it"),
    ("bpf_cpumask_acquire bpf_cpumask_release bpf_cpumask_first", "cpumask"),
    ("bpf_cpumask_first_zero bpf_cpumask_setall bpf_cpumask_clear", "cpumask"),
    ("bpf_cpumask_empty bpf_cpumask_full bpf_cpumask_weight", "cpumask"),
    ("bpf_cpumask_any_distribute", "cpumask"),
    ("bpf_cpumask_set_cpu bpf_cpumask_clear_cpu bpf_cpumask_test_cpu", "cpu cpumask"),
    ("bpf_cpumask_test_and_set_cpu bpf_cpumask_test_and_clear_cpu", "cpu cpumask"),
    ("bpf_cpumask_first_and bpf_cpumask_equal bpf_cpumask_intersects", "src1_mask src2_mask"),
    ("bpf_cpumask_subset bpf_cpumask_any_and_distribute", "src1_mask src2_mask"),
    ("bpf_cpumask_and bpf_cpumask_or bpf_cpumask_xor", "dst src1_mask src2_mask"),
    ("bpf_cpumask_copy", "dst src_mask"),
];

/// Those of a function, if its name is known here.
///
/// Versions of a function differ in what follows `___`.
pub fn of_function(name: &str) -> Option<&'static str> {
    let name = name.split_once("___").map_or(name, |(plain, _)| plain);
    let mut rows = FUNCTIONS.iter();
    rows.find(|(names, _)| names.split(' ').any(|known| known == name)).map(|(_, of)| *of)
}

/// Those of a helper.
pub fn of_helper(helper: u32) -> &'static str {
    match helper {
        1 | 3 => "map key",
        2 => "map key value flags",
        195 => "map key cpu",
        87 => "map value flags",
        88 | 89 => "map",
        156 | 210 => "map owner value flags",
        157 | 211 => "map owner",
        153 => "ptr cpu",
        154 => "ptr",
        164 => "map callback_fn ctx flags",
        181 => "nr_loops callback_fn ctx flags",
        169 => "timer map flags",
        170 => "timer callback_fn",
        171 => "timer nsecs flags",
        172 => "timer",
        4 | 45 | 112..=115 => "dst size unsafe_ptr",
        182 => "s1 s1_sz s2",
        194 => "dst ptr",
        130 => "ringbuf data size flags",
        131 => "ringbuf size flags",
        132 | 133 => "data flags",
        134 => "ringbuf flags",
        25 => "ctx map flags data size",
        55 => "map flags buf size",
        165 => "str str_size fmt",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_and_helper_of_the_kernel_is_known_or_has_no_arguments() {
        const NONE: [&str; 14] = [
            "bpf_cpumask_create",
            "bpf_preempt_disable",
            "bpf_preempt_enable",
            "bpf_rcu_read_lock",
            "bpf_rcu_read_unlock",
            "scx_bpf_dispatch_cancel",
            "scx_bpf_dispatch_nr_slots",
            "scx_bpf_get_idle_cpumask",
            "scx_bpf_get_idle_smtmask",
            "scx_bpf_get_online_cpumask",
            "scx_bpf_get_possible_cpumask",
            "scx_bpf_now",
            "scx_bpf_nr_cpu_ids",
            "scx_bpf_nr_node_ids",
        ];
        // Arguments that say nothing without their type.
        const OTHERS: [&str; 4] = [
            "bpf_cpumask_release_dtor",
            "scx_bpf_events",
            "scx_bpf_locked_rq",
            "scx_bpf_reenqueue_local",
        ];
        for name in crate::function_names() {
            let is_plain = NONE.contains(&name) || OTHERS.contains(&name);
            assert_ne!(of_function(name).is_some(), is_plain, "{name}");
        }
        for (names, _) in FUNCTIONS {
            for name in names.split(' ') {
                assert!(crate::function_names().contains(&name), "{name} is none");
            }
        }
    }
}
