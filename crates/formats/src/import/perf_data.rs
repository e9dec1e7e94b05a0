//! Reads the file that `perf record` writes.

mod attribute;
mod calls;
mod descriptors;
mod layout;
mod records;
mod rounds;
mod sample;

use std::io::{Seek, SeekFrom};

use schedsim::admission::CpuNumber;
use schedsim::trace::WakeContext;

use super::bytes::Bytes;
use super::error::{Place, Problem};
use super::input::{Announced, Source, read_problem};
use super::record::{self, Current, count};
use super::recorder::{Lost, Recorder};
use super::tracepoint::{Field, context};
use super::tracing_data::{Event, Events};
use attribute::{Attribute, Attributes, Kind};
use calls::{At, Calls};
use layout::Layout;
use records::Record;
use rounds::{Rounds, Stamp};

pub use descriptors::numbers as calls_used;

/// The record types that matter; all others are skipped.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND: u32 = 68;
const ID_INDEX: u32 = 69;

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
    let calls = (file.events.has_calls() && recorder.wants_calls())
        .then(|| Calls::new(&layout.architecture, recorder));
    let others = vec![0; file.events.len()];
    let to = To { recorder, calls };
    let mut reading = Reading { others, file, rounds: Rounds::default(), to };
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
    to: To<'a, 'r>,
    /// The number of samples of tracepoints that are not imported, by event index.
    others: Vec<u64>,
}

/// Where samples go to, in order of time.
struct To<'a, 'r> {
    recorder: &'a mut Recorder<'r>,
    /// If there are system calls, and they are wanted.
    calls: Option<Calls>,
}

impl Reading<'_, '_> {
    /// Processes the next record.
    #[inline]
    fn take(&mut self, record: &Record<'_>) -> Result<(), (Place, Problem)> {
        match record.kind {
            SAMPLE => self.sample(record).map_err(|problem| (Place::Byte(record.place), problem)),
            FINISHED_ROUND => {
                let Reading { file, rounds, to, .. } = self;
                rounds.finish_round(file.big_endian, |stamp, fields| {
                    to.take(&file.events, stamp, fields)
                })
            }
            LOST => {
                self.to.recorder.lose(Lost::Records(record.data.unsigned(8, 8).unwrap_or(1)));
                Ok(())
            }
            LOST_SAMPLES if record.misc & DROPPED_BY_FILTER == 0 => {
                self.to.recorder.lose(Lost::Samples(record.data.unsigned(0, 8).unwrap_or(1)));
                Ok(())
            }
            ID_INDEX if has_guests(record.data) => Err((
                Place::Byte(record.place),
                damaged(
                    "it has the events of guests, too, whose tasks and CPUs have the numbers of \
                     the host's; give the perf.data of one machine, from before `perf inject`",
                ),
            )),
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
            self.to.recorder.skip(name.as_bytes(), 1);
            return Ok(());
        }
        let raw = sample.raw.ok_or_else(|| damaged("a tracepoint's sample has no raw data"))?;
        let event = raw
            .unsigned(0, 2)
            .and_then(|id| events.place(id))
            .ok_or_else(|| damaged("a sample has a tracepoint without description"))?;
        let is_needless = match events.at(event) {
            Some(Event::Other(_)) => true,
            Some(Event::Call { .. }) => self.to.calls.is_none(),
            _ => false,
        };
        if is_needless {
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
        let to = &mut self.to;
        self.rounds.finish(*big_endian, |stamp, fields| to.take(events, stamp, fields))?;
        let To { recorder, calls } = self.to;
        events.skip(self.others, recorder);
        if let Some(calls) = calls {
            calls.finish(recorder);
        }
        Ok(())
    }
}

impl To<'_, '_> {
    /// Passes on a sample.
    #[inline]
    fn take(
        &mut self,
        events: &Events,
        stamp: Stamp,
        fields: Bytes<'_>,
    ) -> Result<(), (Place, Problem)> {
        let To { recorder, calls } = self;
        let Stamp { time, cpu, current, event, place } = stamp;
        let at_place = |problem| (Place::Byte(place), problem);
        let (decoder, flags) = match events.at(event) {
            Some(Event::Scheduling { decoder, flags }) => (decoder, flags),
            Some(Event::Call { begins, number, values }) => {
                if let Some((calls, current)) = calls.as_mut().zip(current) {
                    let at = At { time, cpu, tgid: current.tgid, tid: current.pid };
                    call(calls, at, (*begins, number, values), fields, recorder)
                        .ok_or_else(|| at_place(damaged("the fields of a call do not fit")))?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let what = decoder.decode(fields);
        let what = what.ok_or_else(|| at_place(damaged(&decoder.misfit())))?;
        let context =
            fields.unsigned(flags.offset, flags.size).map_or(WakeContext::Unknown, context);
        let record = record::Record { time, cpu, context, current, what };
        calls.iter_mut().for_each(|calls| calls.before(&record, recorder));
        recorder.record(&record).map_err(at_place)?;
        calls.iter_mut().for_each(|calls| calls.after(&record.what));
        Ok(())
    }
}

/// Whether an index of ids, `u64 nr, nr × { id, index, cpu, tid }, nr × { machine pid, vcpu }`, names
/// machines other than the host.
fn has_guests(index: Bytes<'_>) -> bool {
    let machine = |entry: u64| {
        let ids = index.unsigned(0, 8)?;
        let at = ids.checked_mul(32)?.checked_add(entry.checked_mul(16)?)?.checked_add(8)?;
        index.unsigned(usize::try_from(at).ok()?, 8)
    };
    (0u64..).map_while(machine).any(|machine| machine != 0)
}

/// Passes on a system call; `None` if its fields are cut off.
fn call(
    calls: &mut Calls,
    at: At,
    (begins, number, values): (bool, &Field, &Field),
    fields: Bytes<'_>,
    recorder: &mut Recorder<'_>,
) -> Option<()> {
    let number = fields.unsigned(number.offset, number.size)?;
    if !begins {
        calls.ends(at, number, values.signed(fields)?, recorder);
        return Some(());
    }
    let (mut arguments, mut offset, size) = ([0; 6], values.offset, values.size.checked_div(6)?);
    for argument in &mut arguments {
        *argument = fields.unsigned(offset, size)?;
        offset = offset.checked_add(size)?;
    }
    calls.begins(at, number, arguments, recorder);
    Some(())
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
