//! The resources that a job used, as the kernel accounts for them: `getrusage`, its counters of
//! migrations, and the run delay of its tasks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The resources that a process or a thread used, so far or in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

impl Usage {
    /// Of all threads of this process, ended ones included.
    pub fn of_process() -> Usage {
        Usage::of(libc::RUSAGE_SELF)
    }

    /// Of the children that this process waited for.
    pub fn of_children() -> Usage {
        Usage::of(libc::RUSAGE_CHILDREN)
    }

    fn of(who: libc::c_int) -> Usage {
        // SAFETY: the kernel fills in `usage`, for which zeros are a value.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let ns = |time: libc::timeval| {
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
        };
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            voluntary: usage.ru_nvcsw.cast_unsigned(),
            involuntary: usage.ru_nivcsw.cast_unsigned(),
        }
    }

    /// The resources used since `before`.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
            voluntary: self.voluntary - before.voluntary,
            involuntary: self.involuntary - before.involuntary,
        }
    }
}

/// The resources of tasks that are processes. Each adds its own at its end, because no process
/// waits for them.
#[repr(C)]
pub struct Sum {
    user_ns: AtomicU64,
    system_ns: AtomicU64,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    /// The run delay of all tasks that reported it.
    pub run_delay_ns: AtomicU64,
}

impl Sum {
    pub fn add(&self, usage: Usage) {
        self.user_ns.fetch_add(usage.user_ns, Relaxed);
        self.system_ns.fetch_add(usage.system_ns, Relaxed);
        self.voluntary.fetch_add(usage.voluntary, Relaxed);
        self.involuntary.fetch_add(usage.involuntary, Relaxed);
    }

    /// The sum with what this process used itself.
    pub fn with(&self, usage: Usage) -> Usage {
        Usage {
            user_ns: usage.user_ns + self.user_ns.load(Relaxed),
            system_ns: usage.system_ns + self.system_ns.load(Relaxed),
            voluntary: usage.voluntary + self.voluntary.load(Relaxed),
            involuntary: usage.involuntary + self.involuntary.load(Relaxed),
        }
    }
}

/// How long a task was runnable without running: the second number in its `schedstat`. `None` if
/// the kernel does not keep it.
pub fn run_delay(task: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{task}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A kernel counter of migrations, for this process and its future children.
pub struct Migrations(i32);

impl Migrations {
    /// Starts counting; `None` if this user may not.
    pub fn count() -> Option<Migrations> {
        /// `struct perf_event_attr` of linux/include/uapi/linux/perf_event.h, its first version.
        #[repr(C)]
        struct Attributes {
            kind: u32,
            size: u32,
            config: u64,
            sample_period: u64,
            sample_type: u64,
            read_format: u64,
            flags: u64,
            wakeup_events: u32,
            breakpoint_type: u32,
            config1: u64,
        }
        const SOFTWARE: u32 = 1;
        const CPU_MIGRATIONS: u64 = 4;
        const INHERIT: u64 = 1 << 1;
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_MIGRATIONS,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: INHERIT,
            wakeup_events: 0,
            breakpoint_type: 0,
            config1: 0,
        };
        const CLOSE_ON_EXEC: u64 = 1 << 3;
        // SAFETY: the kernel only reads `attributes`, as many bytes as they state; this process,
        // any CPU, no group.
        let file = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                0,
                -1,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        i32::try_from(file).ok().filter(|&file| file >= 0).map(Migrations)
    }

    /// The number of migrations.
    pub fn read(&self) -> Option<u64> {
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes.
        let bytes = unsafe { libc::read(self.0, (&raw mut count).cast(), size_of::<u64>()) };
        (bytes == size_of::<u64>() as isize).then_some(count)
    }
}
