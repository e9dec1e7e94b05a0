//! Detects a policy that looks good because it lets tasks starve.

use super::summary::PATIENCE;
use super::{Part, Summary};
use crate::Nanos;

/// A wait starves a task if it is this many times longer than the longest under the baseline.
const TIMES: u64 = 10;
/// An unfinished program is unserved if it got less than 1/10 of the baseline's CPU time.
const SHARE: u64 = 10;

impl Part {
    /// Whether these tasks starve, compared with the same ones under the `baseline`.
    ///
    /// They do if one of them waits without a break for longer than each of three times. These are
    /// 100 ms, a tenth of the `run`, and ten times the longest such wait under the baseline. They
    /// also do if fewer of them finish than under the baseline, with less than a tenth of the CPU
    /// time there. A task that is last in a long queue does not starve, nor does one that has
    /// nothing to do.
    pub fn starves(&self, baseline: &Part, run: Nanos) -> bool {
        let wait = self.wait_max();
        let waits =
            wait > PATIENCE && wait.0 > run.0 / 10 && wait.0 / TIMES > baseline.wait_max().0;
        let served = |part: &Part| part.sum(|task| task.cpu_time).0;
        let is_unserved =
            self.unfinished() > baseline.unfinished() && served(self) < served(baseline) / SHARE;
        waits || is_unserved
    }

    /// How many of its tasks ran or were runnable when the run ended.
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
