//! Reads the structure of the product from its sources: rooms (files), arrows (imports), floors,
//! circles, and the number of tokens. And how easy its documents are to read: [`words`].
//!
//! Tests do not count: items under `#[cfg(test)]`, and files that only such an item declares, are
//! left out. A name is followed through `pub use` to the file that defines it, so a file that only
//! re-exports names adds no arrow.

#![forbid(unsafe_code)]

mod graph;
mod imports;
mod source;
pub mod words;

pub use graph::House;
pub use source::{Package, Room, manifests};
