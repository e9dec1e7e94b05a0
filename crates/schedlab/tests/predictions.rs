//! What calls cost in a kernel predicts how long other workloads take there. Skipped by name where
//! QEMU cannot be had.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use worlds::vm::Qemu;

/// Two pairs that talk and four hogs.
const WORKLOADS: [&str; 2] = ["ping-pong:2?times=300", "hogs:4?work=20ms"];
const CHANGE: [&str; 4] = ["--change", "batch", "--ensemble", "2"];

fn predict(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.args(["predict", "--on", "vm"]).args(WORKLOADS).args(CHANGE).args(arguments);
    command.output().expect("the program runs")
}

fn rows(results: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(results).expect("results");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    results["rows"].as_array().expect("rows").clone()
}

/// By which share of the measured makespan the predicted one of `workload` is too long, unchanged.
fn error(rows: &[Value], workload: &str) -> f64 {
    let makespan = |world: &str| {
        let row = rows.iter().find(|row| {
            row["workload"] == workload
                && row["metric"] == "makespan_ns"
                && row["point"]["change"] == "no change"
                && row["world"].as_str().is_some_and(|name| name.starts_with(world))
        });
        row.and_then(|row| row["value"].as_f64()).expect("a makespan")
    };
    makespan("sim") / makespan("vm") - 1.0
}

#[test]
#[ignore = "long: tools/long"]
fn what_calls_cost_predicts_other_workloads() {
    if let Err(missing) = Qemu::find() {
        eprintln!("skipped: predictions for real kernels: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let first = predict(&["-o", &at("first")]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let text = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(text.contains("Costs of the kernel") && text.contains("block and wake"), "{text}");
    let measured = rows(&folder.path().join("first/results.json"));
    for workload in WORKLOADS {
        let error = error(&measured, workload);
        assert!(error.abs() < 0.05, "{workload}: {error:+.3}");
    }
    assert!(measured.iter().any(|row| row["metric"] == "change_error_p50"));

    // With another cost of blocking and waking it would be wrong.
    let file = folder.path().join("first/results.json");
    let text = std::fs::read_to_string(&file).expect("results");
    let mut wrong: Value = serde_json::from_str(&text).expect("JSON");
    let costs = wrong["rows"].as_array_mut().expect("rows").iter_mut();
    for cost in costs.filter(|row| row["subject"] == "block and wake") {
        cost["value"] = Value::from(cost["value"].as_f64().expect("a cost") + 3_000.0);
    }
    std::fs::write(folder.path().join("wrong.json"), wrong.to_string()).expect("a file");
    let other = predict(&["--costs", &at("wrong.json"), "-o", &at("second")]);
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stderr));
    let other = rows(&folder.path().join("second/results.json"));
    assert!(error(&other, WORKLOADS[0]) > 0.1, "{}", error(&other, WORKLOADS[0]));
    // The kernel has not changed.
    let real = |rows: &[Value]| -> Vec<Value> {
        let is_real = |row: &&Value| row["world"] == "vm:6.18" && row["metric"] != "kernel_cost_ns";
        rows.iter().filter(is_real).map(|row| row["value"].clone()).collect()
    };
    assert_eq!(real(&measured), real(&other));
}

#[test]
fn wrong_costs_and_changes_are_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("results.json");
    let path = file.to_string_lossy().into_owned();
    let said = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .arg("predict")
            .args(arguments)
            .output()
            .expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    std::fs::write(&file, "{").expect("a file");
    for (arguments, code, words) in [
        (&["--on", "vm", "--costs", &path][..], 3, "results.json"),
        (&["--costs", &path], 2, "add --on vm"),
        (&["--change", "kernel=6.1"], 2, "add --on vm"),
        (&["--change", "policy=bpf:rr"], 2, "add --on vm"),
        (&["--on", "vm", "--change", "kernel=6.18"], 2, "changes nothing"),
        (&["--on", "vm", "--change", "policy=bpf:rrr"], 2, "no counterpart"),
        (&["--on", "vm", "--change", "policy=scx:./none.bpf.o"], 3, "none.bpf.o"),
        (&["--on", "vm", "--change", "kernel="], 2, "kernel=NAME"),
    ] {
        let (is, text) = said(arguments);
        assert_eq!((is, text.contains(words)), (Some(code), true), "{arguments:?}: {text}");
    }
}
