//! The program.

pub mod import;
