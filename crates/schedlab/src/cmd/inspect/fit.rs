//! `schedlab inspect --fit`: a stochastic workload that is like a recording.

use super::Inspect;
use crate::Error;
use crate::cmd::read_with_progress;
use crate::import::{Options, Recording};
use crate::output::{print, write_whole};
use crate::workload::{FitInput, Fitted, Lives, all_but};
use schedsim::Time;
use schedsim::metrics::Metrics;
use schedsim::trace::Observer;
use schedsim::workload::CostEstimator;
use std::path::Path;

impl Inspect {
    /// Reads the recording twice: who its tasks are must be known before those that do not count can be left out.
    pub(super) fn fit(&self, path: &Path) -> Result<(), Error> {
        let mut costs = CostEstimator::new();
        let recording = self.read(path, vec![&mut costs])?;
        let others = all_but(&recording.tasks, &self.only).map_err(Error::Usage)?;
        let mut metrics = Metrics::new(recording.cpus).excluding(others.iter().copied());
        let mut lives = Lives::excluding(others);
        self.read(path, vec![&mut metrics, &mut lives])?;
        let (summary, costs) = (metrics.finish(Time(recording.duration.0)), costs.finish());
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let only = if self.only.is_empty() { String::new() } else { format!(" --only {}", self.only.join(",")) };
        let name = file.split('.').next().unwrap_or_default();
        let fitted = Fitted::to(&FitInput {
            name,
            command: format!("schedlab inspect {file} --fit{only}"),
            summary: &summary,
            lives: &lives,
            tasks: &recording.tasks,
            cpus: recording.cpus,
            duration: recording.duration,
            costs: &costs,
        });
        let text = fitted.map_err(|message| Error::Input(format!("{}: {message}", path.display())))?.to_string();
        match &self.output {
            Some(to) => write_whole(to, text.as_bytes()),
            None => print(&text),
        }
    }

    fn read(&self, path: &Path, observers: Vec<&mut dyn Observer>) -> Result<Recording, Error> {
        read_with_progress(path, Options { allow_lost: self.allow_lost, ..Options::default() }, observers)
    }
}
