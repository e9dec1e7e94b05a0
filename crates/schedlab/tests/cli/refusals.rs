//! What is refused, with the place and the next step.

use super::{REDIS, Scratch, fails};
use std::fs;

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
