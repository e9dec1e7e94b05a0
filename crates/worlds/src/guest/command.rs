//! A program in a guest: what it takes along, what it may take, and its numbers.

use super::{Booted, GuestWorld, NO_TIME, UNTIMED};
use crate::host::record;
use crate::printed::{Reader, Written};
use crate::vm::any_program::{self, Ended};
use crate::vm::closed::Traced;
use crate::vm::lockstep::VALIDATED;
use crate::{Observed, Run, Trial, rows_of, write_trace};
use program::Error;
use results::{Metric, Row};
use schedlab_runner::class::Class;
use schedlab_runner::session::{Command, Job};
use schedsim::Time;
use schedsim::metrics::Metrics;
use std::ffi::OsStr;

const MIB: u64 = 1 << 20;
/// What a kernel takes at most, and the buffer for the scheduling events of each CPU, in MiB.
const KERNEL: u64 = 96;
const BUFFER: u64 = 16;

impl GuestWorld {
    /// Refuses what is no program, and what a program cannot have.
    pub(super) fn admit_command(&self, words: &[String], trial: &Trial<'_>) -> Result<(), Error> {
        trial.candidate.expect_for(trial.program, trial.cpus)?;
        let origin = &self.settings.origin;
        match words.first() {
            Some(program) if origin.is_of_this_machine() => {
                record::find_command(OsStr::new(program), "run")
            }
            _ => Ok(()),
        }
    }

    /// Collects the files of a command.
    ///
    /// # Errors
    /// If one is missing or of no use in a guest, or there is no room for all.
    pub(super) fn pack(&mut self, words: &[String], cpus: u16) -> Result<(), Error> {
        if !self.packed.contains_key(words) {
            let origin = self.settings.origin.rooted(&program::say)?;
            self.packed.insert(words.to_vec(), origin.pack(words)?);
        }
        let files = self.packed[words].size().div_ceil(MIB);
        // The program may take half. At the start the files are there twice, packed and unpacked,
        // and no program yet.
        let needed = 2 * (files + KERNEL + u64::from(cpus) * BUFFER);
        let memory = u64::from(self.settings.memory);
        if needed > memory {
            return Err(Error::Input(format!(
                "the files of `{}` take {files} MiB, too much for a guest with {memory} MiB of \
                 memory: give --memory {}",
                words.join(" "),
                needed.next_multiple_of(256)
            )));
        }
        Ok(())
    }

    /// The jobs of a command: undisturbed, and with the kernel's scheduling events.
    pub(super) fn jobs_of_command(
        &self,
        words: &[String],
        class: Class,
    ) -> Result<Vec<Job>, Error> {
        let unready = || Error::Internal(format!("`{}` was not packed", words.join(" ")));
        let packed = self.packed.get(words).ok_or_else(unready)?;
        let command = Command {
            path: packed.path.clone(),
            words: words.to_vec(),
            limit_ns: self.settings.limit.0,
        };
        let kinds = if self.settings.has_events { &[false, true][..] } else { &[false] };
        Ok(kinds.iter().map(|&trace| any_program::job(&command, class, trace)).collect())
    }
}

impl Booted<'_> {
    /// The result of a command, with the numbers that it prints itself. The inner error is that of a program that failed, where numbers are
    /// compared.
    ///
    /// # Errors
    /// If it went beyond a limit.
    pub(super) fn command(&self, printed: &[Reader]) -> Result<Result<Run, Error>, Error> {
        let name = self.session.trial.program.name();
        let ended = Ended::of(&self.proved.transcript, &name)?;
        if self.session.observed != Observed::Events
            && let Some(message) = ended.failure(&name)
        {
            return Ok(Err(Error::Input(message)));
        }
        let traced = self.events_of(&name)?;
        if let (Ok(traced), Some(to)) = (&traced, &self.session.trace) {
            write_trace(to, self.session, &traced.recording.tasks, &traced.events)?;
        }
        let nothing = || Metrics::new(0).finish(Time::ZERO);
        let summary = traced.as_ref().map_or_else(|_| nothing(), |traced| traced.summary.clone());
        let name = results::World::Vm { kernel: self.guest().kernel.name.clone() };
        let point = self.point();
        let row = |row: Row| {
            let has_no_time = self.guest().cpus > VALIDATED && !UNTIMED.contains(&row.metric.id());
            let note = |note: String| Row { value: None, note: Some(note), ..row.clone() };
            let mut row = match (row.metric, &traced) {
                _ if has_no_time => note(NO_TIME.to_string()),
                (Metric::makespan_ns, _) => {
                    Row { value: Some(ended.makespan.0 as f64), note: None, ..row }
                }
                (Metric::printed(_), _) => row,
                (_, Err(why)) => note(why.clone()),
                _ => row,
            };
            row.point.extend(point.clone());
            row
        };
        let written = Written { stdout: &ended.stdout, stderr: &ended.stderr };
        let readings = printed.iter();
        let printed = readings.map(|reading| reading.row(name.clone(), written));
        let rows = rows_of(&summary, &name).into_iter().map(row).chain(printed.map(row)).collect();
        let (summary, tasks) = traced
            .map_or((None, Vec::new()), |traced| (Some(traced.summary), traced.recording.tasks));
        Ok(Ok(Run { tasks, ended: Some(ended), ..self.run(rows, summary) }))
    }

    /// The events of the command `name` with its metrics, or why there are none.
    fn events_of(&self, name: &str) -> Result<Result<Traced, String>, Error> {
        let Some(again) = self.traced.as_ref().map(|traced| &traced.transcript) else {
            return Ok(Err("the kernel's events were not recorded (--no-events)".to_string()));
        };
        let recorded = Ended::of(again, name)?;
        self.driver.judge(&again.events, &again.console)?;
        Ok(any_program::traced(again, recorded.pid)?.map_err(|lost| {
            format!("the guest's buffer had no room for {lost} events; give the program less to do")
        }))
    }
}
