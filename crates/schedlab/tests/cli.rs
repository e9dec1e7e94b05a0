//! The program as a user sees it: results, exit codes and messages.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REDIS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/redis.perf-script.txt.zst");

fn schedlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Runs the program. It must fail with `code`, print nothing on standard output, and print all of
/// `words` as a message.
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let output = schedlab(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result: {}", stdout(&output));
    for word in words {
        assert!(message.contains(word), "{arguments:?}: {word:?} is not in {message:?}");
    }
}

/// A directory for one test, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("schedlab-cli-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), bytes).expect("a scratch file");
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

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

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    fails(
        &["compare", REDIS, "--policy", "take:multilst2"],
        2,
        &["take:multilst2", "Did you mean `take:multilist2`?", "schedlab list policies"],
    );
    fails(&["run", REDIS, "--policy", "takerr"], 2, &["Did you mean `take:rr`?"]);
    fails(&["run", REDIS, "--policy", "take:rr?quantun=1ms"], 2, &["Did you mean `quantum`?"]);
    fails(&["run", REDIS, "--policy", "take:rr/quantum=1ms"], 2, &["write `take:rr?quantum=1ms`"]);
    fails(
        &["run", REDIS, "--policy", "take:rr?quantum=5"],
        2,
        &["quantum", "a duration with its unit, from 1ns to 1000s"],
    );
    fails(&["run", REDIS, "--policy", "take:rr", "--switch-cost", "5"], 2, &["number and a unit"]);
    fails(&["run", REDIS, "--policy", "take:rr", "--cpus", "0"], 2, &["--cpus"]);
    fails(&["compare", REDIS, "--ci", "2"], 2, &["as in 2%"]);
    fails(&["comparr", REDIS], 2, &["compare"]);
}

#[test]
fn a_file_that_is_not_a_recording_is_refused_with_the_place_and_the_next_step() {
    let scratch = Scratch::new("bad");
    let text = zstd::decode_all(fs::File::open(REDIS).expect("the trace")).expect("zstd");
    let cut_line = &text[..text.len() - 20];
    let (first, rest) =
        text.split_at(text.iter().position(|&byte| byte == b'\n').expect("a line") + 1);
    let backwards = [rest, first].concat();
    let compressed = fs::read(REDIS).expect("the trace");
    let cases: [(&str, String, &[&str]); 7] = [
        ("absent", scratch.path("absent"), &["no such file"]),
        ("directory", scratch.0.to_string_lossy().into_owned(), &["directory"]),
        ("empty", scratch.file("empty", b""), &["empty"]),
        (
            "junk",
            scratch.file("junk", [0u8, 159, 146, 150].repeat(1000)),
            &["perf script", "perf.data"],
        ),
        ("cut line", scratch.file("cut-line", cut_line), &["cut"]),
        ("cut zstd", scratch.file("cut.zst", &compressed[..compressed.len() / 2]), &["cut"]),
        ("backwards", scratch.file("backwards", backwards), &["backwards"]),
    ];
    for verb in ["compare", "inspect"] {
        for (what, path, words) in &cases {
            fails(&[verb, path], 3, &[words, &[path.as_str()][..]].concat());
            println!("{verb} {what}: refused");
        }
    }
    let other = scratch.file(
        "other",
        "  task 1/1 [000] 1.000000: cycles: 1234\n  task 1/1 [000] 1.000001: cycles: 1234\n",
    );
    fails(&["compare", &other], 3, &["sched"]);
}

#[test]
fn an_unwritable_output_is_refused_before_the_work() {
    let scratch = Scratch::new("unwritable");
    let file = scratch.file("file", b"");
    fails(
        &["compare", REDIS, "-o", &format!("{file}/results")],
        2,
        &["cannot write", "can be written"],
    );
    fails(
        &["run", REDIS, "--policy", "take:rr", "--trace", "/proc/trace"],
        2,
        &["cannot write /proc/trace"],
    );
}

