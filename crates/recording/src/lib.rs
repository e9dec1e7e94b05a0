//! The file that schedlab's recorder writes: what a scheduler did, and what its tasks waited for.
//!
//! A file is a header and chunks. The header is [`MAGIC`] and the version, a `u32`. A chunk is a
//! kind (`u32`), the length of its content (`u32`), a checksum (`u64`), and its content. The
//! checksum is the lower half of XXH3-128 of kind, length and content. All numbers are
//! little-endian.
//!
//! | kind | content |
//! |---|---|
//! | 1 | [`Machine`] as JSON: the first chunk |
//! | 2 | events of [`Event::SIZE`] bytes each, in order of time |
//! | 3 | [`Counts`] as JSON: the counters so far, once a second; the last one counts |
//! | 4 | [`End`] as JSON: the last chunk |
//!
//! A recorder that is killed leaves a file without its last chunk. [`Reader`] reads all complete
//! chunks of it and says where it ends ([`Outcome::Cut`]). Anything else that does not fit is a
//! [`Damage`] at a byte.
//!
//! ```
//! use recording::{Counts, End, Event, Machine, Outcome, Reader, What, Writer};
//!
//! let mut writer = Writer::new(Vec::new(), &Machine::default())?;
//! let exit = What::Exit { task: 7, prio: 120 };
//! writer.events(&[Event { time: 5, cpu: 0, context: 0, tid: 7, what: exit }])?;
//! let bytes = writer.end(&End { counts: Counts::default(), status: Some(0) })?;
//! let mut seen = 0;
//! let mut reader = Reader::new(bytes.as_slice())?;
//! let outcome = reader.read(|_, event| seen += u32::from(event.what == exit))?;
//! assert!(seen == 1 && matches!(outcome, Outcome::Complete(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conditions;
mod event;
mod machine;
mod reader;
mod writer;

pub use conditions::{Calibration, Cgroup, Conditions, Descriptor, Frequency};
pub use event::{Class, Event, What, eventfd, lock, member, read, socket, storage, wait, watch};
pub use machine::{Counts, End, LightRun, Machine, Overhead, Ratio};
pub use reader::{Damage, Outcome, Reader};
pub use writer::Writer;

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"SCHEDREC";

/// The name of the recorder's own tasks in every recording, also where names are hidden.
pub const RECORDER: &str = "schedlab-record";

/// The version that is written and read.
pub const VERSION: u32 = 1;

/// The largest content of a chunk.
pub const LARGEST_CHUNK: usize = 1 << 24;

const MACHINE: u32 = 1;
const EVENTS: u32 = 2;
const COUNTS: u32 = 3;
const END: u32 = 4;

/// The XXH3-128 of some bytes, in hexadecimal digits.
pub fn fingerprint(bytes: &[u8]) -> String {
    format!("{:032x}", twox_hash::XxHash3_128::oneshot(bytes))
}

fn checksum(kind: u32, length: u32, content: &[u8]) -> u64 {
    let mut hasher = twox_hash::XxHash3_128::new();
    hasher.write(&kind.to_le_bytes());
    hasher.write(&length.to_le_bytes());
    hasher.write(content);
    (hasher.finish_128() & u128::from(u64::MAX)) as u64
}
