//! Closed workloads, from a file or by name.

use super::{Scratch, fails, schedlab, stdout};
use serde_json::Value;
use std::fs;

#[test]
fn a_closed_workload_runs_from_a_file_or_by_name_and_prints_its_description() {
    let output = schedlab(&[
        "compare",
        "hackbench:1?loops=40",
        "--policy",
        "eevdf,fifo",
        "--switch-cost",
        "1us",
        "--check",
        "--format",
        "json",
    ]);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = |policy: &str, metric: &str| {
        let rows = results["rows"].as_array().expect("rows");
        rows.iter()
            .find(|row| row["candidate"] == policy && row["metric"] == metric)
            .expect("a row")
            .clone()
    };
    assert_eq!(row("eevdf", "makespan_ns")["verdict"], Value::Null);
    assert_eq!(row("fifo", "switches")["verdict"], "better");
    let rt_app = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/three-stages.json");
    let text = stdout(&schedlab(&["run", rt_app, "--policy", "eevdf", "--check"]));
    assert!(text.starts_with("three-stages: 6 tasks, stopped after 3.00s"), "{text}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/database.toml");
    let text = stdout(&schedlab(&["run", file, "--policy", "cfs", "--check"]));
    assert!(
        text.starts_with("database: 25 tasks, stopped after 5.00s\n20 clients of a small database"),
        "{text}"
    );
    let description: Value =
        serde_json::from_str(&stdout(&schedlab(&["inspect", file, "--format", "json"])))
            .expect("JSON");
    assert_eq!(
        description["task"][1]["phases"][0]["loop"]["phases"][2],
        serde_json::json!({ "lock": "table" })
    );
}

#[test]
fn an_invalid_closed_workload_is_refused_with_the_place() {
    let scratch = Scratch::new("closed");
    let file = scratch.path("w.toml");
    let refuses = |text: &str, words: &[&str]| {
        fs::write(&file, text).expect("a file");
        fails(&["run", &file, "--policy", "fifo", "--cpus", "2"], 3, words);
    };
    let task = |rest: &str| format!("[[task]]\nname = \"t\"\n{rest}\n");
    refuses(
        &task("phases = [ \"yield\", { spin = \"1ms\" } ]"),
        &["w.toml:3: task[0].phases[1]", "no choice named `spin`", "`"],
    );
    refuses(
        &task("phases = [ { unlock = \"m\" } ]"),
        &["w.toml:3: task[0].phases[0]: the task gives back the mutex m and does not hold it here"],
    );
    refuses(
        &task("affinity = [0, 2]\nphases = [ \"yield\" ]"),
        &["w.toml:3: task[0].affinity[1]: there is no CPU 2"],
    );
    refuses(
        &task("phases = [ \"yield\" ]\nnice = -21"),
        &["w.toml:4: task[0].nice: -21 is not between -20 and 19"],
    );
    refuses(
        &task("phases = [ { run = \"5\" } ]"),
        &["w.toml:3: task[0].phases[0]", "give a number and a unit"],
    );
    refuses(
        &task("phases = [ \"yield\" ]\n[[class]]"),
        &["w.toml:1: task", "either tasks, or classes"],
    );
    let two = "[[task]]\nname = \"a\"\nphases = [ { barrier = \"x\" }, { barrier = \"y\" } \
               ]\n[[task]]\nname = \"b\"\nphases = [ { barrier = \"y\" }, { barrier = \"x\" } ]\n";
    let cycle = "task 0 (a) waits for the barrier x, not yet reached by task 1 (b), which waits \
                 for the barrier y, not yet reached by task 0 again";
    refuses(two, &["the workload stalls at 0ns: 2 tasks wait for ever", cycle]);
    fails(&["run", "yeild:8", "--policy", "fifo"], 2, &["Did you mean `yield`?"]);
    fails(&["run", "yield:0", "--policy", "fifo"], 2, &["give a whole number from 1"]);
    fails(&["compare", "yield:2", "--load", "0.5"], 2, &["leave --load out"]);
    fails(&["compare", "yield:2", "--set", "tmc=1ms"], 2, &["whose options follow its name"]);
}
