//! The linker finds `kernel.ld` from wherever cargo starts it.

fn main() {
    println!("cargo::rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=kernel.ld");
}
