//! What is no vector is refused with its line, and nothing panics.

use std::io::Cursor;
use std::path::Path;
use vectors::{Answer, Event, Options, Property, Reference, Vector, play, serve};

const HISTORY: &str = r#"{"format":1,"name":"h","kind":"history","claims":"eevdf","properties":["pick"],"source":"s"}"#;
const SCENARIO: &str = r#"{"format":1,"name":"s","kind":"scenario","claims":"eevdf","properties":["share"],"source":"s","until":1000000,"tick":1000,"slice":1000}"#;
const RESET: &str = r#"{"at":0,"op":"reset","tick":4000000,"slice":700000}"#;
const TASK: &str = r#"{"at":0,"op":"task","task":1,"weight":1024,"slice":700000}"#;

fn refused(lines: &[&str]) -> String {
    let text = lines.join("\n") + "\n";
    match Vector::parse("f", text.as_bytes()) {
        Err(why) => why.to_string(),
        Ok(_) => panic!("this can be read: {text}"),
    }
}

#[test]
fn a_history_that_contradicts_itself_is_refused_at_its_line() {
    let wake = r#"{"at":1,"op":"wake","task":1}"#;
    let runs = r#"{"at":1,"op":"pick","then":{"runs":1}}"#;
    let block = r#"{"at":2,"op":"block"}"#;
    for (lines, what) in [
        (vec![], "f:1: no event follows"),
        (vec![TASK], "f:2: the first event, and no other, is `reset`"),
        (vec![RESET, RESET], "f:3: the first event, and no other"),
        (vec![RESET, TASK, TASK], "f:4: task 1 exists"),
        (vec![RESET, wake], "f:3: task 1 is unknown"),
        (vec![RESET, TASK, wake, wake], "f:5: task 1 does not sleep"),
        (vec![RESET, TASK, wake, r#"{"at":1,"op":"new","task":1}"#], "f:5: task 1 is not new"),
        (vec![RESET, TASK, wake, r#"{"at":0,"op":"tick"}"#], "f:5: 0 is before 1"),
        (vec![RESET, TASK, block], "f:4: nobody runs"),
        (vec![RESET, TASK, r#"{"at":2,"op":"exit"}"#], "f:4: nobody runs"),
        (vec![RESET, TASK, r#"{"at":2,"op":"yield"}"#], "f:4: nobody runs"),
        (vec![RESET, TASK, wake, runs, block, block], "f:7: nobody runs"),
        (
            vec![
                RESET,
                TASK,
                wake,
                runs,
                r#"{"at":2,"op":"exit"}"#,
                r#"{"at":2,"op":"wake","task":1}"#,
            ],
            "f:7: task 1 does not sleep",
        ),
        (vec![RESET, TASK, runs], "f:4: task 1 is not ready"),
        (vec![RESET, TASK, r#"{"at":1,"op":"pick"}"#], "f:4: `pick` needs `runs`"),
        (
            vec![RESET, TASK, wake, r#"{"at":1,"op":"pick","then":{"runs":0}}"#],
            "f:5: nobody runs though",
        ),
        (
            vec![RESET, TASK, r#"{"at":1,"op":"pick","then":{"runs":0}}"#, wake],
            "f:5: the history is over",
        ),
        (
            vec![RESET, TASK, r#"{"at":1,"op":"wake","task":1,"then":{"runs":1}}"#],
            "f:4: `runs` is of `pick`",
        ),
        (
            vec![RESET, TASK, r#"{"at":1,"op":"wake","task":1,"then":{"error":"x"}}"#],
            "f:4: a kernel has no `error`",
        ),
        (
            vec![RESET, TASK, r#"{"at":1,"op":"wake","task":1,"then":{"tasks":[{"task":2}]}}"#],
            "f:4: task 2 is unknown",
        ),
        (
            vec![RESET, TASK, wake, runs, r#"{"at":2,"op":"block","then":{"resched":true}}"#],
            "f:6: `block` has no `resched`",
        ),
        (
            vec![RESET, r#"{"at":0,"op":"task","task":1,"weight":0,"slice":1}"#],
            "f:3: `weight` is 0",
        ),
        (
            vec![RESET, r#"{"at":0,"op":"task","task":1,"weight":1,"slice":1,"begin":0}"#],
            "f:3: `begin` and `program`",
        ),
        (vec![RESET, "", TASK], "f:3: EOF"),
        (vec![RESET, "[]"], "f:3: "),
        (vec![RESET, "{\"at\":0,\"op\":\"\u{0}\"}"], "f:3: control character"),
    ] {
        let all: Vec<&str> = [HISTORY].into_iter().chain(lines).collect();
        let why = refused(&all);
        assert!(why.starts_with(what), "{why}, not {what}");
        assert!(why.contains(';'), "{why} says not what to do");
    }
}

#[test]
fn a_header_or_a_scenario_that_makes_no_sense_is_refused() {
    let changed = |header: &str, from: &str, to: &str| header.replace(from, to);
    let task =
        r#"{"at":0,"op":"task","task":1,"weight":1,"slice":1,"begin":0,"program":[["run",5]]}"#;
    for (header, lines, what) in [
        (String::new(), vec![], "f:1: this is no header"),
        ("{".repeat(200_000), vec![], "f:1: this is no header"),
        (changed(HISTORY, ":1,", ":2,"), vec![], "f:1: format 2 is unknown"),
        (changed(HISTORY, "[\"pick\"]", "[]"), vec![], "f:1: `properties` is empty"),
        (changed(HISTORY, "pick", "luck"), vec![], "f:1: this is no header: unknown variant"),
        (
            changed(HISTORY, "\"pick\"", "\"pick\",\"share\""),
            vec![],
            "f:1: `lag-bound` and `share` judge decisions alone, `pick` needs a subject",
        ),
        (changed(HISTORY, "\"h\"", "\"\""), vec![], "f:1: `name` is no plain text"),
        (
            changed(HISTORY, "\"source\"", "\"tick\":1,\"source\""),
            vec![],
            "f:1: `tick` is of scenarios",
        ),
        (
            changed(HISTORY, "\"source\"", "\"tolerance\":-1,\"source\""),
            vec![],
            "f:1: `tolerance` is -1",
        ),
        (changed(SCENARIO, "share", "place"), vec![], "f:1: a scenario cannot test `place`"),
        (changed(SCENARIO, "\"tick\":1000,", ""), vec![], "f:1: `tick` is missing"),
        (changed(SCENARIO, "\"tick\":1000", "\"tick\":0"), vec![], "f:1: `tick` is 0"),
        (SCENARIO.into(), vec![], "f:1: no task follows"),
        (SCENARIO.into(), vec![task, task], "f:3: task 1 exists"),
        (SCENARIO.into(), vec![RESET], "f:2: a scenario has only `task` lines"),
        (SCENARIO.into(), vec![TASK], "f:2: `begin` is missing"),
        (
            changed(SCENARIO, "1000000", "4611686018427387903"),
            vec![task],
            "f:2: this can take more than",
        ),
    ] {
        let all: Vec<&str> = [header.as_str()].into_iter().chain(lines).collect();
        let why = refused(&all);
        assert!(why.starts_with(what), "{why}, not {what}");
    }
    for (program, what) in [
        (r#"[]"#, "the program runs never"),
        (r#"[["sleep",1],["yield",0]]"#, "the program runs never"),
        (r#"[["run",0]]"#, "`run` is 0"),
        (r#"[["run",1],["weight",0]]"#, "`weight` is 0"),
        (r#"[["walk",1]]"#, "an action is none of"),
        (r#"[["run",1],["yield",0]]"#, "a task that yields gives up its share"),
        (r#"[["run",1,2]]"#, "trailing characters"),
    ] {
        let why = refused(&[SCENARIO, &task.replace(r#"[["run",5]]"#, program)]);
        assert!(why.contains(what), "{why}, not {what}");
    }
}

#[test]
fn a_line_of_100_mb_needs_no_memory() {
    /// A reader of endless digits.
    struct Digits(u64);
    impl std::io::Read for Digits {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let more = (to.len() as u64).min(100_000_000 - self.0) as usize;
            to[..more].fill(b'1');
            self.0 += more as u64;
            Ok(more)
        }
    }
    let why = Vector::parse("f", std::io::BufReader::new(Digits(0))).unwrap_err();
    assert!(why.to_string().starts_with("f:1: the line has more than 1048576 bytes;"), "{why}");
    let bytes: &[u8] = b"\xff\xfe\n";
    let why = Vector::parse("f", bytes).unwrap_err();
    assert!(why.to_string().starts_with("f:1: byte 0 is not UTF-8;"), "{why}");
}

#[test]
fn times_at_their_limits_do_not_overflow() {
    // One task of weight 1 runs for 2^62 ns: its virtual time is beyond what the format has.
    let lines = [
        HISTORY,
        RESET,
        r#"{"at":0,"op":"task","task":1,"weight":1,"slice":1000000000000,"vruntime":4611686018427387903}"#,
        r#"{"at":0,"op":"task","task":2,"weight":16777216,"slice":1}"#,
        r#"{"at":0,"op":"wake","task":1}"#,
        r#"{"at":0,"op":"wake","task":2}"#,
        r#"{"at":0,"op":"pick","then":{"runs":1}}"#,
        r#"{"at":4611686018427387903,"op":"tick"}"#,
        r#"{"at":4611686018427387903,"op":"block"}"#,
        r#"{"at":4611686018427387903,"op":"pick","then":{"runs":2}}"#,
    ];
    let vector = Vector::parse("f", (lines.join("\n") + "\n").as_bytes()).unwrap();
    for fault in Property::ALL.into_iter().map(Some).chain([None]) {
        play(&vector, &mut Reference::new(Options { fault, ..Options::default() }));
    }
}

#[test]
fn a_program_of_many_actions_that_need_no_time_does_not_overflow() {
    let scenario = SCENARIO.replace("share", "conserve");
    let yields = "[\"yield\",0],".repeat(40_000);
    let task = |task: u32| {
        format!(
            r#"{{"at":0,"op":"task","task":{task},"weight":1024,"slice":1,"begin":0,"program":[{yields}["run",900000]]}}"#
        )
    };
    let text = [scenario, task(1), task(2)].join("\n");
    let vector = Vector::parse("f", text.as_bytes()).unwrap();
    let outcome = play(&vector, &mut Reference::default());
    assert!(outcome.agrees() && outcome.events > 100_000, "{outcome:?}");
}

/// A small generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// Replaces, removes, doubles or swaps some bytes or lines.
fn mutate(random: &mut Random, text: &[u8]) -> Vec<u8> {
    const BYTES: &[u8] = b"0123456789-{}[]\",:.etrue \n\x00\xff";
    let mut bytes = text.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] = BYTES[random.below(BYTES.len())],
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, BYTES[random.below(BYTES.len())]),
            3 => {
                // A digit becomes another number.
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    let numbers = ["0", "-1", "4611686018427387903", "99999999999999999999", "7"];
                    let number = numbers[random.below(numbers.len())];
                    bytes.splice(at + digit..=at + digit, number.bytes());
                }
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
                let (one, other) = (random.below(lines.len()), random.below(lines.len()));
                match random.below(3) {
                    0 => lines.swap(one, other),
                    1 => drop(lines.remove(one)),
                    _ => lines.insert(one, lines[other]),
                }
                bytes = lines.join(&b'\n');
            }
        }
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[test]
fn mutated_vectors_and_answers_do_not_panic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [
        "canaries/unchanged/by-hand-two.jsonl",
        "canaries/unchanged/by-hand-changes.jsonl",
        "vectors/eevdf/idle.jsonl",
        "vectors/proportional/conserve.jsonl",
    ];
    let (mut random, mut read) = (Random(1), 0);
    for file in files {
        let text = std::fs::read(root.join(file)).unwrap();
        for round in 0..2000 {
            let mutated = mutate(&mut random, &text);
            if let Ok(vector) = Vector::parse("f", mutated.as_slice()) {
                read += 1;
                // Long scenarios only now and then.
                if file.starts_with("canaries") || round % 40 == 0 {
                    play(&vector, &mut Reference::default());
                }
            }
        }
    }
    assert!(read > 500, "only {read} can be read");
    let answer = br#"{"runs":1,"resched":true,"tasks":[{"task":1,"vruntime":-5,"eligible":true}]}"#;
    for _ in 0..5000 {
        if let Ok(text) = String::from_utf8(mutate(&mut random, answer)) {
            let _ = Answer::parse(&text);
            let _ = Event::parse(&text);
        }
    }
}

#[test]
fn a_served_subject_answers_what_it_cannot_read() {
    let history = b"{\"at\":0,\"op\":\"reset\",\"tick\":1,\"slice\":1}\nwhat\n{\"at\":0,\"op\":\"wake\",\"task\":9}\n{\"at\":0,\"op\":\"pick\"}\n";
    let mut out = Vec::new();
    serve(&mut Reference::default(), Cursor::new(history), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    assert_eq!((lines[0], lines[3]), ("{}", "{\"runs\":0}"));
    assert!(lines[1].starts_with("{\"error\":\"expected value at column 1"), "{out}");
    assert_eq!(lines[2], "{\"error\":\"task 9 is unknown\"}");
}
