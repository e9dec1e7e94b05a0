//! The shape of every result: a row of enums and numbers, whose text exists only at the edges.
//!
//! This crate knows no world: it names what was measured, where, and what was decided. It neither runs nor prints anything.
//!
//! ```
//! use results::{Metric, Row, SubjectKind, World};
//! let row = Row { workload: "mixed".into(), candidate: "eevdf".into(), cpus: 4, value: Some(2.5), ..Row::new(World::Sim, Metric::grr) };
//! let row = row.of(SubjectKind::Class, "batch").at("load", 0.7);
//! assert_eq!((row.unit(), row.coordinate("load").unwrap().to_string()), ("1", "0.7".to_string()));
//! let json = serde_json::to_string(&row).unwrap();
//! assert_eq!(serde_json::from_str::<Row>(&json).unwrap(), row);
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod columns;
mod csv_file;
mod metric;
mod parquet_file;
mod point;
mod record;
mod row;
mod verdict;
mod world;

pub use csv_file::{from_csv, to_csv};
pub use metric::{Description, Direction, Metric};
pub use parquet_file::{from_parquet, to_parquet};
pub use point::{Coordinate, Point};
pub use record::Record;
pub use row::{Row, SubjectKind};
pub use verdict::Verdict;
pub use world::World;

/// The version of the shape of results. Version 1 had text for everything.
pub const SCHEMA: u32 = 2;
