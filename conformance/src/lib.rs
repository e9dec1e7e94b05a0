//! Test vectors for fair schedulers: reads them, plays them to a subject, and says where it
//! differs. The format is in `README.md`.
//!
//! ```
//! use vectors::{Reference, Vector, play};
//!
//! let text = r#"{"format":1,"name":"two","kind":"scenario","claims":"proportional","properties":["conserve"],"source":"an example","until":20000000,"tick":4000000,"slice":3000000}
//! {"at":0,"op":"task","task":1,"weight":1024,"slice":3000000,"begin":0,"program":[["run",1000000]]}
//! {"at":0,"op":"task","task":2,"weight":1024,"slice":3000000,"begin":0,"program":[["run",1000000]]}
//! "#;
//! let vector = Vector::parse("two.jsonl", text.as_bytes())?;
//! assert!(play(&vector, &mut Reference::default()).agrees());
//! # Ok::<(), vectors::Unusable>(())
//! ```

#![forbid(unsafe_code)]

pub mod canaries;
mod files;
mod format;
mod header;
mod history;
mod ideal;
mod judge;
mod ledger;
mod lines;
mod outcome;
mod play;
mod process;
mod program;
mod property;
mod queue;
mod read;
mod reference;
mod scenario;
mod serve;
mod stated;
mod subject;
pub mod table;

pub use files::files;
pub use format::{Answer, Event, MAX_SPAN, MAX_TIME, Op, State};
pub use header::{Changed, Header, Kind};
pub use judge::{Judging, judge};
pub use outcome::{Difference, Outcome, Verdict};
pub use play::play;
pub use process::Process;
pub use program::{Action, Program};
pub use property::Property;
pub use queue::{Options, Version};
pub use read::{Body, Step, Unusable, Vector};
pub use reference::Reference;
pub use serve::serve;
pub use subject::{Broken, Subject};
pub use table::Tally;
