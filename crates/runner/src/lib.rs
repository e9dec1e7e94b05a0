//! The interface of the runner, one JSON document each way: a [`session::Session`]
//! in, [`event::Event`]s out.
//!
//! The program beside this library is the init of a guest kernel, and runs the same workloads on
//! this machine. It stands alone, statically linked.
//!
//! ```
//! use schedlab_runner::event::Event;
//! let line = r#"{"event":"sample","job":0,"ns":5600000,"operations":2000}"#;
//! assert!(matches!(serde_json::from_str(line), Ok(Event::Sample { operations: 2000, .. })));
//! ```

pub mod class;
pub mod event;
pub mod nudge;
pub mod session;
pub mod step;
pub mod tuning;
