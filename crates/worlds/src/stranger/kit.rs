//! Compiles policy crates: once what they are built on, then each candidate with the compiler
//! alone, in a sandbox.
//!
//! A candidate is one crate: no build script, no macro of another crate and no dependency but
//! `schedsim` and `readyq`. So none of its code runs while it is compiled. The compiler reads the
//! candidate's folder and what it needs itself, and writes to a folder of its own.

use super::python::scratch;
use super::{Stranger, Terms};
use crate::failure::{Failure, late};
use crate::sandbox::{End, Sandbox};
use program::{Error, prepare_directory, write_whole};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

/// What candidates are compiled with.
#[derive(Clone, Debug)]
pub struct Kit {
    rustc: PathBuf,
    sysroot: PathBuf,
    /// The folder of all compiled dependencies.
    dependencies: PathBuf,
    schedsim: PathBuf,
    readyq: PathBuf,
}

/// The program around a candidate.
const MAIN: &str = "use std::os::fd::FromRawFd;\n\nfn main() -> std::io::Result<()> {\n    // SAFETY: \
                    the sandbox gives this file, and nothing else of this program uses it.\n    let \
                    channel = unsafe { std::fs::File::from_raw_fd(3) };\n    let mut from = \
                    std::io::BufReader::new(&channel);\n    \
                    schedsim::policy::remote::serve_descriptor(&candidate::POLICY, &mut from, &mut \
                    &channel)\n}\n";

/// The address space of the compiler.
const MEMORY: u64 = 8 << 30;
/// The largest file that it writes.
const LARGEST: u64 = 256 << 20;

