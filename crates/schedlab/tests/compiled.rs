//! Compiled schedulers of sched_ext in the simulator: they do what they are written to do, and each
//! fault ends the run by its name.

#[path = "compiled/check.rs"]
mod check;
#[path = "compiled/judge.rs"]
mod judge;
#[path = "compiled/trace.rs"]
mod trace;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compiled").join(name)
}

/// The object of the trial scheduler; none where no compiler is, which is said.
fn object(at: &Path) -> Option<PathBuf> {
    object_of(at, &source("trial.bpf.c"))
}

/// The object of a source beside which, or beside these tests, is `kernel.h`.
fn object_of(at: &Path, from: &Path) -> Option<PathBuf> {
    let Ok(clang) = worlds::vm::bare_scheduler::clang() else {
        eprintln!("skipped: compiled: no clang 18 or newer");
        return None;
    };
    let object = at.join(from.with_extension("o").file_name().expect("a name"));
    let arguments = "-target bpf -g -O2 -mcpu=v3 -Wall -Werror -c";
    let said = Command::new(clang)
        .args(arguments.split_whitespace())
        .arg("-I")
        .arg(source(""))
        .arg(from)
        .arg("-o")
        .arg(&object)
        .output()
        .expect("the compiler starts");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(object)
}

/// Tasks that sleep and hogs, on `cpus` CPUs.
fn workload(at: &Path, cpus: u16) -> PathBuf {
    let path = at.join(format!("load{cpus}.toml"));
    let text = format!(
        "cpus = {cpus}\n\n[[task]]\nname = \"light\"\ncount = 3\nphases = [ {{ loop = {{ times = \
         400, phases = [ {{ run = \"700us\" }}, {{ sleep = \"1ms\" }} ] }} }} ]\n\n[[task]]\nname \
         = \"hog\"\ncount = 6\nphases = [ {{ run = \"300ms\" }} ]\n"
    );
    std::fs::write(&path, text).expect("a file");
    path
}

/// What `schedlab run` says of a workload under the trial scheduler with these constants: the exit
/// code, its document and its errors.
fn run(object: &Path, constants: &str, workload: &Path) -> (Option<i32>, Value, String) {
    let policy = format!("scx:{} {constants}", object.display());
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["run", "--format", "json", "--policy", &policy])
        .arg(workload)
        .output()
        .expect("it starts");
    let document = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), document, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn number(document: &Value, metric: &str) -> f64 {
    let rows = document["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == metric).expect("the metric");
    row["value"].as_f64().unwrap_or_else(|| panic!("{metric}: {row}"))
}

#[test]
fn the_same_object_gives_the_same_run_and_another_constant_another() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    let load = workload(place.path(), 4);
    let told = |constants: &str| {
        let (code, document, wrong) = run(&object, constants, &load);
        assert_eq!(code, Some(0), "{wrong}");
        document["rows"].clone()
    };
    let first = told("");
    assert_eq!(first, told(""));
    assert_ne!(first, told("slice_ns=5ms"));
    assert_ne!(first, told("preempts=true"));
}

/// A scheduler in the order of virtual times gives CPU time by weight, one in the order of arrival
/// gives the same to all: 100 and 33 are the weights of nice 0 and 5. No task needs more than half:
/// as in the kernel, `dispatch` chooses before the task that stops is in a queue again, so that no
/// task runs twice in a row while another waits.
#[test]
fn virtual_times_share_a_cpu_by_weight() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    let path = place.path().join("nice.toml");
    let hog = |nice: i32| {
        format!(
            "[[task]]\nname = \"nice {nice}\"\ncount = 2\nnice = {nice}\nphases = [ {{ run = \
             \"60s\" }} ]\n"
        )
    };
    let text = format!("cpus = 1\nduration = \"20s\"\n{}", [hog(0), hog(5)].concat());
    std::fs::write(&path, text).expect("a file");
    let jain = |constants: &str| {
        let (code, document, wrong) = run(&object, constants, &path);
        assert_eq!(code, Some(0), "{wrong}");
        number(&document, "jain_fairness")
    };
    let weights = [100.0, 100.0, 33.0, 33.0f64];
    let (sum, squares) =
        (weights.iter().sum::<f64>(), weights.iter().map(|weight| weight * weight).sum::<f64>());
    let by_weight = sum * sum / (4.0 * squares);
    assert!((jain("fair=true slice_ns=4ms") / by_weight - 1.0).abs() < 0.03, "{by_weight}");
    assert!(jain("slice_ns=4ms") > 0.999);
}

/// Each fault, on as many CPUs, and what is said.
const FAULTS: [(&str, u16, &str); 8] = [
    ("forgets=true", 4, "runnable task stall: task[1] failed to run for"),
    ("reads_null=true", 1, "`trial_enqueue` writes 8 bytes through a null pointer"),
    ("spins=true", 1, "goes round in circles"),
    ("no_queue=true", 1, "non-existent DSQ 0x63 for task[1]"),
    ("twice=true", 1, "already direct-dispatched"),
    ("no_cpu=true", 4, "invalid CPU 1000 from ops.select_cpu()"),
    ("gives_up=true", 1, "ejected: task 1 asks too much"),
    ("rings=5", 1, "ring 5 of key 2 at 5000000"),
];

#[test]
fn each_fault_ends_the_run_by_its_name() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    for (constant, cpus, said) in FAULTS {
        let (code, _, wrong) = run(&object, constant, &workload(place.path(), cpus));
        assert_eq!(code, Some(4), "{constant}: {wrong}");
        assert!(wrong.contains("ejected") && wrong.contains(said), "{constant}: {wrong}");
    }
    let line = run(&object, "reads_null=true", &workload(place.path(), 1)).2;
    assert!(line.contains("trial.bpf.c:"), "no source line in {line}");
}

#[test]
fn what_is_no_scheduler_is_refused_by_name() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    let load = workload(place.path(), 1);
    let (code, _, wrong) = run(&object, "bogus=1", &load);
    assert!(code == Some(2) && wrong.contains("has fair, slice_ns, forgets"), "{wrong}");
    let (code, _, wrong) = run(&object, "slice_ns=soon", &load);
    assert!(code == Some(2) && wrong.contains("a duration as in 5ms"), "{wrong}");
    let bytes = std::fs::read(&object).expect("the object");
    let cut = place.path().join("cut.bpf.o");
    for length in [0, 3, 64, 1000, bytes.len() - 40] {
        std::fs::write(&cut, &bytes[..length]).expect("a file");
        let (code, _, wrong) = run(&cut, "", &load);
        assert!(code == Some(3) && wrong.contains("cut.bpf.o"), "{length}: {code:?} {wrong}");
    }
    let (code, _, wrong) = run(Path::new("/bin/true"), "", &load);
    assert!(code == Some(3) && wrong.contains("no object of a scheduler is within"), "{wrong}");
    let program = place.path().join("loader");
    let whole = [&b"a program"[..], &bytes, &b"and more"[..]].concat();
    std::fs::write(&program, whole).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let (code, within, wrong) = run(&program, "slice_ns=5ms", &load);
    assert_eq!(code, Some(0), "{wrong}");
    let alone = run(&object, "slice_ns=5ms", &load).1;
    for metric in ["makespan_ns", "switches_per_cpu_second"] {
        assert_eq!(number(&within, metric), number(&alone, metric), "{metric}");
    }
}
