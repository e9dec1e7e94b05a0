//! Compiles the programs of `c/` for an architecture and runs them, under qemu-user where it is
//! another one.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An architecture with the compiler for it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Target {
    pub name: &'static str,
    pub compiler: &'static str,
    flags: &'static [&'static str],
    /// Rust's name for it.
    rust: &'static str,
    /// What runs its programs.
    pub qemu: &'static str,
    /// Whether this machine runs them itself.
    pub native: bool,
}

/// The programs are freestanding, so that no target needs a C library: clang compiles for all,
/// Rust's own linker links. qemu-arm runs the Cortex-M4's Thumb-2 code as an application of an
/// ARMv7-A.
pub const TARGETS: [Target; 5] = [
    Target {
        name: "x86-64 gcc",
        compiler: "gcc",
        flags: &["-mgeneral-regs-only", "-fno-pie", "-fno-stack-protector", "-fcf-protection=none"],
        rust: "x86_64-unknown-none",
        qemu: "qemu-x86_64",
        native: true,
    },
    Target {
        name: "x86-64",
        compiler: "clang-19",
        flags: &["-mgeneral-regs-only", "-fno-pie"],
        rust: "x86_64-unknown-none",
        qemu: "qemu-x86_64",
        native: true,
    },
    Target {
        name: "aarch64",
        compiler: "clang-19",
        flags: &["--target=aarch64-none-elf"],
        rust: "aarch64-unknown-none",
        qemu: "qemu-aarch64",
        native: false,
    },
    Target {
        name: "cortex-m4",
        compiler: "clang-19",
        flags: &["--target=thumbv7em-linux-gnueabi", "-mcpu=cortex-m4"],
        rust: "thumbv7em-none-eabihf",
        qemu: "qemu-arm",
        native: false,
    },
    Target {
        name: "rv32imc",
        compiler: "clang-19",
        flags: &["--target=riscv32-none-elf", "-march=rv32imc", "-mabi=ilp32"],
        rust: "riscv32imc-unknown-none-elf",
        qemu: "qemu-riscv32",
        native: false,
    },
];

/// What the header promises to pass.
pub const STRICT: [&str; 6] =
    ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"];

/// A tool that is not installed, by name.
#[derive(Debug)]
pub struct Missing(pub String);

pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(path)
}

impl Target {
    /// Compiles `c/PATH` with `options` to an object file.
    pub fn object(&self, path: &str, options: &[&str]) -> Result<PathBuf, Missing> {
        let object = self.output(path, options, "o");
        let mut compile = Command::new(self.compiler);
        compile.args(STRICT).args(self.flags);
        compile
            .args(["-ffreestanding", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"])
            .args(options);
        compile.arg("-c").arg(source(path)).arg("-o").arg(&object);
        run(&mut compile)?;
        Ok(object)
    }

    /// Compiles and links `c/PATH` with `options`.
    pub fn program(&self, path: &str, options: &[&str]) -> Result<PathBuf, Missing> {
        self.link(&self.object(path, options)?, &[])
    }

    /// The counting program with the loops over the Rust queues.
    pub fn rust_program(&self) -> Result<PathBuf, Missing> {
        let object = self.object("tests/count.c", &["-O2", "-DRUST"])?;
        let folder = object.with_extension("rust");
        let loops = folder.join("loops.o");
        let rustc = || {
            let mut rustc = Command::new("rustc");
            rustc.args(["--edition=2024", "--crate-type=rlib", "-Copt-level=3", "-Cpanic=abort"]);
            rustc.args(["--target", self.rust]);
            rustc
        };
        let sysroot = Path::new(sysroot()?.trim()).join("lib/rustlib").join(self.rust);
        if !sysroot.exists() {
            return Err(Missing(format!("Rust's target {0}: rustup target add {0}", self.rust)));
        }
        let library = source("../src/lib.rs");
        run(rustc().arg("--crate-name=readyq").arg(library).arg("--out-dir").arg(&folder))?;
        let readyq = folder.join("libreadyq.rlib");
        let external = format!("readyq={}", readyq.display());
        let mut compile = rustc();
        compile.args(["-Ccodegen-units=1", "--emit=obj", "--extern", &external]);
        run(compile.arg(source("tests/loops.rs")).arg("-o").arg(&loops))?;
        // What panics would call is not there, and nothing calls it.
        self.link(&object, &["--unresolved-symbols=ignore-all".as_ref(), &loops, &readyq])
    }

    fn link(&self, object: &Path, others: &[&Path]) -> Result<PathBuf, Missing> {
        let program = object.with_extension("elf");
        let linker = "lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld";
        let mut link = Command::new(Path::new(sysroot()?.trim()).join(linker));
        link.args(["-flavor", "gnu", "-static"]).arg(object).args(others).arg("-o").arg(&program);
        run(&mut link)?;
        Ok(program)
    }

    /// A command that runs `program`.
    pub fn command(&self, program: &Path, plugin: &[String]) -> Command {
        let mut command = if self.native && plugin.is_empty() {
            return Command::new(program);
        } else {
            Command::new(self.qemu)
        };
        command.args(plugin).arg(program);
        command
    }

    /// Runs `program` with `input`. Returns its output, the complaint, and the exit code.
    pub fn answer(&self, program: &Path, input: &[u8]) -> Result<Answer, Missing> {
        feed(self.command(program, &[]), input)
    }

    /// A path that no other test writes.
    fn output(&self, path: &str, options: &[&str], extension: &str) -> PathBuf {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default();
        let mut name = format!("c_edition-{test}-{}-{path}", self.name);
        options.iter().for_each(|option| name += option);
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension(extension)
    }
}

/// What a program did.
pub struct Answer {
    pub output: Vec<u8>,
    pub complaint: String,
    pub code: Option<i32>,
}

/// Runs `command` with `input`.
pub fn feed(mut command: Command, input: &[u8]) -> Result<Answer, Missing> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| missing(&command, &error))?;
    let mut stdin = child.stdin.take().unwrap();
    let done = std::thread::scope(|scope| {
        // A program that stops early does not read the rest.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
    Ok(Answer { output: done.stdout, complaint, code: done.status.code() })
}

/// Where Rust's linker and its targets are.
fn sysroot() -> Result<String, Missing> {
    run(Command::new("rustc").args(["--print", "sysroot"]))
}

/// Runs a tool that must succeed if it is there. Returns what it printed.
pub fn run(command: &mut Command) -> Result<String, Missing> {
    let output = command.output().map_err(|error| missing(command, &error))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    Ok(String::from_utf8(output.stdout).unwrap())
}

fn missing(command: &Command, error: &std::io::Error) -> Missing {
    let tool = command.get_program().to_string_lossy().into_owned();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{tool}: {error}");
    Missing(format!("{tool} is not installed; `tools/setup test` installs it"))
}

/// Runs `body` for each target; a target that misses a tool is skipped by name.
pub fn for_each(what: &str, mut body: impl FnMut(&Target) -> Result<(), Missing>) {
    for target in &TARGETS {
        if let Err(Missing(why)) = body(target) {
            eprintln!("skipped: {what} on {}: {why}", target.name);
        }
    }
}
