//! The scheduling attributes of a thread: class, nice value, slice and CPUs.

use schedlab_runner::class::Class;

/// Restricts the calling thread and its future children to `cpus`; false if the kernel refuses.
pub fn set_affinity(cpus: &[u16]) -> bool {
    set_affinity_of(0, cpus)
}

/// Restricts a thread to `cpus`; false if the kernel refuses.
pub fn set_affinity_of(tid: i32, cpus: &[u16]) -> bool {
    // SAFETY: the set is plain memory, and zeros are the empty set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(usize::from(cpu), &mut set));
        libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// `struct sched_attr` of linux/include/uapi/linux/sched/types.h, its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const NO_ATTRIBUTES: Attributes = Attributes {
    size: size_of::<Attributes>() as u32,
    policy: 0,
    flags: 0,
    nice: 0,
    priority: 0,
    runtime: 0,
    deadline: 0,
    period: 0,
};

/// A thread that the calling thread forks has an ordinary class.
const RESET_ON_FORK: u64 = 1;

/// Puts the calling thread, but not its future children, above all ordinary and real-time tasks.
pub fn become_experimenter() {
    set_attributes(&Attributes { policy: 1, priority: 99, flags: RESET_ON_FORK, ..NO_ATTRIBUTES });
}

/// Lets the calling thread run as soon as it wakes up, for some microseconds.
///
/// `SCHED_FIFO` is not enough for that: the kernel reserves a twentieth of each second for ordinary
/// tasks. Where the kernel refuses `SCHED_DEADLINE`, the class stays as it is.
pub fn become_alarm() {
    let (runtime, deadline, period) = (20_000, 1_000_000, 1_000_000);
    let flags = RESET_ON_FORK;
    set_attributes(&Attributes { policy: 6, flags, runtime, deadline, period, ..NO_ATTRIBUTES });
}

/// Puts the calling thread into `class`; false if the kernel refuses.
pub fn set_class(class: Class, nice: i32, slice: u64) -> bool {
    let none = NO_ATTRIBUTES;
    set_attributes(&match class {
        Class::Other => Attributes { nice, runtime: slice, ..none },
        Class::Fifo(priority) => Attributes { policy: 1, priority, ..none },
        Class::Rr(priority) => Attributes { policy: 2, priority, ..none },
        Class::Batch => Attributes { policy: 3, nice, runtime: slice, ..none },
        Class::Idle => Attributes { policy: 5, nice, ..none },
        Class::Deadline { runtime, deadline, period } => {
            Attributes { policy: 6, runtime, deadline, period, ..none }
        }
    })
}

fn set_attributes(attributes: &Attributes) -> bool {
    // SAFETY: the kernel only reads `attributes`, as many bytes as they state.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(attributes), 0) == 0 }
}
