//! The judge as a user and a search have it: suites, batches, interruptions, crates in Rust.

use results::judge::{Judged, Judgement};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const MIXED: &str = "[[task]]\nname = 'hog'\ncount = 3\nphases = [{ run = '20ms' }]\n\n[[task]]\nname \
                     = 'wakes'\ncount = 4\nphases = [{ loop = { times = 10, phases = [{ sleep = \
                     '2ms' }, { run = '300us' }] } }]\n";

const SUITE: &str = "baseline = 'central:rr?quantum=4ms'\ntraining = ['mixed.toml']\nheld_out = \
                     ['yield:4?times=50']\nseeds = 2\ncpus = 2\nswitch_cost = '2us'\n\n[[score]]\nmetric = \
                     'makespan_ns'\n\n[limits]\nevents = 20_000\nseconds = 60\n";

/// A folder with a suite.
struct Place(tempfile::TempDir);

impl Place {
    fn new(suite: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        place.write("suite.toml", suite);
        place.write("mixed.toml", MIXED);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name).parent().expect("a folder")).expect("a folder");
        fs::write(self.at(name), text).expect("a file");
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(["judge", "suite.toml"]).args(words).current_dir(self.0.path());
        // What candidates are compiled with is compiled once for all tests.
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("judge"));
        command
    }

    fn judge(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it starts")
    }

    /// What the judge says of these lines.
    fn rows(&self, lines: &str, words: &[&str]) -> Vec<Judged> {
        self.write("candidates.jsonl", lines);
        let output = self.judge(&[&["candidates.jsonl"], words].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        read(&output.stdout)
    }

    /// The exit code and the message of a suite with a fault.
    fn refused(&self, old: &str, new: &str) -> (Option<i32>, String) {
        assert!(SUITE.contains(old), "{old}");
        self.write("suite.toml", &SUITE.replace(old, new));
        self.write("candidates.jsonl", "");
        let output = self.judge(&["candidates.jsonl"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn read(bytes: &[u8]) -> Vec<Judged> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

#[test]
fn a_suite_with_a_fault_is_refused_at_its_line() {
    let place = Place::new(SUITE);
    for (old, new, says) in [
        ("['mixed.toml']", "[]", "suite.toml:2: training: there is no workload"),
        ("'mixed.toml'", "'none.toml'", "suite.toml:2: training[0]"),
        ("'makespan_ns'", "'makespan'", "suite.toml:9: score[0].metric: there is no metric"),
        ("'makespan_ns'", "'deadline_misses'", "no candidate can have one"),
        ("'makespan_ns'", "'switches'\nweight = 0", "weight"),
        ("seeds = 2", "seeds = 0", "suite.toml:4: seeds"),
        ("seeds = 2", "sedes = 2", "sedes"),
        ("'central:rr?quantum=4ms'", "'centrall'", "suite.toml:1: baseline"),
        ("switch_cost = '2us'", "switch_cost = '2'", "switch_cost"),
        ("cpus = 2", "cpus = 2\nconstraints = ['makespan_ns ~ 3']", "constraints[0]"),
        ("cpus = 2", "cpus = 2\nconstraints = ['makespan_ns < 3 apples']", "constraints[0]"),
        ("cpus = 2", "cpus = 2\nconstraints = ['deadline_misses < 3']", "any workload"),
        ("cpus = 2", "cpus = 2\nleast_work = 2.0", "least_work"),
        ("events = 20_000", "events = 0", "limits.events"),
        ("events = 20_000", "events = 10", "the baseline central:rr?quantum=4ms has no numbers"),
        ("baseline", "= 3", "suite.toml:1"),
    ] {
        let (code, said) = place.refused(old, new);
        assert_eq!(code, Some(3), "{new}: {said}");
        assert!(said.contains(says), "{new}: {said}");
    }
    let missing = place.command(&["none.jsonl"]).output().expect("it starts");
    place.write("suite.toml", SUITE);
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn the_suite_in_the_documentation_judges() {
    let page = fs::read_to_string(format!("{ROOT}/docs/judge.md")).expect("a page");
    let suite = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let suite = suite.expect("a suite").replace("seeds = 16", "seeds = 1");
    let rows = Place::new(&suite).rows("{\"policy\": \"eevdf\"}\n", &[]);
    assert_eq!(
        (rows[0].verdict, rows[0].score, rows[0].held_out),
        (Judgement::Score, Some(1.0), Some(1.0))
    );
}

#[test]
fn constraints_limits_and_lines_that_are_none_are_verdicts() {
    let suite = SUITE.replace("cpus = 2", "cpus = 2\nconstraints = ['run_delay_ns_max < 15ms']");
    let lines = "{\"id\": \"good\", \"policy\": \"take:rr?quantum=1ms\"}\n\n{\"policy\": \
                 \"central:rr?quantum=1s\"}\n{\"policy\": \"take:rr?quantum=1us\"}\n[]\nno\n{}\n{\"policy\": \
                 3}\n{\"policy\": \"a\", \"crate\": \"b\"}\n{\"polcy\": \"eevdf\"}\n";
    let rows = Place::new(&suite).rows(lines, &[]);
    let said: Vec<(&str, Judgement)> =
        rows.iter().map(|row| (row.id.as_str(), row.verdict)).collect();
    let none = Judgement::NotAPolicy;
    assert_eq!(
        said,
        [
            ("good", Judgement::Score),
            ("3", Judgement::Constraint),
            ("4", Judgement::Limit),
            ("5", none),
            ("6", none),
            ("7", none),
            ("8", none),
            ("9", none),
            ("10", none)
        ]
    );
    assert!(rows[8].reason.as_deref().is_some_and(|why| why.contains("Did you mean `policy`")));
    assert!(!rows[1].constraints[0].holds && rows[0].constraints[0].holds);
    assert!(
        rows[1].score.is_none()
            && rows[2].reason.as_deref().is_some_and(|why| why.contains("20000"))
    );
}

#[test]
fn a_batch_that_was_interrupted_goes_on_and_nothing_is_lost() {
    let place = Place::new(SUITE);
    let lines: Vec<String> = (1..=40)
        .map(|slice| {
            format!("{{\"id\": \"c{slice}\", \"policy\": \"take:rr?quantum={slice}ms\"}}\n")
        })
        .collect();
    let whole = place.rows(&lines.concat(), &[]);
    // Killed in the middle of a line: the half of it is not an answer.
    let mut killed = place
        .command(&["candidates.jsonl", "-o", "kept"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stdout = BufReader::new(killed.stdout.take().expect("its output"));
    assert_eq!(stdout.lines().take(5).filter(Result::is_ok).count(), 5);
    killed.kill().expect("it runs");
    killed.wait().expect("it ended");
    let kept = place.at("kept/judged.jsonl");
    let mut half = fs::read(&kept).expect("answers");
    half.extend(b"{\"id\": \"c7");
    fs::write(&kept, half).expect("a file");
    let again = place.judge(&["candidates.jsonl", "-o", "kept"]);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
    let resumed = place.judge(&["candidates.jsonl", "-o", "kept", "--resume"]);
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert_eq!(read(&resumed.stdout), whole);
    assert_eq!(read(&fs::read(&kept).expect("answers")), whole);
    // Answers of another suite, another schedlab or other candidates are none to these.
    let refused = |place: &Place, says: &str| {
        let output = place.judge(&["candidates.jsonl", "-o", "kept", "--resume"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(says), "{said}");
    };
    place.write("candidates.jsonl", &lines[1..].concat());
    refused(&place, "of candidate c1, and this is c2");
    place.write("candidates.jsonl", &lines[..3].concat());
    refused(&place, "more candidates than these");
    place.write("candidates.jsonl", &lines.concat());
    let other =
        fs::read_to_string(&kept).expect("answers").replace("\"version\":\"0", "\"version\":\"9");
    fs::write(&kept, other).expect("a file");
    refused(&place, "of schedlab 9");
    place.write("suite.toml", &SUITE.replace("seeds = 2", "seeds = 3"));
    refused(&place, "of suite");
}

#[test]
fn served_candidates_are_answered_one_by_one() {
    let place = Place::new(SUITE);
    let mut server = place
        .command(&["--serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = server.stdin.take().expect("its input");
    let mut output = BufReader::new(server.stdout.take().expect("its output"));
    for policy in ["take:rr", "nope", "eevdf"] {
        writeln!(input, "{{\"policy\": \"{policy}\"}}").expect("it reads");
        let mut line = String::new();
        output.read_line(&mut line).expect("it answers");
        let row: Judged = serde_json::from_str(&line).expect("a row");
        let verdict = if policy == "nope" { Judgement::NotAPolicy } else { Judgement::Score };
        assert_eq!((row.candidate.as_str(), row.verdict), (policy, verdict));
    }
    drop(input);
    assert!(server.wait().expect("it ends").success());
}

/// The policy of `schedlab new policy`, with `old` replaced.
fn crate_with(place: &Place, name: &str, old: &str, new: &str) {
    let made = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["new", "policy", name])
        .current_dir(place.0.path())
        .output()
        .expect("it starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let source = place.at(name).join("src/lib.rs");
    let text = fs::read_to_string(&source).expect("a policy");
    assert!(text.contains(old), "{old} is not in the template");
    fs::write(&source, text.replacen(old, new, 1)).expect("a file");
}

#[test]
#[ignore = "long: tools/long"]
fn crates_are_compiled_apart_and_their_tricks_are_verdicts() {
    let place = Place::new(SUITE);
    let dispatch = "        let next = self.waiting";
    let secret = place.at("suite.toml");
    let reads = format!("        let _ = std::fs::read({secret:?}).unwrap();\n{dispatch}");
    let includes = format!("const X: &str = include_str!({secret:?});\nuse schedsim::policy");
    for (name, old, new) in [
        ("honest", dispatch, dispatch),
        ("panics", dispatch, &*format!("        panic!(\"on purpose\");\n{dispatch}")),
        ("reads", dispatch, &reads),
        ("includes", "use schedsim::policy", &includes),
        (
            "hoards",
            dispatch,
            &*format!("        std::hint::black_box(vec![1u8; 8 << 30]);\n{dispatch}"),
        ),
        ("wrong", "pub static POLICY", "pub static POLICIES"),
        ("broken", "fn dequeue", "fn deqeue"),
        ("zero", "slice: self.slice })", "slice: Nanos(0) })"),
    ] {
        crate_with(&place, name, old, new);
    }
    fs::create_dir(place.at("empty")).expect("a folder");
    let names = [
        "honest", "panics", "reads", "includes", "hoards", "wrong", "broken", "zero", "empty",
        "none", ".",
    ];
    let lines: String = names.iter().map(|name| format!("{{\"crate\": \"{name}\"}}\n")).collect();
    let rows = place.rows(&lines, &["--sources", ROOT]);
    let said: Vec<Judgement> = rows.iter().map(|row| row.verdict).collect();
    let reasons: Vec<&str> = rows.iter().filter_map(|row| row.reason.as_deref()).collect();
    assert_eq!(
        said,
        [
            Judgement::Score,
            Judgement::Crash,
            Judgement::Crash,
            Judgement::CompileError,
            Judgement::OutOfMemory,
            Judgement::NotAPolicy,
            Judgement::CompileError,
            Judgement::Contract,
            Judgement::NotAPolicy,
            Judgement::NotAPolicy,
            Judgement::Refused,
        ],
        "{reasons:#?}"
    );
    assert_eq!(
        (rows[0].score, rows[0].held_out),
        (Some(1.0), Some(1.0)),
        "the template is central:rr"
    );
    assert!(rows[0].compile_seconds.is_some());
    assert!(
        reasons[0].contains("on purpose") && reasons[1].contains("Permission denied"),
        "{reasons:#?}"
    );
    assert!(
        reasons[2].contains("ermission denied") && reasons[5].contains("deqeue"),
        "{reasons:#?}"
    );
    assert!(!reasons.concat().contains("central:rr"), "a secret: {reasons:#?}");
}
