//! The cost atlas of ready queues: what one scheduling operation costs, per structure, number of tasks and mix of levels.
//!
//! One operation is what the end of a time slice needs: insert the task that ran, take out the next. A [`Rig`](rig::Rig) does that
//! for tasks that yield for ever, and [`threads`] lets real ones switch; [`callgrind`] and [`hardware`] count its instructions, [`timing`] takes its time, [`steps`] counts what
//! depends on no machine. [`measure`] runs a [`Plan`](measure::Plan) and makes rows of it; [`crossover`] and [`advice`] read those rows.
//! [`paper::queues`](crate::paper::queues) holds Porter's printed numbers and claims against them.
//!
//! ```
//! use schedlab::atlas::{mix::Mix, rig::Cell, steps};
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

mod idle;
mod peers;
mod requests;
