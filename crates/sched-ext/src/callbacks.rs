//! The callbacks of a scheduler, and in which of them it may call a function of the kernel.
//!
//! A function of queues is bound to the moment at which the kernel asks: Linux 6.18 ejects a
//! scheduler that calls it elsewhere (`scx_kf_allowed`, `kernel/sched/ext.c`). Linux 7.2 refuses to
//! load it (`scx_kfunc_context_filter`).

use super::constants::unversioned;

macro_rules! operations {
    ($($name:ident $text:literal,)*) => {
        /// An operation of a scheduler.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "each is named as the member that it is")]
        pub enum Op { $($name,)* }

        pub(crate) const OPS: &[(Op, &str)] = &[$((Op::$name, $text),)*];
    };
}

operations! {
    SelectCpu "select_cpu",
    Enqueue "enqueue",
    Dequeue "dequeue",
    Dispatch "dispatch",
    Tick "tick",
    Runnable "runnable",
    Running "running",
    Stopping "stopping",
    Quiescent "quiescent",
    Yield "yield",
    SetWeight "set_weight",
    SetCpumask "set_cpumask",
    UpdateIdle "update_idle",
    CpuAcquire "cpu_acquire",
    CpuRelease "cpu_release",
    InitTask "init_task",
    ExitTask "exit_task",
    Enable "enable",
    Disable "disable",
    CgroupInit "cgroup_init",
    Init "init",
    Exit "exit",
}

impl Op {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Op> {
        OPS.iter().map(|&(op, _)| op)
    }

    /// The name of the member.
    pub fn name(self) -> &'static str {
        OPS[self as usize].1
    }
}

/// A callback: an operation, or the function of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callback {
    /// An operation.
    Op(Op),
    /// The function of a timer.
    Timer,
}

impl Callback {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Callback> {
        Op::all().map(Callback::Op).chain([Callback::Timer])
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Callback::Op(op) => op.name(),
            Callback::Timer => "timer",
        }
    }

    #[inline]
    const fn bit(self) -> u32 {
        match self {
            Callback::Op(op) => 1 << op as u32,
            Callback::Timer => 1 << 31,
        }
    }
}

/// Callbacks: a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places(u32);

const SELECT: u32 = Callback::Op(Op::SelectCpu).bit();
const ENQUEUE: u32 = Callback::Op(Op::Enqueue).bit();
const DISPATCH: u32 = Callback::Op(Op::Dispatch).bit();
const TIMER: u32 = Callback::Timer.bit();
/// Those in which no lock of a queue is held.
const UNLOCKED: u32 = Callback::Op(Op::Init).bit()
    | Callback::Op(Op::Exit).bit()
    | Callback::Op(Op::InitTask).bit()
    | Callback::Op(Op::CgroupInit).bit();

/// The functions that are not to be called everywhere, and where they are. `scx_bpf_reenqueue_local`
/// is free, as its second version is.
const BOUND: &[(&[&str], u32)] = &[
    (
        &[
            "scx_bpf_dsq_insert",
            "scx_bpf_dispatch",
            "scx_bpf_dsq_insert_vtime",
            "scx_bpf_dispatch_vtime",
            "__scx_bpf_dsq_insert_vtime",
        ],
        SELECT | ENQUEUE | DISPATCH,
    ),
    (
        &["scx_bpf_select_cpu_dfl", "scx_bpf_select_cpu_and", "__scx_bpf_select_cpu_and"],
        SELECT | ENQUEUE | UNLOCKED | TIMER,
    ),
    (
        &[
            "scx_bpf_dsq_move_to_local",
            "scx_bpf_consume",
            "scx_bpf_dispatch_nr_slots",
            "scx_bpf_dispatch_cancel",
        ],
        DISPATCH,
    ),
    (
        &[
            "scx_bpf_dsq_move",
            "scx_bpf_dispatch_from_dsq",
            "scx_bpf_dsq_move_vtime",
            "scx_bpf_dispatch_vtime_from_dsq",
        ],
        DISPATCH | UNLOCKED | TIMER,
    ),
    // It may sleep.
    (&["scx_bpf_create_dsq"], UNLOCKED),
];

impl Places {
    /// Where the function of this name may be called, in any version.
    pub(crate) fn of(name: &str) -> Places {
        let plain = unversioned(name);
        let bound = BOUND.iter().find(|(names, _)| names.contains(&plain));
        Places(bound.map_or(u32::MAX, |&(_, places)| places))
    }

    /// Whether this callback is one of them.
    #[inline]
    pub(crate) fn has(self, callback: Callback) -> bool {
        self.0 & callback.bit() != 0
    }

    /// Their names.
    pub(crate) fn names(self) -> String {
        let names = Callback::all().filter(|&callback| self.has(callback)).map(Callback::name);
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUND, Callback, Op, Places};
    use crate::functions;

    #[test]
    fn each_bound_function_is_one_that_there_is() {
        for name in BOUND.iter().flat_map(|(names, _)| *names) {
            assert!(functions::named(name).is_some(), "{name}");
            assert!(!Places::of(name).has(Callback::Op(Op::Running)), "{name}");
        }
    }

    #[test]
    fn a_version_is_bound_as_the_function_and_others_are_free() {
        let versioned = Places::of("scx_bpf_dsq_insert___v2___compat");
        assert_eq!(versioned.names(), "select_cpu, enqueue, dispatch");
        assert!(Callback::all().all(|callback| Places::of("scx_bpf_kick_cpu").has(callback)));
    }
}
