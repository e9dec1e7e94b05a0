//! What `schedlab export --to vectors` writes is read by `schedlab-vectors`, says what happened, and
//! is judged as the scheduler deserves.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use vectors::{Judging, Outcome, Property, Vector, Verdict, judge};

/// Four tasks that do nothing but run; the first is heavy, the last light.
const HOGS: &str = r#"
cpus = 1
[[task]]
name = "heavy"
nice = -5
phases = [{ run = "500ms" }]
[[task]]
name = "middle"
count = 2
phases = [{ run = "500ms" }]
[[task]]
name = "light"
nice = 5
phases = [{ run = "500ms" }]
"#;

fn schedlab(arguments: &[&str], folder: &TempDir) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.args(arguments).current_dir(folder.path()).output().expect("schedlab runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The history of the hogs under a policy.
fn simulated(policy: &str) -> Vector {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("hogs.toml"), HOGS).expect("a workload");
    for arguments in [
        &["run", "hogs.toml", "--policy", policy, "--trace", "hogs.trace"][..],
        &["export", "hogs.trace", "-o", "hogs.jsonl"],
    ] {
        let output = schedlab(arguments, &folder);
        assert!(output.status.success(), "{policy}: {}", text(&output.stderr));
    }
    let file = folder.path().join("hogs.jsonl");
    let strict = Vector::read(&file);
    strict.unwrap_or_else(|why| panic!("{policy}: {why}"))
}

fn at(outcome: &Outcome) -> Option<Property> {
    outcome.difference().map(|difference| difference.property)
}

#[test]
fn fair_schedulers_agree_and_others_differ_in_share() {
    for policy in ["eevdf", "cfs", "stride", "central:rbtree", "central:ruler"] {
        let outcome = judge(&simulated(policy), &Judging::default());
        let is_fair = ["eevdf", "cfs", "stride"].contains(&policy);
        match is_fair {
            true => assert_eq!(outcome.verdict, Verdict::Agree, "{policy}"),
            // Levels of nice values, by powers of two: no weights.
            false => assert_eq!(at(&outcome), Some(Property::Share), "{policy}"),
        }
        assert!(outcome.compared[Property::Share as usize] > 0, "{policy}");
    }
    for policy in ["fifo", "rr", "central:rr", "o1"] {
        let outcome = judge(&simulated(policy), &Judging::default());
        assert_eq!(at(&outcome), Some(Property::Share), "{policy}: {outcome:?}");
    }
}

#[test]
fn our_eevdf_keeps_its_bounds_and_longer_requests_do_not() {
    let judging = |slice: i64| Judging {
        claims: Some("eevdf".to_string()),
        tick: Some(4_000_000),
        slice: Some(slice),
        tolerance: Some(0),
    };
    let ours = judge(&simulated("eevdf"), &judging(700_000));
    assert_eq!(ours.verdict, Verdict::Agree);
    assert!(ours.compared[Property::LagBound as usize] > 0);
    let longer = judge(&simulated("eevdf?slice=40ms"), &judging(700_000));
    assert_eq!(at(&longer), Some(Property::LagBound), "{longer:?}");
    assert_eq!(judge(&simulated("eevdf?slice=40ms"), &judging(40_000_000)).verdict, Verdict::Agree);
}

/// Lines of `perf script`, with times in us: what happened to `rcu` (pid 9, real-time, if it is
/// there) and to other tasks on CPU 0.
fn recording(events: &[(u32, &str)]) -> String {
    let mut text = String::from("# nrcpus online : 1\n");
    for (at, event) in events {
        let seconds = 100.0 + f64::from(*at) / 1e6;
        text += &format!("a 1/1 [000] {seconds:.9}: {event}\n");
    }
    text
}

fn switch(prev: (&str, u32, u32), state: &str, next: (&str, u32, u32)) -> String {
    format!(
        "sched:sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={state} ==> \
         next_comm={} next_pid={} next_prio={}",
        prev.0, prev.1, prev.2, next.0, next.1, next.2
    )
}

fn waking(task: (&str, u32, u32)) -> String {
    format!("sched:sched_waking: comm={} pid={} prio={} target_cpu=000", task.0, task.1, task.2)
}

