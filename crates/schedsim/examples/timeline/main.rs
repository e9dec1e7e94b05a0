//! Draws which tasks run and wait under a policy, for the pictures in `docs/policies`.
//!
//! ```sh
//! for policy in cfs deadline eevdf fifo lottery mlfq mlfq-textbook o1 pslist rm rr stride; do
//!     cargo run -q -p schedsim --example timeline -- $policy > docs/policies/$policy.svg
//! done
//! for topology in central initial take; do
//!     cargo run -q -p schedsim --example timeline -- $topology:rr?quantum=20ms > docs/policies/$topology.svg
//! done
//! for inherit in no yes; do
//!     cargo run -q -p schedsim --example timeline -- fifo $inherit 160 < crates/schedsim/tests/engine/pathfinder.json > docs/policies/pathfinder-$inherit.svg
//! done
//! ```
//!
//! With two more arguments it draws a closed workload in JSON from standard input: `yes` or `no`
//! for priority inheritance, and the window in ms.

mod svg;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let policy = arguments.next().unwrap_or_else(|| "eevdf".to_string());
    let picture = match (arguments.next(), arguments.next().and_then(|window| window.parse().ok()))
    {
        (Some(inherit), Some(window)) => match std::io::read_to_string(std::io::stdin()) {
            Ok(json) => svg::timeline_of(&policy, &json, inherit == "yes", window),
            Err(error) => Err(error.to_string()),
        },
        _ => svg::timeline(&policy),
    };
    match picture {
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
