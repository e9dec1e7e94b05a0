//! Subjects that are processes, and the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use vectors::{Event, Op, Process, Subject, Vector, Verdict, play};

const PROGRAM: &str = env!("CARGO_BIN_EXE_schedlab-vectors");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An example of this package, which `cargo test` builds.
fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let file = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(file.is_file(), "{} is missing: cargo build --examples", file.display());
    file.display().to_string()
}

/// Builds `adapters/c/example.c` strictly.
fn c_example() -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-example");
    let sources = ["example.c", "vectors.c"].map(|name| root().join("adapters/c").join(name));
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-o"])
        .arg(&file)
        .args(sources)
        .output()
        .expect("`cc` is missing: install a C compiler (Debian: apt-get install gcc)");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    file
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(PROGRAM).args(arguments).current_dir(root()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn vector(name: &str) -> Vector {
    Vector::read(&root().join(name)).unwrap()
}

#[test]
fn a_subject_in_c_is_tested() {
    let subject = format!("process:{}", c_example().display());
    let (code, out, err) = run(&["--subject", &subject, "vectors/proportional"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("0 differ, 0 refused"), "{out}");
    // It is no EEVDF, and has no `weight`.
    let (code, out, _) = run(&["--subject", &subject, "--json", "canaries/unchanged"]);
    assert_eq!(code, 4);
    let rows: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows[0]["verdict"], "refused");
    assert_eq!(rows[0]["why"], "struct vectors_scheduler has no callback for weight");
    assert_eq!((&rows[1]["verdict"], &rows[1]["property"]), (&"differ".into(), &"yield".into()));
    assert_eq!(rows[1]["line"], 10);
}

#[test]
fn the_c_reader_takes_the_flat_form_alone() {
    use std::io::Write;
    use std::process::Stdio;
    let mut child =
        Command::new(c_example()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let long = format!("{{\"at\":0,\"op\":\"tick\"{}", " ".repeat(3000));
    let lines = [
        r#"{"at":0,"op":"reset","tick":4000000,"slice":700000}"#,
        r#"{"at":0,"op":"task","task":1,"weight":1024,"slice":700000,"vruntime":-5,"lag":7}"#,
        r#"{"at":0,"op":"task","task":1,"weight":1024,"slice":700000,"vruntime":-5}"#,
        r#"{"at":0, "op":"tick"}"#,
        r#"{"at":0,"op":"tick"} "#,
        r#"{"at":01,"op":"tick"}"#,
        r#"{"at":-1,"op":"tick"}"#,
        r#"{"at":4611686018427387904,"op":"tick"}"#,
        r#"{"at":99999999999999999999999,"op":"tick"}"#,
        r#"{"at":0,"op":"wake","task":4097}"#,
        r#"{"at":0,"op":"wake","task":0}"#,
        r#"{"at":0,"op":"wake","task":}"#,
        r#"{"at":0,"op":"tock"}"#,
        "{\"at\":0,\"op\":\"tick\"}\0",
        "",
        &long,
        r#"{"at":4611686018427387903,"op":"wake","task":1}"#,
        r#"{"at":4611686018427387903,"op":"pick"}"#,
    ];
    child.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let answers: Vec<&str> = out.lines().collect();
    assert_eq!(answers.len(), lines.len(), "{out}");
    let refused = r#"{"error":"this line is no event of format 1"}"#;
    assert_eq!(answers[..2], ["{}", "{}"]);
    assert!(answers[2..16].iter().all(|answer| *answer == refused), "{out}");
    let state = r#""tasks":[{"task":1,"vruntime":0}]}"#;
    assert_eq!(answers[16], format!("{{\"resched\":true,{state}"));
    assert_eq!(answers[17], format!("{{\"runs\":1,{state}"));
}

#[test]
fn a_subject_in_rust_is_tested() {
    let of = |name: &str| format!("process:{}", example(name));
    let (code, out, err) =
        run(&["--subject", &of("reference"), "canaries/unchanged", "vectors/eevdf/equal.jsonl"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("3 agree, 0 differ, 0 refused"), "{out}");
    let (code, out, _) = run(&["--subject", &of("stride"), "vectors/proportional"]);
    assert_eq!(code, 0, "{out}");
}

/// The verdict on a process, which must be dead afterwards.
fn verdict(command: &str) -> String {
    let began = Instant::now();
    let mut process = Process::start(command, Duration::from_millis(300)).unwrap();
    let id = process.id();
    let outcome = play(&vector("vectors/eevdf/equal.jsonl"), &mut process);
    drop(process);
    assert!(!Path::new(&format!("/proc/{id}")).exists(), "{command} is alive, or a zombie");
    assert!(began.elapsed() < Duration::from_secs(8), "{command} takes {:?}", began.elapsed());
    match outcome.verdict {
        Verdict::Broken(why) => why,
        other => panic!("{command}: {other:?}"),
    }
}

#[test]
fn silence_an_early_end_and_garbage_are_told_apart() {
    for (command, why) in [
        ("sleep 1000", "no answer to {\"at\":0,\"op\":\"reset\""),
        ("true", "it ended (exit status: 0)"),
        ("false", "it ended (exit status: 1)"),
        ("head -n 1", "it said \"{\\\"at\\\":0,\\\"op\\\":\\\"reset\\\""),
        ("cat", "unknown field `at`"),
        ("echo hello", "it said \"hello\""),
        ("head -c 9000000 /dev/zero", "more than 1048576 bytes"),
        ("head -c 9 /dev/urandom", "after"),
    ] {
        let got = verdict(command);
        assert!(got.contains(why) || command.contains("urandom"), "{command}: {got}");
    }
}

#[test]
fn a_process_that_reads_nothing_does_not_stop_the_runner() {
    // It answers all, and reads none: its input fills up, unless an answer comes too early.
    for command in ["yes {}", "yes {\"resched\":true}"] {
        let mut process = Process::start(command, Duration::from_secs(5)).unwrap();
        let events = (0..100_000).map(|at| Event { at, op: Op::Tick });
        let why = events.map(|event| process.event(&event)).find_map(Result::err);
        let why = why.expect("it can be told that nothing is read").0;
        assert!(why.contains("unasked") || why.contains("without reading"), "{why}");
    }
}

#[test]
fn the_exit_codes_are_those_of_the_readme() {
    let equal = "vectors/eevdf/equal.jsonl";
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let bad = tmp.join("bad.jsonl");
    std::fs::write(&bad, "{}\n").unwrap();
    let bad = bad.to_str().unwrap();
    for (arguments, expected, what) in [
        (vec![equal], 0, "1 agree, 0 differ, 0 refused"),
        (vec!["--help"], 0, "lag-bound"),
        (vec!["--fault", "charge", "vectors/eevdf/weights.jsonl"], 4, "differ"),
        (vec!["--subject", "process:false", equal], 4, "broken"),
        (
            vec!["--canaries", "canaries", equal, "vectors/proportional"],
            4,
            "picks by deadline alone",
        ),
        (vec!["--subject", "process:/no/such/program", equal], 77, "/no/such/program"),
        (vec![bad], 3, "bad.jsonl:1: this is no header: missing field `format`"),
        (vec!["no/such.jsonl"], 3, "no/such.jsonl: "),
        (vec!["src"], 3, "no *.jsonl here"),
        (vec!["--subject"], 2, "--subject needs a value"),
        (vec!["--subject", "other", equal], 2, "`reference` or `process:COMMAND`"),
        (vec!["--subject", "process:", equal], 2, "`reference` or `process:COMMAND`"),
        (vec!["--fault", "x", equal], 2, "no fault \"x\""),
        (vec!["--frobnicate"], 2, "unknown option"),
        (vec!["--canaries", "--json"], 2, "stands alone"),
    ] {
        let (code, out, err) = run(&arguments);
        assert_eq!(code, expected, "{arguments:?}: {out}{err}");
        assert!(format!("{out}{err}").contains(what), "{arguments:?}: {out}{err}");
    }
}

#[test]
fn without_paths_all_is_tested() {
    let (code, out, err) = run(&["--canaries"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("slice      found by"), "{out}");
}
