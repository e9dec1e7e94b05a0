//! Any image that makes marks: a kernel of a hundred lines, built here, says what it takes. Skipped
//! by name where QEMU cannot be had.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Builds `marks-kernel`, without a network.
fn kernel() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../marks-kernel");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("marks-kernel");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--locked", "--quiet", "--target-dir"]).arg(&target);
    // What cargo says of the build of this test is not for that one.
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTFLAGS").current_dir(folder);
    let built = cargo.output().expect("cargo starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("x86_64-unknown-none/debug/marks-kernel")
}

fn image(file: &Path, more: &[&str]) -> Output {
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab.arg("image").arg(file).args(more).output().expect("it starts")
}

/// `bytes` with each `from`, of which there must be one at least, replaced.
fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut patched = bytes.to_vec();
    let is_there = |at: &usize| bytes[*at..].starts_with(from);
    let places: Vec<usize> = (0..bytes.len()).filter(is_there).collect();
    assert!(!places.is_empty(), "{from:x?}");
    places.iter().for_each(|&at| patched[at..at + to.len()].copy_from_slice(to));
    patched
}

/// Of each window in turn: instructions and nanoseconds.
fn windows(output: &Output) -> Vec<(i64, i64)> {
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let values = |metric: &str| -> Vec<i64> {
        let rows = rows.iter().filter(|row| row["metric"] == metric);
        rows.map(|row| row["value"].as_f64().expect("a number") as i64).collect()
    };
    values("window_instructions").into_iter().zip(values("window_ns")).collect()
}

/// An ELF file of 32 bits with a Multiboot header, and `code` behind it.
fn image_of_32_bits(code: &[u8]) -> Vec<u8> {
    const BASE: u32 = 0x10_0000;
    const HEADERS: usize = 52 + 32;
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let multiboot = words(&[0x1bad_b002, 0, 0u32.wrapping_sub(0x1bad_b002)]);
    let length = (HEADERS + multiboot.len() + code.len()) as u32;
    let entry = BASE + (HEADERS + multiboot.len()) as u32;
    let begin = [&b"\x7fELF\x01\x01\x01"[..], &[0; 9]].concat();
    // For the 386, to be run, with one header of a segment and none of sections.
    let numbers = [0x0003_0002, 1, entry, 52, 0, 0, 0x0020_0034, 1, 0];
    let segment = [1, 0, BASE, BASE, length, length, 7, 4096];
    [begin, words(&numbers), words(&segment), multiboot, code.to_vec()].concat()
}

#[test]
fn code_of_32_bits_makes_marks_with_numbers_of_32_bits() {
    const NUMBER: [u8; 5] = [0xbf, 0x07, 0x00, 0x00, 0x80];
    let mark = |kind| {
        [&NUMBER[..], &[0x0f, 0x31, 0x66, 0x0f, 0x1f, 0x84, 0, kind, 0x1a, 0xed, 0x5c]].concat()
    };
    let reset = vec![0xb0, 0xfe, 0xe6, 0x64, 0xeb, 0xfc];
    let code = [mark(0xb0), vec![0x90; 40], mark(0xb1), reset].concat();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("image");
    fs::write(&file, image_of_32_bits(&code)).expect("it is written");
    let output = image(&file, &["--format", "json"]);
    if output.status.code() == Some(77) {
        return eprintln!("skipped: images: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // 40 no-operations, and the two instructions that make the end.
    assert_eq!(windows(&output), [(42, 43)]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["rows"][0]["point"]["window"].as_f64(), Some(f64::from(0x8000_0007u32)));
}

#[test]
fn an_image_gets_the_instructions_that_it_runs_and_their_time() {
    let kernel = kernel();
    let first = image(&kernel, &["--format", "json"]);
    if first.status.code() == Some(77) {
        return eprintln!("skipped: images: {}", String::from_utf8_lossy(&first.stderr));
    }
    let error = String::from_utf8_lossy(&first.stderr);
    assert!(first.status.success(), "{error}");
    let all = windows(&first);
    let [(empty, _), (counted, _), (list, _), (tree, _)] = all[..] else {
        panic!("four windows: {all:?}")
    };
    assert!((2..=3).contains(&empty), "what makes a mark: {empty}");
    // A loop of two instructions, 10,000 times, and what makes its counter and the mark.
    assert!((20_002..=20_005).contains(&counted), "{counted}");
    assert!(list > 10_000 && tree > 2 * list, "slices of two queues: {list} and {tree}");
    let is_timed = |(instructions, ns): &(i64, i64)| *ns == instructions + 1;
    assert!(all.iter().all(is_timed), "an instruction a nanosecond: {all:?}");
    let results = tempfile::tempdir().expect("a folder");
    let directory = results.path().join("results");
    let text = image(&kernel, &["-o", &directory.display().to_string()]);
    let report = fs::read_to_string(directory.join("report.html")).expect("a report");
    assert!(report.contains(&counted.to_string()), "the report has the window's instructions");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("8 tasks, 1000 slices, order"), "{text}");

    // The same image with one pass more has two instructions more, and nothing else changes.
    let bytes = fs::read(&kernel).expect("the kernel");
    let folder = tempfile::tempdir().expect("a folder");
    let with = |name: &str, bytes: Vec<u8>| {
        let file = folder.path().join(name);
        fs::write(&file, bytes).expect("it is written");
        file
    };
    let dec = [0, 0, 0x48, 0xff];
    let longer = patched(&bytes, &[&[0x10, 0x27], &dec[..]].concat(), &[0x11, 0x27]);
    let longer = windows(&image(&with("longer", longer), &["--format", "json"]));
    let mut expected = all.clone();
    expected[1] = (all[1].0 + 2, all[1].1 + 2);
    assert_eq!(longer, expected);

    for (name, bytes, code, says) in [
        ("text", b"#!/bin/sh\n".to_vec(), 3, "no image that can be started"),
        ("no-header", b"\x7fELF and nothing".to_vec(), 3, "no-header: "),
        // It resets nothing, and goes on for ever.
        ("endless", patched(&bytes, &[0xe6, 0x64], &[0xe6, 0x80]), 5, "was not done"),
        // Its windows have no ends.
        (
            "no-end",
            patched(&bytes, &[0xb1, 0x1a, 0xed, 0x5c], &[0xb9, 0x1a, 0xed, 0x5c]),
            3,
            "begins and does not end",
        ),
    ] {
        let refused = image(&with(name, bytes), &["--limit", "3s"]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(code), "{name}: {error}");
        assert!(error.contains(says) && refused.stdout.is_empty(), "{name}: {error}");
    }
}
