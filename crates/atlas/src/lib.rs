//! The cost atlas of ready queues: the cost of one scheduling operation by structure, number of
//! tasks and mix of levels.
//!
//! One operation is the work at the end of a slice: insert the task that ran, remove the next one.
//! A [`Rig`](rig::Rig) does that for tasks that only yield, and [`threads`] switches real
//! user-level threads. [`callgrind`] and [`hardware`] count instructions, [`timing`] measures time,
//! and [`steps`] counts what does not depend on the machine. [`measure`] runs a
//! [`Plan`](measure::Plan) and makes rows; [`crossover`] and [`advice`] use those rows.
//! `papers::queues` has Porter's printed numbers and claims to compare with.
//!
//! ```
//! use atlas::{mix::Mix, rig::Cell, steps};
//!
//! let cell = Cell { mix: Mix::One(7), levels: 8, ..Cell::new("ruler", 10) };
//! assert_eq!(steps::count(&cell).unwrap().longest_wait, [(7, 10)]); // round robin among the ten
//! ```

pub mod advice;
pub mod callgrind;
pub mod crossover;
pub mod hardware;
pub mod measure;

pub mod mix;
pub mod rig;
pub mod steps;
pub mod structure;
pub mod subject;
pub mod text;
pub mod threads;
pub mod timing;

/// How much this crate is optimised, and with it the queues that it measures: `0` to `3`, `s` or
/// `z`.
pub const OPT_LEVEL: &str = env!("SCHEDLAB_OPT_LEVEL");

mod idle;
mod opaque;
mod peers;
mod requests;
