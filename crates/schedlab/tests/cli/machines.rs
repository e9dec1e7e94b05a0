//! Other machines, control groups and reservations.

use super::{REDIS, Scratch, fails, schedlab, stdout};
use serde_json::Value;
use std::fs;

#[test]
fn a_recording_can_run_on_another_machine_or_beside_another_load() {
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/machines");
    let two_nodes = &format!("{machines}/two-nodes.toml");
    let rows = |arguments: &[&str]| {
        let ci: &[&str] = if arguments[0] == "compare" { &["--ci", "50%"] } else { &[] };
        let output = schedlab(&[arguments, ci, &["--check", "--format", "json"]].concat());
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        results["rows"].as_array().expect("rows").clone()
    };
    let value = |rows: &[Value], policy: &str, metric: &str| {
        let of = |row: &&Value| {
            row["candidate"] == policy && row["metric"] == metric && row["world"] == "sim"
        };
        rows.iter()
            .find(of)
            .and_then(|row| row["value"].as_f64())
            .unwrap_or_else(|| panic!("{metric} of {policy}"))
    };
    let replay = rows(&["compare", REDIS, "--policy", "take:rr"]);
    let large =
        rows(&["compare", REDIS, "--policy", "take:rr,take:rr?steal=near", "--machine", two_nodes]);
    let simulated = large.iter().find(|row| row["world"] == "sim").expect("a simulation");
    assert_eq!(
        (&simulated["cpus"], &simulated["point"]["machine"]),
        (&Value::from(32), &Value::from("two-nodes"))
    );
    assert!(value(&large, "eevdf", "run_delay_ns") < value(&replay, "eevdf", "run_delay_ns"));
    assert!(value(&large, "take:rr", "slow_cpu_ns") > 0.0, "busy threads share their core");
    let busy =
        rows(&["compare", REDIS, "--policy", "cfs", "--add-load", "yield:4?run=1ms&times=400"]);
    for policy in ["eevdf", "cfs"] {
        assert!(
            value(&busy, policy, "run_delay_ns") > value(&replay, "eevdf", "run_delay_ns"),
            "{policy}"
        );
    }
    let slow = rows(&[
        "run",
        "yield:8?run=1ms&times=20",
        "--policy",
        "eevdf",
        "--machine",
        &format!("{machines}/big-little.toml"),
    ]);
    assert_eq!(slow[0]["cpus"], 8);

    let scratch = Scratch::new("machines");
    let cycle = scratch
        .file("m.toml", "nodes = [['a']]\n[cluster.a]\nlike = 'b'\n[cluster.b]\nlike = 'a'\n");
    fails(
        &["compare", REDIS, "--machine", &cycle],
        3,
        &["m.toml:5: cluster.b.like: a → b → a: a cluster cannot be like itself"],
    );
    fails(&["run", REDIS, "--policy", "eevdf", "--machine", "nowhere.toml"], 3, &["nowhere.toml"]);
    fails(
        &["compare", REDIS, "--machine", two_nodes, "--cpus", "4"],
        2,
        &["two-nodes", "32", "leave --cpus out"],
    );
    fails(&["compare", "unix1990", "--machine", two_nodes], 2, &["leave --machine out"]);
    fails(
        &["compare", "yield:2", "--on", "vm", "--machine", two_nodes],
        2,
        &["more than one virtual CPU"],
    );
    fails(
        &["compare", "yield:2", "--add-load", "yield:4"],
        2,
        &["--add-load is for simulated recordings"],
    );
    fails(
        &["compare", REDIS, "--add-load", "unix1990"],
        2,
        &["beside a recording give a closed workload"],
    );
    fails(&["compare", REDIS, "--add-load", "yeild:4"], 2, &["Did you mean"]);
    let short = scratch.file(
        "short.toml",
        "duration = '1ms'\n[[task]]\nname = 'a'\nphases = [ { run = '1s' } ]\n",
    );
    fails(
        &["compare", REDIS, "--add-load", &short],
        3,
        &["have not ended when the added load does, after 1.00ms", "`duration`"],
    );
}

