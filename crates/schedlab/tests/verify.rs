//! `schedlab verify`: the same bytes again, or which differ, or what is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "support/bench.rs"]
mod bench;

use bench::{Bench, image};
use results::{Input, InputKind, InputLock, LOCK};

const TASKS: &str = "[[task]]\nname = 'hog'\ncount = 2\nphases = [{ run = '3ms' }]\n";

/// The exit code, and all that is said.
fn said(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("the program starts");
    let both = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&both).into_owned())
}

fn schedlab(arguments: &[&str]) -> (Option<i32>, String) {
    said(Command::new(env!("CARGO_BIN_EXE_schedlab")).args(arguments))
}

fn verify(results: &Path) -> (Option<i32>, String) {
    schedlab(&["verify", &results.display().to_string()])
}

/// Changes the last digit of the first value in `results`.
fn mutate(results: &Path) -> String {
    let text = fs::read_to_string(results).unwrap();
    let begin = text.find("\"value\": ").expect("a value") + "\"value\": ".len();
    let length = text[begin..].find(',').expect("more fields");
    let digit = begin + text[begin..begin + length].rfind(|c: char| c.is_ascii_digit()).unwrap();
    let other = if &text[digit..=digit] == "3" { "4" } else { "3" };
    fs::write(results, format!("{}{other}{}", &text[..digit], &text[digit + 1..])).unwrap();
    text
}

#[test]
fn a_simulation_repeats_itself_and_a_changed_digit_or_workload_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (workload, results) = (at("tasks.toml"), folder.path().join("out/results.json"));
    fs::write(&workload, TASKS).unwrap();
    let compare =
        ["compare", &workload, "--policy", "fifo,eevdf", "--ensemble", "4", "-o", &at("out")];
    let (code, text) = schedlab(&compare);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = verify(&results);
    assert!(code == Some(0) && text.contains("the same bytes again"), "{text}");
    assert_eq!(verify(results.parent().unwrap()).0, Some(0), "a directory");

    let whole = mutate(&results);
    let (code, text) = verify(&results);
    assert!(code == Some(6) && text.contains("\"value\""), "a digit was changed: {text}");
    fs::write(&results, whole.replace("\"runs\": 4", "\"runs\": 5")).unwrap();
    assert_eq!(verify(&results).0, Some(6), "another number of runs");
    fs::write(&results, format!("{whole} ")).unwrap();
    assert_eq!(verify(&results).0, Some(6), "a byte more");
    fs::write(&results, &whole).unwrap();

    let lock = InputLock::read(&results.with_file_name(LOCK)).expect("a lock file");
    let pin = lock.find(InputKind::Workload, &workload).expect("the workload is pinned");
    fs::write(&workload, TASKS.replace("3ms", "4ms")).unwrap();
    let (code, text) = verify(&results);
    assert!(code == Some(3) && text.contains(&pin.sha256) && text.contains(&workload), "{text}");
    fs::remove_file(&workload).unwrap();
    let (code, text) = verify(&results);
    assert!(code == Some(77) && text.contains("Any copy with this hash will do"), "{text}");
    fs::write(&workload, TASKS).unwrap();
    assert_eq!(verify(&results).0, Some(0), "another copy with the same hash");
}

/// Runs `command` into `output`, and expects that its results repeat themselves, and that a changed
/// digit, a changed lock file, the changed file `input` and its absence are found.
fn expect_verified(command: &[&str], output: &Path, input: &Path) {
    let results = output.join("results.json");
    let (code, text) = schedlab(&[command, &["-o", &output.display().to_string()]].concat());
    assert_eq!(code, Some(0), "{text}");
    let expect = |expected: i32, says: &str| {
        let (code, text) = verify(&results);
        assert!(code == Some(expected) && text.contains(says), "{command:?}: {code:?} {text}");
    };
    let recorded = results::Results::read(&results).unwrap();
    expect(0, &format!("inputs {}", recorded.inputs.expect("a hash of all inputs")));
    let whole = mutate(&results);
    expect(6, "\"value\"");
    fs::write(&results, whole).unwrap();

    let lock = results.with_file_name(LOCK);
    let pins = fs::read_to_string(&lock).expect("a lock file");
    let hash = InputLock::read(&lock).unwrap().inputs[0].sha256.clone();
    fs::write(&lock, pins.replace(&hash, &"0".repeat(64))).unwrap();
    expect(3, "the lock file was changed");
    fs::write(&lock, &pins).unwrap();

    let csv = results.with_file_name("results.csv");
    let rows = fs::read_to_string(&csv).unwrap();
    fs::write(&csv, rows.replacen(['1', '2'], "7", 1)).unwrap();
    expect(6, "results.csv");
    fs::write(&csv, rows).unwrap();

    let aside = input.with_extension("aside");
    fs::rename(input, &aside).unwrap();
    expect(77, "Any copy with this hash will do");
    fs::write(input, "# another\n").unwrap();
    expect(3, "has changed");
    fs::rename(&aside, input).unwrap();
    expect(0, "the same bytes again");
}

