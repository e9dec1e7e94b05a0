//! Measures time per operation, in this process.

use super::rig::Cell;
use super::structure::Visitor;
use super::subject::Subject;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// The shortest duration of one measured run.
const SPAN: Duration = Duration::from_millis(1);

/// Nanoseconds per slice in one run of every cell. Call it once for each run: the cells alternate,
/// so that a disturbance of the machine affects all of them.
pub fn time(cells: &[Cell], progress: &ProgressBar) -> Vec<Result<f64, String>> {
    let time = |cell: &Cell| {
        progress.inc(1);
        cell.build(false, TimeCell(cell))?
    };
    cells.iter().map(time).collect()
}

struct TimeCell<'a>(&'a Cell);

impl Visitor for TimeCell<'_> {
    type Out = Result<f64, String>;

    fn visit<S: Subject>(self, subject: S) -> Result<f64, String> {
        let levels = self.0.assign();
        let slices = self.0.slices(&levels);
        let mut run = self.0.runner(subject, &levels)?;
        run(self.0.warm_up(slices));
        let (start, mut done) = (Instant::now(), 0);
        loop {
            run(slices);
            done += slices;
            let spent = start.elapsed();
            if spent >= SPAN {
                return Ok(spent.as_nanos() as f64 / done as f64);
            }
        }
    }
}
