//! The built-in runner consists of the description of workloads and its own code, wherever it is
//! built.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's packages that `package` is made of, itself included, as folders.
fn made_of(package: &str) -> BTreeSet<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo
        .args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"])
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let mut folders = BTreeSet::new();
    let mut names = vec![package.to_string()];
    while let Some(name) = names.pop() {
        let package = packages
            .iter()
            .find(|package| package["name"] == name.as_str())
            .expect("a member of the workspace");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        if folders.insert(manifest.with_file_name("")) {
            let needs = package["dependencies"]
                .as_array()
                .expect("a list")
                .iter()
                .filter(|need| need["path"].is_string());
            names.extend(
                needs
                    .filter(|need| need["kind"].is_null())
                    .map(|need| need["name"].as_str().expect("a name").to_string()),
            );
        }
    }
    folders
}

fn names(folders: &BTreeSet<PathBuf>) -> Vec<&str> {
    folders.iter().filter_map(|folder| folder.file_name()?.to_str()).collect()
}

/// Where the build script of the program put its results.
fn out() -> &'static Path {
    Path::new(env!("OUT_DIR"))
}

#[test]
fn the_runner_is_made_of_the_description_of_workloads_and_no_simulator() {
    assert_eq!(names(&made_of("schedlab-runner")), ["phases", "runner"]);
    // The canary: the simulator is seen where it is needed.
    assert_eq!(names(&made_of("schedsim")), ["phases", "readyq", "schedsim"]);
}

#[test]
fn the_runner_is_built_again_when_what_it_is_made_of_changes_and_only_then() {
    let output =
        fs::read_to_string(out().with_file_name("output")).expect("what the build script said");
    let watched: BTreeSet<PathBuf> = output
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .filter(|path| !path.starts_with("guest/"))
        .map(PathBuf::from)
        .collect();
    let folders = made_of("schedlab-runner");
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout");
    let mut expected: BTreeSet<PathBuf> =
        folders.iter().flat_map(|folder| [folder.join("src"), folder.join("Cargo.toml")]).collect();
    expected.extend([root.join("Cargo.toml"), root.join("Cargo.lock")]);
    assert_eq!(watched, expected);
}

/// With a folder's name in the runner, every clone would have other bytes.
#[test]
fn the_runner_names_no_folder_of_the_machine_that_built_it() {
    let has = |bytes: &[u8], text: &str| {
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let (home, checkout) =
        (env!("HOME"), env!("CARGO_MANIFEST_DIR").trim_end_matches("/crates/schedlab"));
    let runner = fs::read(out().join("runner")).expect("the runner");
    assert!(!runner.is_empty(), "the runner could not be built");
    for folder in [checkout, home] {
        assert!(!has(&runner, &format!("{folder}/")), "the runner names {folder}");
    }
    // The canary: a program that is built as usual names both.
    let own = fs::read(std::env::current_exe().expect("a path")).expect("this test");
    assert!(has(&own, checkout) && has(&own, "/registry/src/"));
}
