//! The report of an import: read, skipped and lost events, and warnings.

use std::collections::BTreeMap;
use std::fmt;

use super::record::count;
use schedsim::Nanos;
use schedsim::trace::{EventKind, WakeContext};

/// The report of an import. Its text begins with lost events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Events that were lost while recording.
    pub lost: u64,
    /// The format of the recording.
    pub format: Format,
    /// Whether it was compressed with zstd.
    pub compressed: bool,
    /// The number of event records read, imported or skipped (lost ones are not counted).
    pub records: u64,
    /// The number of text lines; 0 for perf.data.
    pub lines: u64,
    /// Imported events by kind.
    pub events: EventCounts,
    /// Events of calls and their objects that were used.
    pub causes: u64,
    /// Changes of frequencies of CPUs that were used.
    pub frequencies: u64,
    /// Other events, by name.
    pub skipped: BTreeMap<String, u64>,
    /// The contexts of wakeups.
    pub wake_contexts: WakeContexts,
    /// The report of each CPU, by index.
    pub cpus: Vec<CpuReport>,
    /// The recorded clock at the first event.
    pub start: Nanos,
    /// The number of pids that more than one task used.
    pub pids_reused: u64,
    /// The number of wakings that were not recorded, for which the wakeup stands.
    pub late_wakings: u64,
    /// Priorities and why tasks stopped are not in the file: they are inferred.
    pub is_inferred: bool,
    /// What the recorder measured about itself and the machine, as lines.
    pub measured: Vec<String>,
    /// Warnings, as sentences.
    pub warnings: Vec<String>,
}

impl Report {
    /// Lost events as a percentage of all events.
    pub fn lost_percent(&self) -> f64 {
        match self.lost {
            0 => 0.0,
            lost => 100.0 * lost as f64 / (lost as f64 + self.records as f64),
        }
    }

    /// Switch-outs of a task whose switch-in is missing, on all CPUs.
    pub fn unseen_switch_ins(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.unseen_switch_ins).sum()
    }

    /// Counts an event of a call.
    #[inline]
    pub(super) fn count_cause(&mut self) {
        count(&mut self.causes);
        count(&mut self.records);
    }

    /// Adds warnings that follow from the counts.
    pub(super) fn warn(&mut self) {
        let mut warnings = Vec::new();
        for (index, cpu) in
            self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.unseen_switch_ins > 0)
        {
            let reason = match cpu.idle_unrecorded() {
                true => {
                    "; none leaves its idle task, so wakeups by interrupts that found it idle may \
                     be missing as well"
                }
                false => "",
            };
            warnings.push(format!(
                "CPU {index}: {} of {} switches take off a task that was never seen switched \
                 in{reason}",
                cpu.unseen_switch_ins, cpu.switches
            ));
        }
        if self.wake_contexts.unknown > 0 {
            warnings.push(format!(
                "{} wakeups do not say whether a task or an interrupt caused them (perf script \
                 text has no such column; perf.data does)",
                self.wake_contexts.unknown
            ));
        }
        if self.late_wakings > 0 {
            warnings.push(format!(
                "{} wakeups have no sched_waking before them: sched_wakeup stands for it, so that \
                 wakeup latencies are shorter than they were by what a wakeup takes, and one from \
                 another CPU seems to come from the CPU that it is for; record sched_waking, too",
                self.late_wakings
            ));
        }
        if self.events.switch > 0 && [self.events.waking, self.events.wakeup] == [0; 2] {
            warnings.push(
                "no wakeup was recorded: a task seems to be woken when it gets its CPU, by no other, \
                 so that waits for a CPU behind a sleep are unknown, and nothing depends on \
                 anything; record sched_waking, too"
                    .to_owned(),
            );
        }
        if self.events.switch == 0 {
            warnings.push("no sched_switch was recorded: running times are unknown".to_owned());
        }
        self.warnings.append(&mut warnings);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lost events: {} ({:.2} %)", self.lost, self.lost_percent())?;
        writeln!(f, "format: {}{}", self.format, if self.compressed { ", zstd" } else { "" })?;
        writeln!(f, "imported: {} of {} records", self.events.total(), self.records)?;
        for (name, count) in self.events.by_name() {
            writeln!(f, "  {name}: {count}")?;
        }
        if self.causes > 0 {
            writeln!(f, "  calls and their objects: {}", self.causes)?;
        }
        if self.frequencies > 0 {
            writeln!(f, "  cpu_frequency: {}", self.frequencies)?;
        }
        for (name, count) in &self.skipped {
            writeln!(f, "  {name}: {count} skipped")?;
        }
        let WakeContexts { task, softirq, hardirq, unknown } = self.wake_contexts;
        writeln!(
            f,
            "woken by: task {task}, softirq {softirq}, hardirq {hardirq}, unknown {unknown}"
        )?;
        self.measured.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

