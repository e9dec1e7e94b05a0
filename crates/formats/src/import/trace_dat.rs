//! Reads the file that `trace-cmd record` writes, versions 6 and 7 (`man trace-cmd.dat.v7`).
//!
//! The file has the pages of the kernel's ring buffers, those of each CPU in a row. They are read
//! one at a time, and the events of all CPUs are merged by time.

mod layout;
mod pages;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schedsim::trace::WakeContext;

use super::error::{Place, Problem};
use super::input::{Announced, Source};
use super::record::{self, Record};
use super::recorder::{Lost, Recorder};
use super::tracepoint::context;
use super::tracing_data::Event;
use layout::{File, Layout};
use pages::Pages;

/// Reads all events into `recorder`, in order of time.
pub(super) fn read(
    source: &Source<'_>,
    recorder: &mut Recorder<'_>,
) -> Result<(), (Place, Problem)> {
    let in_file = |problem| (Place::File, problem);
    let mut file = File::new(source.open(Announced::No).map_err(in_file)?);
    let layout = Layout::read(&mut file)?;
    recorder.cpus_online = layout.cpus_online;
    recorder.report.warnings.extend(layout.warnings.iter().cloned());
    recorder.lose(Lost::Samples(layout.overrun));
    let mut cpus = Vec::new();
    let mut next = BinaryHeap::new();
    for (index, of) in layout.cpus.iter().enumerate() {
        let mut pages = Pages::new(&layout, of);
        if let Some(time) = pages.advance(&mut file)? {
            next.push(Reverse((time, index)));
        }
        cpus.push((of.cpu, pages));
    }
    let mut skipped = vec![0u64; layout.events.len()];
    while let Some(Reverse((time, index))) = next.pop() {
        let Some((cpu, pages)) = cpus.get_mut(index) else { break };
        let place = Place::Byte(pages.place());
        let fields = pages.fields(&layout);
        // The id of the tracepoint is the first field of each event.
        let event = fields.unsigned(0, 2).and_then(|id| layout.events.place(id));
        match event.and_then(|event| Some((event, layout.events.at(event)?))) {
            Some((_, Event::Scheduling { decoder, flags })) => {
                let what = decoder.decode(fields);
                let what = what.ok_or_else(|| (place, damaged(&decoder.misfit())))?;
                let flags = fields.unsigned(flags.offset, flags.size);
                let context = flags.map_or(WakeContext::Unknown, context);
                let (time, cpu) = (layout.clock.ns(time), *cpu);
                let record = Record { time, cpu, context, current: None, what };
                recorder.record(&record).map_err(|problem| (place, problem))?;
            }
            Some((event, _)) => record::count(&mut skipped[event]),
            // Events of ftrace itself, as those of a tracer of functions.
            None => recorder.skip(b"ftrace", 1),
        }
        if let Some(time) = pages.advance(&mut file)? {
            next.push(Reverse((time, index)));
        }
    }
    layout.events.skip(skipped, recorder);
    for missed in cpus.iter().map(|(_, pages)| pages.missed).filter(|&missed| missed > 0) {
        recorder.lose(Lost::Records(missed));
    }
    Ok(())
}

/// The error for a contradiction in the file, with the next step.
fn damaged(what: &str) -> Problem {
    Problem::PerfData(format!(
        "this trace.dat cannot be used: {what}; try `trace-cmd report -t` on it and import the \
         text, or record again"
    ))
}
