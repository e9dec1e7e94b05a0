//! A guest of more CPUs than times were validated on: it repeats itself, its tasks are placed on all
//! of its CPUs, decisions are counted, and no time is shown. Skipped by name where QEMU cannot be
//! had.
//!
//! `SCHEDLAB_CPUS=64` asks for that many: minutes on this machine, so by hand.

use serde_json::Value;
use std::process::Command;

const MISSING: i32 = 77;

#[test]
#[ignore = "long: tools/long"]
fn sixteen_cpus_repeat_themselves_and_are_all_used() {
    let cpus = std::env::var("SCHEDLAB_CPUS").unwrap_or("16".to_string());
    let cpus: u32 = cpus.parse().expect("a number of CPUs");
    let tasks = 2 * cpus;
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("hogs.toml");
    let text = format!(
        "description = \"two hogs for each CPU\"\ncpus = {cpus}\nduration = \"100ms\"\n[[task]]\nname = \
         \"hog\"\ncount = {tasks}\nphases = [ {{ loop = {{ phases = [ {{ run = \"1s\" }} ] }} }} ]\n"
    );
    std::fs::write(&workload, text).unwrap();
    // Two boots that differ end with exit code 6.
    let run = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["run", "--on", "vm", "--format", "json", "--cpus", &cpus.to_string()])
        .arg(&workload)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(MISSING) {
        return eprintln!("skipped: a guest of {cpus} CPUs: {said}");
    }
    assert_eq!(run.status.code(), Some(0), "{said}");
    let results: Value = serde_json::from_slice(&run.stdout).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let value = |metric: &str| {
        let row = rows.iter().find(|row| row["metric"] == metric && row["subject"].is_null());
        row.unwrap_or_else(|| panic!("{metric} has no row"))["value"].as_f64()
    };
    let shares: Vec<f64> = rows
        .iter()
        .filter(|row| row["metric"] == "cpu_share")
        .map(|row| row["value"].as_f64().unwrap())
        .collect();
    let (least, most) =
        (shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max));
    let fair = 1.0 / f64::from(tasks);
    let counted = ["switches", "dispatches", "wakeups", "migrations"].map(|of| (of, value(of)));
    eprintln!(
        "{cpus} CPUs: shares {:.3} to {:.3} of a fair one, {counted:?}",
        least / fair,
        most / fair
    );
    assert_eq!(shares.len(), tasks as usize);
    // A task that is alone on its CPU has twice a fair share if all CPUs are busy, and more if not.
    // Six tasks on one CPU, a third of a fair share each, were seen: nothing balances in 100 ms.
    assert!(least > 0.2 * fair && most < 2.1 * fair, "{least} to {most}");
    for (metric, count) in counted {
        assert!(count.is_some_and(|count| count.fract() == 0.0), "{metric}: {count:?}");
    }
    assert!(value("switches") >= Some(f64::from(tasks)));
    for time in ["makespan_ns", "run_delay_ns", "wakeup_latency_ns_p50", "utilisation"] {
        assert_eq!(value(time), None, "{time}");
    }
}