/// The format of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// The text that `perf script` prints.
    #[default]
    PerfScript,
    /// The file that `perf record` writes.
    PerfData,
    /// The file that `trace-cmd record` writes.
    TraceDat,
    /// Perfetto's protobuf.
    Perfetto,
    /// A page of Android's systrace, or what its atrace prints.
    Systrace,
    /// Chrome's trace-event JSON.
    ChromeJson,
    /// The file of schedlab's own recorder.
    Recording,
}

impl Format {
    /// The names of the programs that make such a recording while it records them.
    pub fn recorders(self) -> &'static [&'static str] {
        match self {
            Format::PerfScript | Format::PerfData => &["perf"],
            Format::TraceDat => &["trace-cmd"],
            Format::Perfetto => &["traced", "traced_probes", "tracebox"],
            Format::Systrace => &["atrace"],
            Format::Recording => &[::recording::RECORDER],
            Format::ChromeJson => &[],
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::PerfScript => "perf script text",
            Format::PerfData => "perf.data",
            Format::TraceDat => "trace.dat",
            Format::Perfetto => "Perfetto",
            Format::Systrace => "systrace",
            Format::ChromeJson => "Chrome JSON",
            Format::Recording => "schedlab recording",
        })
    }
}

/// Imported events by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "each is the count of the tracepoint of that name")]
pub struct EventCounts {
    pub switch: u64,
    pub waking: u64,
    pub wakeup: u64,
    pub wakeup_new: u64,
    pub process_fork: u64,
    pub process_exec: u64,
    pub process_exit: u64,
    pub migrate_task: u64,
}

impl EventCounts {
    /// Counts one event.
    #[inline]
    pub(super) fn count(&mut self, kind: &EventKind) {
        count(match kind {
            EventKind::SchedSwitch { .. } => &mut self.switch,
            EventKind::SchedWaking { .. } => &mut self.waking,
            EventKind::SchedWakeup { .. } => &mut self.wakeup,
            EventKind::SchedWakeupNew { .. } => &mut self.wakeup_new,
            EventKind::SchedProcessFork { .. } => &mut self.process_fork,
            EventKind::SchedProcessExec { .. } => &mut self.process_exec,
            EventKind::SchedProcessExit { .. } => &mut self.process_exit,
            EventKind::SchedMigrateTask { .. } => &mut self.migrate_task,
            EventKind::JobRelease { .. }
            | EventKind::JobComplete { .. }
            | EventKind::Overhead { .. } => return,
            EventKind::SchedPiSetprio { .. } | EventKind::ContentionBegin { .. } => return,
        });
    }

    /// The counts with their tracepoints' names.
    pub fn by_name(&self) -> [(&'static str, u64); 8] {
        [
            ("sched_switch", self.switch),
            ("sched_waking", self.waking),
            ("sched_wakeup", self.wakeup),
            ("sched_wakeup_new", self.wakeup_new),
            ("sched_process_fork", self.process_fork),
            ("sched_process_exec", self.process_exec),
            ("sched_process_exit", self.process_exit),
            ("sched_migrate_task", self.migrate_task),
        ]
    }

    /// All imported events.
    pub fn total(&self) -> u64 {
        self.by_name().iter().map(|(_, count)| count).sum()
    }
}

/// The number of `sched_waking` events by context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WakeContexts {
    /// The running task, or the idle task outside interrupts.
    pub task: u64,
    /// A softirq.
    pub softirq: u64,
    /// A hardware interrupt or an NMI.
    pub hardirq: u64,
    /// Not recorded.
    pub unknown: u64,
}

impl WakeContexts {
    /// Counts one wakeup.
    #[inline]
    pub(super) fn count(&mut self, context: WakeContext) {
        count(match context {
            WakeContext::Task => &mut self.task,
            WakeContext::Softirq => &mut self.softirq,
            WakeContext::Hardirq => &mut self.hardirq,
            WakeContext::Unknown => &mut self.unknown,
        });
    }

    /// Whether the recording has the context of any wakeup.
    pub fn recorded(&self) -> bool {
        self.task > 0 || self.softirq > 0 || self.hardirq > 0
    }
}

/// The report of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuReport {
    /// All switches.
    pub switches: u64,
    /// Switches to the idle task.
    pub to_idle: u64,
    /// Switches from the idle task.
    pub from_idle: u64,
    /// Switch-outs of a task other than the one that was switched in before: a switch between is
    /// missing.
    pub unseen_switch_ins: u64,
}

impl CpuReport {
    /// Whether the CPU went idle but never left it in the recording, as on some virtual machines.
    /// Then every switch from idle to a task is missing; perf also misses wakeups by interrupts
    /// that found the CPU idle.
    pub fn idle_unrecorded(&self) -> bool {
        self.to_idle > 0 && self.from_idle == 0 && self.unseen_switch_ins > 0
    }
}
