//! The shape of every result: a row of enums and numbers. Text is made only for output.
//!
//! This crate names what was measured, where, and what was decided. It runs nothing and depends on
//! no world.
//!
//! ```
//! use results::{Metric, Row, SubjectKind, World};
//! let row = Row {
//!     workload: "mixed".into(),
//!     candidate: "eevdf".into(),
//!     cpus: 4,
//!     value: Some(2.5),
//!     ..Row::new(World::Sim, Metric::grr)
//! };
//! let row = row.of(SubjectKind::Class, "batch").at("load", 0.7);
//! assert_eq!((row.unit(), row.coordinate("load").unwrap().to_string()), ("1", "0.7".to_string()));
//! let json = serde_json::to_string(&row).unwrap();
//! assert_eq!(serde_json::from_str::<Row>(&json).unwrap(), row);
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod columns;
pub mod critical_path;
mod csv_file;
mod document;
pub mod fidelity;
pub mod figure;
pub mod findings;
pub mod gate;
pub mod judge;
mod lock;
mod metric;
#[cfg(not(feature = "parquet"))]
mod no_parquet;
#[cfg(feature = "parquet")]
mod parquet_file;
mod point;
mod printed;
mod row;
pub mod standing;
mod text;
mod verdict;
mod world;

pub use csv_file::{from_csv, to_csv};
pub use document::{Answer, Results, Stamp, stamped};
pub use findings::is_of;
pub use lock::{Input, InputKind, InputLock, LOCK};
pub use metric::{Description, Metric, registered};
#[cfg(not(feature = "parquet"))]
pub use no_parquet::{from_parquet, to_parquet};
#[cfg(feature = "parquet")]
pub use parquet_file::{from_parquet, to_parquet};
pub use point::{Coordinate, Point};
pub use printed::Printed;
pub use row::{Row, SubjectKind, Unit};
pub use schedsim::counted;
pub use schedsim::metrics::Better;
pub use text::{
    Align, CALLBACKS, Table, find_metric, headline, is_headline, nanoseconds, open_cell,
    open_headline, quantity, set_page_width, signed_difference,
};
pub use verdict::Verdict;
pub use world::World;

/// Checks that this build reads and writes Parquet.
///
/// # Errors
/// [`program::Error::Missing`] if it was built without the feature `parquet`.
pub fn expect_parquet() -> Result<(), program::Error> {
    if cfg!(feature = "parquet") {
        return Ok(());
    }
    Err(program::Error::not_built("parquet", "Parquet"))
}

/// The version of the schema of results. In version 1 every field was text.
pub const SCHEMA: u32 = 2;
