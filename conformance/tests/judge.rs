//! Judging: what real kernels decided keeps what it must, and what does not is found at its line.

use std::path::{Path, PathBuf};
use std::process::Command;
use vectors::{Judging, Outcome, Property, Reference, Vector, Verdict, files, judge, play};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The histories of real kernels.
fn kernels() -> Vec<PathBuf> {
    let all = files(&[folder("vectors")]).unwrap();
    let is_kernel = |file: &PathBuf| file.to_str().is_some_and(|name| name.contains("/linux-"));
    let kernels: Vec<PathBuf> = all.into_iter().filter(is_kernel).collect();
    assert!(kernels.len() >= 44, "{} histories", kernels.len());
    kernels
}

fn judged(text: &str, judging: &Judging) -> Outcome {
    judge(&Vector::parse_to_judge("test", text.as_bytes()).unwrap(), judging)
}

fn claiming(name: &str) -> Judging {
    Judging { claims: Some(name.to_string()), ..Judging::default() }
}

/// Property and line of the difference.
fn found(outcome: &Outcome) -> Option<(Property, usize)> {
    outcome.difference().map(|at| (at.property, at.line))
}

#[test]
fn each_real_kernel_conserves_and_the_eevdf_ones_keep_their_bounds() {
    let mut lags = 0;
    for file in kernels() {
        let vector = Vector::read_to_judge(&file).unwrap();
        let outcome = judge(&vector, &Judging::default());
        assert_eq!(outcome.verdict, Verdict::Agree, "{}", file.display());
        assert!(outcome.compared[Property::Conserve as usize] > 0, "{}", file.display());
        if vector.header.claims.starts_with("linux-6.1") && vector.header.claims.ends_with("eevdf")
        {
            let outcome = judge(&vector, &claiming("eevdf"));
            assert_eq!(outcome.verdict, Verdict::Agree, "{} as EEVDF", file.display());
            lags += outcome.compared[Property::LagBound as usize];
        }
    }
    assert!(lags > 500, "{lags} lags");
}

/// Each pick of each kernel, changed to a sleeper and to nobody, is found at just that line.
#[test]
fn a_changed_pick_fails_conserve_at_its_line() {
    let mut changed = 0;
    for file in kernels() {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (mut tasks, mut ready, mut running) = (Vec::new(), Vec::new(), 0);
        for (place, line) in lines.iter().enumerate() {
            let task = line["task"].as_u64().unwrap_or(0);
            match line["op"].as_str() {
                Some("task") => tasks.push(task),
                Some("wake" | "new") => ready.push(task),
                Some("block" | "exit") => ready.retain(|&other| other != running),
                Some("pick") => {
                    running = line["then"]["runs"].as_u64().unwrap();
                    let sleeper = tasks.iter().find(|task| !ready.contains(task)).copied();
                    let nobody = (running != 0).then_some(0);
                    for runs in sleeper.into_iter().chain(nobody) {
                        let mut lines = lines.clone();
                        lines[place]["then"]["runs"] = runs.into();
                        let text: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
                        let outcome = judged(&text.join("\n"), &Judging::default());
                        let expected = Some((Property::Conserve, place + 1));
                        assert_eq!(found(&outcome), expected, "{}: {runs}", file.display());
                        changed += 1;
                    }
                }
                _ => {}
            }
        }
    }
    assert!(changed > 1000, "{changed} changed picks");
}

/// Two tasks of weights 1024 and 3072 that never sleep, each with its runs, in ms.
fn hogs(properties: &str, known: (i64, i64), runs: &[(u32, i64)]) -> String {
    let (tick, slice) = known;
    let mut text = format!(
        r#"{{"format":1,"name":"hogs","kind":"history","claims":"proportional","properties":[{properties}],"source":"by hand","tolerance":20000000}}
{{"at":0,"op":"reset","tick":{tick},"slice":{slice}}}
{{"at":0,"op":"task","task":1,"weight":1024,"slice":{slice}}}
{{"at":0,"op":"task","task":2,"weight":3072,"slice":{slice}}}
{{"at":0,"op":"new","task":1}}
{{"at":0,"op":"new","task":2}}
"#
    );
    let mut at = 0;
    for (task, run) in runs {
        text += &format!("{{\"at\":{at},\"op\":\"pick\",\"then\":{{\"runs\":{task}}}}}\n");
        at += run * 1_000_000;
    }
    text + &format!("{{\"at\":{at},\"op\":\"tick\"}}\n")
}

