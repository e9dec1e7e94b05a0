//! The cost atlas as a user meets it: counts that are the same everywhere, and every bad input.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn schedlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("queue")
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = schedlab(&[arguments, &["--format", "json"]].concat());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {message}");
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    results["rows"].as_array().expect("rows").clone()
}

/// The value of the only row with this structure, workload and metric.
fn value(rows: &[Value], policy: &str, tasks: u32, metric: &str) -> f64 {
    let workload = format!("yield:{tasks}");
    let mut found = rows.iter().filter(|row| {
        row["candidate"] == policy
            && row["workload"] == workload.as_str()
            && row["metric"] == metric
    });
    let row = found.next().unwrap_or_else(|| panic!("no {metric} of {policy} for {tasks}"));
    assert!(found.next().is_none(), "more than one {metric} of {policy} for {tasks}");
    row["value"]
        .as_f64()
        .unwrap_or_else(|| panic!("{metric} of {policy} for {tasks} is null: {}", row["note"]))
}

/// `structure at level: slices` for every longest wait.
fn waits(rows: &[Value], policy: &str) -> Vec<(String, f64)> {
    let waits = rows
        .iter()
        .filter(|row| row["candidate"] == policy && row["metric"] == "longest_wait_slices");
    waits
        .map(|row| {
            (row["point"]["level"].as_str().unwrap().to_string(), row["value"].as_f64().unwrap())
        })
        .collect()
}