#[test]
fn a_stochastic_workload_is_compared_with_common_random_numbers() {
    let scratch = Scratch::new("stochastic");
    let out = scratch.path("results");
    let file = scratch.file(
        "mm2.toml",
        "cpus = 2\nload = 0.6\ntasks = 5000\nwarm-up = 500\n\n[[class]]\nbursts = { constant = 1 \
         }\nburst = { exponential = \"1ms\" }\n",
    );
    let arguments = [
        "compare",
        &file,
        "--policy",
        "central:rr,take:rr",
        "--load",
        "0.5,0.8",
        "--check",
        "-o",
        &out,
    ];
    let budget = ["--ensemble", "5", "--ci", "0.001%", "--max-runs", "5", "--format", "json"];
    let output = schedlab(&[&arguments[..], &budget].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(5) && message.contains("give more with --max-runs"),
        "{message}"
    );
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    for load in [0.5, 0.8] {
        for policy in ["central:rr", "take:rr"] {
            let of = |metric: &str| {
                let row = rows.iter().find(|row| {
                    row["candidate"] == policy
                        && row["metric"] == metric
                        && row["point"]["load"] == load
                });
                row.unwrap_or_else(|| panic!("no {metric} of {policy} at {load}"))
            };
            // One shared queue is better than fixed queues for each CPU, and the pairs show it.
            assert_eq!(
                (of("grr")["verdict"].as_str(), of("grr")["runs"].as_u64()),
                (Some("better"), Some(5))
            );
            let ngrr = of("ngrr");
            assert!(
                ngrr["ci_low"].as_f64() < ngrr["ci_high"].as_f64()
                    && ngrr["ci_high"].as_f64() < Some(1.0),
                "{ngrr}"
            );
            assert_eq!(of("saturated")["value"], 0.0);
        }
    }
    let report = fs::read_to_string(Path::new(&out).join("report.html")).expect("report.html");
    assert!(
        report.contains("load=0.8, cpus=2<td>ngrr")
            && Path::new(&out).join("results.parquet").is_file()
    );
}

