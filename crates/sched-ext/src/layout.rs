//! The kernel's structures, laid out as the object's own types say. So every offset that was compiled
//! into a program is right, and no relocation is needed.

use bpf::{Btf, Field};

/// Of a structure that the object does not know whole.
const UNKNOWN: usize = 4096;

/// Where the fields are that this crate fills in. A field that an object does not know is left out.
#[derive(Clone, Debug)]
pub struct Layout {
    pub task_size: usize,
    pub rq_size: usize,
    pub mask_size: usize,
    pub cgroup_size: usize,
    pub slice: Option<Field>,
    pub vtime: Option<Field>,
    pub weight: Option<Field>,
    pub flags: Option<Field>,
    pub sum_exec: Option<Field>,
    pub cpu: Vec<Field>,
    pub recent_cpu: Vec<Field>,
    pub cpus_ptr: Option<Field>,
    pub user_cpus_ptr: Option<Field>,
    pub cpus_mask: Option<Field>,
    pub nr_cpus_allowed: Option<Field>,
    pub pid: Option<Field>,
    pub tgid: Option<Field>,
    pub comm: Option<Field>,
    pub prios: Vec<Field>,
    pub policy: Option<Field>,
    pub process_flags: Option<Field>,
    pub on_rq: Option<Field>,
    pub on_cpu: Option<Field>,
    pub itself: Vec<Field>,
    pub memory: Option<Field>,
    pub rq_curr: Option<Field>,
    pub rq_idle: Option<Field>,
    pub rq_cpu: Option<Field>,
    pub rq_running: Vec<Field>,
    pub init_args: Option<usize>,
    pub fork: Option<Field>,
    pub args_cgroup: Option<Field>,
    pub cgroup_args: Option<usize>,
    pub cgroup_weight: Option<Field>,
}

impl Layout {
    pub fn of(btf: &Btf) -> Layout {
        let of = |structure: &str, path: &str| btf.field(structure, path);
        let task = |path: &str| of("task_struct", path);
        let several = |paths: &[&str]| paths.iter().filter_map(|path| task(path)).collect();
        let size = |name: &str| btf.struct_size(name).filter(|&size| size > 0).unwrap_or(UNKNOWN);
        Layout {
            task_size: size("task_struct"),
            rq_size: size("rq"),
            mask_size: size("cpumask").max(128),
            cgroup_size: size("cgroup"),
            slice: task("scx.slice"),
            vtime: task("scx.dsq_vtime"),
            weight: task("scx.weight"),
            flags: task("scx.flags"),
            sum_exec: task("se.sum_exec_runtime"),
            cpu: several(&["thread_info.cpu"]),
            recent_cpu: several(&["recent_used_cpu", "wake_cpu"]),
            cpus_ptr: task("cpus_ptr"),
            user_cpus_ptr: task("user_cpus_ptr"),
            cpus_mask: task("cpus_mask"),
            nr_cpus_allowed: task("nr_cpus_allowed"),
            pid: task("pid"),
            tgid: task("tgid"),
            comm: task("comm"),
            prios: several(&["prio", "static_prio", "normal_prio"]),
            policy: task("policy"),
            process_flags: task("flags"),
            on_rq: task("on_rq"),
            on_cpu: task("on_cpu"),
            itself: several(&["group_leader", "real_parent", "parent"]),
            memory: task("mm"),
            rq_curr: of("rq", "curr"),
            rq_idle: of("rq", "idle"),
            rq_cpu: of("rq", "cpu"),
            rq_running: ["nr_running", "scx.nr_running"]
                .iter()
                .filter_map(|path| of("rq", path))
                .collect(),
            init_args: btf.struct_size("scx_init_task_args"),
            fork: of("scx_init_task_args", "fork"),
            args_cgroup: of("scx_init_task_args", "cgroup"),
            cgroup_args: btf.struct_size("scx_cgroup_init_args"),
            cgroup_weight: of("scx_cgroup_init_args", "weight"),
        }
    }
}
