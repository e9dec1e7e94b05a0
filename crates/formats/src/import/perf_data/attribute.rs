//! The events of a file: their kinds and the column offsets of their samples.

use std::collections::BTreeSet;

use super::sample::Columns;
use crate::import::bytes::Bytes;
use crate::import::tracing_data::Events;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u64 = 2;

/// The events of a file.
pub(super) struct Attributes {
    attributes: Vec<Attribute>,
    /// Event ids with the index of their event, sorted by id.
    by_id: Vec<(u64, usize)>,
    has_several_clocks: bool,
    /// The offset of a sample's id; absent if there is only one event or one layout.
    id: Option<usize>,
}

/// One event.
pub(super) struct Attribute {
    pub kind: Kind,
    pub columns: Columns,
}

/// The kind of an event.
pub(super) enum Kind {
    /// A tracepoint; its samples contain the id of their format.
    Tracepoint,
    /// Any other event, by name.
    Other(String),
}

impl Attributes {
    /// Reads `nr, attr_size, nr × { attr, nr_ids, { len, text }, ids }`.
    ///
    /// # Errors
    /// The reason, if the section is damaged.
    pub fn parse(bytes: Bytes<'_>, events: &Events) -> Result<Attributes, &'static str> {
        let mut parsed =
            parse(bytes, events).ok_or("its event descriptions are cut off or damaged")?;
        if parsed.has_several_clocks {
            return Err(
                "its events have times of several clocks, which cannot be put in one order; \
                        record all of them with one clock, as `perf record -k mono` does",
            );
        }
        let attributes = &parsed.attributes;
        let first = attributes.first().ok_or("it has no events")?;
        // The id selects the layout, so its offset must be the same in all layouts.
        let place = first.columns.id();
        let is_one_layout = attributes.iter().all(|attribute| attribute.columns == first.columns);
        let is_one_place = attributes.iter().all(|attribute| attribute.columns.id() == place);
        let needless = is_one_layout
            && attributes.iter().all(|attribute| matches!(attribute.kind, Kind::Tracepoint));
        parsed.id = if attributes.len() == 1 || needless { None } else { place };
        match is_one_place {
            true => Ok(parsed),
            false => Err("its events have samples of different layouts, which do not say which \
                          event they are of"),
        }
    }

    /// The event of a sample; the first event if samples have no id.
    #[inline]
    pub fn of(&self, sample: Bytes<'_>) -> Option<&Attribute> {
        let known = self.id.and_then(|at| {
            let id = sample.unsigned(at, 8)?;
            let found = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            self.by_id.get(found)
        });
        self.attributes.get(known.map_or(0, |(_, index)| *index))
    }
}

fn parse(bytes: Bytes<'_>, events: &Events) -> Option<Attributes> {
    let number = |at: usize| bytes.unsigned(at, 4).and_then(|number| usize::try_from(number).ok());
    let (count, attribute_size) =
        (number(0)?, number(4).filter(|size| (64..=4096).contains(size))?);
    let (mut attributes, mut by_id) = (Vec::new(), Vec::new());
    let mut clocks = BTreeSet::new();
    let mut at = 8usize;
    for index in 0..count {
        let attribute = bytes.part(at, attribute_size)?;
        at = at.checked_add(attribute_size)?;
        let (ids, text) = (number(at)?, number(at.checked_add(4)?)?);
        at = at.checked_add(8)?;
        let name = bytes.part(at, text)?.get();
        at = at.checked_add(text)?;
        for _ in 0..ids {
            by_id.push((bytes.unsigned(at, 8)?, index));
            at = at.checked_add(8)?;
        }
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = if name.is_empty() {
            format!("event {index}")
        } else {
            String::from_utf8_lossy(name).into_owned()
        };
        let is_known = attribute.unsigned(0, 4)? == TRACEPOINT
            && events.place(attribute.unsigned(8, 8)?).is_some();
        let kind = if is_known { Kind::Tracepoint } else { Kind::Other(name) };
        // perf's own clock, unless a bit says that another one is named.
        let flags = attribute.unsigned(40, 8)?;
        let is_named = if bytes.is_big_endian() { flags >> 38 } else { flags >> 25 } & 1 == 1;
        clocks.insert(attribute.unsigned(92, 4).filter(|_| is_named));
        attributes.push(Attribute {
            kind,
            columns: Columns::new(attribute.unsigned(24, 8)?, attribute.unsigned(32, 8)?),
        });
    }
    // If an id occurs twice, the later event counts.
    by_id.reverse();
    by_id.sort_by_key(|(id, _)| *id);
    by_id.dedup_by_key(|(id, _)| *id);
    Some(Attributes { attributes, by_id, has_several_clocks: clocks.len() > 1, id: None })
}
