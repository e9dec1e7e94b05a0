//! Compiles each `bpf/NAME.bpf.c`, and writes the table of them that `objects.rs` includes.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest clang with BPF that the kernel's verifier accepts, and how to install a newer one.
const INSTALL: &str = "clang 18 or newer is needed for BPF; install it with: apt-get install \
                       clang-19 libelf-dev zlib1g-dev pkg-config";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = clang();
    // SAFETY: this program has one thread.
    unsafe { env::set_var("BPF_CLANG", &clang) };
    // It unpacks the headers of the scx project, `vmlinux.h` included, and refuses an old clang.
    scx_cargo::BpfBuilder::new().unwrap_or_else(|error| panic!("{INSTALL}\n{error:#}"));
    let headers = out.join("scx_utils-bpf_h");
    let architecture = if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "aarch64") {
        "arm64"
    } else {
        "x86"
    };
    let folder = folder(&headers);
    // What clang reads and writes has a path of the same length in every build (see `folder`).
    env::set_current_dir(folder.path()).expect("it was just made");
    let arguments = [
        format!("-Iheaders/arch/{architecture}"),
        "-Iheaders".to_string(),
        "-Iheaders/bpf-compat".to_string(),
        "-mcpu=v4".to_string(),
        "-Wall".to_string(),
        "-Wno-compare-distinct-pointer-types".to_string(),
        // The kernel receives names of files, too: they contain no folder of this machine.
        "-ffile-compilation-dir=/".to_string(),
    ];
    let mut table = String::from("&[\n");
    for source in sources() {
        let name = source
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".bpf.c"))
            .expect("it ends so");
        let object = out.join(format!("{name}.bpf.o"));
        let mut builder = libbpf_cargo::SkeletonBuilder::new();
        builder.source(&source).obj(&object).clang(&clang).clang_args(&arguments);
        builder.build().unwrap_or_else(|error| panic!("{}: {error:#}", source.display()));
        let _ =
            writeln!(table, "    ({name:?}, include_bytes!({:?})),", object.display().to_string());
    }
    fs::write(out.join("objects.rs"), table + "]").expect("OUT_DIR can be written to");
    // Guests read and hash this program, and nine tenths of it would be debug information.
    println!("cargo::rustc-link-arg-bins=-Wl,--strip-debug");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
}

/// A folder with the sources and `headers`.
///
/// clang orders types that are declared and not defined by their addresses in its memory, and where
/// those are depends on the lengths of the paths that it sees. So two clones build the same bytes
/// only where these paths are of the same length: here, and for what libbpf-cargo unpacks.
fn folder(headers: &Path) -> tempfile::TempDir {
    // SAFETY: this program has one thread.
    unsafe { env::set_var("TMPDIR", "/tmp") };
    let folder = tempfile::Builder::new().prefix("schedlab-bpf-").tempdir_in("/tmp");
    let folder = folder.expect("/tmp can be written to");
    for (from, to) in [(Path::new("bpf"), "bpf"), (headers, "headers")] {
        copy(from, &folder.path().join(to)).unwrap_or_else(|error| panic!("{to}: {error}"));
    }
    folder
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let into = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &into)?;
        } else {
            fs::copy(path, into)?;
        }
    }
    Ok(())
}

/// The newest installed clang.
fn clang() -> String {
    let runs = |name: &String| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let names =
        (18..=24).rev().map(|version| format!("clang-{version}")).chain(["clang".to_string()]);
    env::var("BPF_CLANG")
        .ok()
        .into_iter()
        .chain(names)
        .find(runs)
        .unwrap_or_else(|| panic!("{INSTALL}"))
}

fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new("bpf")).expect("bpf/ is beside this file");
    let mut sources: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    sources.sort();
    sources
}
