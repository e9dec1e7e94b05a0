//! Windows' rules: 32 levels, a boost for woken tasks, and one for starving tasks. macOS has the
//! same design.
//!
//! Priorities 31…16 are real-time and never change. The others, 15…1, are the base of a task's
//! class (here: its nice value, 8 for nice 0) plus a boost. A woken task is boosted above its base,
//! by 1 level unless `boost` says else. It loses a level at the end of each quantum until it is
//! back. A task that has been ready for four seconds without running is lifted to 15 for half a
//! quantum. Right on a desktop: tasks that wait for the user or a disk run before tasks that
//! compute. Bad at fairness: a lower level runs only when no higher one is ready, except for half a
//! quantum every four seconds.
//!
//! A quantum is two clock ticks (31.25 ms, as on clients; servers: 187.5 ms). Foreground tasks have
//! `stretch` times as much: all but batch and idle tasks. Each wait costs a sixth of a quantum,
//! except at priorities 14 and above, which then get a full one.
//!
//! Source: Yosifovich, Ionescu, Russinovich & Solomon, *Windows Internals*, part 1, 7th ed. (2017),
//! chapter 4, "Thread scheduling": priority levels, quantum and `PsPrioritySeparation`, priority
//! boosts, the balance set manager. The loss per wait is that of the 5th edition. For macOS: A.
//! Singh, *Mac OS X Internals* (2006), 7.4: 128 levels, priorities that decay with use, and the
//! same preemption. It stands in for both in comparisons with Linux.
//!
//! Deviations: one set of lists for all CPUs (Windows: one per group of CPUs, and an ideal CPU for
//! each thread). Windows' boost depends on the kind of device: 1 for disks and events, 2 for
//! networks, 6 for keyboards; scripts do not distinguish these. Quanta are exact. The balance set
//! manager examines all tasks each second, not sixteen threads of each list.

use super::{Feedback, Rules, Standing};
use crate::Nanos;
use crate::policy::TaskView;
use crate::policy::descriptor::{Descriptor, Given, Make};
use crate::policy::options::OptionSpec;
use crate::workload::TaskClass;

/// Windows' scheduler.
pub type Mlfq = Feedback<Windows>;

/// Parameters of [`Mlfq`]: its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// The quantum of background tasks.
    pub quantum: Nanos,
    /// The factor of foreground quanta, 1 to 3 (`PsPrioritySeparation`).
    pub stretch: u16,
    /// The boost of a woken task, in levels.
    pub boost: u16,
}

impl Default for Windows {
    fn default() -> Self {
        Windows { quantum: Nanos(31_250_000), stretch: 1, boost: 1 }
    }
}

impl Mlfq {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, rules: Windows) -> Mlfq {
        Feedback::with_rules(rules, cpus)
    }
}

/// The level of a Windows priority: 31 is the best.
const fn level(priority: u16) -> u16 {
    31 - priority
}

/// The best level that changes.
const BEST: u16 = level(15);
/// From this level on, a wait renews the quantum.
const RENEWS: u16 = level(14);
/// How long a task may starve before it is boosted.
const PATIENCE: Nanos = Nanos::from_millis(4000);

/// The Windows priority of a kernel priority: 31…16 for 0…99, 15…9 for nice −20…−1, 8 for nice 0,
/// 7…1 for nice 1…19.
fn base_priority(task: &TaskView) -> u16 {
    let prio = u16::from(task.prio.min(139));
    match (task.attributes.class, prio) {
        (TaskClass::Idle, _) => 1,
        (_, 0..100) => 31 - prio * 16 / 100,
        (_, 100..120) => 8 + (120 - prio).div_ceil(3).min(7),
        (_, _) => 8 - (prio - 120).div_ceil(3).min(7),
    }
}

impl Rules for Windows {
    fn admit(&self, task: &TaskView) -> Standing {
        let is_foreground = !matches!(task.attributes.class, TaskClass::Batch | TaskClass::Idle);
        let quantum =
            Nanos(self.quantum.0 * if is_foreground { u64::from(self.stretch) } else { 1 });
        let base = level(base_priority(task));
        Standing { base, level: base, quantum, left: quantum, is_rescued: false }
    }

    fn wakes(&self, standing: &mut Standing) {
        if standing.base < BEST {
            standing.left = standing.quantum;
            return;
        }
        let boosted = standing.base.saturating_sub(self.boost).max(BEST);
        standing.level = standing.level.min(boosted);
        standing.left = if standing.level <= RENEWS {
            standing.quantum
        } else {
            standing.left.saturating_sub(Nanos(standing.quantum.0 / 6))
        };
    }

    fn quantum_over(&self, standing: &mut Standing) {
        standing.left = standing.quantum;
        let decayed = if standing.is_rescued { standing.base } else { standing.level + 1 };
        standing.level = decayed.min(standing.base);
        standing.is_rescued = false;
    }

    fn period(&self) -> Nanos {
        Nanos::from_millis(1000)
    }

    fn review(&self, standing: &mut Standing, waited: Option<Nanos>) -> bool {
        let starves = standing.level > BEST && waited.is_some_and(|waited| waited >= PATIENCE);
        if starves {
            (standing.level, standing.is_rescued) = (BEST, true);
            standing.left = Nanos((self.quantum.0 / 2).max(1));
        }
        starves
    }
}

/// Windows' scheduler.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "mlfq",
    summary: "Windows' multi-level feedback queue: 32 levels, a boost on waking and one for \
              starvation; macOS' is alike",
    source: "Yosifovich et al. 2017, Windows Internals, part 1, 7th ed., chapter 4",
    options: &[
        OptionSpec::duration("quantum", "how long a background task runs before its equals")
            .by_default("31.25ms"),
        OptionSpec::count(
            "stretch",
            1,
            3,
            "times",
            "by how much quanta of foreground tasks, all but batch and idle ones, are longer",
        )
        .by_default("1"),
        OptionSpec::count(
            "boost",
            0,
            14,
            "levels",
            "by how many levels a task is better when it wakes",
        )
        .by_default("1"),
    ],
    structure: Some("priority"),
    scheduler: &Make(|given| Mlfq::new(given.cpus(), Windows::from(given))),
};

impl From<&Given<'_>> for Windows {
    fn from(given: &Given) -> Windows {
        Windows {
            quantum: given.duration("quantum"),
            stretch: given.count("stretch"),
            boost: given.count("boost"),
        }
    }
}
