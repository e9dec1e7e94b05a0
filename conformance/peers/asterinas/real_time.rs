//! Stands in for Asterinas' real-time class, which needs more crates: it has the same names, and its queue is always empty.

use alloc::sync::Arc;
use core::num::NonZero;

use aster_util::ranged_integer::RangedU8;
use ostd::{
    cpu::CpuId,
    task::{
        Task,
        scheduler::{EnqueueFlags, UpdateFlags},
    },
};

use super::{CurrentRuntime, SchedAttr, SchedClassRq};

pub(crate) type RealTimePriority = RangedU8<1, 99>;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum RealTimePolicy {
    Fifo,
    RoundRobin { base_slice_factor: Option<NonZero<u32>> },
}

impl Default for RealTimePolicy {
    fn default() -> Self {
        Self::Fifo
    }
}

#[derive(Debug)]
pub(crate) struct RealTimeAttr;

impl RealTimeAttr {
    pub(crate) fn new(_: u8, _: RealTimePolicy) -> Self {
        Self
    }

    pub(crate) fn update(&self, _: u8, _: RealTimePolicy) {
        unreachable!("no task is a real-time one");
    }
}

#[derive(Debug)]
pub(super) struct RealTimeClassRq;

impl RealTimeClassRq {
    pub(crate) fn new(_: CpuId) -> Self {
        Self
    }
}

impl SchedClassRq for RealTimeClassRq {
    fn enqueue(&mut self, _: Arc<Task>, _: Option<EnqueueFlags>) {
        unreachable!("no task is a real-time one");
    }

    fn len(&self) -> usize {
        0
    }

    fn pick_next(&mut self) -> Option<Arc<Task>> {
        None
    }

    fn update_current(&mut self, _: &CurrentRuntime, _: &SchedAttr, _: UpdateFlags) -> bool {
        unreachable!("no task is a real-time one");
    }
}
