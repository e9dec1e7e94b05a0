//! Passes on how much this crate is optimised, to which the queues are compiled.

fn main() {
    let level = std::env::var("OPT_LEVEL").expect("cargo sets it");
    println!("cargo::rustc-env=SCHEDLAB_OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