impl Kit {
    /// Compiles `schedsim` in optimised form, or finds it compiled: of the checkout `sources`, else
    /// of the published packages. It is kept in the user's cache.
    ///
    /// # Errors
    /// [`Error::Missing`] without cargo, or if it cannot be compiled.
    pub fn build(sources: Option<&Path>) -> Result<Kit, Error> {
        let missing = |why: String| {
            Error::Missing(format!(
                "candidates in Rust take cargo and rustc, and the sources of schedsim: {why}; \
                 install https://rustup.rs, and give --sources the folder of a checkout of schedlab"
            ))
        };
        let folder = cache()?.join("judge").join(folder_name(sources));
        prepare_directory(&folder.join("src"))?;
        let dependency = |name: &str| match sources {
            Some(checkout) => {
                let crates = checkout.canonicalize().unwrap_or_else(|_| checkout.to_path_buf());
                format!("{name} = {{ path = {:?} }}\n", crates.join("crates").join(name))
            }
            None => format!("{name} = \"={}\"\n", program::VERSION),
        };
        let manifest = format!(
            "[package]\nname = \"kit\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n{}{}\n\
             [workspace]\n\n[profile.release]\nopt-level = 1\n",
            dependency("schedsim"),
            dependency("readyq")
        );
        write_if_new(&folder.join("Cargo.toml"), &manifest)?;
        write_if_new(&folder.join("src/lib.rs"), "")?;
        let built = Command::new("cargo")
            .args(["build", "--release", "--message-format=json", "--manifest-path"])
            .arg(folder.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(folder.join("target"))
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output()
            .map_err(|error| missing(format!("cargo: {error}")))?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr);
            return Err(missing(said.lines().rev().take(5).collect::<Vec<_>>().join(" / ")));
        }
        let said = String::from_utf8_lossy(&built.stdout).into_owned();
        let library = |name: &str| {
            artifact(&said, name)
                .ok_or_else(|| missing(format!("cargo does not say where {name} is")))
        };
        let (schedsim, readyq) = (library("schedsim")?, library("readyq")?);
        let sysroot = Command::new("rustc")
            .args(["--print", "sysroot"])
            .output()
            .map_err(|error| missing(format!("rustc: {error}")))?;
        let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
        let dependencies = schedsim.parent().map_or_else(PathBuf::new, |release| {
            if release.ends_with("deps") { release.to_path_buf() } else { release.join("deps") }
        });
        Ok(Kit { rustc: sysroot.join("bin/rustc"), sysroot, dependencies, schedsim, readyq })
    }

    /// Compiles the crate in `folder`.
    ///
    /// # Errors
    /// What the compiler says, or that it is no policy.
    pub fn compile(&self, folder: &Path, name: &str, terms: Terms) -> Result<Stranger, Failure> {
        let source = folder.join("src/lib.rs");
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            return Err(Failure::NotAPolicy(format!("{} has no Cargo.toml", folder.display())));
        };
        if !source.is_file() {
            return Err(Failure::NotAPolicy(format!("{} has no src/lib.rs", folder.display())));
        }
        let out = scratch()?;
        let edition = manifest
            .lines()
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| key.trim() == "edition")
            .map_or("2015", |(_, value)| value.trim().trim_matches('"'));
        let library = out.path().join("libcandidate.rlib");
        let words = ["--crate-name", "candidate", "--crate-type", "rlib", "--edition", edition];
        self.run(&words, &source, &library, &[], folder, &out, terms)?;
        let main = out.path().join("main.rs");
        let broken =
            |error: std::io::Error| Failure::Missing(format!("{}: {error}", main.display()));
        fs::write(&main, MAIN).map_err(broken)?;
        let program = out.path().join("policy");
        let words = ["--crate-name", "policy", "--crate-type", "bin", "--edition", "2024"];
        self.run(&words, &main, &program, &[("candidate", &library)], folder, &out, terms)
            .map_err(|failure| match failure {
                Failure::CompileError(said) => Failure::NotAPolicy(format!(
                    "{} has no `pub static POLICY: schedsim::policy::Descriptor`: {said}",
                    source.display()
                )),
                other => other,
            })?;
        Ok(Stranger {
            name: name.to_string(),
            sandbox: Sandbox::of(&program, out.path(), terms.memory),
            secret: terms.secret,
            _folder: Arc::new(out),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "each is another file of one command")]
    fn run(
        &self,
        words: &[&str],
        source: &Path,
        to: &Path,
        externs: &[(&str, &Path)],
        folder: &Path,
        out: &tempfile::TempDir,
        terms: Terms,
    ) -> Result<(), Failure> {
        let mut sandbox = Sandbox::of(&self.rustc, folder, MEMORY);
        let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        arguments.extend(["-O", "-Awarnings", "--sysroot"].map(OsString::from));
        arguments.push(self.sysroot.clone().into());
        let own = [("schedsim", self.schedsim.as_path()), ("readyq", self.readyq.as_path())];
        for (name, file) in own.iter().chain(externs) {
            let mut word = OsString::from(format!("{name}="));
            word.push(file);
            arguments.extend([OsString::from("--extern"), word]);
        }
        let mut search = OsString::from("dependency=");
        search.push(&self.dependencies);
        arguments.extend([OsString::from("-L"), search, OsString::from("-o"), to.into()]);
        arguments.push(source.into());
        sandbox.arguments = arguments;
        sandbox.environment = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("TMPDIR".into(), out.path().into()),
        ];
        let tools = ["/bin", "/usr/bin", "/usr/local/bin", "/usr/libexec", "/usr/include"];
        sandbox.reads.extend(tools.map(PathBuf::from));
        sandbox.reads.extend([
            self.sysroot.clone(),
            self.dependencies.clone(),
            self.schedsim.clone(),
            self.readyq.clone(),
            folder.to_path_buf(),
        ]);
        sandbox.writes = vec![out.path().to_path_buf(), PathBuf::from("/dev/null")];
        (sandbox.output, sandbox.may_fork) = (LARGEST, true);
        let mut compiler =
            sandbox.start(None).map_err(|error| Failure::Missing(error.to_string()))?;
        match compiler.wait(terms.deadline) {
            Some(End::Exited(0)) => Ok(()),
            Some(_) => Err(Failure::CompileError(first_errors(&compiler.said()))),
            None => Err(late()),
        }
    }
}

/// The errors of the compiler, the first lines of each.
fn first_errors(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let begin = lines.iter().position(|line| line.starts_with("error")).unwrap_or(0);
    lines[begin..].iter().take(6).map(|line| line.trim()).collect::<Vec<_>>().join(" / ")
}

/// The library of the target `name` in what cargo says, a line of JSON for each artifact.
fn artifact(said: &str, name: &str) -> Option<PathBuf> {
    let of_line = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
        let files = message["filenames"].as_array().filter(|_| is_it)?;
        let library =
            files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(".rlib"));
        library.map(PathBuf::from)
    };
    said.lines().find_map(of_line)
}

/// The user's folder for what can be made again.
fn cache() -> Result<PathBuf, Error> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    folder.map(|folder| folder.join("schedlab")).ok_or_else(|| {
        Error::Missing("there is no folder to keep compiled crates in: set HOME".to_string())
    })
}

/// The kits of two checkouts are two.
fn folder_name(sources: Option<&Path>) -> String {
    let Some(sources) = sources else { return program::VERSION.to_string() };
    let whole = sources.canonicalize().unwrap_or_else(|_| sources.to_path_buf());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    whole.display().to_string().chars().map(plain).collect::<String>().trim_matches('-').to_string()
}

/// An unchanged file keeps its time, so that cargo builds nothing again.
fn write_if_new(path: &Path, text: &str) -> Result<(), Error> {
    match fs::read_to_string(path) {
        Ok(old) if old == text => Ok(()),
        _ => write_whole(path, text.as_bytes()),
    }
}
