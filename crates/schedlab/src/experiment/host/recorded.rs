//! One more run of each class while perf records it: the same metrics as of a simulation, wakeup latencies among them, and a trace to look at.

use super::Plan;
use super::rows::row;
use crate::Error;
use crate::host::run::Place;
use crate::host::traced::Traced;
use crate::import::Options;
use crate::output::{Row, registered};
use crate::results_directory::ResultsDirectory;
use crate::trace_file::{Header, Task, Writer};
use schedlab_runner::class::Class;
use schedsim::Time;
use schedsim::metrics::{CATALOGUE, Metrics, Summary};

/// A run with its events.
pub struct Recorded {
    /// The class.
    pub class: Class,
    /// Its metrics, of its own tasks alone.
    pub summary: Summary,
}

impl Recorded {
    /// Records a run of `class`; its trace goes to `directory`, if there is one.
    ///
    /// # Errors
    /// As of [`Traced::record`].
    pub fn run(plan: &Plan<'_>, place: &mut Place, class: Class, directory: Option<&ResultsDirectory>) -> Result<Recorded, Error> {
        let scratch = tempfile::tempdir().map_err(|error| Error::output(&std::env::temp_dir(), error))?;
        let file = scratch.path().join("perf.data");
        let traced = Traced::record(place, plan.name, plan.subject, class, &plan.conditions, &file)?;
        let mut metrics = Metrics::new(plan.conditions.cpus.len() as u16);
        let recording = traced.read(&file, &Options::default(), vec![&mut metrics])?;
        if let Some(directory) = directory {
            let header = Header {
                workload: plan.name.to_string(),
                policy: format!("kernel:{class}"),
                cpus: recording.cpus,
                seed: 0,
                version: env!("CARGO_PKG_VERSION").to_string(),
                tasks: recording.tasks.iter().map(Task::from).collect(),
            };
            let mut writer = Writer::create(&directory.trace(&header.policy, header.cpus)?, &header)?;
            traced.read(&file, &Options::default(), vec![&mut writer])?;
            writer.finish()?;
        }
        Ok(Recorded { class, summary: metrics.finish(Time(recording.duration.0)) })
    }

    /// Its metrics, marked as those of a recorded run.
    pub fn rows(&self, plan: &Plan<'_>) -> Vec<Row> {
        let rows = CATALOGUE.iter().map(|metric| {
            let value = metric.read(&self.summary);
            let note = value.note.map(str::to_string);
            let row = row(plan, &format!("kernel:{}", self.class), registered(metric.id), None);
            Row { value: value.value, runs: 1, note, ..row }.at("recorded", "perf")
        });
        rows.collect()
    }
}