fn new(task: (&str, u32, u32)) -> String {
    waking(task).replace("sched_waking", "sched_wakeup_new")
}

const IDLE: (&str, u32, u32) = ("swapper", 0, 120);
const A: (&str, u32, u32) = ("a", 1, 120);
const B: (&str, u32, u32) = ("b", 2, 115);
const C: (&str, u32, u32) = ("c", 3, 125);
const RT: (&str, u32, u32) = ("rt", 9, 50);

/// The events after the header, each as `at op task or runs`, or what the export complains of.
fn exported(events: &[(u32, String)], more: &[&str]) -> Result<(Vec<String>, String), String> {
    let folder = TempDir::new().expect("a folder");
    let events: Vec<(u32, &str)> = events.iter().map(|(at, what)| (*at, what.as_str())).collect();
    exported_from(&folder, &recording(&events), more)
}

fn exported_from(
    folder: &TempDir,
    recording: &str,
    more: &[&str],
) -> Result<(Vec<String>, String), String> {
    fs::write(folder.path().join("r.txt"), recording).expect("a recording");
    let arguments = [&["export", "r.txt", "-o", "h.jsonl"], more].concat();
    let output = schedlab(&arguments, folder);
    let said = text(&output.stderr);
    if !output.status.success() {
        let code = output.status.code();
        assert!(matches!(code, Some(2 | 3)), "{code:?}: {said}");
        return Err(said);
    }
    let file: &Path = &folder.path().join("h.jsonl");
    Vector::read_to_judge(file).unwrap_or_else(|why| panic!("{why}"));
    let lines = fs::read_to_string(file).expect("a history");
    let short = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let about = if line["op"] == "task" { &line["weight"] } else { &line["task"] };
        let runs = &line["then"]["runs"];
        let about = if runs.is_null() { about } else { runs };
        let about = if about.is_null() { String::new() } else { format!(" {about}") };
        format!("{} {}{about}", line["at"], line["op"].as_str().expect("an op"))
    };
    Ok((lines.lines().skip(2).map(short).collect(), said))
}

#[test]
fn a_history_has_what_happened_in_the_longest_busy_period() {
    let events = [
        // A short one first.
        (0, waking(A)),
        (1, switch(IDLE, "R", A)),
        (3, switch(A, "S", IDLE)),
        // Then one with a new task, a preemption, an end, and a real-time task of 50 us.
        (10, waking(A)),
        (12, switch(IDLE, "R", A)),
        (20, waking(RT)),
        (21, switch(A, "R", RT)),
        (30, new(B)),
        (71, switch(RT, "S", A)),
        // It runs: no news.
        (72, waking(A)),
        (80, switch(A, "R", B)),
        (90, switch(B, "X", A)),
        (95, switch(A, "S", IDLE)),
    ];
    let (lines, said) = exported(&events, &[]).expect("a history");
    let expected = [
        "0 task 1024",
        "0 task 3121",
        "0 wake 1",
        "2000 pick 1",
        "11000 new 2",
        "11000 pick 1",
        "20000 pick 2",
        "30000 exit",
        "30000 pick 1",
        "35000 block",
        "35000 pick 0",
    ];
    assert_eq!(lines, expected);
    assert!(said.contains("wrote 35.0us"), "{said}");
    assert!(said.contains("1 others are left out, in 0 of which"), "{said}");
    // The part before it.
    let (lines, _) = exported(&events, &["--window", "..5us"]).expect("a history");
    assert_eq!(lines, ["0 task 1024", "0 wake 1", "1000 pick 1", "3000 block", "3000 pick 0"]);
}

