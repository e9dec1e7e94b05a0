//! Converts the records of any format into the event stream and the report.

use crate::import::Measurement;
use ::recording::Calibration;
use schedsim::admission::LONGEST;
use schedsim::trace::{Call, CallKind, EventKind, PrevState, Sink, Trace};
use schedsim::workload::Shared;
use schedsim::{CpuId, Nanos, TaskId, Time};
use std::collections::BTreeMap;

use super::Recording;
use super::error::{Place, Problem};
use super::record::{Record, Sched, count};
use super::report::{CpuReport, Report};
use super::speeds::Frequencies;
use super::tasks::Tasks;

/// Converts records into events.
pub(super) struct Recorder<'a> {
    trace: Trace<'a>,
    tasks: Tasks,
    /// By CPU: the task that was switched in last, once known.
    running: Vec<Option<TaskId>>,
    /// The clock when the recording began, if that is known.
    began: Option<u64>,
    /// The clock at the beginning and at the latest event.
    first: Option<u64>,
    latest: u64,
    /// Losses from `PERF_RECORD_LOST` and from `PERF_RECORD_LOST_SAMPLES`: newer kernels count the
    /// same losses in both.
    lost_records: u64,
    lost_samples: u64,
    /// The number of CPUs in the file's header.
    pub cpus_online: u16,
    /// The objects of the operations in the file's calls.
    pub objects: Shared,
    /// The names of the objects of its calls.
    pub object_names: BTreeMap<u32, String>,
    /// What the recorder measured.
    pub measurements: Vec<Measurement>,
    pub calibrations: Vec<Calibration>,
    pub report: Report,
    pub frequencies: Frequencies,
}

/// The two records for lost events.
pub(super) enum Lost {
    /// `PERF_RECORD_LOST`, written before the next event that fitted.
    Records(u64),
    /// `PERF_RECORD_LOST_SAMPLES`, one total for each event at the end.
    Samples(u64),
}

impl<'a> Recorder<'a> {
    pub fn new(trace: Trace<'a>) -> Self {
        Recorder {
            trace,
            tasks: Tasks::default(),
            running: Vec::new(),
            began: None,
            first: None,
            latest: 0,
            lost_records: 0,
            lost_samples: 0,
            cpus_online: 0,
            objects: Shared::default(),
            object_names: BTreeMap::new(),
            measurements: Vec::new(),
            calibrations: Vec::new(),
            report: Report::default(),
            frequencies: Frequencies::default(),
        }
    }

