//! The build behind `make lab`, without default features: the same rows as the full build, and an
//! error that names the feature for everything that it lacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

const RECORDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/redis.perf-script.txt.zst");
const FULL: &str = env!("CARGO_BIN_EXE_schedlab");

/// Built as `make lab` builds it.
static SMALL: LazyLock<PathBuf> = LazyLock::new(|| {
    let makefile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile");
    let makefile = fs::read_to_string(makefile).unwrap();
    let line = makefile.lines().find_map(|line| line.trim().strip_prefix("cargo ")).unwrap();
    assert!(line.contains("--no-default-features"), "the first build in the Makefile is {line}");
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs this test"));
    cargo.args(line.split_whitespace()).args(["--quiet", "--message-format=json"]);
    let (messages, _) = succeeded(cargo.output().unwrap());
    let (_, rest) = messages.rsplit_once("\"executable\":\"").expect("cargo names the executable");
    PathBuf::from(rest.split_once('"').unwrap().0)
});

#[test]
fn both_builds_give_the_same_rows_and_only_the_full_one_writes_parquet() {
    let scratch = tempfile::tempdir().unwrap();
    let [ours, full] = ["small", "full"].map(|name| scratch.path().join(name).join("out"));
    for directory in [&ours, &full] {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("results.parquet"), "the rows of an earlier command").unwrap();
    }
    let (table, words) = compare(&SMALL, &ours);
    let (full_table, full_words) = compare(Path::new(FULL), &full);
    assert_eq!(table, full_table);
    for file in ["results.csv", "results.json", "distributions.json"] {
        let read = |directory: &PathBuf| fs::read_to_string(directory.join(file)).unwrap();
        assert!(read(&ours) == read(&full), "{file} differs");
    }
    assert!(!ours.join("results.parquet").exists(), "it has the rows of an earlier command");
    assert!(fs::read(full.join("results.parquet")).unwrap().starts_with(b"PAR1"));
    assert!(words.contains("not as Parquet") && words.contains("`parquet`"), "{words}");
    assert!(!full_words.contains("this build"), "{full_words}");
}

#[test]
fn the_small_build_names_what_it_lacks() {
    let version =
        |program: &Path| succeeded(Command::new(program).arg("--version").output().unwrap()).0;
    let (small, full) = (version(&SMALL), version(Path::new(FULL)));
    assert!(small.contains("built without these features: papers, parquet, runner;"), "{small}");
    assert!(!full.contains("built without"), "{full}");
    let scratch = tempfile::tempdir().unwrap();
    for (arguments, feature) in [
        (&["reproduce", "--quick", "no-such-paper"][..], "papers"),
        (&["sweep", "no-such-grid.toml"], "parquet"),
        (&["compare", "hackbench:1", "--on", "vm"], "runner"),
        (&["compare", "hackbench:1", "--on", "host"], "runner"),
    ] {
        let mut command = Command::new(&*SMALL);
        let output = command.args(arguments).current_dir(&scratch).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(77), "{arguments:?}: {words}");
        for part in [format!("`{feature}`"), "cargo build --release -p schedlab".to_string()] {
            assert!(words.contains(&part), "{arguments:?} does not say {part}: {words}");
        }
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "it left files behind");
}

/// Compares in `directory`, whose name is not in the results.
fn compare(program: &Path, directory: &Path) -> (String, String) {
    let mut command = Command::new(program);
    command.args(["compare", RECORDING, "--policy", "take:rr", "--ensemble", "2", "-o", "out"]);
    succeeded(command.current_dir(directory.parent().unwrap()).output().unwrap())
}

/// The two streams of a program that succeeded.
fn succeeded(output: Output) -> (String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (out, words) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{words}");
    (out, words)
}
