//! Builds what `vm` puts into a guest and into QEMU, so that a user needs one file: the runner (the
//! package `schedlab-runner`) as a static program, and the plugin (`guest/qemu-plugin`), once for
//! each of QEMU's interfaces.
//!
//! It works in a checkout and from the published packages alike. Where the two cannot be built (not
//! Linux on x86-64, no static C library), the program is built without them and reports that when a
//! guest is requested. The feature `runner`, which is on by default, says whether to build them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PLUGIN: &str = "guest/qemu-plugin";

/// The file for the runner, and those for the plugin with the interface of each.
const RUNNER: &str = "runner";
const PLUGINS: [(&[&str], &str); 3] = [
    (&[], "qemu-plugin-1"),
    (&["feature=\"api-3\""], "qemu-plugin-3"),
    (&["feature=\"api-3\"", "feature=\"api-7\""], "qemu-plugin-7"),
];

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    println!("cargo::rerun-if-changed={PLUGIN}");
    if env::var_os("CARGO_FEATURE_RUNNER").is_none() {
        let files = PLUGINS.map(|(_, file)| file).into_iter().chain([RUNNER]);
        return files.for_each(|file| leave_empty(&out.join(file)));
    }
    embed("the runner of guests", &out.join(RUNNER), |into| runner(&out, into));
    for (features, into) in PLUGINS {
        embed("the plugin for QEMU", &out.join(into), |into| plugin(features, into));
    }
}

/// Stores the result of `build` in the file `into`, which is empty if the build fails.
fn embed(what: &str, into: &Path, build: impl FnOnce(&Path) -> io::Result<bool>) {
    if variable("TARGET") == TARGET && build(into).unwrap_or(false) {
        return;
    }
    println!(
        "cargo::warning={what} could not be built; `--on vm` will not work (it needs Linux on \
         x86-64 and a static C library)"
    );
    leave_empty(into);
}

fn leave_empty(file: &Path) {
    fs::write(file, b"").unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}

/// Builds the runner. It is a package with dependencies, so cargo builds it, for a target of its
/// own kind.
fn runner(out: &Path, into: &Path) -> io::Result<bool> {
    let source = runner_source(out)?;
    // All profiles share it. It is not the directory that the outer cargo has locked.
    let directory = out.ancestors().nth(4).unwrap_or(out).join("runner");
    let flags = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static", "-Cstrip=symbols"]
        .map(String::from);
    let remap = remapped(&[&source, &directory]);
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "schedlab-runner",
        "--target",
        TARGET,
    ]);
    cargo.arg("--config").arg(format!("build.build-dir={:?}", directory.display().to_string()));
    cargo.arg("--manifest-path").arg(source.join("Cargo.toml")).arg("--target-dir").arg(&directory);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", [&flags[..], &remap].concat().join("\x1f"));
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTC_WRAPPER");
    // The linker of the outer build may be one for old libraries, which has no static ones.
    cargo.env_remove("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER");
    Ok(cargo.status()?.success()
        && fs::copy(directory.join(TARGET).join("release/schedlab-runner"), into).is_ok())
}

/// Makes the compiler remove these folders, and those of other packages, from the names of files:
/// the same sources give the same bytes everywhere.
fn remapped(folders: &[&Path]) -> Vec<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
        .unwrap_or_default();
    // One folder for each registry; its name identifies the registry.
    let registries = fs::read_dir(home.join("registry/src"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let folders = folders.iter().map(|folder| folder.to_path_buf());
    folders
        .chain(registries)
        .map(|folder| format!("--remap-path-prefix={}=", folder.display()))
        .collect()
}

/// A folder where the runner's package can be built: its own in a checkout, else a copy, because
/// cargo would write a lock file into the folder of packages.
fn runner_source(out: &Path) -> io::Result<PathBuf> {
    // Only a package has the manifest twice: the original, and the one that cargo made. In a
    // checkout the runner lies beside this crate.
    let is_package = Path::new("Cargo.toml.orig").exists();
    let folder = if is_package {
        PathBuf::from(variable("DEP_SCHEDLAB_RUNNER_FOLDER"))
    } else {
        Path::new("../runner").canonicalize()?
    };
    let phases = folder.with_file_name(if is_package { "schedlab-phases" } else { "phases" });
    let mut inputs = [&folder, &phases].map(|of| [of.join("src"), of.join("Cargo.toml")]).concat();
    if !is_package {
        inputs.extend(["../../Cargo.toml", "../../Cargo.lock"].map(|of| folder.join(of)));
    }
    // In a registry's folder the names of packages have versions, and nothing changes.
    for input in inputs.iter().filter_map(|input| input.canonicalize().ok()) {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    if !is_package {
        return Ok(folder);
    }
    let copy = out.join("runner-package");
    copy_folder(&folder, &copy)?;
    let manifest = copy.join("Cargo.toml");
    // It is no member of the workspace in whose folder it may lie now.
    fs::write(&manifest, fs::read_to_string(&manifest)? + "\n[workspace]\n")?;
    Ok(copy)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let into = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &into)?;
        } else {
            fs::write(into, fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// Builds the plugin for one of QEMU's interfaces. It depends on nothing, so the compiler alone can
/// build it.
fn plugin(features: &[&str], into: &Path) -> io::Result<bool> {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args([
        "--edition=2024",
        "--crate-name=schedlab_qemu_plugin",
        "--crate-type=cdylib",
        "--cap-lints=allow",
        "--target",
        TARGET,
    ]);
    rustc.args(["-Copt-level=3", "-Cstrip=symbols"]).arg(format!("--remap-path-prefix={PLUGIN}="));
    features.iter().for_each(|feature| {
        rustc.args(["--cfg", feature]);
    });
    Ok(rustc.arg(format!("{PLUGIN}/lib.rs")).arg("-o").arg(into).status()?.success())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
