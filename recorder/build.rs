//! Compiles `bpf/recorder.bpf.c`.

#[path = "build/bpf.rs"]
mod bpf;

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // Linux 6.1 has no instructions of v4.
    let compiler = bpf::Compiler::new(&out, "v3");
    compiler.compile(Path::new("bpf/recorder.bpf.c"), &out.join("recorder.bpf.o"));
}
