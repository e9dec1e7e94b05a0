//! `schedlab conform --vectors`: our fair policies decide as the kernels did, and what does not is
//! found.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors")
}

/// The exit code, the rows, and standard error.
fn conform(policy: &str, path: &Path) -> (Option<i32>, Vec<Value>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.args(["conform", policy, "--format", "json", "--vectors"]).arg(path);
    let output = command.output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rows = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (output.status.code(), rows, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn count(rows: &[Value], verdict: &str) -> usize {
    rows.iter().filter(|row| row["verdict"] == verdict).count()
}

fn compared(rows: &[Value]) -> u64 {
    let counts = rows.iter().filter_map(|row| row["compared"].as_object());
    counts.flat_map(|counts| counts.values().filter_map(Value::as_u64)).sum()
}

#[test]
fn eevdf_decides_as_linux_6_18() {
    let (code, rows, wrong) = conform("eevdf", &vectors().join("linux-6.18"));
    assert_eq!((code, rows.len()), (Some(0), 12), "{wrong}");
    // A request that changes, and time between a yield and its pick, are not of this seam.
    assert!(count(&rows, "agree") >= 10 && count(&rows, "differ") == 0, "{rows:#?}");
    assert!(compared(&rows) > 5_000, "{rows:#?}");
}

#[test]
fn cfs_decides_as_linux_6_1() {
    let (code, rows, wrong) = conform("cfs", &vectors().join("linux-6.1"));
    assert_eq!((code, rows.len()), (Some(0), 12), "{wrong}");
    assert!(count(&rows, "agree") >= 10 && count(&rows, "differ") == 0, "{rows:#?}");
    assert!(compared(&rows) > 1_500, "{rows:#?}");
}

#[test]
fn what_any_fair_scheduler_owes_is_given_by_some() {
    for (policy, is_fair) in [("eevdf", true), ("cfs", true), ("stride", true), ("fifo", false)] {
        let (code, rows, wrong) = conform(policy, &vectors().join("proportional"));
        assert_eq!(code, Some(if is_fair { 0 } else { 4 }), "{policy}: {wrong} {rows:#?}");
        assert_eq!(count(&rows, "differ") == 0, is_fair, "{policy}: {rows:#?}");
    }
}

/// The counts in the kit's README are those of today.
#[test]
fn the_readme_counts_right() {
    let readme = std::fs::read_to_string(vectors().join("../README.md")).expect("a text");
    for (policy, kernel, column) in
        [("cfs", "6.1", 2), ("eevdf", "6.12", 3), ("eevdf", "6.18", 4), ("eevdf", "7.3", 5)]
    {
        let (_, rows, _) = conform(policy, &vectors().join(format!("linux-{kernel}")));
        let [agree, differ, refused] =
            ["agree", "differ", "refused"].map(|word| count(&rows, word));
        let counts = format!("{agree} / {differ} / {refused}");
        let row =
            readme.lines().find(|line| line.starts_with(&format!("| `schedlab`'s `{policy}`")));
        let cell = row.and_then(|row| row.split('|').nth(column)).unwrap_or_default().trim();
        assert_eq!(cell, counts, "{policy}, Linux {kernel}");
    }
}

/// Another kernel's policy, another option, another expectation: each is a difference.
#[test]
fn what_is_not_that_kernel_is_found() {
    for policy in ["cfs", "eevdf?delay=no", "rr"] {
        let (code, rows, wrong) = conform(policy, &vectors().join("linux-6.18/debts.jsonl"));
        assert_eq!((code, count(&rows, "differ")), (Some(4), 1), "{policy}: {wrong} {rows:#?}");
        assert!(wrong.contains("linux-6.18/debts"), "{wrong}");
    }
    let place = tempfile::tempdir().expect("a folder");
    let (file, text) = (place.path().join("changed.jsonl"), vectors().join("linux-6.1/nice.jsonl"));
    let text = std::fs::read_to_string(text).expect("a vector");
    let line = 1 + text.lines().position(|line| line.contains(r#""runs":2"#)).expect("a pick");
    std::fs::write(&file, text.replacen(r#""runs":2"#, r#""runs":1"#, 1)).expect("written");
    let (code, rows, _) = conform("cfs", &file);
    assert_eq!(
        (code, &rows[0]["line"], &rows[0]["property"]),
        (Some(4), &line.into(), &"pick".into())
    );
}

#[test]
fn what_cannot_be_played_says_so() {
    let (code, _, wrong) = conform("eevdf", Path::new("no/such/place"));
    assert_eq!(code, Some(3), "{wrong}");
    assert!(wrong.contains("no/such/place"), "{wrong}");
    let (code, _, wrong) = conform("kernel:other", &vectors());
    assert_eq!(code, Some(2), "{wrong}");
    assert!(wrong.contains("schedlab-vectors"), "{wrong}");
}
