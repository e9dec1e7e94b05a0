//! Whether a policy looks good because it lets tasks starve.

use super::summary::PATIENCE;
use super::{Part, Summary};
use crate::Nanos;

/// How often as long as under the baseline a task may wait at a stretch.
const TIMES: u64 = 10;
/// The part of the baseline's CPU time below which an unfinished program counts as unserved, as one over it.
const SHARE: u64 = 10;

impl Part {
    /// Whether these tasks starve, as compared with what the `baseline` does to the same ones.
    ///
    /// They do if one of them waits at a stretch for more than 100 ms, for more than a tenth of the `run`, and for more than ten times as long as any does under the
    /// baseline; or if they are not finished and got less than a tenth of the CPU time that the baseline gave them. A task that is last in a queue of many starves as
    /// little as one that has nothing to do.
    pub fn starves(&self, baseline: &Part, run: Nanos) -> bool {
        let wait = self.wait_max();
        let waits = wait > PATIENCE && wait.0 > run.0 / 10 && wait.0 / TIMES > baseline.wait_max().0;
        let served = |part: &Part| part.sum(|task| task.cpu_time).0;
        let is_unserved = self.unfinished() > baseline.unfinished() && served(self) < served(baseline) / SHARE;
        waits || is_unserved
    }

    /// How many of its tasks ran or could have run when the run ended.
    pub fn unfinished(&self) -> usize {
        self.tasks.iter().filter(|task| task.is_unfinished).count()
    }
}

impl Summary {
    /// From the first event to the end of the run.
    pub fn length(&self) -> Nanos {
        self.totals.first_event.map_or(Nanos::ZERO, |first| self.end.since(first))
    }
}