#[test]
fn a_saturated_run_stops_and_has_no_number() {
    let set = ["--set", "population-limit=300", "--load", "1.5", "--format", "json"];
    let output = schedlab(
        &[&["compare", "unix1990", "--policy", "take:rr", "--set", "tasks=1000000"], &set[..]]
            .concat(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for row in results["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| ["grr", "apr", "ngrr"].contains(&row["metric"].as_str().expect("a name")))
    {
        assert!(
            row["value"].is_null() && row["note"].as_str().expect("a note").contains("saturated"),
            "{row}"
        );
    }
    fails(&["compare", "unix1990", "--load", "1.5"], 2, &["load", "population-limit"]);
    fails(
        &["run", "unix1990", "--policy", "take:rr", "--set", "tcm=1ms"],
        2,
        &["Did you mean `tmc`?", "schedlab list workloads"],
    );
    fails(&["run", "unix1991", "--policy", "take:rr"], 2, &["Did you mean `unix1990`?"]);
    fails(&["compare", REDIS, "--load", "0.5"], 2, &["a recording"]);
    fails(&["compare", REDIS, "--set", "load=0.5"], 2, &["a recording"]);
}

/// A grid that takes a second or two, so that a kill comes in the middle.
const GRID: &str = "workload = 'unix1990'\npolicies = ['initial:rr', 'take:rr']\nbaseline = \
                    'initial:rr'\nseeds = 4\n[parameters]\ntasks = 200\n[axes]\nload = [0.3, 0.5, \
                    0.7]\ncpus = [2, 4]\n";

#[test]
fn a_killed_sweep_resumes_and_gives_the_same_table() {
    let scratch = Scratch::new("sweep");
    let grid = scratch.file("grid.toml", GRID);
    let (whole, killed) = (scratch.path("whole"), scratch.path("killed"));
    let output = schedlab(&["sweep", &grid, "-o", &whole, "--format", "csv"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = stdout(&output);
    assert_eq!(table.lines().filter(|line| line.contains(",ngrr,")).count(), 3 * 2, "{table}");

    let cells = |dir: &str| {
        fs::read_dir(Path::new(dir).join("cells"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|cell| cell.path().extension() == Some("parquet".as_ref()))
            .count()
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["sweep", &grid, "-o", &killed, "--jobs", "1"])
        .spawn()
        .expect("the program starts");
    while cells(&killed) < 3 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it could be killed");
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("a child");
    let finished = cells(&killed);
    assert!((3..48).contains(&finished), "{finished}");
    fails(&["report", &killed], 3, &["did not finish", "schedlab sweep"]);
    fails(&["sweep", &grid, "-o", &killed], 2, &["finished runs", "--resume"]);

    let times = |dir: &str| {
        let file = |cell: fs::DirEntry| {
            (cell.file_name(), cell.metadata().and_then(|data| data.modified()).expect("a time"))
        };
        fs::read_dir(Path::new(dir).join("cells"))
            .expect("cells")
            .flatten()
            .map(file)
            .filter(|(name, _)| name.to_string_lossy().ends_with(".parquet"))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = times(&killed);
    let output = schedlab(&["sweep", &grid, "-o", &killed, "--format", "csv", "--resume"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout(&output), table);
    // No finished run was computed again.
    let after = times(&killed);
    assert!(after.len() == 48 && before.iter().all(|(name, time)| after[name] == *time));
    assert!(
        Path::new(&killed).join("runs.parquet").is_file()
            && !Path::new(&killed).join("UNFINISHED").exists()
    );
}

#[test]
fn an_invalid_grid_is_refused() {
    let scratch = Scratch::new("grid");
    let out = scratch.path("out");
    let empty = scratch.file("empty.toml", GRID.replace("[0.3, 0.5, 0.7]", "[]"));
    fails(&["sweep", &empty, "-o", &out], 3, &["empty.toml:8: axes.load", "no cells"]);
    fails(&["sweep", &scratch.path("absent.toml"), "-o", &out], 3, &["absent.toml"]);
    fails(&["sweep", &empty, "--jobs", "0"], 2, &["--jobs"]);
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_fit_to_a_recording_is_a_workload() {
    let scratch = Scratch::new("fit");
    let file = scratch.path("like-redis.toml");
    let output = schedlab(&[
        "inspect",
        REDIS,
        "--fit",
        "--only",
        "redis-server,redis-benchmark",
        "-o",
        &file,
    ]);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = fs::read_to_string(&file).expect("a workload file");
    assert!(
        text.contains(
            "# Fitted by: schedlab inspect redis.perf-script.txt.zst --fit --only \
             redis-server,redis-benchmark\n"
        ),
        "{text}"
    );
    let output = schedlab(&[
        "run",
        &file,
        "--policy",
        "take:rr",
        "--set",
        "tasks=20",
        "--set",
        "after=drain",
    ]);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout(&output).starts_with("redis: load 0."), "{}", stdout(&output));
    // The bundled workloads are the fits to their recordings.
    let workloads = Path::new(REDIS).parent().expect("a folder");
    for (name, only) in
        [("groff", "groff,troff,tbl,eqn,pic,grops,chem,refer,gzip"), ("ngspice", "ngspice")]
    {
        let recording = workloads.join(format!("{name}.perf-script.txt.zst"));
        let fitted =
            stdout(&schedlab(&["inspect", &recording.to_string_lossy(), "--fit", "--only", only]));
        assert_eq!(
            fitted,
            fs::read_to_string(workloads.join(format!("{name}.toml"))).expect("a workload file")
        );
    }
    fails(
        &["inspect", REDIS, "--fit", "--only", "redis-servr"],
        2,
        &["Did you mean `redis-server`?"],
    );
    fails(&["inspect", "unix1990", "--fit"], 2, &["already"]);
    fails(&["inspect", REDIS, "-o", &file], 2, &["--fit"]);
}

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
