//! What Asterinas' scheduling classes need of OSTD and of its utility crates, for one CPU whose clock is that of the events. Only interfaces, by us.
//!
//! The build names this crate `ostd`, `aster_util`, `spin`, `atomic_integer_wrapper` and `int_to_c_enum` at once.

use std::sync::atomic::AtomicU64;

pub use try_from_int::TryFromInt;

/// The time in nanoseconds. It is also the time stamp counter, of 1 GHz.
pub static NOW: AtomicU64 = AtomicU64::new(0);

pub mod arch {
    use std::sync::atomic::Ordering;

    pub fn read_tsc() -> u64 {
        super::NOW.load(Ordering::Relaxed)
    }

    pub fn tsc_freq() -> u64 {
        1_000_000_000
    }
}

pub mod cpu {
    use std::ops::RangeBounds;

    /// The only CPU.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct CpuId;

    pub struct CpuSet;

    impl CpuSet {
        pub fn iter(&self) -> impl Iterator<Item = CpuId> {
            std::iter::once(CpuId)
        }

        pub fn iter_in<R: RangeBounds<CpuId>>(&self, range: R) -> impl Iterator<Item = CpuId> {
            range.contains(&CpuId).then_some(CpuId).into_iter()
        }
    }

    pub trait PinCurrentCpu {
        fn current_cpu(&self) -> CpuId {
            CpuId
        }
    }

    pub fn all_cpus() -> impl Iterator<Item = CpuId> {
        std::iter::once(CpuId)
    }

    pub fn num_cpus() -> usize {
        1
    }
}

pub mod util {
    pub mod id_set {
        pub trait Id {
            fn as_usize(self) -> usize;
        }

        impl Id for crate::cpu::CpuId {
            fn as_usize(self) -> usize {
                0
            }
        }
    }
}

pub mod irq {
    pub struct DisabledLocalIrqGuard;

    impl crate::cpu::PinCurrentCpu for DisabledLocalIrqGuard {}

    pub fn disable_local() -> DisabledLocalIrqGuard {
        DisabledLocalIrqGuard
    }
}

pub mod sync {
    use std::{
        marker::PhantomData,
        sync::{Mutex, MutexGuard},
    };

    #[derive(Debug)]
    pub struct PreemptDisabled;

    #[derive(Debug)]
    pub struct LocalIrqDisabled;

    #[derive(Debug)]
    pub struct SpinLock<T, G = PreemptDisabled>(Mutex<T>, PhantomData<G>);

    impl<T, G> SpinLock<T, G> {
        pub fn new(value: T) -> Self {
            Self(Mutex::new(value), PhantomData)
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic while the lock is held")
        }

        pub fn disable_irq(&self) -> &Self {
            self
        }
    }
}

pub mod task {
    use std::{any::Any, sync::Mutex};

    use crate::cpu::CpuId;

    pub struct Task {
        pub schedule_info: TaskScheduleInfo,
        pub data: Box<dyn Any + Send + Sync>,
    }

    impl Task {
        pub fn schedule_info(&self) -> &TaskScheduleInfo {
            &self.schedule_info
        }
    }

    #[derive(Default)]
    pub struct TaskScheduleInfo {
        pub cpu: AtomicCpuId,
    }

    #[derive(Debug, Default)]
    pub struct AtomicCpuId(Mutex<Option<CpuId>>);

    impl AtomicCpuId {
        pub fn set_if_is_none(&self, cpu: CpuId) -> Result<(), CpuId> {
            let mut place = self.0.lock().expect("no panic while the lock is held");
            place.replace(cpu).map_or(Ok(()), Err)
        }

        pub fn set_anyway(&self, cpu: CpuId) {
            *self.0.lock().expect("no panic while the lock is held") = Some(cpu);
        }

        pub fn set_to_none(&self) {
            *self.0.lock().expect("no panic while the lock is held") = None;
        }

        pub fn get(&self) -> Option<CpuId> {
            *self.0.lock().expect("no panic while the lock is held")
        }
    }

