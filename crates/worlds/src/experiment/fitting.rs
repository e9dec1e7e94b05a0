//! Fits a stochastic workload to a recording.

use formats::import::{Options, Recording};
use formats::workload::{FitInput, Fitted, Lives, all_but};
use program::Error;
use schedsim::Time;
use schedsim::metrics::Metrics;
use schedsim::trace::Observer;
use schedsim::workload::CostEstimator;
use std::path::Path;

/// The text of a workload file fitted to the recording at `path`. `read` reads it twice: the tasks
/// must be known before those that do not count can be left out. With names in `only`, it is fitted
/// to the tasks of these names.
///
/// # Errors
/// If it cannot be read, has no task of such a name, or too little to fit to.
pub fn fit(
    path: &Path,
    only: &[String],
    allow_lost: bool,
    read: impl Fn(&Path, Options, Vec<&mut dyn Observer>) -> Result<Recording, Error>,
) -> Result<String, Error> {
    let options = || Options { allow_lost, ..Options::default() };
    let mut costs = CostEstimator::new();
    let recording = read(path, options(), vec![&mut costs])?;
    let others = all_but(&recording.tasks, only).map_err(Error::Usage)?;
    let mut metrics = Metrics::new(recording.cpus).excluding(others.iter().copied());
    let mut lives = Lives::excluding(others);
    read(path, options(), vec![&mut metrics, &mut lives])?;
    let (summary, costs) = (metrics.finish(Time(recording.duration.0)), costs.finish());
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let only = if only.is_empty() { String::new() } else { format!(" --only {}", only.join(",")) };
    let fitted = Fitted::to(&FitInput {
        name: file.split('.').next().unwrap_or_default(),
        command: format!("schedlab inspect {file} --fit{only}"),
        summary: &summary,
        lives: &lives,
        tasks: &recording.tasks,
        cpus: recording.cpus,
        duration: recording.duration,
        costs: &costs,
    });
    fitted
        .map(|fitted| fitted.to_string())
        .map_err(|message| Error::Input(format!("{}: {message}", path.display())))
}
