//! Reads the columns of a sample that an import needs.

use crate::import::bytes::Bytes;

/// The bits of `sample_type`, in the order of their columns. Each of these columns has 8 bytes.
const WORDS: [u64; 9] = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD];
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// The bits of `read_format`.
const TOTAL_TIME_ENABLED: u64 = 1;
const TOTAL_TIME_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// The column offsets of an event's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Columns {
    ids: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    id: Option<usize>,
    /// The end of the fixed-size columns.
    fixed: usize,
    has_callchain: bool,
    has_raw: bool,
    /// `read_format`, if the samples contain counters.
    read: Option<u64>,
}

/// One sample of an event.
pub(super) struct Sample<'a> {
    pub time: Option<u64>,
    pub cpu: Option<u32>,
    /// The running task's process and thread id.
    pub ids: Option<(u32, u32)>,
    /// The tracepoint's fields.
    pub raw: Option<Bytes<'a>>,
}

impl Columns {
    /// For an event with this `sample_type` and `read_format`.
    pub fn new(sample_type: u64, read_format: u64) -> Columns {
        let has = |bit: u64| sample_type & bit != 0;
        let before = |bit: u64| {
            WORDS
                .iter()
                .take_while(|word| **word != bit)
                .filter(|word| has(**word))
                .count()
                .saturating_mul(8)
        };
        let place = |bit: u64| has(bit).then(|| before(bit));
        Columns {
            ids: place(TID),
            time: place(TIME),
            cpu: place(CPU),
            id: place(IDENTIFIER).or_else(|| place(ID)),
            fixed: before(0),
            has_callchain: has(CALLCHAIN),
            has_raw: has(RAW),
            read: has(READ).then_some(read_format),
        }
    }

    /// The offset of the event id.
    pub fn id(&self) -> Option<usize> {
        self.id
    }

    /// Reads a sample up to the tracepoint's fields; `None` if it is shorter than its event says.
    #[inline]
    pub fn read<'a>(&self, data: Bytes<'a>) -> Option<Sample<'a>> {
        let mut at = self.fixed;
        data.part(0, at)?;
        if let Some(format) = self.read {
            at = at.checked_add(size_of_counters(data, at, format)?)?;
        }
        if self.has_callchain {
            let entries = usize::try_from(data.unsigned(at, 8)?).ok()?;
            at = at.checked_add(
                entries.checked_add(1)?.checked_mul(8).filter(|size| *size < 1 << 16)?,
            )?;
        }
        let raw = match self.has_raw {
            true => Some(data.part(at.checked_add(4)?, data.unsigned(at, 4)?.try_into().ok()?)?),
            false => None,
        };
        let number = |at: usize| data.unsigned(at, 4).and_then(|number| u32::try_from(number).ok());
        Some(Sample {
            time: self.time.and_then(|at| data.unsigned(at, 8)),
            cpu: self.cpu.and_then(number),
            ids: self.ids.and_then(|at| Some((number(at)?, number(at.checked_add(4)?)?))),
            raw,
        })
    }
}

/// The size of the counter values in a sample.
fn size_of_counters(data: Bytes<'_>, at: usize, format: u64) -> Option<usize> {
    let has = |part: u64| usize::from(format & part != 0);
    let all = |parts: &[usize]| parts.iter().fold(0, |sum: usize, &part| sum.saturating_add(part));
    let times = all(&[has(TOTAL_TIME_ENABLED), has(TOTAL_TIME_RUNNING)]);
    let per_value = all(&[1, has(READ_ID), has(READ_LOST)]);
    let values = match format & GROUP != 0 {
        true => usize::try_from(data.unsigned(at, 8)?)
            .ok()
            .filter(|values| *values < 1 << 13)?
            .checked_mul(per_value)?
            .checked_add(1)?,
        false => per_value,
    };
    values.checked_add(times)?.checked_mul(8)
}