#[test]
fn a_run_repeats_itself_and_has_its_trace_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (workload, output) = (folder.path().join("tasks.toml"), folder.path().join("out"));
    fs::write(&workload, TASKS).unwrap();
    let named = workload.display().to_string();
    expect_verified(&["run", &named, "--policy", "take:rr", "--cpus", "2"], &output, &workload);
    for file in ["traces/run.trace", "traces/run.pftrace", "report.html"] {
        assert!(output.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_sweep_repeats_itself_run_by_run_and_a_changed_grid_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let grid = "workload = 'unix1990'\npolicies = ['initial:rr', 'take:rr']\nbaseline = \
                'initial:rr'\nseeds = 2\n[parameters]\ntasks = 50\n[axes]\nload = [0.3, 0.5]\n";
    fs::write(at("loads.toml"), grid).unwrap();
    let named = at("loads.toml").display().to_string();
    expect_verified(&["sweep", &named], &at("out"), &at("loads.toml"));
    // Every single run counts, too.
    fs::copy(at("out/results.parquet"), at("out/runs.parquet")).unwrap();
    let (code, text) = verify(&at("out"));
    assert!(code == Some(6) && text.contains("runs.parquet"), "{text}");

    // Joined shards are a whole sweep.
    let shards = at("shards").display().to_string();
    for shard in ["1/2", "2/2"] {
        let (code, text) = schedlab(&["sweep", &named, "--shard", shard, "-o", &shards]);
        assert_eq!(code, Some(0), "{text}");
    }
    let (code, text) = schedlab(&["sweep", "--merge", &shards]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = verify(&at("shards"));
    assert!(code == Some(0), "{text}");
    mutate(&at("shards/results.json"));
    assert_eq!(verify(&at("shards")).0, Some(6));
}

#[test]
fn what_a_queue_costs_is_counted_again_without_the_times_of_this_machine() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return eprintln!("skipped: costs of queues: valgrind is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let build = folder.path().join("schedlab");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_schedlab"), &build).unwrap();
    let (named, output) = (build.display().to_string(), folder.path().join("out"));
    let queue = ["queue", "--queues", "rr,rbtree", "--tasks", "3", "--levels", "2", "--runs", "2"];
    let queue = [&queue[..], &["--assignments", "2", "--binary", &named]].concat();
    expect_verified(&queue, &output, &build);
    let (_, text) = verify(&output);
    assert!(text.contains("without 2 of this machine"), "{text}");

    let times = folder.path().join("times");
    let to = times.display().to_string();
    let only = [&queue[..], &["--count", "time", "-o", &to]].concat();
    assert_eq!(schedlab(&only).0, Some(0));
    let (code, text) = verify(&times);
    assert!(code == Some(3) && text.contains("nothing repeats these results"), "{text}");
}

#[test]
fn what_is_no_repeatable_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.json");
    let (code, text) = schedlab(&[
        "compare",
        "hogs:1?work=1ms",
        "--policy",
        "fifo",
        "--ensemble",
        "1",
        "--format",
        "json",
    ]);
    assert_eq!(code, Some(0), "{text}");
    let marker = folder.path().join("started");
    let with = |command: &str| {
        let begin = text.find("\"reproduce\": ").unwrap();
        let end = begin + text[begin..].find(",\n").unwrap();
        format!("{}\"reproduce\": {command}{}", &text[..begin], &text[end..])
    };
    let touch = format!("\"schedlab compare --on host -- touch {}\"", marker.display());
    let cases = [
        ("null".to_string(), "nothing repeats these results"),
        (touch, "runs on this machine"),
        (
            format!("\"schedlab run --policy eevdf -- touch {}\"", marker.display()),
            "runs a program",
        ),
        ("\"schedlab compare hogs:1 --on sim,host\"".to_string(), "runs on this machine"),
        ("\"schedlab record x\"".to_string(), ""),
        ("\"schedlab 'compare\"".to_string(), "a quote does not end"),
    ];
    for (command, says) in cases {
        fs::write(&results, with(&command)).unwrap();
        let (code, text) = verify(&results);
        assert!(code == Some(3) && text.contains(says), "{command}: {code:?} {text}");
    }
    assert!(!marker.exists(), "a file of somebody else's has started a program");
    fs::write(&results, "{}").unwrap();
    assert_eq!(verify(&results).0, Some(3));
}

