//! Reads the file that `perf record` writes.

mod attribute;
mod bytes;
mod layout;
mod records;
mod rounds;
mod sample;
mod tracepoint;
mod tracing_data;

use std::io::{Seek, SeekFrom};

use schedsim::admission::CpuNumber;
use schedsim::trace::WakeContext;

use super::error::{Place, Problem};
use super::input::{Announced, Source, read_problem};
use super::record::{self, Current, count};
use super::recorder::{Lost, Recorder};
use attribute::{Attribute, Attributes, Kind};
use bytes::Bytes;
use layout::Layout;
use records::Record;
use rounds::{Rounds, Stamp};
use tracing_data::{Event, Events};

/// The record types that matter; all others are skipped.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND: u32 = 68;

/// In the `misc` field of a `PERF_RECORD_LOST_SAMPLES`: a filter dropped them, so they are not
/// lost.
const DROPPED_BY_FILTER: u16 = 1 << 15;

/// Reads all records into `recorder`, in order of time.
pub(super) fn read(
    source: &Source<'_>,
    recorder: &mut Recorder<'_>,
) -> Result<(), (Place, Problem)> {
    let in_file = |problem| (Place::File, problem);
    let layout = Layout::read(source.open(Announced::No).map_err(in_file)?)?;
    let file = Header::parse(&layout)?;
    recorder.cpus_online = layout.cpus_online;
    let mut reader = source.open(Announced::Yes).map_err(in_file)?.into_inner();
    reader
        .seek(SeekFrom::Start(layout.data.offset))
        .map_err(|error| in_file(read_problem(error)))?;
    let mut reading =
        Reading { others: vec![0; file.events.len()], file, rounds: Rounds::default(), recorder };
    records::read(&mut reader, layout.data, layout.big_endian, |record| reading.take(record))?;
    reading.finish()
}

/// The events of a file.
struct Header {
    events: Events,
    attributes: Attributes,
    big_endian: bool,
}

impl Header {
    fn parse(layout: &Layout) -> Result<Header, (Place, Problem)> {
        let events = events(&layout.tracing_data).map_err(|problem| (Place::File, problem))?;
        let (place, bytes) = &layout.event_descriptions;
        let attributes = Attributes::parse(Bytes::new(bytes, layout.big_endian), &events)
            .map_err(|what| (*place, damaged(what)))?;
        Ok(Header { events, attributes, big_endian: layout.big_endian })
    }
}

/// The state between the records of a file and the recorder.
struct Reading<'a, 'r> {
    file: Header,
    rounds: Rounds,
    recorder: &'a mut Recorder<'r>,
    /// The number of samples of tracepoints that are not imported, by event index.
    others: Vec<u64>,
}

