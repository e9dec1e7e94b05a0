//! Counts instructions with the CPU's own counter, through `perf_event_open`, if machine and kernel
//! allow it.

use super::callgrind::{Counted, Events};
use super::rig::Cell;
use super::structure::Visitor;
use super::subject::Subject;
use indicatif::ProgressBar;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// Counts all cells in this process, in user mode only. An error means that there is no such
/// counter here.
pub fn count(cells: &[Cell], progress: &ProgressBar) -> Result<Vec<Counted>, String> {
    let mut counter =
        Builder::new(Hardware::INSTRUCTIONS).build().map_err(|error| unavailable(&error))?;
    let count = |cell: &Cell| {
        progress.inc(cell.effort());
        cell.build(false, CountCell { cell, counter: &mut counter })?
    };
    Ok(cells.iter().map(count).collect())
}

fn unavailable(error: &std::io::Error) -> String {
    format!(
        "no hardware counter for instructions ({error}): virtual machines often have none, and \
         `sysctl kernel.perf_event_paranoid=2` may be needed; count with valgrind instead"
    )
}

struct CountCell<'a> {
    cell: &'a Cell,
    counter: &'a mut Counter,
}

impl Visitor for CountCell<'_> {
    type Out = Counted;

    fn visit<S: Subject>(self, subject: S) -> Self::Out {
        let levels = self.cell.assign();
        let slices = self.cell.slices(&levels);
        let mut run = self.cell.runner(subject, &levels)?;
        run(self.cell.warm_up(slices));
        let mut count = || {
            self.counter.reset()?;
            self.counter.enable()?;
            run(slices);
            self.counter.disable()?;
            self.counter.read()
        };
        count()
            .map(|count| Events::instructions(slices, count))
            .map_err(|error| unavailable(&error))
    }
}
