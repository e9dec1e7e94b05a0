//! Any text as a workload file and as a grid file: a workload or a message with the file, the line
//! and the key, and no panic. What is a workload, and not too large, is run.

#![no_main]

use formats::workload::{Parameters, Template};
use laboratory::sweep::Sweep;
use libfuzzer_sys::fuzz_target;
use program::Error;
use schedsim::policy::PolicySpec;
use worlds::experiment::simulate_open;

/// Longer runs only make the fuzzer slower.
const TASKS: u64 = 30;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    expect_a_place(Sweep::parse("fuzz.toml", text));
    let Ok(template) = Template::parse("fuzz.toml", text) else { return };
    let mut few = Parameters::default();
    few.insert("tasks", (TASKS as i64).into());
    few.insert("warm-up", 0.into());
    few.insert("population-limit", (TASKS as i64).into());
    expect_a_place(template.with(&Parameters::default()));
    let Ok(workload) = template.with(&few) else { return };
    let bursts: f64 = workload.model.classes().iter().map(|class| class.bursts.mean()).sum();
    let policy = PolicySpec::parse("initial:rr").expect("a policy");
    let quantum = workload.quantum.or_else(|| policy.duration("quantum"));
    let slices = quantum.map_or(0.0, |quantum| workload.model.mean_cpu_time() / quantum.0 as f64);
    if bursts * TASKS as f64 > 1e4 || slices * TASKS as f64 > 1e4 {
        return;
    }
    let run = match simulate_open(&workload, &policy, 1, Vec::new()) {
        Ok(run) => run,
        // Each of its durations may be the longest that there is, and then all together are too
        // long.
        Err(error) => {
            return assert!(
                error.to_string().contains("the tasks need more time than the longest run"),
                "{error}"
            );
        }
    };
    assert!(!run.rows(&workload, &policy, 1).is_empty());
});

/// What is refused is refused with the place.
fn expect_a_place<T>(result: Result<T, Error>) {
    if let Err(error) = result {
        assert!(error.to_string().starts_with("fuzz.toml:"), "{error}");
    }
}