#[test]
fn shares_are_held_against_weights() {
    let judged =
        |runs: &[(u32, i64)]| judged(&hogs(r#""share""#, (1, 1), runs), &Judging::default());
    // A quarter and three quarters of 400 ms.
    let fair = judged(&[(1, 10), (2, 30)].repeat(10));
    assert_eq!(fair.verdict, Verdict::Agree);
    assert_eq!(fair.compared[Property::Share as usize], 2);
    // A half: 200 ms, where 100 ± 20 are due. Found at the last line.
    let equal = judged(&[(1, 10), (2, 10)].repeat(20));
    assert_eq!(found(&equal), Some((Property::Share, 6 + 40 + 1)));
    let at = equal.difference().unwrap();
    assert_eq!(at.expected, "task 1 gets 100000000 ns by its weight, ± 20000000");
    assert_eq!(at.got, "200000000 ns");
    // In 20 ms nobody can be 20 ms off: nothing is compared.
    assert_eq!(judged(&[(1, 20)]).compared[Property::Share as usize], 0);
}

/// With a tick of 4 ms and requests of 3 ms, task 1 may be 7 ms ahead, and behind by
/// 1/4 × (4 + 3 × 3) = 3.25 ms, rounded up; task 2 behind by 3/4 × (4 + 3) = 5.25 ms. A kernel may
/// take 1 ms more.
#[test]
fn lags_are_held_against_their_bounds() {
    let eevdf = Judging { tolerance: Some(2_000_000), ..claiming("eevdf") };
    let judged =
        |known, runs: &[(u32, i64)]| judged(&hogs(r#""share","lag-bound""#, known, runs), &eevdf);
    let known = (4_000_000, 3_000_000);
    // After 8 ms, task 1 is 6 ms ahead, and task 2 as much behind.
    assert_eq!(found(&judged(known, &[(1, 8), (2, 24)].repeat(9))), None);
    // After 9 ms it is 6.75 ms.
    let late = judged(known, &[(2, 3), (1, 10), (2, 1)]);
    assert_eq!(found(&late), Some((Property::LagBound, 6 + 3)));
    let at = late.difference().unwrap();
    assert_eq!(at.expected, "task 2 has a lag of -8000000 to 6250000 ns");
    assert_eq!(at.got, "6750000 ns");
    // Without tick and request there is no bound to hold it against.
    assert!(matches!(judged((1, 1), &[(1, 8)]).verdict, Verdict::Refused(_)));
}

#[test]
fn a_task_that_ends_is_held_to_its_share_by_then() {
    let header = |exit: &str| hogs(r#""share""#, (1, 1), &[(1, 100)]).replace(r#""tick"}"#, exit);
    let outcome = judged(&header(r#""exit"}"#), &Judging::default());
    assert_eq!(found(&outcome), Some((Property::Share, 8)));
    // Who sleeps is not held to anything.
    assert_eq!(found(&judged(&header(r#""block"}"#), &Judging::default())), None);
}

#[test]
fn a_cpu_that_idles_for_long_before_its_pick_does_not_conserve() {
    for (at, expected) in [(10_000_000, None), (10_000_001, Some((Property::Conserve, 7)))] {
        let text = hogs(r#""share""#, (1, 1), &[(1, 20)])
            .replace(r#"{"at":0,"op":"pick""#, &format!(r#"{{"at":{at},"op":"pick""#));
        assert_eq!(found(&judged(&text, &Judging::default())), expected);
    }
}

#[test]
fn what_is_to_be_judged_is_not_played_and_the_other_way_round() {
    let text = hogs(r#""share""#, (1, 1), &[(1, 1)]);
    let vector = Vector::parse("test", text.as_bytes()).unwrap();
    assert!(matches!(play(&vector, &mut Reference::default()).verdict, Verdict::Refused(_)));
    let why = Vector::parse("test", hogs(r#""share","pick""#, (1, 1), &[]).as_bytes()).unwrap_err();
    assert!(why.to_string().contains("`pick` needs a subject"), "{why}");
    let scenario = Vector::read(&folder("vectors/proportional/nice.jsonl")).unwrap();
    assert!(matches!(judge(&scenario, &Judging::default()).verdict, Verdict::Refused(_)));
}

#[test]
fn the_command_judges_with_the_exit_codes_of_playing() {
    let run = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_schedlab-vectors");
        let output = Command::new(program).args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let weights = folder("vectors/linux-6.18/weights.jsonl");
    let weights = weights.to_str().unwrap();
    let (code, out, _) = run(&["--judge", "--claims", "eevdf", "--json", weights]);
    assert_eq!(code, Some(0));
    let row: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(row["compared"]["lag-bound"].as_u64().unwrap() > 0, "{row}");
    // A request of 100 ns and a tick of 1 us: no kernel with ticks of 4 ms is within that.
    let strict = ["--judge", "--claims", "eevdf", "--tick", "1us", "--slice", "100ns", weights];
    let (code, out, _) = run(&strict);
    assert_eq!(code, Some(4));
    assert!(out.contains(", lag-bound, after "), "{out}");
    let (code, out, _) = run(&["--judge", folder("vectors/eevdf").to_str().unwrap()]);
    assert_eq!(code, Some(4), "all are scenarios");
    assert!(out.contains("0 agree, 0 differ, 15 refused"), "{out}");
    for (wrong, what) in [
        (&["--judge"][..], "--judge needs a history"),
        (&["--tick", "4ms"], "are of --judge"),
        (&["--judge", "--tick", "4", weights], "--tick 4: give a duration"),
        (&["--judge", "--slice", "0ns", weights], "--slice 0ns: give a duration"),
        (&["--judge", "--tolerance", "9999999999999s", weights], "give a duration"),
        (&["--judge", "--fault", "pick", weights], "--judge plays nothing"),
    ] {
        let (code, _, error) = run(wrong);
        assert_eq!(code, Some(2), "{wrong:?}");
        assert!(error.contains(what), "{error}");
    }
}

/// Thousands of tasks that never sleep, and a sleeper that comes and goes: a judge that looked at
/// all pairs each time would not end.
#[test]
fn what_would_take_too_long_is_refused() {
    let (tasks, rounds) = (4096, 100);
    let mut text = hogs(r#""share""#, (4_000_000, 3_000_000), &[]);
    text.truncate(text.find(r#"{"at":0,"op":"new""#).unwrap());
    for task in 3..=tasks {
        text += &format!(r#"{{"at":0,"op":"task","task":{task},"weight":1024,"slice":3000000}}"#);
        text += "\n";
    }
    for task in 1..=tasks {
        text += &format!("{{\"at\":0,\"op\":\"new\",\"task\":{task}}}\n");
    }
    for at in 1..rounds {
        text += &format!("{{\"at\":{at},\"op\":\"pick\",\"then\":{{\"runs\":1}}}}\n");
        text += &format!("{{\"at\":{at},\"op\":\"block\"}}\n");
        text += &format!("{{\"at\":{at},\"op\":\"wake\",\"task\":1}}\n");
    }
    match judged(&text, &claiming("eevdf")).verdict {
        Verdict::Refused(why) => assert!(why.contains("judge a shorter part"), "{why}"),
        other => panic!("{other:?}"),
    }
    // Without bounds it is quick.
    let unknown = text.replace("3000000}", "1}");
    assert_eq!(judged(&unknown, &Judging::default()).verdict, Verdict::Agree);
}