    pub mod scheduler {
        use std::sync::Arc;

        use super::Task;
        use crate::cpu::CpuId;

        #[derive(Clone, Copy, PartialEq)]
        pub enum EnqueueFlags {
            Spawn,
            Wake,
        }

        #[derive(Clone, Copy, PartialEq)]
        pub enum UpdateFlags {
            Tick,
            Wait,
            Yield,
            Exit,
        }

        pub trait Scheduler<T = Task>: Sync + Send {
            fn enqueue(&self, runnable: Arc<T>, flags: EnqueueFlags) -> Option<CpuId>;
            fn mut_local_rq_with(&self, f: &mut dyn FnMut(&mut dyn LocalRunQueue<T>));
            fn local_rq_with(&self, f: &mut dyn FnMut(&dyn LocalRunQueue<T>));
        }

        pub trait LocalRunQueue<T = Task> {
            fn current(&self) -> Option<&Arc<T>>;
            fn update_current(&mut self, flags: UpdateFlags) -> bool;
            fn try_pick_next(&mut self) -> Option<&Arc<T>>;
            fn dequeue_current(&mut self) -> Option<Arc<T>>;
        }

        pub fn inject_scheduler(_: &'static dyn Scheduler) {}

        pub fn enable_preemption_on_cpu() {}

        pub mod info {
            pub trait CommonSchedInfo {
                fn cpu(&self) -> &super::super::AtomicCpuId;
            }

            impl CommonSchedInfo for super::Task {
                fn cpu(&self) -> &super::super::AtomicCpuId {
                    &self.schedule_info.cpu
                }
            }
        }
    }
}

pub struct Once<T>(std::sync::OnceLock<T>);

impl<T> Once<T> {
    pub const fn new() -> Self {
        Self(std::sync::OnceLock::new())
    }

    pub fn call_once(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}

pub mod ranged_integer {
    macro_rules! ranged {
        ($name:ident, $type:ty) => {
            #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
            pub struct $name<const LOW: $type, const HIGH: $type>($type);

            impl<const LOW: $type, const HIGH: $type> $name<LOW, HIGH> {
                pub const MIN: Self = Self(LOW);
                pub const MAX: Self = Self(HIGH);

                pub const fn new(value: $type) -> Self {
                    assert!(LOW <= value && value <= HIGH);
                    Self(value)
                }

                pub const fn get(self) -> $type {
                    self.0
                }
            }

            impl<const LOW: $type, const HIGH: $type> From<$name<LOW, HIGH>> for $type {
                fn from(value: $name<LOW, HIGH>) -> Self {
                    value.0
                }
            }

            impl<const LOW: $type, const HIGH: $type> TryFrom<$type> for $name<LOW, HIGH> {
                type Error = &'static str;

                fn try_from(value: $type) -> Result<Self, Self::Error> {
                    (LOW..=HIGH).contains(&value).then_some(Self(value)).ok_or("out of range")
                }
            }
        };
    }

    ranged!(RangedI8, i8);
    ranged!(RangedU8, u8);
}

/// An atomic of a type that goes into the atomic's integer and comes back by `TryFrom`.
#[macro_export]
macro_rules! define_atomic_version_of_integer_like_type {
    ($type:ty, try_from = true, { $(#[$attribute:meta])* $visible:vis struct $name:ident($atomic:ty); }) => {
        $(#[$attribute])*
        $visible struct $name($atomic);

        impl $name {
            $visible fn new(value: impl Into<$type>) -> Self {
                Self(<$atomic>::new(value.into().into()))
            }

            $visible fn load(&self, ordering: core::sync::atomic::Ordering) -> $type {
                <$type>::try_from(self.0.load(ordering)).ok().expect("only its values are stored")
            }

            $visible fn store(&self, value: impl Into<$type>, ordering: core::sync::atomic::Ordering) {
                self.0.store(value.into().into(), ordering);
            }
        }
    };
}
