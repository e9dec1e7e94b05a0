//! What `make lab` compiles before its first table: a list, so that nothing heavy comes in unseen.

use std::collections::BTreeSet;
use std::process::Command;

/// The packages that stand on the way to the first table.
const LIST: &str = include_str!("first_table.txt");

#[test]
fn only_the_packages_of_the_list_stand_on_the_way_to_the_first_table() {
    let listed: BTreeSet<String> = LIST.lines().map(String::from).collect();
    let current = packages(&["--no-default-features"]);
    assert!(
        current == listed,
        "`make lab` compiles packages that first_table.txt does not list: {:?}; listed, but gone: \
         {:?}. A heavy one belongs behind a feature; else update the list: cargo tree -p schedlab \
         --no-default-features -e normal,build",
        current.difference(&listed).collect::<Vec<_>>(),
        listed.difference(&current).collect::<Vec<_>>(),
    );
}

/// The list would notice Parquet: with default features it does.
#[test]
fn the_full_build_compiles_packages_that_the_list_does_not_have() {
    let full = packages(&[]);
    for heavy in ["parquet", "schedlab-papers"] {
        assert!(full.contains(heavy), "{heavy} is not in the full build");
        assert!(!LIST.lines().any(|name| name == heavy), "{heavy} is on the list");
    }
}

/// Optimisation or debug information would double the time to the first table.
#[test]
fn the_profile_of_make_lab_neither_optimises_nor_writes_debug_information() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let read = |name: &str| std::fs::read_to_string(format!("{root}{name}")).unwrap();
    let build =
        read("Makefile").lines().find(|line| line.contains("cargo build")).map(String::from);
    assert!(build.unwrap().contains("--profile lab --locked -p schedlab --no-default-features"));
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let lab = manifest["profile"]["lab"].as_table().unwrap();
    let quick: toml::Table = "inherits = 'release'\nopt-level = 0\ndebug = false\n\
                              codegen-units = 256\nincremental = true"
        .parse()
        .unwrap();
    assert_eq!(lab, &quick, "another profile: measure `make lab` from a fresh clone again");
}

/// The names of what cargo compiles for the program with these options.
fn packages(options: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs this test");
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "-p", "schedlab", "-e", "normal,build", "--prefix", "none"]);
    command.args(["--format", "{p}"]).args(options).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
}