/// What a reader sees of the tables while the rest is measured, and what stands at the end.
#[test]
fn a_table_is_printed_when_it_is_measured_and_progress_without_a_terminal_is_a_line() {
    // The time of so many runs takes longer than the period of the lines.
    let arguments = ["--queues", "rr,rbtree", "--tasks", "10", "--count", "steps,time"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("queue")
        .args(arguments)
        .args(["--runs", "1000", "--slices", "200000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    assert!(first.starts_with("list elements, schedule entries"), "{first}");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    // The build of the tests is not optimised, and says so.
    let first = lines.next().expect("a warning").expect("a line");
    assert!(first.contains("not optimised") && first.contains("--release"), "{first}");
    let line = lines.next().expect("progress before the end").expect("a line");
    assert!(line.starts_with("schedlab: timing: ") && line.contains(" %, about "), "{line}");
    assert_eq!(child.try_wait().expect("a child"), None, "the first rows came before the end");
    child.kill().expect("it runs");
    child.wait().expect("a child");
}

/// What was asked for by name and cannot be counted ends with 77; what was found stays.
#[test]
fn without_valgrind_a_count_that_was_asked_for_is_missing() {
    let nowhere = |arguments: &[&str]| {
        let mut queue = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = queue.arg("queue").args(arguments).env("PATH", "/nowhere").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), said)
    };
    let queues = ["--queues", "rr,rbtree", "--tasks", "1,10,20"];
    for more in [["--crossover", "rr,rbtree"], ["--count", "instructions,steps"]] {
        let (code, shown, said) = nowhere(&[&queues[..], &more].concat());
        assert_eq!(code, Some(77), "{more:?}: {said}");
        assert!(
            said.contains("instructions were not counted: valgrind is not installed"),
            "{said}"
        );
        assert!(shown.contains("list elements"), "{shown}");
        assert!(!shown.contains("rr | rbtree: none"), "{shown}");
    }
    let (code, _, said) = nowhere(&[&queues[..], &["--count", "steps"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("optimised"), "{said}");
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

#[test]
fn what_operations_examine_is_what_the_structures_promise() {
    let rows = rows(&[
        "--queues",
        "sorted-list,sorted-list-reverse,rbtree,heap",
        "--tasks",
        "10,100",
        "--count",
        "steps",
        "--assignments",
        "3",
    ]);
    for tasks in [10, 100] {
        let walked = |policy| value(&rows, policy, tasks, "elements_walked_per_op");
        // Forward passes those that come before, reverse those that come after: together the whole
        // list.
        assert!(
            (walked("sorted-list") + walked("sorted-list-reverse") - f64::from(tasks - 1)).abs()
                < 1e-9
        );
        for tree in ["rbtree", "heap"] {
            assert!(
                value(&rows, tree, tasks, "tree_levels_per_op")
                    <= 2.0 * f64::from(tasks + 1).log2(),
                "{tree}"
            );
        }
    }
}

#[test]
fn the_table_of_multilist2_costs_what_its_empty_entries_do_and_the_ruler_has_its_waits() {
    let last = rows(&[
        "--queues",
        "multilist2",
        "--tasks",
        "1,10,100",
        "--levels",
        "8",
        "--mix",
        "one:H",
        "--count",
        "steps",
    ]);
    for (tasks, examined) in [(1, 255.0), (10, 25.5), (100, 2.55)] {
        assert_eq!(value(&last, "multilist2", tasks, "entries_examined_per_op"), examined);
    }
    let random = rows(&[
        "--queues",
        "multilist2,ruler,ruler-in-place",
        "--tasks",
        "40",
        "--levels",
        "8",
        "--count",
        "steps",
    ]);
    assert!(!waits(&random, "ruler").is_empty());
    assert_eq!(waits(&random, "ruler"), waits(&random, "multilist2"));
    assert_eq!(waits(&random, "ruler"), waits(&random, "ruler-in-place"));
}

#[test]
fn structures_of_the_same_order_make_tasks_wait_alike() {
    let names = [
        "wheel",
        "rbtree",
        "rbtree+idle",
        "sorted-list",
        "heap",
        "peer:btreemap",
        "peer:binaryheap",
        "peer:intrusive-rbtree",
    ];
    let rows = rows(&[
        "--queues",
        &names.join(","),
        "--tasks",
        "30",
        "--count",
        "steps",
        "--assignments",
        "2",
    ]);
    let expected = waits(&rows, "wheel");
    assert_eq!(expected.len(), 10);
    for name in names {
        assert_eq!(waits(&rows, name), expected, "{name}");
    }
}

#[test]
fn strict_priorities_are_said_to_starve() {
    let rows =
        rows(&["--queues", "priority", "--tasks", "20", "--count", "steps", "--mix", "each"]);
    let starving = rows
        .iter()
        .filter(|row| {
            row["value"].is_null() && row["note"].as_str().unwrap_or_default().contains("starves")
        })
        .count();
    assert_eq!(starving, 9);
}

#[test]
fn instructions_are_counted_alike_every_time_and_grow_as_they_must() {
    let arguments = [
        "--queues",
        "rr,sorted-list,ruler,multilist2,peer:vecdeque",
        "--tasks",
        "10,100",
        "--levels",
        "8",
        "--mix",
        "one:H",
        "--count",
        "instructions",
    ];
    let first = rows(&arguments);
    if !has_valgrind() {
        let note = first[0]["note"].as_str().unwrap();
        assert!(note.contains("apt-get install valgrind"), "{note}");
        return;
    }
    assert_eq!(first, rows(&arguments), "counts are deterministic");
    let net = |policy, tasks| value(&first, policy, tasks, "instructions_per_op");
    let gross = |policy, tasks| value(&first, policy, tasks, "instructions_per_op_gross");
    assert!((net("rr", 10) - net("rr", 100)).abs() < 0.5, "round robin is flat");
    assert!((net("peer:vecdeque", 10) - net("peer:vecdeque", 100)).abs() < 0.5);
    assert!(
        net("sorted-list", 100) > 5.0 * net("sorted-list", 10),
        "a forward walk over equal keys sees the whole list"
    );
    // A hundred tasks share the cost of a pass. Ten pay for 25.5 table entries each where the ruler
    // looks at none.
    assert!(net("ruler", 10) < net("multilist2", 10));
    assert!(net("ruler", 100) < net("ruler", 10));
    let overhead = gross("rr", 10) - net("rr", 10);
    assert!(overhead > 0.0);
    for policy in ["rr", "sorted-list", "ruler", "multilist2"] {
        assert!(
            (gross(policy, 100) - net(policy, 100) - overhead).abs() < 1e-6,
            "the same loop is subtracted everywhere"
        );
    }
}

#[test]
fn caches_crossovers_threads_and_advice_are_rows_too() {
    if !has_valgrind() {
        return;
    }
    let arguments = [
        "--queues",
        "rr,rbtree,sorted-list",
        "--tasks",
        "5,50,200",
        "--assignments",
        "1",
        "--slices",
        "200",
        "--count",
        "instructions",
        "--cache",
        "--threads",
    ];
    let rows = rows(&[&arguments[..], &["--crossover", "rbtree,sorted-list"]].concat());
    assert!(
        value(&rows, "rbtree", 50, "data_accesses_per_op")
            > value(&rows, "rr", 50, "data_accesses_per_op")
    );
    let crossover = rows.iter().find(|row| row["metric"] == "crossover_tasks").unwrap();
    assert!((5.0..200.0).contains(&crossover["value"].as_f64().unwrap()), "{crossover}");
    assert!(
        crossover["note"].as_str().unwrap().contains("sorted-list is cheaper below, rbtree above")
    );
    let parts = rows.iter().filter(|row| {
        row["metric"] == "thread_instructions_per_slice"
            && row["candidate"] == "rr"
            && row["workload"] == "yield:5"
    });
    let parts: Vec<&str> = parts.map(|row| row["point"]["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["switch", "queue", "accounting", "real-time-check"]);
    let advice = rows
        .iter()
        .find(|row| {
            row["metric"] == "cheapest_instructions_per_op" && row["point"]["need"] == "alike"
        })
        .unwrap();
    assert_eq!(
        (advice["candidate"].as_str(), advice["verdict"].as_str()),
        (Some("rr"), Some("better"))
    );
}

#[test]
fn without_valgrind_the_rest_still_comes() {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args([
            "queue",
            "--queues",
            "rr,rbtree",
            "--tasks",
            "10",
            "--runs",
            "2",
            "--format",
            "json",
        ])
        .env("PATH", "")
        .output()
        .expect("the program starts");
    assert!(output.status.success());
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().unwrap();
    let instructions: Vec<&Value> =
        rows.iter().filter(|row| row["metric"] == "instructions_per_op").collect();
    assert_eq!(instructions.len(), 2);
    for row in instructions {
        assert!(
            row["value"].is_null()
                && row["note"].as_str().unwrap().contains("apt-get install valgrind"),
            "{row}"
        );
    }
    assert!(value(rows, "rr", 10, "time_ns_per_op") > 0.0);
    assert!(value(rows, "rbtree", 10, "tree_levels_per_op") > 1.0);
}

#[test]
fn a_structure_with_too_few_levels_is_null_with_the_reason() {
    let rows = rows(&[
        "--queues",
        "multilist2,ruler",
        "--tasks",
        "10",
        "--levels",
        "10",
        "--count",
        "steps",
    ]);
    let refused = rows.iter().find(|row| row["candidate"] == "multilist2").unwrap();
    assert!(refused["value"].is_null());
    assert!(refused["note"].as_str().unwrap().contains("multilist2 has 8 levels"), "{refused}");
}

#[test]
fn a_list_too_long_to_walk_is_null_with_the_reason_and_others_are_measured() {
    let rows = rows(&[
        "--queues",
        "sorted-list,wheel",
        "--tasks",
        "6000",
        "--count",
        "steps",
        "--slices",
        "100",
    ]);
    let refused = rows.iter().find(|row| row["candidate"] == "sorted-list").unwrap();
    assert!(
        refused["value"].is_null() && refused["note"].as_str().unwrap().contains("5000 tasks"),
        "{refused}"
    );
    assert!(!waits(&rows, "wheel").is_empty());
}

#[test]
fn bad_input_is_refused_with_what_would_do() {
    for (arguments, words) in [
        (&["--queues", "rular"][..], &["`rular`", "`ruler`"][..]),
        (&["--mix", "randon"], &["`randon`", "`random`", "mostly-low"]),
        (&["--mix", "9-7"], &["write 7-9"]),
        (&["--mix", "one:"], &["one:H"]),
        (&["--levels", "5", "--mix", "one:H"], &["level 7 is out of range", "0 to 4 (A to E)"]),
        (&["--levels", "8", "--mix", "7-9"], &["level 9 is out of range", "--levels"]),
        (&["--levels", "0"], &["1..=4095"]),
        (&["--levels", "4096"], &["1..=4095"]),
        (&["--tasks", "0"], &["1..=1000000"]),
        (&["--tasks", "10,1000001"], &["1..=1000000"]),
        (&["--assignments", "0"], &["1..=1000"]),
        (&["--strides", "cubes"], &["linear", "powers"]),
        (&["--count", "cycles"], &["instructions", "time", "steps"]),
        (&["--crossover", "rr"], &["rbtree,sorted-list"]),
        (&["--crossover", "rr,heep"], &["`heep`", "`heap`"]),
        (
            &["--binary", "/nonexistent/schedlab"],
            &["/nonexistent/schedlab", "cargo build --profile o1"],
        ),
        (
            &["--beside", "/nonexistent/schedlab"],
            &["/nonexistent/schedlab", "cargo build --profile o1"],
        ),
    ] {
        let output = schedlab(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        for word in words {
            assert!(message.contains(word), "{arguments:?}: {word:?} is not in {message:?}");
        }
    }
    let child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("queue-cells")
        .output()
        .expect("the program starts");
    assert_eq!(child.status.code(), Some(2));
}
