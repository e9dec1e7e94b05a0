//! Stochastic workloads, sweeps, and fits to a recording.

use super::{REDIS, Scratch, fails, schedlab, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

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
