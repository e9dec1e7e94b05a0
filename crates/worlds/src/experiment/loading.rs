//! Makes a recording on disk ready for an experiment.

use super::{CostOverrides, CostsFrom, KnownCosts, Reading, Recorded, ReplayOf, Subject};
use formats::import::{Options, Recording};
use program::Error;
use results::counted;
use schedsim::engine;
use schedsim::metrics::Metrics;
use schedsim::policy::PolicySpec;
use schedsim::trace::{Observer, Trace};
use schedsim::workload::{
    self, BackgroundOf, CallCostEstimator, CostEstimator, Outside, ReplayBuilder, ReplayOptions,
    UntilEnded, Workload,
};
use schedsim::{Machine, Nanos, Time, WakeLatency};
use std::fmt::Write;
use std::path::Path;

impl Recorded {
    /// Reads the recording at `path` by `read`, and derives a workload, the costs of its machine
    /// and its metrics.
    ///
    /// It is read twice. When it is known which tasks end, it is measured until the last of them
    /// has ended, as its replays will be.
    pub fn load(
        path: &Path,
        reading: Reading,
        given: CostOverrides,
        read: impl Fn(&Path, Options, Vec<&mut dyn Observer>) -> Result<Recording, Error>,
    ) -> Result<Recorded, Error> {
        Recorded::load_with(path, reading, given, None, read)
    }

    /// Whether the program stalls where it was recorded, or on one CPU: then its locks are not what
    /// they were taken for.
    fn stalls(workload: &Workload, machine: &Machine) -> bool {
        let one = Machine { cpus: 1, topology: None, ..machine.clone() };
        let stalls = |(policy, machine): (&str, &Machine)| {
            let Ok(policy) = PolicySpec::parse(policy) else { return false };
            let options = engine::Options { seed: 1, until: Time::NEVER };
            let trace = Trace::new(Vec::new());
            let run = engine::simulate_named(workload, machine, &policy, options, trace);
            matches!(run, Err(engine::Error::Stalled(_)))
        };
        ["eevdf", "fifo"]
            .iter()
            .flat_map(|policy| [(*policy, machine), (*policy, &one)])
            .any(stalls)
    }

    /// As [`load`](Self::load), with the costs that the recording cannot tell from `known`.
    pub fn load_with(
        path: &Path,
        reading: Reading,
        given: CostOverrides,
        known: Option<&KnownCosts>,
        read: impl Fn(&Path, Options, Vec<&mut dyn Observer>) -> Result<Recording, Error>,
    ) -> Result<Recorded, Error> {
        let loaded = Recorded::load_as(path, reading, given, known, false, &read)?;
        if loaded.replay.counters > 0 && Recorded::stalls(&loaded.workload, &loaded.machine) {
            return Recorded::load_as(path, reading, given, known, true, &read);
        }
        Ok(loaded)
    }

