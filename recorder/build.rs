//! Compiles `bpf/recorder.bpf.c`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The oldest clang whose BPF the kernel's verifier takes, and how to get a newer one.
const INSTALL: &str = "clang 18 or newer is needed for BPF; install it with: apt-get install \
                       clang-19 libelf-dev zlib1g-dev pkg-config";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = clang();
    // SAFETY: this program has one thread.
    unsafe { env::set_var("BPF_CLANG", &clang) };
    // It unpacks the headers of the scx project, `vmlinux.h` among them, and refuses an old clang.
    scx_cargo::BpfBuilder::new().unwrap_or_else(|error| panic!("{INSTALL}\n{error:#}"));
    let headers = out.join("scx_utils-bpf_h");
    let architecture = if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "aarch64") {
        "arm64"
    } else {
        "x86"
    };
    let include = |path: PathBuf| format!("-I{}", path.display());
    let arguments = [
        include(headers.join("arch").join(architecture)),
        include(headers.clone()),
        include(headers.join("bpf-compat")),
        "-mcpu=v4".to_string(),
        "-Wall".to_string(),
        "-Wno-compare-distinct-pointer-types".to_string(),
        // The kernel is given these names, too: no folder of this machine among them.
        format!("-ffile-prefix-map={}=", out.display()),
        format!(
            "-ffile-prefix-map={}=",
            env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")
        ),
    ];
    let object = out.join("recorder.bpf.o");
    let mut builder = libbpf_cargo::SkeletonBuilder::new();
    builder.source("bpf/recorder.bpf.c").obj(&object).clang(&clang).clang_args(&arguments);
    builder.build().unwrap_or_else(|error| panic!("recorder.bpf.c: {error:#}"));
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
}

/// The newest clang that there is.
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
