//! Comparisons and runs of a recording, and what they write.

use super::{REDIS, Scratch, fails, schedlab, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn compare_runs_every_scheduler_and_charges_its_queue() {
    let names = "cfs,o1,pslist,mlfq,mlfq-textbook,fifo,rr";
    let output = schedlab(&[
        "compare", REDIS, "--policy", names, "--check", "--mips", "3000", "--format", "json",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    for policy in names.split(',').chain(["eevdf"]) {
        for metric in ["queue_overhead_ns", "lag_ns_max", "lead_ns_max", "vruntime_spread_ns_max"] {
            let found = |row: &&Value| row["candidate"] == policy && row["metric"] == metric;
            let value = rows.iter().filter(found).filter_map(|row| row["value"].as_f64()).next();
            assert!(value.is_some_and(|value| value > 0.0), "{metric} of {policy}: {value:?}");
        }
    }
    fails(&["compare", REDIS, "--mips", "0"], 2, &["million instructions per second"]);
    fails(&["compare", REDIS, "--policy", "mlfq?stretch=4"], 2, &["stretch", "1 to 3"]);
    fails(&["compare", REDIS, "--policy", "mflq"], 2, &["mlfq"]);
}

#[test]
fn all_policies_keep_all_rules_on_random_workloads() {
    let text = stdout(&schedlab(&["check", "--swarm", "20"]));
    assert!(
        text.contains("20 random workloads under ") && text.contains("all rules held"),
        "{text}"
    );
    let output = schedlab(&[
        "check",
        "--swarm",
        "3",
        "--seed",
        "278",
        "--policy",
        "eevdf,cfs,eevdf",
        "--format",
        "json",
    ]);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    assert_eq!(
        rows.iter().map(|row| row["candidate"].as_str().expect("a name")).collect::<Vec<_>>(),
        ["eevdf", "cfs"]
    );
    assert!(
        rows.iter().all(|row| row["metric"] == "failed_workloads"
            && row["value"] == 0.0
            && row["runs"] == 3),
        "{rows:?}"
    );
    fails(&["check", "--swarm", "0"], 2, &["--swarm"]);
    fails(&["check", "--seed", "18446744073709551615"], 2, &["give a smaller --seed"]);
    fails(&["check", "--policy", "kernel:other"], 2, &["is not simulated"]);
    fails(&["check", "--policy", "eevfd"], 2, &["Did you mean `eevdf`?"]);
    fails(&["check", "verdicts", "unix1990"], 2, &["unix1990", "drawn anew"]);
    fails(&["check", "verdicts", "--ensemble", "1"], 2, &["--ensemble"]);
    fails(&["check", "verdicts", "--counts", "no.csv"], 3, &["no.csv", "verdicts.csv"]);
}

#[test]
fn a_comparison_prints_the_same_bytes_on_a_busy_machine() {
    let compare = || {
        schedlab(&[
            "compare",
            REDIS,
            "--policy",
            "eevdf,take:rr",
            "--ensemble",
            "6",
            "--ci",
            "30%",
            "--format",
            "json",
        ])
        .stdout
    };
    let (first, second) = (compare(), compare());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let output = compare();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        output
    });
    assert!(!first.is_empty() && first == second && first == busy);
}

#[test]
fn compare_of_all_policies_has_a_case_for_each() {
    let output = schedlab(&[
        "compare",
        "yield:3?times=5",
        "--policy",
        "all",
        "--cpus",
        "2",
        "--format",
        "json",
    ]);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut policies: Vec<&str> = results["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["candidate"].as_str())
        .collect();
    policies.sort_unstable();
    policies.dedup();
    assert_eq!(policies.len(), schedsim::policy::Catalog::built_in().names().len());
    fails(&["compare", "yield:3", "--on", "vm", "--policy", "all"], 2, &["kernel:"]);
    fails(&["compare", "yield:3", "--on", "vm", "--then", "yeld:4"], 2, &["Did you mean `yield`?"]);
    fails(&["compare", "yield:3", "--on", "sim,sim"], 2, &["named twice"]);
    fails(&["compare", "yield:0,3"], 2, &["from 1 to 10000"]);
    fails(
        &["compare", "yield:3", "--on", "vm", "--policy", "kernel:deadline:2ms/10ms/10ms"],
        2,
        &["at most 500us"],
    );
}

#[test]
fn compare_gives_every_metric_of_every_policy_with_a_verdict() {
    let scratch = Scratch::new("compare");
    let out = scratch.path("results");
    let arguments = [
        "compare",
        REDIS,
        "--policy",
        "take:rr,central:rr",
        "--cpus",
        "1,2",
        "--format",
        "json",
        "-o",
        &out,
        "--check",
    ];
    let output = schedlab(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    for (policy, cpus) in [
        ("recorded", 2),
        ("eevdf", 1),
        ("eevdf", 2),
        ("take:rr", 1),
        ("take:rr", 2),
        ("central:rr", 1),
        ("central:rr", 2),
    ] {
        let row = rows.iter().find(|row| {
            row["candidate"] == policy && row["cpus"] == cpus && row["metric"] == "makespan_ns"
        });
        let row = row.unwrap_or_else(|| panic!("no makespan of {policy} on {cpus} CPUs"));
        assert!(row["value"].as_f64().expect("a number") > 1e8, "{row}");
        let is_other = policy == "take:rr" || policy == "central:rr";
        assert_eq!(row["verdict"].is_string(), is_other, "{row}");
    }
    assert!(results["reproduce"].as_str().expect("a command").starts_with("schedlab compare "));
    // A metric without a value is null and has a reason.
    let missing = rows.iter().filter(|row| row["value"].is_null());
    assert!(missing.clone().count() > 0 && missing.clone().all(|row| row["note"].is_string()));
    // The files hold the same rows.
    let file: Value = serde_json::from_str(
        &fs::read_to_string(Path::new(&out).join("results.json")).expect("results.json"),
    )
    .expect("JSON");
    assert_eq!(file["rows"], results["rows"]);
    let csv = fs::read_to_string(Path::new(&out).join("results.csv")).expect("results.csv");
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_diff_says_so() {
    let scratch = Scratch::new("diff");
    let run = |policy: &str, name: &str| {
        let path = scratch.path(name);
        let output = schedlab(&["run", REDIS, "--policy", policy, "--trace", &path]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    };
    let (a, same, other) =
        (run("take:rr", "a"), run("take:rr", "same"), run("central:rr", "other"));
    assert_eq!(fs::read(&a).expect("a trace"), fs::read(&same).expect("a trace"));
    assert!(stdout(&schedlab(&["diff", &a, &same])).contains("The runs are equal in all"));
    let parted = stdout(&schedlab(&["diff", &a, &other]));
    assert!(
        parted.contains("equal decisions the runs differ") && parted.contains("waiting then"),
        "{parted}"
    );
    let recorded = stdout(&schedlab(&["diff", "--order", &a, REDIS]));
    assert!(recorded.contains("as recorded"), "{recorded}");
    // A truncated trace is detected.
    let bytes = fs::read(&a).expect("a trace");
    let cut = scratch.file("cut", &bytes[..bytes.len() / 2]);
    fails(&["diff", &a, &cut], 3, &["cut off", &cut]);
}

#[test]
fn inspect_shows_tasks_and_wakeups() {
    let text = stdout(&schedlab(&["inspect", REDIS]));
    assert!(text.starts_with("lost events: 0"), "{text}");
    for word in ["redis-server/", "redis-benchmark/", "wakeup latency", "CPU bursts", "ready mean"]
    {
        assert!(text.contains(word), "{word} is not in {text}");
    }
}