#[test]
fn control_groups_share_and_bad_ones_are_refused() {
    let scratch = Scratch::new("cgroups");
    let file = |name: &str, groups: &str| {
        let task = |name: &str, group: &str| {
            format!(
                "[[task]]\nname = '{name}'\ncgroup = '{group}'\nphases = [ {{ loop = {{ phases = \
                 [ {{ run = '1ms' }} ] }} }} ]\n"
            )
        };
        scratch.file(
            name,
            format!(
                "duration = '2s'\ncpus = 1\n{}{}{groups}",
                task("a", "batch"),
                task("b", "rest")
            ),
        )
    };
    let good = file("g.toml", "[cgroup.batch]\nweight = 300\nmax = '20ms'\n[cgroup.rest]\n");
    for policy in ["eevdf", "cfs", "take:rr"] {
        let output = schedlab(&["run", &good, "--policy", policy, "--check"]);
        assert!(output.status.success(), "{policy}: {}", String::from_utf8_lossy(&output.stderr));
    }
    fails(&["compare", &good, "--on", "host"], 77, &["control group, batch", "give --on vm"]);
    for (groups, words) in [
        (
            "[cgroup.batch]\n[cgroup.rest]\n[cgroup.empty]\n",
            ["w.toml:13: cgroup.empty", "no task is in this group"],
        ),
        ("[cgroup.batch]\n", ["w.toml:9: task[1].cgroup", "there is no group named rest"]),
        (
            "[cgroup.batch]\nweight = 0\n[cgroup.rest]\n",
            ["w.toml:12: cgroup.batch.weight", "between 1 and 10000"],
        ),
        (
            "[cgroup.batch]\nmax = '10us'\n[cgroup.rest]\n",
            ["w.toml:12: cgroup.batch.max", "less than 1ms"],
        ),
        (
            "[cgroup.batch]\nperiod = '2s'\n[cgroup.rest]\n",
            ["w.toml:12: cgroup.batch.period", "between 1ms and 1s"],
        ),
    ] {
        fails(&["run", &file("w.toml", groups), "--policy", "eevdf"], 3, &words);
    }
}

#[test]
fn reservations_are_compared_with_theory_and_refused_if_the_kernel_would_refuse() {
    let scratch = Scratch::new("reservations");
    let task = |name: &str, run: &str, reservation: &str| {
        let period = reservation
            .split("period = ")
            .nth(1)
            .and_then(|rest| rest.split('"').nth(1))
            .unwrap_or("5ms");
        format!(
            "[[task]]\nname = \"{name}\"\nreservation = {{ {reservation} }}\nphases = [ {{ loop = \
             {{ times = 40, phases = [ {{ run = \"{run}\" }}, {{ timer = {{ period = \
             \"{period}\", mode = \"absolute\" }} }} ] }} }} ]\n"
        )
    };
    let textbook = task("a", "2ms", "runtime = \"2ms\", period = \"5ms\"")
        + &task("b", "4ms", "runtime = \"4ms\", period = \"7ms\"");
    let file = scratch.file("w.toml", &textbook);
    let text = stdout(&schedlab(&[
        "run",
        &file,
        "--cpus",
        "1",
        "--policy",
        "deadline?limit=100",
        "--check",
    ]));
    for words in [
        "0.9714 of 1 CPU reserved: on it EDF keeps all deadlines; on one rate monotonic does not",
        "guaranteed up to 0.8284",
        "misses",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    let output =
        schedlab(&["run", &file, "--cpus", "1", "--policy", "rm", "--check", "--format", "json"]);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    let missed = |task: &str| {
        rows.iter()
            .find(|row| row["metric"] == "task_deadline_misses" && row["subject"] == task)
            .expect("a row")
    };
    assert!(
        missed("0 a")["value"] == 0.0
            && missed("1 b")["value"].as_f64().is_some_and(|missed| missed > 0.0)
    );
    fails(
        &["run", &file, "--cpus", "1", "--policy", "deadline"],
        3,
        &["task 1 reserves 4.00ms of every 7.00ms", "not admitted", "EBUSY"],
    );
    let refuses = |reservation: &str, words: &[&str]| {
        fs::write(&file, task("a", "1ms", reservation)).expect("a file");
        fails(&["run", &file, "--policy", "deadline"], 3, words);
    };
    refuses(
        "runtime = \"6ms\", period = \"5ms\"",
        &["w.toml:3: task[0].reservation.runtime: a runtime of 6ms does not fit before a \
           deadline of 5ms"],
    );
    refuses(
        "runtime = \"1ms\", deadline = \"9ms\", period = \"5ms\"",
        &["task[0].reservation.deadline", "behind the end of a period"],
    );
    refuses("runtime = \"1us\", period = \"5ms\"", &["less than 1024ns"]);
    refuses("runtime = \"1ms\", periods = \"5ms\"", &["w.toml:3", "`periods`"]);
    fails(
        &["compare", "yield:2", "--policy", "deadline?placement=both"],
        2,
        &["global or partitioned"],
    );
}
