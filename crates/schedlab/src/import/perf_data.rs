//! The file that `perf record` writes.

mod layout;
mod sample;
mod tracepoint;
mod tracing_data;

use linux_perf_data::linux_perf_event_reader::{PerfEventType, RecordType};
use linux_perf_data::{Endianness, Feature, PerfFile, PerfFileReader, PerfFileRecord};
use schedsim::admission::{CpuNumber, Cpus};
use schedsim::trace::WakeContext;

use super::error::{Place, Problem};
use super::input::{Announced, Source, read_problem};
use super::record::{self, Current, Record, count};
use super::recorder::{Lost, Recorder};
use sample::Sample;
use tracepoint::Bytes;
use tracing_data::{Event, Events};

/// In the `misc` of a `PERF_RECORD_LOST_SAMPLES`: a filter dropped them, they are not lost.
const DROPPED_BY_FILTER: u16 = 1 << 15;

/// Reads all records into `recorder`, in order of time.
pub(super) fn read(source: &Source<'_>, recorder: &mut Recorder<'_>) -> Result<(), (Place, Problem)> {
    let in_file = |problem| (Place::File, problem);
    layout::check(source.open(Announced::No).map_err(in_file)?)?;
    let reader = source.open(Announced::Yes).map_err(in_file)?;
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(reader).map_err(|error| in_file(problem(error)))?;
    let events = events(&perf_file).map_err(in_file)?;
    let attributes = attributes(&perf_file, &events);
    recorder.cpus_online = cpus_online(&perf_file).map_err(in_file)?;

    let mut number = 0;
    loop {
        count(&mut number);
        let record = record_iter.next_record(&mut perf_file).map_err(|error| (Place::Record(number), problem(error)))?;
        let (attribute, record) = match record {
            Some(PerfFileRecord::EventRecord { attr_index, record }) => (attributes.get(attr_index), record),
            Some(PerfFileRecord::UserRecord(_)) => continue,
            None => return Ok(()),
        };
        let big_endian = record.parse_info.endian == Endianness::BigEndian;
        let data = record.data.as_slice();
        let outcome = match (record.record_type, attribute) {
            (RecordType::SAMPLE, Some(attribute)) => match Sample::parse(Bytes::new(&data, big_endian), &record.parse_info) {
                Some(sample) => take(&sample, attribute, &events, recorder),
                None => Err(damaged("a sample is too short for its fields")),
            },
            (RecordType::LOST, _) => {
                recorder.lose(Lost::Records(Bytes::new(&data, big_endian).unsigned(8, 8).unwrap_or(1)));
                Ok(())
            }
            (RecordType::LOST_SAMPLES, _) if record.misc & DROPPED_BY_FILTER == 0 => {
                recorder.lose(Lost::Samples(Bytes::new(&data, big_endian).unsigned(0, 8).unwrap_or(1)));
                Ok(())
            }
            _ => Ok(()),
        };
        outcome.map_err(|problem| (Place::Record(number), problem))?;
    }
}

/// What an event of the file is.
enum Attribute {
    /// A tracepoint: its samples name their format themselves.
    Tracepoint,
    /// Something else, by name.
    Other(String),
}

/// Takes one sample.
fn take(sample: &Sample<'_>, attribute: &Attribute, events: &Events, recorder: &mut Recorder<'_>) -> Result<(), Problem> {
    if let Attribute::Other(name) = attribute {
        recorder.skip(name.as_bytes());
        return Ok(());
    }
    let raw = sample.raw.ok_or_else(|| damaged("a tracepoint's sample has no raw data"))?;
    let event = raw.unsigned(0, 2).and_then(|id| events.get(id)).ok_or_else(|| damaged("a sample is of an undescribed tracepoint"))?;
    let (decoder, flags) = match event {
        Event::Scheduling { decoder, flags } => (decoder, flags),
        Event::Other(name) => {
            recorder.skip(name.as_bytes());
            return Ok(());
        }
    };
    let time = sample.time.ok_or_else(|| damaged("it has no timestamps; record with `perf record -T`"))?;
    let cpu = sample.cpu.ok_or_else(|| damaged("it has no CPU numbers; record with `perf record -a` or `--sample-cpu`"))?;
    let cpu = record::cpu(cpu.into()).ok_or_else(|| Problem::Range { what: "the CPU", wrong: CpuNumber::refuse(cpu) })?;
    let what = decoder.decode(raw).ok_or_else(|| {
        damaged(&format!("the fields of a {} do not fit, or name a CPU above 4095 or a pid above 4194304", decoder.tracepoint().name()))
    })?;
    let context = raw.unsigned(flags.offset, flags.size).map_or(WakeContext::Unknown, context);
    let current = sample.ids.map(|(tgid, pid)| Current { tgid, pid });
    recorder.record(&Record { time, cpu, context, current, what })
}

/// `common_flags`: the kernel's `TRACE_FLAG_…` bits.
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

fn events(file: &PerfFile) -> Result<Events, Problem> {
    let data = file.feature_section_data(Feature::TRACING_DATA).unwrap_or_default();
    if data.is_empty() {
        return Err(Problem::NoSchedEvents { saw: ": it describes no tracepoints at all".to_owned() });
    }
    Events::parse(data).ok_or_else(|| damaged("its descriptions of tracepoints are cut or damaged"))
}

fn attributes(file: &PerfFile, events: &Events) -> Vec<Attribute> {
    let kind = |(index, attribute): (usize, &linux_perf_data::AttributeDescription)| match attribute.attr.type_ {
        PerfEventType::Tracepoint(id) if events.get(id).is_some() => Attribute::Tracepoint,
        _ => Attribute::Other(attribute.name().map_or_else(|| format!("event {index}"), str::to_owned)),
    };
    file.event_attributes().iter().enumerate().map(kind).collect()
}

fn cpus_online(file: &PerfFile) -> Result<u16, Problem> {
    let Some(cpus) = file.nr_cpus().ok().flatten() else { return Ok(0) };
    let cpus = Cpus::admit(cpus.nr_cpus_online.into());
    cpus.map(Cpus::get).map_err(|wrong| Problem::Range { what: "the number of CPUs", wrong })
}

/// A contradiction in the file, with what to do about it.
fn damaged(what: &str) -> Problem {
    Problem::PerfData(format!("this perf.data cannot be used: {what}; try `perf script --ns` on it and import the text, or record again"))
}

fn problem(error: linux_perf_data::Error) -> Problem {
    match error {
        linux_perf_data::Error::IoError(error) => read_problem(error),
        error => damaged(&error.to_string()),
    }
}