impl Reading<'_, '_> {
    /// Processes the next record.
    #[inline]
    fn take(&mut self, record: &Record<'_>) -> Result<(), (Place, Problem)> {
        match record.kind {
            SAMPLE => self.sample(record).map_err(|problem| (Place::Byte(record.place), problem)),
            FINISHED_ROUND => {
                let Reading { file, rounds, recorder, .. } = self;
                rounds.finish_round(file.big_endian, |stamp, fields| {
                    import(&file.events, recorder, stamp, fields)
                })
            }
            LOST => {
                self.recorder.lose(Lost::Records(record.data.unsigned(8, 8).unwrap_or(1)));
                Ok(())
            }
            LOST_SAMPLES if record.misc & DROPPED_BY_FILTER == 0 => {
                self.recorder.lose(Lost::Samples(record.data.unsigned(0, 8).unwrap_or(1)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sorts a sample by time, or counts it if it is not imported.
    fn sample(&mut self, record: &Record<'_>) -> Result<(), Problem> {
        let Header { events, attributes, .. } = &self.file;
        let Attribute { kind, columns } =
            attributes.of(record.data).ok_or_else(|| damaged("a sample has an unknown event"))?;
        let sample = columns
            .read(record.data)
            .ok_or_else(|| damaged("a sample is too short for its fields"))?;
        if let Kind::Other(name) = kind {
            self.recorder.skip(name.as_bytes(), 1);
            return Ok(());
        }
        let raw = sample.raw.ok_or_else(|| damaged("a tracepoint's sample has no raw data"))?;
        let event = raw
            .unsigned(0, 2)
            .and_then(|id| events.place(id))
            .ok_or_else(|| damaged("a sample has a tracepoint without description"))?;
        if let Some(Event::Other(_)) = events.at(event) {
            self.others.get_mut(event).into_iter().for_each(count);
            return Ok(());
        }
        let time = sample
            .time
            .ok_or_else(|| damaged("it has no timestamps; record with `perf record -T`"))?;
        let cpu = sample.cpu.ok_or_else(|| {
            damaged("it has no CPU numbers; record with `perf record -a` or `--sample-cpu`")
        })?;
        let cpu = record::cpu(cpu.into())
            .ok_or_else(|| Problem::Range { what: "the CPU", wrong: CpuNumber::refuse(cpu) })?;
        let current = sample.ids.map(|(tgid, pid)| Current { tgid, pid });
        self.rounds.insert(Stamp { time, cpu, current, event, place: record.place }, raw.get());
        Ok(())
    }

    /// Processes the samples that wait for later records: there are no more.
    fn finish(mut self) -> Result<(), (Place, Problem)> {
        let Header { events, big_endian, .. } = &self.file;
        self.rounds
            .finish(*big_endian, |stamp, fields| import(events, self.recorder, stamp, fields))?;
        for (place, count) in self.others.into_iter().enumerate() {
            if let Some(Event::Other(name)) = events.at(place).filter(|_| count > 0) {
                self.recorder.skip(name.as_bytes(), count);
            }
        }
        Ok(())
    }
}

/// Passes a sample of a scheduling tracepoint to the recorder.
#[inline]
fn import(
    events: &Events,
    recorder: &mut Recorder<'_>,
    stamp: Stamp,
    fields: Bytes<'_>,
) -> Result<(), (Place, Problem)> {
    let Stamp { time, cpu, current, event, place } = stamp;
    let Some(Event::Scheduling { decoder, flags }) = events.at(event) else { return Ok(()) };
    let at_place = |problem| (Place::Byte(place), problem);
    let what = decoder.decode(fields).ok_or_else(|| {
        let name = decoder.tracepoint().name();
        at_place(damaged(&format!(
            "the fields of a {name} do not fit, or name a CPU above 4095 or a pid above 4194304"
        )))
    })?;
    let context = fields.unsigned(flags.offset, flags.size).map_or(WakeContext::Unknown, context);
    recorder.record(&record::Record { time, cpu, context, current, what }).map_err(at_place)
}

/// The context from `common_flags`, the kernel's `TRACE_FLAG_…` bits.
fn context(flags: u64) -> WakeContext {
    const HARDIRQ: u64 = 0x08;
    const SOFTIRQ: u64 = 0x10;
    const NMI: u64 = 0x40;
    match flags {
        _ if flags & (HARDIRQ | NMI) != 0 => WakeContext::Hardirq,
        _ if flags & SOFTIRQ != 0 => WakeContext::Softirq,
        _ => WakeContext::Task,
    }
}

fn events(tracing_data: &[u8]) -> Result<Events, Problem> {
    if tracing_data.is_empty() {
        return Err(Problem::NoSchedEvents {
            saw: ": it describes no tracepoints at all".to_owned(),
        });
    }
    Events::parse(tracing_data)
        .ok_or_else(|| damaged("its tracepoint descriptions are cut off or damaged"))
}

/// The error for a contradiction in the file, with the next step.
fn damaged(what: &str) -> Problem {
    Problem::PerfData(format!(
        "this perf.data cannot be used: {what}; try `perf script --ns` on it and import the text, \
         or record again"
    ))
}

#[cfg(test)]
mod tests;
