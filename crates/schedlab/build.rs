//! Builds the runner (`crates/runner`) as a static program, which `vm` puts into a guest, so that one file is all that a user needs.
//!
//! Where it cannot be built (not Linux on x86-64, no static C library) the program is built without it and says so when a guest is asked for.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let runner = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../runner");
    for input in ["src", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", runner.join(input).display());
    }
    let target = variable("TARGET");
    // Shared by all profiles, and not the directory that the cargo around this one has locked.
    let directory = out.ancestors().nth(4).unwrap_or(&out).join("runner");
    let flags = [
        "-Ctarget-feature=+crt-static".to_string(),
        "-Crelocation-model=static".to_string(),
        "-Cstrip=symbols".to_string(),
        format!("--remap-path-prefix={}=", runner.display()),
    ];
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", "schedlab-runner", "--bin", "schedlab-runner", "--target", &target]);
    cargo.arg("--manifest-path").arg(runner.join("Cargo.toml")).arg("--target-dir").arg(&directory);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTC_WRAPPER");
    let built = directory.join(&target).join("release/schedlab-runner");
    let into = out.join("runner");
    let done =
        target == "x86_64-unknown-linux-gnu" && cargo.status().is_ok_and(|status| status.success()) && std::fs::copy(&built, &into).is_ok();
    if !done {
        println!(
            "cargo::warning=the static runner could not be built; `--on vm` will not work (it needs Linux on x86-64 and a static C library)"
        );
        std::fs::write(&into, b"").unwrap_or_else(|error| panic!("cannot write {}: {error}", into.display()));
    }
}
