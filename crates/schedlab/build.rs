//! Builds what `vm` puts into a guest and into QEMU, so that one file is all that a user needs: the runner (`crates/runner`) as a static program, and the plugin
//! (`crates/qemu-plugin`), once for each of QEMU's interfaces.
//!
//! Where they cannot be built (not Linux on x86-64, no static C library) the program is built without them and says so when a guest is asked for.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    // Shared by all profiles, and not the directory that the cargo around this one has locked.
    let directory = out.ancestors().nth(4).unwrap_or(&out).join("runner");
    let runner = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static", "-Cstrip=symbols"];
    println!("cargo::rerun-if-changed=../schedsim/src/workload/closed.rs");
    embed("runner", "schedlab-runner", "", &runner, &directory, "schedlab-runner", &out.join("runner"));
    for (features, into) in [("", "qemu-plugin-1"), ("api-3", "qemu-plugin-3")] {
        let product = "libschedlab_qemu_plugin.so";
        embed("qemu-plugin", "schedlab-qemu-plugin", features, &["-Cstrip=symbols"], &directory, product, &out.join(into));
    }
}

/// Builds a package of this workspace and leaves what it built in the file `into`, which is empty if it cannot be built.
fn embed(folder: &str, package: &str, features: &str, flags: &[&str], directory: &Path, product: &str, into: &Path) {
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")).join("..").join(folder);
    for input in ["src", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", source.join(input).display());
    }
    let mut flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
    flags.push(format!("--remap-path-prefix={}=", source.display()));
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", package, "--features", features, "--target", TARGET]);
    // Of the simulator the runner takes the description of a workload only.
    cargo.args(["--config", "profile.release.package.schedsim.opt-level=0"]);
    cargo.arg("--manifest-path").arg(source.join("Cargo.toml")).arg("--target-dir").arg(directory);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTC_WRAPPER");
    let done = variable("TARGET") == TARGET
        && cargo.status().is_ok_and(|status| status.success())
        && std::fs::copy(directory.join(TARGET).join("release").join(product), into).is_ok();
    if !done {
        println!("cargo::warning={package} could not be built; `--on vm` will not work (it needs Linux on x86-64 and a static C library)");
        std::fs::write(into, b"").unwrap_or_else(|error| panic!("cannot write {}: {error}", into.display()));
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
