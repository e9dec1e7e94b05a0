//! `schedlab check` finds the bugs that are planted in a compiled scheduler, and makes the workloads
//! small that show them.

use super::object;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn check(object: &Path, constants: &str, more: &[&str]) -> Output {
    let policy = format!("scx:{} {constants}", object.display());
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["check", "--policy", policy.trim_end()])
        .args(more)
        .output()
        .expect("it starts")
}

/// What a reduced case must have.
type Has = fn(&toml::Table) -> bool;

/// A bug, what is said of it, the most tasks of the reduced case, and what these must have.
const BUGS: [(&str, &str, usize, Has); 4] = [
    ("loses_important=true", "", 1, |case| tasks(case).iter().all(|task| nice(task) < 0)),
    ("strays_after=5", "runnable task stall", 3, |case| phases(case, "sleep") >= 3),
    ("twice=true", "already direct-dispatched", 1, |_| true),
    ("no_cpu=true", "invalid CPU 1000", 1, |_| true),
];

fn tasks(case: &toml::Table) -> Vec<toml::Value> {
    case["task"].as_array().cloned().unwrap_or_default()
}

fn nice(task: &toml::Value) -> i64 {
    task.get("nice").and_then(toml::Value::as_integer).unwrap_or(0)
}

fn phases(case: &toml::Table, kind: &str) -> usize {
    let of = |task: &toml::Value| task["phases"].as_array().cloned().unwrap_or_default();
    let all = tasks(case).iter().flat_map(of).collect::<Vec<_>>();
    all.iter().filter(|phase| phase.get(kind).is_some()).count()
}

#[test]
fn planted_bugs_are_found_and_made_small() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    for (constant, said, most, has) in BUGS {
        let cases = place.path().join(constant);
        let more = ["--swarm", "20", "-o", &cases.display().to_string()];
        let found = check(&object, constant, &more);
        let wrong = String::from_utf8_lossy(&found.stderr).into_owned();
        assert_eq!(found.status.code(), Some(4), "{constant}: {wrong}");
        assert!(wrong.contains("1 of 1 policies broke a rule") && wrong.contains(said), "{wrong}");
        let files: Vec<PathBuf> =
            cases.read_dir().expect("cases").map(|file| file.expect("a file").path()).collect();
        let [file] = &files[..] else { panic!("{constant}: {files:?}") };
        let text = std::fs::read_to_string(file).expect("a case");
        let case: toml::Table = text.parse().expect("TOML");
        assert!(tasks(&case).len() <= most && has(&case), "{constant}: {text}");
        // Each command that is printed fails again, and the last shows what the scheduler does.
        for (label, code) in [("again: ", 4), ("reduced case: ", 4), ("what it does: ", 4)] {
            let line = wrong.lines().find_map(|line| line.trim().strip_prefix(label));
            let line = line.unwrap_or_else(|| panic!("no {label}in {wrong}"));
            let again = line.replacen("schedlab", env!("CARGO_BIN_EXE_schedlab"), 1);
            let again = Command::new("sh").args(["-c", &again]).output().expect("a shell");
            assert_eq!(again.status.code(), Some(code), "{line}");
            let shown = String::from_utf8_lossy(&again.stdout);
            assert_eq!(
                shown.contains("] 0.000000000: init()"),
                label.starts_with("what"),
                "{shown}"
            );
        }
    }
}

#[test]
fn a_right_scheduler_stands_beside_the_others_and_gets_no_real_time_tasks() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    for constants in ["", "fair=true slice_ns=2ms", "preempts=true"] {
        let stood = check(&object, constants, &["--swarm", "60", "--format", "json"]);
        let wrong = String::from_utf8_lossy(&stood.stderr);
        assert_eq!(stood.status.code(), Some(0), "{constants}: {wrong}");
        let document: Value = serde_json::from_slice(&stood.stdout).expect("JSON");
        assert_eq!(document["rows"][0]["value"], 0.0, "{document}");
    }
    // In a list it is the last, as in `compare`.
    let listed = format!("fifo,scx:{} strays_after=5", object.display());
    let both = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["check", "--swarm", "5", "--policy", &listed])
        .output()
        .expect("it starts");
    let wrong = String::from_utf8_lossy(&both.stderr);
    assert!(wrong.contains("1 of 2 policies broke a rule"), "{wrong}");
    // A task of SCHED_FIFO has the largest weight there is, but is never the scheduler's.
    let found = check(&object, "loses_important=true", &["--swarm", "30"]);
    let wrong = String::from_utf8_lossy(&found.stderr);
    assert!(wrong.contains("nice = -") && !wrong.contains("fifo"), "{wrong}");
}

#[test]
fn what_is_no_compiled_scheduler_is_refused_by_name() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    let wrong = |output: Output| {
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = wrong(check(&object, "forget=true", &[]));
    assert!(code == Some(2) && said.contains("no constant `forget`"), "{said}");
    let (code, said) = wrong(check(Path::new("none.bpf.o"), "", &[]));
    assert!(code == Some(3) && said.contains("none.bpf.o"), "{said}");
}