/// Nothing woke C since the recording began, so it was ready then, as A, who ran.
#[test]
fn who_was_ready_when_the_recording_began_is_known_once_it_runs() {
    let events =
        [(0, waking(B)), (5, switch(A, "R", B)), (9, switch(B, "S", C)), (20, switch(C, "R", A))];
    let (lines, _) = exported(&events, &[]).expect("a history");
    let expected = [
        "0 task 3121",
        "0 task 1024",
        "0 task 335",
        "0 wake 2",
        "0 wake 3",
        "0 pick 2",
        "0 wake 1",
        "5000 pick 1",
        "9000 block",
        "9000 pick 3",
        "20000 pick 2",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_cpu_that_idles_while_a_task_waits_is_found_by_the_judge() {
    let folder = TempDir::new().expect("a folder");
    let events = [
        (0, waking(A)),
        (1, switch(IDLE, "R", A)),
        (2, waking(B)),
        (3, switch(A, "S", IDLE)),
        (9, switch(IDLE, "R", B)),
        (12, switch(B, "S", IDLE)),
    ];
    let events: Vec<(u32, &str)> = events.iter().map(|(at, what)| (*at, what.as_str())).collect();
    let (lines, _) = exported_from(&folder, &recording(&events), &[]).expect("a history");
    assert_eq!(lines[5..8], ["3000 block", "3000 pick 0", "9000 pick 2"]);
    let vector = Vector::read_to_judge(&folder.path().join("h.jsonl")).expect("a history");
    let outcome = judge(&vector, &Judging::default());
    let difference = outcome.difference().expect("a difference");
    assert_eq!((difference.property, difference.line), (Property::Conserve, 2 + 7));
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let begin = || vec![(0, waking(A)), (1, switch(IDLE, "R", A)), (2, switch(A, "S", IDLE))];
    let with = |more: &[(u32, String)]| [begin(), more.to_vec()].concat();
    /// Lines to change, further arguments, what is said.
    type Case = (Vec<(u32, String)>, &'static [&'static str], &'static str);
    let cases: [Case; 8] = [
        (with(&[(3, switch(IDLE, "R", A))]), &[], "a/1 runs though it sleeps or has ended"),
        (with(&[(3, switch(IDLE, "R", B))]), &[], "b/2 runs and was not woken before"),
        (with(&[(3, switch(B, "S", IDLE))]), &[], "b/2 stops, but was not seen to run"),
        (
            with(&[(3, waking(A)), (4, switch(IDLE, "R", ("a", 1, 125)))]),
            &[],
            "the priority of a/1 changed while it was recorded",
        ),
        (
            with(&[(
                3,
                "sched:sched_migrate_task: comm=a pid=1 prio=120 orig_cpu=0 dest_cpu=1".into(),
            )]),
            &["--cpus", "0"],
            "a/1 moves to or from this CPU",
        ),
        (
            with(&[(3, waking(A).replace("target_cpu=000", "target_cpu=001"))]),
            &["--cpus", "0"],
            "a/1 is on this CPU and on another one",
        ),
        (
            with(&[(3, waking(A).replace("target_cpu=000", "target_cpu=001"))]),
            &[],
            "a history is of one CPU, and the trace has 2; choose one with --cpus",
        ),
        (begin(), &["--comm", "a"], "leave out --comm"),
    ];
    for (events, more, what) in cases {
        let said = exported(&events, more).expect_err(what);
        assert!(said.contains(what), "{said}");
    }
    let folder = TempDir::new().expect("a folder");
    let idle = recording(&[(0, &switch(RT, "S", IDLE))]);
    let said = exported_from(&folder, &idle, &[]).expect_err("no fair task");
    assert!(said.contains("no fair task has run"), "{said}");
    let output = schedlab(&["export", "r.txt", "-o", "h.jsonl.zst"], &folder);
    assert_eq!(output.status.code(), Some(2));
}

/// The names are not those of the recording.
#[test]
fn an_anonymous_history_has_no_names() {
    let folder = TempDir::new().expect("a folder");
    let secret = ("secret", 77, 120);
    let events = [(0, waking(secret)), (1, switch(IDLE, "R", secret))];
    let events: Vec<(u32, &str)> = events.iter().map(|(at, what)| (*at, what.as_str())).collect();
    exported_from(&folder, &recording(&events), &["--anonymise"]).expect("a history");
    let history = fs::read_to_string(folder.path().join("h.jsonl")).expect("a history");
    assert!(!history.contains("secret") && !history.contains("77"), "{history}");
}
