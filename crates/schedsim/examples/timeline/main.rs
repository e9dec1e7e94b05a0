//! Draws who runs and who waits under a policy, as the pictures in `docs/policies`.
//!
//! ```sh
//! for policy in cfs deadline eevdf fifo lottery mlfq mlfq-textbook o1 pslist rm rr stride; do
//!     cargo run -q -p schedsim --example timeline -- $policy > docs/policies/$policy.svg
//! done
//! for topology in central initial take; do
//!     cargo run -q -p schedsim --example timeline -- $topology:rr/quantum=20ms > docs/policies/$topology.svg
//! done
//! ```

mod svg;

use std::process::ExitCode;

fn main() -> ExitCode {
    let policy = std::env::args().nth(1).unwrap_or_else(|| "eevdf".to_string());
    match svg::timeline(&policy) {
        Ok(picture) => {
            print!("{picture}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
