//! A compiler of C.

use std::path::Path;
use std::process::Command;

/// The object of a scheduler that includes `kernel.h`.
pub fn compile(source: &str) -> Vec<u8> {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedlab/tests/compiled");
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("trial.bpf.c"), folder.path().join("trial.bpf.o"));
    std::fs::write(&from, source).expect("a source");
    let output = Command::new("clang-19")
        .args(["-target", "bpf", "-g", "-O2", "-mcpu=v3", "-Wall", "-Wno-unused", "-I"])
        .arg(headers)
        .arg("-c")
        .arg(&from)
        .arg("-o")
        .arg(&to)
        .output()
        .unwrap_or_else(|error| panic!("clang-19 is needed: apt-get install clang-19 ({error})"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(&to).expect("the object")
}
