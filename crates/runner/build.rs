//! Says where this package is, so that the build script of `schedlab` can build the program in it: in `DEP_SCHEDLAB_RUNNER_FOLDER`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=folder={}", std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
}
