//! The columns of a sample that an import needs.
//!
//! The parser crate has the whole record; this reads only as far as the tracepoint's raw data, and never fails on what follows.

use linux_perf_data::linux_perf_event_reader::{ReadFormat, RecordParseInfo, SampleFormat};

use super::tracepoint::Bytes;

/// One sample of an event.
pub(super) struct Sample<'a> {
    pub time: Option<u64>,
    pub cpu: Option<u32>,
    /// The running task's process and thread id.
    pub ids: Option<(u32, u32)>,
    /// The tracepoint's fields.
    pub raw: Option<Bytes<'a>>,
}

impl<'a> Sample<'a> {
    /// `None` if the record is shorter than its attribute says.
    #[inline]
    pub fn parse(data: Bytes<'a>, info: &RecordParseInfo) -> Option<Self> {
        let mut at = 0;
        let has = |format: SampleFormat| info.sample_format.contains(format);
        let mut word = |present: bool| -> Option<Option<usize>> {
            if !present {
                return Some(None);
            }
            data.part(at, 8)?;
            let start = at;
            at = start.checked_add(8)?;
            Some(Some(start))
        };
        word(has(SampleFormat::IDENTIFIER))?;
        word(has(SampleFormat::IP))?;
        let ids = word(has(SampleFormat::TID))?;
        let time = word(has(SampleFormat::TIME))?;
        word(has(SampleFormat::ADDR))?;
        word(has(SampleFormat::ID))?;
        word(has(SampleFormat::STREAM_ID))?;
        let cpu = word(has(SampleFormat::CPU))?;
        word(has(SampleFormat::PERIOD))?;
        if has(SampleFormat::READ) {
            at = at.checked_add(read_size(data, at, info.read_format)?)?;
        }
        if has(SampleFormat::CALLCHAIN) {
            let entries = usize::try_from(data.unsigned(at, 8)?).ok()?;
            at = at.checked_add(entries.checked_add(1)?.checked_mul(8).filter(|size| *size < 1 << 16)?)?;
        }
        let raw = match has(SampleFormat::RAW) {
            true => Some(data.part(at.checked_add(4)?, data.unsigned(at, 4)?.try_into().ok()?)?),
            false => None,
        };
        let number = |at: usize| data.unsigned(at, 4).and_then(|number| u32::try_from(number).ok());
        Some(Sample {
            time: time.and_then(|at| data.unsigned(at, 8)),
            cpu: cpu.and_then(number),
            ids: ids.and_then(|at| Some((number(at)?, number(at.checked_add(4)?)?))),
            raw,
        })
    }
}

/// The size of the counter values in a sample.
fn read_size(data: Bytes<'_>, at: usize, format: ReadFormat) -> Option<usize> {
    let has = |part: ReadFormat| usize::from(format.contains(part));
    let lost = usize::from(format.bits() & 1 << 4 != 0);
    let all = |parts: &[usize]| parts.iter().fold(0, |sum: usize, &part| sum.saturating_add(part));
    let times = all(&[has(ReadFormat::TOTAL_TIME_ENABLED), has(ReadFormat::TOTAL_TIME_RUNNING)]);
    let per_value = all(&[1, has(ReadFormat::ID), lost]);
    let values = match format.contains(ReadFormat::GROUP) {
        true => usize::try_from(data.unsigned(at, 8)?).ok().filter(|values| *values < 1 << 13)?.checked_mul(per_value)?.checked_add(1)?,
        false => per_value,
    };
    values.checked_add(times)?.checked_mul(8)
}
