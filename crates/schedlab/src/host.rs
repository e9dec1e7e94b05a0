//! What touches this very Linux.

pub mod record;
mod tracefs;
