//! What is uncertain about a reconstructed workload.

use super::task::Task;
use super::within::Within;
use crate::workload::NoiseClass;
use crate::{Nanos, TaskId};
use std::collections::BTreeMap;

/// The numbers of a conversion from a recording to a workload, and its uncertain parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReplayReport {
    /// CPU bursts.
    pub bursts: u64,
    /// CPU time of all tasks, without the switches.
    pub demand: Nanos,
    /// Memory of the scripts, in bytes.
    pub script_bytes: usize,
    /// Sleeps ended by a task: the waker's work decides their length.
    pub dependencies: EdgeCounts,
    /// Sleeps ended by an interrupt or by an unrecorded event: they keep their recorded length.
    pub delays: EdgeCounts,
    /// Wakings of tasks that had not gone to sleep and then did not.
    pub wakings_without_sleep: u64,
    /// Tasks pinned because they are per-CPU kernel threads.
    pub pinned: u64,
    /// Tasks that an option restricts to some CPUs.
    pub restricted: u64,
    /// Tasks whose CPUs or scheduling policy changed after they had run: what held for most of their
    /// CPU time counts.
    pub changed_settings: u64,
    /// The tasks that ended. The recorded work is done when they have; see
    /// [`UntilEnded`](super::UntilEnded).
    pub ended: Vec<TaskId>,
    /// Tasks that were runnable or running at the end.
    pub unfinished: u64,
    /// Of these, the ones on a CPU.
    pub running_at_the_end: u64,
    /// Runs with an unrecorded start.
    pub unseen_switch_ins: u64,
    /// Runs with an unrecorded end; they were credited with nothing.
    pub unseen_switch_outs: u64,
    /// Sleeps with an unrecorded end.
    pub unseen_wakings: u64,
    /// The time for which running and sleeping cannot be distinguished: the total range of the
    /// guesses for unseen switch-ins.
    pub uncertain_run: Nanos,
    /// CPU time taken off the recorded runs for the switches in them.
    pub switch_time: Nanos,
    /// CPU time taken off the recorded runs for blocking and waking in them.
    pub kernel_time: Nanos,
    /// CPU time taken off the recorded runs for the recording of calls.
    pub recording_time: Nanos,
    /// The tasks that are not of the program.
    pub outside: Outside,
    /// Operations on shared objects, from the calls of the recording.
    pub operations: u64,
    /// How the sleeps of tasks with recorded calls ended.
    pub wakeups: Explained,
    /// Pipes, pairs of sockets and event counters from which more was taken than was put in, or the
    /// reverse. The recording does not have both sides.
    pub doubted_objects: u64,
    /// Such objects whose order tokens decide, which keep the recorded order.
    pub ordered_objects: u64,
    /// Conditions and semaphores that are counters.
    pub counters: u64,
    /// Conditions and semaphores that stay tokens, because a replay with counters stalled.
    pub stalled_counters: u64,
    /// Event loops: their handlers run when data is there, not in the recorded order.
    pub event_loops: u64,
    /// The rounds that they had in the recording.
    pub loop_rounds: u64,
    /// Waits for several objects that ended for another reason than data in a recorded one.
    pub doubted_waits: u64,
    /// The tokens by what the sleep was in.
    pub tokens_within: BTreeMap<Within, u64>,
}

/// The recorded tasks beside the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outside {
    /// Which, in order.
    pub ids: Vec<TaskId>,
    /// Kernel threads: how many, and their CPU time.
    pub kernel_threads: (u64, Nanos),
    /// Tasks of other programs.
    pub programs: (u64, Nanos),
    /// The tasks that made the recording, which are in none of the above. Where the program is
    /// known they are left out. In the replay of a schedule they run, and count in no number.
    pub recorder: Vec<TaskId>,
    /// The CPU time of those that run.
    pub recorder_time: Nanos,
}

impl Outside {
    pub(super) fn add(&mut self, id: TaskId, class: NoiseClass, task: &Task) {
        self.ids.push(id);
        let (count, time) = match class {
            NoiseClass::KernelThread => &mut self.kernel_threads,
            NoiseClass::Program => &mut self.programs,
        };
        *count += 1;
        *time += task.log.entries().map(|(run, _)| run).sum();
    }

    /// How many tasks.
    pub fn tasks(&self) -> u64 {
        self.kernel_threads.0 + self.programs.0
    }
}

/// Wakeups of tasks with recorded calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Explained {
    /// By an operation on an object that the replay has, or by a timer that the task set.
    pub objects: u64,
    /// By another task, and replayed as a token: the same task wakes it once at the same point of
    /// its own work.
    pub tokens: u64,
    /// Of these, in calls on futexes.
    pub futex_tokens: u64,
    /// By an interrupt for another reason; the sleep has its recorded length.
    pub pauses: u64,
}

impl Explained {
    /// All.
    pub fn total(&self) -> u64 {
        self.objects + self.tokens + self.pauses
    }

    /// The share of the explained wakeups and that of the tokens, 0…1; `None` without wakeups.
    pub fn shares(&self) -> Option<(f64, f64)> {
        let all = self.total() as f64;
        (all > 0.0).then(|| (self.objects as f64 / all, self.tokens as f64 / all))
    }

    /// What is explained and what is a token, in words; `None` without wakeups.
    pub fn sentence(&self) -> Option<String> {
        let (explained, tokens) = self.shares()?;
        let futexes = 100.0 * self.futex_tokens as f64 / self.total() as f64;
        let futexes =
            if futexes > 0.0 { format!(" ({futexes:.1} % futex tokens)") } else { String::new() };
        Some(format!(
            "explained {:.1} % of {} wake-ups; {:.1} % as tokens{futexes}",
            100.0 * explained,
            self.total(),
            100.0 * tokens
        ))
    }
}

/// Sleeps by the certainty of their end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EdgeCounts {
    /// The recording has the context: interrupt flags, or an idle CPU.
    pub recorded: u64,
    /// A heuristic found evidence.
    pub inferred: u64,
    /// The heuristic found no evidence.
    pub doubtful: u64,
}

impl EdgeCounts {
    /// All.
    pub fn total(&self) -> u64 {
        self.recorded + self.inferred + self.doubtful
    }
}

impl ReplayReport {
    /// What the sleeps were in that tokens stand for, in words; `None` without tokens.
    pub fn tokens_in_words(&self) -> Option<String> {
        let mut all: Vec<(Within, u64)> =
            self.tokens_within.iter().map(|(of, n)| (*of, *n)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let each: Vec<String> =
            all.iter().map(|(within, count)| format!("{count} {}", within.name())).collect();
        (!each.is_empty()).then(|| format!("tokens: {}", each.join(", ")))
    }

    /// The share of sleeps with an uncertain end, 0…1; `None` if there are no sleeps.
    pub fn doubtful_share(&self) -> Option<f64> {
        let all = self.dependencies.total() + self.delays.total();
        (all > 0).then(|| (self.dependencies.doubtful + self.delays.doubtful) as f64 / all as f64)
    }
}
