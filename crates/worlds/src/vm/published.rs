//! Schedulers of sched_ext that their authors publish as crates: `NAME@VERSION`, built once into the
//! cache.

use super::{bare_scheduler, cache};
use program::{Error, Scratch};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A published scheduler of one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Published {
    /// Without `scx_`.
    name: String,
    version: String,
}

/// How many lines of the builder are shown.
const SHOWN: usize = 12;

impl Published {
    /// What `text` names: `bpfland@1.1.4`, or the crate, `scx_bpfland@1.1.4`. `None` if it is a path
    /// or has no version.
    pub fn of(text: &str) -> Option<Published> {
        let (name, version) = text.split_once('@')?;
        let name = name.strip_prefix("scx_").unwrap_or(name);
        let is_word = |text: &str, more: &[char]| {
            text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || more.contains(&letter))
        };
        let fits = is_word(name, &['_', '-'])
            && is_word(version, &['.', '-', '+'])
            && version.split('.').count() > 2;
        fits.then(|| Published { name: name.to_string(), version: version.to_string() })
    }

    /// A folder to build in, where the programs are kept.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn build_folder() -> Result<Scratch, Error> {
        let folder = cache::folder("schedulers")?;
        fs::create_dir_all(&folder).map_err(|error| Error::output(&folder, error))?;
        Scratch::within(&folder)
    }

    /// Its program in the cache.
    ///
    /// # Errors
    /// [`Error::Missing`] with the command that builds it.
    pub fn program(&self) -> Result<PathBuf, Error> {
        let program = self.place()?.join("bin").join(self.crate_name());
        if program.is_file() {
            return Ok(program);
        }
        Err(Error::Missing(format!(
            "the scheduler {self} is not built; build it once with: schedlab scheduler add {self}"
        )))
    }

    /// Builds it, if it is not in the cache, in the folder `build`, which spares time with more than
    /// one. Returns its program and whether it was built now.
    ///
    /// # Errors
    /// [`Error::Missing`] if something for the build is, [`Error::Usage`] if there is no such crate
    /// or version, [`Error::Input`] if it does not build.
    pub fn add(&self, build: &Scratch) -> Result<(PathBuf, bool), Error> {
        if let Ok(program) = self.program() {
            return Ok((program, false));
        }
        let clang = bare_scheduler::clang()?;
        let place = self.place()?;
        let scratch = Scratch::within(build.path())?;
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--locked", "--version", &self.version, &self.crate_name()]);
        cargo
            .arg("--root")
            .arg(scratch.path())
            .arg("--target-dir")
            .arg(build.path().join("target"));
        cargo.env("BPF_CLANG", clang).env_remove("CARGO_TARGET_DIR").stdin(Stdio::null());
        let said = cargo.output().map_err(|error| {
            Error::Missing(format!(
                "a published scheduler is built by cargo, which cannot be run ({error}); install \
                 Rust: https://rustup.rs"
            ))
        })?;
        if !said.status.success() {
            return Err(self.not_built(&String::from_utf8_lossy(&said.stderr)));
        }
        let built = scratch.path().join("done");
        let into = |error| Error::output(&place, error);
        fs::create_dir_all(&built).map_err(into)?;
        fs::rename(scratch.path().join("bin"), built.join("bin")).map_err(into)?;
        // Another may have built it meanwhile.
        let renamed = fs::rename(&built, &place);
        let program = self.program();
        match (renamed, program) {
            (_, Ok(program)) => Ok((program, true)),
            (Err(error), _) => Err(into(error)),
            (Ok(()), Err(_)) => Err(Error::Input(format!(
                "the crate {} has no program of its name",
                self.crate_name()
            ))),
        }
    }

    /// Why cargo did not build it.
    fn not_built(&self, said: &str) -> Error {
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        if let Some(line) = lines.iter().find(|line| line.contains("could not find `")) {
            return Error::Usage(format!("{self}: {}", line.trim().trim_start_matches("error: ")));
        }
        let begin = lines.iter().position(|line| line.starts_with("error")).unwrap_or_default();
        let shown: Vec<&str> = lines[begin..].iter().copied().take(SHOWN).collect();
        let wants = ["libelf", "zlib", "libseccomp", "pkg-config", "libbpf"];
        let text = shown.join("\n    ");
        if wants.iter().any(|library| text.contains(library)) {
            return Error::Missing(format!(
                "{self} is not built; it may need: apt-get install libelf-dev zlib1g-dev \
                 libseccomp-dev pkg-config\n    {text}"
            ));
        }
        Error::Input(format!("{self} does not build: {text}"))
    }

    fn crate_name(&self) -> String {
        format!("scx_{}", self.name)
    }

    fn place(&self) -> Result<PathBuf, Error> {
        Ok(cache::folder("schedulers")?.join(self.to_string()))
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Published { name, version } = self;
        write!(f, "{name}@{version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_version_is_no_path() {
        let of = |text: &str| Published::of(text).map(|of| (of.to_string(), of.crate_name()));
        let bpfland = Some(("bpfland@1.1.4".to_string(), "scx_bpfland".to_string()));
        assert_eq!((of("bpfland@1.1.4"), of("scx_bpfland@1.1.4")), (bpfland.clone(), bpfland));
        for other in ["./a@1.2.3", "a/b@1.2.3", "bpfland", "bpfland@", "@1.2.3", "a@latest", "a@1"]
        {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(of("x@../../../y"), None);
    }

    #[test]
    fn what_cargo_says_becomes_one_error() {
        let of = Published::of("none@1.2.3").unwrap();
        let why = |said: &str| of.not_built(said);
        let unknown = why("    Updating index\nerror: could not find `scx_none` in registry `x`");
        assert!(matches!(unknown, Error::Usage(_)) && unknown.to_string().contains("scx_none"));
        let library = why("error: failed to run\n  could not find libelf.h");
        assert!(matches!(library, Error::Missing(_)), "{library}");
        assert!(matches!(why("error[E0001]: x"), Error::Input(_)));
    }
}
