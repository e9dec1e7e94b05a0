//! The linker finds the script of the teaching kernel from wherever cargo starts it.

fn main() {
    let port = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/teaching/src/port");
    println!("cargo::rustc-link-search={port}");
    println!("cargo::rerun-if-changed={port}");
}
