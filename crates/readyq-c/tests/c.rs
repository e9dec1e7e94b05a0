//! Tests the C side: the header is up to date, and a C program schedules with it.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_header_is_the_one_that_the_source_generates() {
    let mut generated = vec![];
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_src(here("src/lib.rs"))
        .with_config(config)
        .generate()
        .unwrap();
    bindings.write(&mut generated);
    let generated = String::from_utf8(generated).unwrap();
    let header = here("include/readyq.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&header, &generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&header).unwrap_or_default();
    assert_eq!(checked_in, generated, "run UPDATE_HEADER=1 cargo test -p readyq-c");
}

#[test]
fn a_c_program_schedules_with_it() {
    // Cargo puts the static library of this package next to the test programs' directory.
    let program = std::env::current_exe().unwrap();
    let deps = program.parent().unwrap();
    let newest = std::fs::read_dir(deps)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "a"))
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("libreadyq_c"))
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    let library = newest.expect("the static library is built with the tests");
    let binary = deps.join(format!("schedule-c-{}", std::process::id()));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut compile = Command::new(&compiler);
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]).arg("-I").arg(here("include"));
    compile
        .arg(here("tests/schedule.c"))
        .arg(&library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&binary);
    let compiled = compile
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; install a C compiler or set CC"));
    assert!(compiled.success(), "{compile:?}");
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_file(&binary).unwrap();
    assert_eq!(
        (String::from_utf8_lossy(&output.stdout).trim(), output.status.code()),
        ("ok", Some(0))
    );
}
