//! Compiles programs in BPF to the same bytes in every folder, with the headers of the scx project.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The oldest clang with BPF that the kernel's verifier accepts, and how to install a newer one.
const INSTALL: &str = "clang 18 or newer is needed for BPF; install it with: apt-get install \
                       clang-19 libelf-dev zlib1g-dev pkg-config";

/// What compiles. While it is there, paths begin in a folder of its own, in which `bpf` is a copy of
/// the package's.
pub struct Compiler {
    clang: String,
    arguments: [String; 7],
    _folder: tempfile::TempDir,
}

impl Compiler {
    /// The newest clang, with headers that are unpacked into `out`, for a version of the instruction
    /// set: `v4` needs Linux 6.6, `v3` any that has BPF with types.
    ///
    /// # Panics
    /// If there is none, with the command that installs it.
    pub fn new(out: &Path, instructions: &str) -> Compiler {
        let clang = clang();
        // SAFETY: this program has one thread.
        unsafe { env::set_var("BPF_CLANG", &clang) };
        // It unpacks the headers of the scx project, `vmlinux.h` included, and refuses an old clang.
        scx_cargo::BpfBuilder::new().unwrap_or_else(|error| panic!("{INSTALL}\n{error:#}"));
        let architecture = if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "aarch64")
        {
            "arm64"
        } else {
            "x86"
        };
        let folder = folder(&out.join("scx_utils-bpf_h"));
        // What clang reads and writes has a path of the same length in every build (see `folder`).
        env::set_current_dir(folder.path()).expect("it was just made");
        let arguments = [
            format!("-Iheaders/arch/{architecture}"),
            "-Iheaders".to_string(),
            "-Iheaders/bpf-compat".to_string(),
            format!("-mcpu={instructions}"),
            "-Wall".to_string(),
            "-Wno-compare-distinct-pointer-types".to_string(),
            // The kernel receives names of files, too: they contain no folder of this machine.
            "-ffile-compilation-dir=/".to_string(),
        ];
        println!("cargo::rerun-if-changed=bpf");
        println!("cargo::rerun-if-env-changed=BPF_CLANG");
        Compiler { clang, arguments, _folder: folder }
    }

    /// Compiles `source`, such as `bpf/NAME.bpf.c`, to the file `object`.
    ///
    /// # Panics
    /// If clang refuses it, with what clang says.
    pub fn compile(&self, source: &Path, object: &Path) {
        let mut builder = libbpf_cargo::SkeletonBuilder::new();
        builder.source(source).obj(object).clang(&self.clang).clang_args(&self.arguments);
        builder.build().unwrap_or_else(|error| panic!("{}: {error:#}", source.display()));
    }
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