/// Results of a guest with the kernel 6.18, and their lock file, in `folder`.
fn of_a_guest(folder: &Path, inputs: Vec<Input>) -> PathBuf {
    let results = folder.join("results.json");
    let mut recorded = results::Results::new(Vec::new());
    let command = "schedlab compare yield:2 --on vm --kernel 6.18".to_string();
    recorded.reproduce = Some(command.clone());
    recorded.command = command;
    fs::write(&results, recorded.to_json().unwrap()).unwrap();
    InputLock::new(inputs).write(folder).unwrap();
    results
}

#[test]
fn an_input_that_vanished_from_the_mirror_is_named_and_any_copy_will_do() {
    let bench = Bench::new("exit 0");
    let site = r#"test "$1" != indextargets || echo http://site.invalid trixie"#;
    bench.program("apt-get", site);
    bench.program("apt-cache", "echo linux-image-6.19.1-cloud-amd64");
    let sha256 = worlds::vm::sha256([&image()[..]]);
    let source = Some("linux-image-6.18.1-cloud-amd64 of Debian trixie".to_string());
    let pin =
        Input { kind: InputKind::Kernel, name: "6.18".to_string(), sha256: sha256.clone(), source };
    let folder = tempfile::tempdir().unwrap();
    let results = of_a_guest(folder.path(), vec![pin]);
    let verify = || said(bench.command().arg("verify").arg(&results));
    let place = bench.at("cache/schedlab/inputs").join(&sha256);

    let (code, text) = verify();
    assert_eq!(code, Some(77), "{text}");
    let place_named = place.display().to_string();
    for word in [&*sha256, "linux-image-6.18.1-cloud-amd64", "Any copy", &place_named] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    // A copy with another content is none.
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, [image(), vec![0]].concat()).unwrap();
    assert_eq!(verify().0, Some(77));
    // With a copy the guest is booted, by an emulator that does nothing.
    fs::write(&place, image()).unwrap();
    let (code, text) = verify();
    assert!(code == Some(3) && text.contains("did not start the runner"), "{text}");
    // So it is with any input that this machine has in another version.
    for (kind, says) in [(InputKind::Emulator, "in PATH"), (InputKind::Runner, "build schedlab")] {
        let other = "0123456789abcdef".repeat(4);
        let pin = Input { kind, name: "any".to_string(), sha256: other.clone(), source: None };
        let kernel = InputLock::read(&folder.path().join(LOCK)).unwrap().inputs;
        let results = tempfile::tempdir().unwrap();
        let file = of_a_guest(results.path(), [kernel, vec![pin]].concat());
        let (code, text) = said(bench.command().arg("verify").arg(file));
        assert!(code == Some(77) && text.contains(&other) && text.contains(says), "{text}");
    }
}

#[test]
fn a_guest_repeats_itself_down_to_the_bytes_and_a_changed_digit_is_found() {
    let found = worlds::vm::Qemu::find().and_then(|_| worlds::vm::Kernel::find("6.18", &|_| {}));
    if let Err(missing) = found {
        return eprintln!("skipped: results of a guest: {missing}");
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().display().to_string();
    let (code, text) =
        schedlab(&["compare", "yield:2", "--on", "vm", "--ensemble", "2", "-o", &output]);
    assert_eq!(code, Some(0), "{text}");
    let results = folder.path().join("results.json");
    let lock = InputLock::read(&folder.path().join(LOCK)).expect("a lock file");
    for kind in [InputKind::Kernel, InputKind::Emulator, InputKind::Runner] {
        assert!(lock.inputs.iter().any(|input| input.kind == kind), "{kind:?} is not pinned");
    }
    let (code, text) = verify(&results);
    assert_eq!(code, Some(0), "{text}");
    mutate(&results);
    assert_eq!(verify(&results).0, Some(6));
}
