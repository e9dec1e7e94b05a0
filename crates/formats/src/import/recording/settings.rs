//! Settings of tasks. Those at the beginning come before the tasks are seen, and wait for them.

use super::Reading;
use schedsim::CpuId;
use schedsim::trace::{CallKind, Set};
use schedsim::workload::TaskClass;
use std::collections::HashMap;

/// Settings of tasks that were not seen yet.
#[derive(Default)]
pub(super) struct Settings(HashMap<u32, Vec<(CpuId, Set)>>);

/// `SCHED_RESET_ON_FORK`.
const RESETS: u64 = 0x4000_0000;

impl Settings {
    /// An event about `task`. Nice values are in the priorities of the other events.
    pub fn take(&mut self, cpu: CpuId, task: u32, which: u8, value: u64) {
        let set = match which {
            0 => Set::Cpus(value),
            1 => {
                let class = match value & !RESETS {
                    1 => TaskClass::Fifo,
                    2 => TaskClass::RoundRobin,
                    3 => TaskClass::Batch,
                    5 => TaskClass::Idle,
                    _ => TaskClass::ByPriority,
                };
                Set::Class { class, resets: value & RESETS > 0 }
            }
            _ => return,
        };
        self.0.entry(task).or_default().push((cpu, set));
    }
}

impl Reading<'_, '_> {
    /// Passes on what was set for those of `tasks` that were seen.
    pub(super) fn settings_hold(&mut self, time: u64, tasks: &[u32]) {
        if self.settings.0.is_empty() {
            return;
        }
        for tid in tasks {
            if self.recorder.task_of(*tid).is_none() {
                continue;
            }
            for (cpu, set) in self.settings.0.remove(tid).unwrap_or_default() {
                self.recorder.call(time, cpu, *tid, CallKind::Sets(set));
            }
        }
    }
}
