//! The linker finds the script of the board from wherever cargo starts it.

fn main() {
    println!("cargo::rustc-link-search={}/src/port", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=src/port");
}
