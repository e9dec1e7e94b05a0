//! Compiles each `bpf/NAME.bpf.c`, and writes the table of them that `objects.rs` includes.

#[path = "build/bpf.rs"]
mod bpf;

use bpf::Compiler;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = Compiler::new(&out, "v4");
    let mut table = String::from("&[\n");
    for source in sources() {
        let name = source
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".bpf.c"))
            .expect("it ends so");
        let object = out.join(format!("{name}.bpf.o"));
        compiler.compile(&source, &object);
        let _ =
            writeln!(table, "    ({name:?}, include_bytes!({:?})),", object.display().to_string());
    }
    fs::write(out.join("objects.rs"), table + "]").expect("OUT_DIR can be written to");
    // Guests read and hash this program, and nine tenths of it would be debug information.
    println!("cargo::rustc-link-arg-bins=-Wl,--strip-debug");
}

fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new("bpf")).expect("bpf/ is beside this file");
    let mut sources: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    sources.sort();
    sources
}
