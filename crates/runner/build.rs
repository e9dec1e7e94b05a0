//! Reports the folder of this package as `DEP_SCHEDLAB_RUNNER_FOLDER`, so that the build script of
//! `schedlab-worlds` can build the program in it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!(
        "cargo::metadata=folder={}",
        std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")
    );
}