    fn load_as(
        path: &Path,
        reading: Reading,
        given: CostOverrides,
        known: Option<&KnownCosts>,
        locks_as_tokens: bool,
        read: &impl Fn(&Path, Options, Vec<&mut dyn Observer>) -> Result<Recording, Error>,
    ) -> Result<Recorded, Error> {
        let Reading { allow_lost, replay, background, whole_runs } = reading;
        let options = || Options { allow_lost, ..Options::default() };
        let program = replay == ReplayOf::Program;
        let on = |speeds: Vec<f64>| {
            ReplayBuilder::new(ReplayOptions {
                program,
                locks_as_tokens,
                background,
                speeds,
                ..Default::default()
            })
        };
        let mut builder = on(Vec::new());
        let mut costs = CostEstimator::new();
        let mut calls = CallCostEstimator::new(program);
        let mut recording = read(path, options(), vec![&mut builder, &mut costs, &mut calls])?;
        if !recording.speeds.is_empty() {
            // How fast each CPU was is known when all is read.
            builder = on(recording.speeds.iter().map(|speed| speed.relative).collect());
            recording = read(path, options(), vec![&mut builder])?;
        }
        let (mut calls, mut latencies) = (calls.finish(), costs.latencies());
        let mut costs = costs.finish().with_calls(&calls);
        let calibrated = KnownCosts::of(&recording.calibrations);
        let is_calibrated = !recording.calibrations.is_empty();
        let costs_from = known.into_iter().chain(is_calibrated.then_some(&calibrated));
        let costs_from = costs_from.map(|known| CostsFrom {
            name: known.name.clone(),
            which: known.fill(&mut costs, &mut calls, &mut latencies),
        });
        let costs_from = costs_from.collect();
        let machine = Machine {
            cpus: recording.cpus,
            switch_cost: given.switch.unwrap_or(costs.switch_cost()),
            migration_cost: given.migration.unwrap_or(costs.migration_cost()),
            idle_exit: given.idle_exit.unwrap_or(costs.idle_exit()),
            wake_cost: given.wake.unwrap_or(costs.wake_cost()),
            topology: recording.topology(),
            ..Machine::ideal(recording.cpus)
        };
        let latency = if program && recording.report.causes > 0 {
            latencies.whole().beside(given.idle_exit, given.wake)
        } else {
            WakeLatency::default()
        };
        let machine = Machine { calls: calls.costs(), latency, ..machine };
        if !whole_runs {
            builder.take_off(calls.kernel_work());
        }
        builder.share(std::mem::take(&mut recording.objects));
        let end = Time(recording.duration.0);
        let (workload, replay) = builder.finish(workload::Recorded {
            tasks: &recording.tasks,
            cpus: recording.cpus,
            end,
            switch_cost: machine.switch_cost,
            recorders: recording.report.format.recorders(),
        });
        let mut metrics = Metrics::new(recording.cpus).with_parts();
        let Outside { ids, recorder, .. } = &replay.outside;
        let others = ids.iter().filter(|_| background == BackgroundOf::Nothing);
        metrics = metrics.excluding(others.chain(recorder).copied());
        let mut until = UntilEnded::new(&replay.ended, &mut metrics);
        read(path, options(), vec![&mut until])?;
        let end = until.end().unwrap_or(end);
        let summary = metrics.finish(end);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Recorded {
            name,
            workload,
            replay,
            costs,
            calls,
            latencies,
            costs_from,
            machine,
            mips: given.mips,
            summary,
            recording,
            background,
        })
    }

    /// The part that is replayed: until the tasks that ended in the recording have ended.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            name: &self.name,
            workload: &self.workload,
            machine: &self.machine,
            mips: self.mips,
            ended: &self.replay.ended,
            until: Time::NEVER,
            beside: &self.replay.outside.recorder,
            parts: false,
        }
    }

    /// What a reader must know first: lost events, size, and how much of it is guessed.
    pub fn headline(&self) -> String {
        let report = &self.recording.report;
        let mut text = self.explained();
        self.costs_from.iter().for_each(|from| text += &format!("{from}\n"));
        text += &self.background();
        text += &self.recorder();
        let _ = write!(
            text,
            "{}: {} on {}, ",
            self.name,
            self.recording.duration,
            counted(self.recording.cpus.into(), "CPU")
        );
        let _ = writeln!(
            text,
            "{} tasks, {} events, {} lost; {} bursts, {} of CPU time",
            self.workload.tasks.len(),
            report.events.total(),
            report.lost,
            self.replay.bursts,
            self.replay.demand
        );
        if self.machine.topology.is_some() {
            text += "Its CPUs differ in speed; `schedlab inspect` says how much, and --machine \
                     FILE corrects it\n";
        }
        if let Some(share) = self.replay.doubtful_share() {
            let sleeps = self.replay.dependencies.total() + self.replay.delays.total();
            let _ = writeln!(
                text,
                "Of {sleeps} sleeps {:.1}% were ended by a task; what ended them is doubtful for \
                 {:.1}%",
                100.0 * self.replay.dependencies.total() as f64 / sleeps as f64,
                100.0 * share
            );
        }
        text
    }

    /// How much of a program is understood; empty if the schedule is replayed.
    fn explained(&self) -> String {
        let report = &self.replay;
        let wakeups = &report.wakeups;
        let Some((sentence, (explained, tokens))) =
            wakeups.sentence().zip(wakeups.shares()).filter(|_| report.operations > 0)
        else {
            return String::new();
        };
        let pauses = (1.0 - explained - tokens).max(0.0);
        let mut text = format!("Replays the program: {sentence}");
        if pauses > 0.0 {
            let _ = write!(text, ", {:.1} % as pauses of their recorded length", 100.0 * pauses);
        }
        if report.doubted_objects > 0 {
            let _ = write!(
                text,
                "; of {} only one side was recorded, which explain nothing",
                counted(report.doubted_objects as usize, "object")
            );
        }
        if report.ordered_objects > 0 {
            let _ = write!(
                text,
                "; {} shared in an order that tokens decide explain nothing",
                counted(report.ordered_objects as usize, "object")
            );
        }
        if report.stalled_counters > 0 {
            let _ = write!(
                text,
                "; {} semaphores and conditions stay tokens, as the program stalls with them as \
                 counters",
                report.stalled_counters
            );
        }
        if report.doubted_waits > 0 {
            let _ = write!(
                text,
                "; {} for several objects ended without data in a recorded one",
                counted(report.doubted_waits as usize, "wait")
            );
        }
        text += "\n";
        if report.changed_settings > 0 {
            let _ = writeln!(
                text,
                "CPUs or policy changed while {} ran: what held for most of the CPU time is replayed",
                counted(report.changed_settings as usize, "task")
            );
        }
        let _ = writeln!(text, "In calls, {}", self.calls);
        let _ = writeln!(text, "After a waking, {}", self.latencies);
        if report.kernel_time > Nanos::ZERO {
            let _ = writeln!(
                text,
                "{} of CPU time are taken off: blocking and waking took it",
                report.kernel_time
            );
        }
        if report.recording_time > Nanos::ZERO {
            let _ = writeln!(
                text,
                "{} of CPU time are taken off: recording the calls took it",
                report.recording_time
            );
        }
        text
    }

    /// What the recorder took, if it is replayed.
    fn recorder(&self) -> String {
        let outside = &self.replay.outside;
        let [first, ..] = &outside.recorder[..] else { return String::new() };
        if outside.recorder_time == Nanos::ZERO {
            return String::new();
        }
        format!(
            "{} made the recording, with {} of its CPU time: it runs in the replay, too, and \
             counts in no number\n",
            self.recording.tasks[first.index()].name,
            share(outside.recorder_time, self.replay.demand.0 as f64)
        )
    }

    /// The tasks beside the program, and what becomes of them; empty if there are none.
    fn background(&self) -> String {
        let outside = &self.replay.outside;
        let is_out = self.background == BackgroundOf::Nothing;
        if is_out && self.recording.report.causes == 0 {
            return "--without-background leaves out nothing: without calls the recording does not \
                    say which tasks are the program's\n"
                .to_string();
        }
        if self.background == BackgroundOf::Recorded || outside.tasks() == 0 {
            return String::new();
        }
        let machine = self.recording.duration.0 as f64 * f64::from(self.recording.cpus);
        let part = |(count, time): (u64, Nanos), one: &str| {
            format!("{} with {} of CPU time", counted(count as usize, one), share(time, machine))
        };
        let without = if outside.recorder.is_empty() { "" } else { " (without the recorder)" };
        format!(
            "Background: {}, {}{without}; {}\n",
            part(outside.kernel_threads, "kernel thread"),
            part(outside.programs, "other task"),
            if is_out {
                "left out"
            } else {
                "drawn anew in each run (--without-background leaves it out)"
            }
        )
    }
}

/// `time` as a share of `of` nanoseconds, in percent.
fn share(time: Nanos, of: f64) -> String {
    format!("{:.1} %", 100.0 * time.0 as f64 / of.max(1.0))
}
