//! Numbers of `include/linux/sched/ext.h` and `kernel/sched/ext/internal.h` that programs use.

/// Jiffies in a second (`CONFIG_HZ`), as Debian builds its kernels.
pub const HZ: u64 = 250;

pub const SLICE_DEFAULT: u64 = 20_000_000;
pub const SLICE_INFINITE: u64 = u64::MAX;

pub const DSQ_BUILTIN: u64 = 1 << 63;
pub const DSQ_LOCAL_ON: u64 = 1 << 62;
pub const DSQ_INVALID: u64 = DSQ_BUILTIN;
pub const DSQ_GLOBAL: u64 = DSQ_BUILTIN | 1;
pub const DSQ_LOCAL: u64 = DSQ_BUILTIN | 2;

pub const OPS_KEEP_BUILTIN_IDLE: u64 = 1;
pub const OPS_ENQ_LAST: u64 = 2;
pub const OPS_BUILTIN_IDLE_PER_NODE: u64 = 1 << 6;

/// The flags of `sched_ext_ops`, by name.
pub const OPS_FLAGS: [(&str, u64); 8] = [
    ("SCX_OPS_KEEP_BUILTIN_IDLE", OPS_KEEP_BUILTIN_IDLE),
    ("SCX_OPS_ENQ_LAST", OPS_ENQ_LAST),
    ("SCX_OPS_ENQ_EXITING", 1 << 2),
    ("SCX_OPS_SWITCH_PARTIAL", 1 << 3),
    ("SCX_OPS_ENQ_MIGRATION_DISABLED", 1 << 4),
    ("SCX_OPS_ALLOW_QUEUED_WAKEUP", 1 << 5),
    ("SCX_OPS_BUILTIN_IDLE_PER_NODE", OPS_BUILTIN_IDLE_PER_NODE),
    ("SCX_OPS_HAS_CGROUP_WEIGHT", 1 << 16),
];

pub const ENQ_WAKEUP: u64 = 1;
pub const ENQ_RESTORE: u64 = 2;
pub const ENQ_HEAD: u64 = 1 << 4;
pub const ENQ_CPU_SELECTED: u64 = 1 << 10;
pub const ENQ_PREEMPT: u64 = 1 << 32;
pub const ENQ_REENQ: u64 = 1 << 40;
pub const ENQ_LAST: u64 = 1 << 41;
pub const ENQ_PRIQ: u64 = 1 << 57;

pub const DEQ_SLEEP: u64 = 1;
pub const DEQ_SAVE: u64 = 2;

pub const WAKE_FORK: u64 = 4;
pub const WAKE_TTWU: u64 = 8;
pub const WAKE_SYNC: u64 = 16;

pub const KICK_IDLE: u64 = 1;
pub const KICK_PREEMPT: u64 = 2;

/// `SCX_TASK_QUEUED`, of `scx.flags`.
pub const TASK_QUEUED: u64 = 1;

/// What a loader writes into constants of an object before it loads it, by their names without
/// `__`: the kernel's own values (`SCX_ENUM_INIT`).
pub const ENUMS: &[(&str, u64)] = &[
    ("SCX_OPS_NAME_LEN", 128),
    ("SCX_SLICE_DFL", SLICE_DEFAULT),
    ("SCX_SLICE_INF", SLICE_INFINITE),
    ("SCX_RQ_ONLINE", 1),
    ("SCX_RQ_CAN_STOP_TICK", 2),
    ("SCX_RQ_BAL_PENDING", 4),
    ("SCX_RQ_BAL_KEEP", 8),
    ("SCX_RQ_BYPASSING", 16),
    ("SCX_RQ_CLK_VALID", 32),
    ("SCX_RQ_IN_WAKEUP", 1 << 16),
    ("SCX_RQ_IN_BALANCE", 1 << 17),
    ("SCX_DSQ_FLAG_BUILTIN", DSQ_BUILTIN),
    ("SCX_DSQ_FLAG_LOCAL_ON", DSQ_LOCAL_ON),
    ("SCX_DSQ_INVALID", DSQ_INVALID),
    ("SCX_DSQ_GLOBAL", DSQ_GLOBAL),
    ("SCX_DSQ_LOCAL", DSQ_LOCAL),
    ("SCX_DSQ_LOCAL_ON", DSQ_BUILTIN | DSQ_LOCAL_ON),
    ("SCX_DSQ_LOCAL_CPU_MASK", 0xffff_ffff),
    ("SCX_TASK_QUEUED", TASK_QUEUED),
    ("SCX_TASK_RESET_RUNNABLE_AT", 4),
    ("SCX_TASK_DEQD_FOR_SLEEP", 8),
    ("SCX_TASK_STATE_SHIFT", 8),
    ("SCX_TASK_STATE_BITS", 2),
    ("SCX_TASK_STATE_MASK", 3 << 8),
    ("SCX_TASK_CURSOR", 1 << 31),
    ("SCX_TASK_NONE", 0),
    ("SCX_TASK_INIT", 1 << 8),
    ("SCX_TASK_READY", 2 << 8),
    ("SCX_TASK_ENABLED", 3 << 8),
    ("SCX_TASK_NR_STATES", 4),
    ("SCX_TASK_DSQ_ON_PRIQ", 1),
    ("SCX_KICK_IDLE", KICK_IDLE),
    ("SCX_KICK_PREEMPT", KICK_PREEMPT),
    ("SCX_KICK_WAIT", 4),
    ("SCX_ENQ_WAKEUP", ENQ_WAKEUP),
    ("SCX_ENQ_HEAD", ENQ_HEAD),
    ("SCX_ENQ_PREEMPT", ENQ_PREEMPT),
    ("SCX_ENQ_REENQ", ENQ_REENQ),
    ("SCX_ENQ_LAST", ENQ_LAST),
    ("SCX_ENQ_CLEAR_OPSS", 1 << 56),
    ("SCX_ENQ_DSQ_PRIQ", ENQ_PRIQ),
];

/// A name of the kernel's without the suffix `___…` by which programs tell its versions apart.
pub fn unversioned(name: &str) -> &str {
    name.split_once("___").map_or(name, |(plain, _)| plain)
}