    /// Processes the next scheduling event.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), Problem> {
        if let Sched::Frequency { of, khz } = record.what {
            count(&mut self.report.records);
            count(&mut self.report.frequencies);
            self.frequencies.set(of, khz, record.time);
            return Ok(());
        }
        let time = self.advance(record.time)?;
        self.see(record.cpu);
        count(&mut self.report.records);
        let kind = match record.what {
            Sched::Switch { prev, prev_state, next } => {
                let from = self.tasks.id(&prev);
                if let Some(current) = record.current
                    && current.pid == prev.pid
                {
                    self.tasks.set_tgid(from, current.tgid);
                }
                self.tasks.switched_out(from, prev_state == PrevState::Dead);
                let to = self.tasks.switched_in(&next);
                self.switch(record.cpu, from, to);
                self.frequencies.switch(record.cpu, to != TaskId::NONE, record.time);
                EventKind::SchedSwitch { prev: from, next: to, prev_state }
            }
            Sched::Waking { task, target } => {
                self.see(target);
                self.report.wake_contexts.count(record.context);
                EventKind::SchedWaking {
                    task: self.tasks.id(&task),
                    target,
                    context: record.context,
                }
            }
            Sched::Wakeup { task, target } => {
                self.see(target);
                let task = self.tasks.id(&task);
                if self.report.events.waking == 0 {
                    // Nobody recorded when it began to wake: this is the first that is known.
                    count(&mut self.report.late_wakings);
                    let context = record.context;
                    self.report.wake_contexts.count(context);
                    let waking = EventKind::SchedWaking { task, target, context };
                    self.trace.push(time, record.cpu, waking);
                }
                EventKind::SchedWakeup { task, target }
            }
            Sched::WakeupNew { task, target } => {
                self.see(target);
                EventKind::SchedWakeupNew { task: self.tasks.first_wakeup(&task), target }
            }
            Sched::Fork { parent, child, comm } => {
                let parent = self.tasks.id_of_pid(parent);
                EventKind::SchedProcessFork { parent, child: self.tasks.fork(parent, child, comm) }
            }
            Sched::Exec { pid, old_pid } => {
                EventKind::SchedProcessExec { task: self.tasks.exec(pid, old_pid) }
            }
            Sched::Exit { task } => EventKind::SchedProcessExit { task: self.tasks.id(&task) },
            Sched::Migrate { task, from, to } => {
                self.see(from);
                self.see(to);
                EventKind::SchedMigrateTask { task: self.tasks.id(&task), from, to }
            }
            Sched::Frequency { .. } => return Ok(()),
        };
        self.report.events.count(&kind);
        self.trace.push(time, record.cpu, kind);
        Ok(())
    }

    /// The clock when the recording began, before its first event.
    pub fn begin(&mut self, clock: u64) {
        self.began.get_or_insert(clock);
    }

    /// Whether an observer wants calls.
    pub fn wants_calls(&self) -> bool {
        self.trace.hears_calls()
    }

    /// The task that has this thread id now, if it was seen.
    pub fn task_of(&self, tid: u32) -> Option<TaskId> {
        self.tasks.known(tid)
    }

    /// A clock since the first scheduling event, once there is one.
    pub fn since(&self, clock: u64) -> Option<Time> {
        self.first.map(|first| Time(clock.saturating_sub(first)))
    }

    /// Passes on a moment in a call of a task that was seen.
    pub fn call(&mut self, clock: u64, cpu: CpuId, tid: u32, kind: CallKind) {
        let Some((time, task)) = self.since(clock).zip(self.task_of(tid)) else { return };
        self.trace.call(Call { time, cpu, task, kind });
    }

    /// Counts events that are not imported.
    pub fn skip(&mut self, name: &[u8], events: u64) {
        self.report.records = self.report.records.saturating_add(events);
        let name = String::from_utf8_lossy(name);
        match self.report.skipped.get_mut(name.as_ref()) {
            Some(skipped) => *skipped = skipped.saturating_add(events),
            None => {
                self.report.skipped.insert(name.into_owned(), events);
            }
        }
    }

    /// Counts events that were lost.
    pub fn lose(&mut self, lost: Lost) {
        let (sum, count) = match lost {
            Lost::Records(count) => (&mut self.lost_records, count),
            Lost::Samples(count) => (&mut self.lost_samples, count),
        };
        *sum = sum.saturating_add(count);
        self.report.lost = self.lost_records.max(self.lost_samples);
    }

    /// Ends the stream and checks the complete recording.
    pub fn finish(mut self, allow_lost: bool) -> Result<Recording, (Place, Problem)> {
        self.trace.flush();
        let Some(first) = self.first else {
            let names: Vec<_> = self
                .report
                .skipped
                .iter()
                .map(|(name, count)| format!("{count} {name}"))
                .take(5)
                .collect();
            let saw = if names.is_empty() {
                String::new()
            } else {
                format!(", only {}", names.join(", "))
            };
            // A file that was cut says so.
            let why = self.report.warnings.last().map_or(String::new(), |why| format!(" ({why})"));
            return Err((Place::File, Problem::NoSchedEvents { saw: saw + &why }));
        };
        let percent = self.report.lost_percent();
        if percent > 1.0 && !allow_lost {
            return Err((Place::File, Problem::Lost { lost: self.report.lost, percent }));
        }
        let mut report = self.report;
        report.start = Nanos(first);
        report.pids_reused = self.tasks.pids_reused;
        report.warn();
        let speeds = self.frequencies.speeds(self.latest).map(|(speeds, words)| {
            report.measured.push(words);
            speeds
        });
        // CPU numbers are below 4096.
        let cpus = self.cpus_online.max(report.cpus.len().try_into().unwrap_or(u16::MAX));
        Ok(Recording {
            reprioritised: self.tasks.reprioritised(),
            tasks: self.tasks.into_infos(),
            cpus,
            duration: Nanos(self.latest.saturating_sub(first)),
            speeds: speeds.unwrap_or_default(),
            objects: self.objects,
            object_names: self.object_names,
            measurements: self.measurements,
            calibrations: self.calibrations,
            report,
        })
    }

    #[inline]
    fn advance(&mut self, clock: u64) -> Result<Time, Problem> {
        let began = self.began.filter(|&began| began <= clock);
        let first = *self.first.get_or_insert(began.unwrap_or(clock));
        if clock < self.latest {
            return Err(Problem::TimeBackwards { by: Nanos(self.latest.saturating_sub(clock)) });
        }
        let since = Nanos(clock.saturating_sub(first));
        if since > LONGEST {
            return Err(Problem::TimeJumps { by: since });
        }
        self.latest = clock;
        Ok(Time(since.0))
    }

    /// Makes room for a CPU.
    #[inline]
    fn see(&mut self, cpu: CpuId) {
        if cpu.index() >= self.running.len() {
            let cpus = cpu.index().saturating_add(1);
            self.running.resize(cpus, None);
            self.report.cpus.resize(cpus, CpuReport::default());
        }
    }

    #[inline]
    fn switch(&mut self, cpu: CpuId, from: TaskId, to: TaskId) {
        let report = &mut self.report.cpus[cpu.index()];
        let running = self.running[cpu.index()].replace(to);
        let is_unseen = running.is_some_and(|running| running != from);
        for (counter, counts) in [
            (&mut report.switches, true),
            (&mut report.from_idle, from == TaskId::NONE),
            (&mut report.to_idle, to == TaskId::NONE),
            (&mut report.unseen_switch_ins, is_unseen),
        ] {
            *counter = counter.saturating_add(counts.into());
        }
    }
}
