//! The C edition (`c/rq.h`, `c/rq_rbtree.h`) on every architecture whose tools are here: its order
//! is the Rust queues', what it refuses, and what it costs.
//!
//! A target whose compiler or emulator is missing is skipped by name. `UPDATE_RECORD=1 cargo test
//! -p readyq --test c_edition record` counts everything again and writes `docs/c-edition.json` and
//! its page.
#![allow(missing_docs)]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod counts;
mod page;
mod record;
#[path = "../support/mod.rs"]
mod support;
mod target;
mod truth;
