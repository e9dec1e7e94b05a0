//! A kernel that is built out of a source tree: as little as a guest needs
//! (`data/minimal.config`), and what fragments of a configuration add.
//!
//! It lies in the cache beside those that are fetched, under a name made of its version and a hash.
//! The hash is of what it depends on: sources, configuration, compiler. Nothing is written into the
//! sources.

mod sources;

use super::configuration::Configuration;
use super::fetched::{Fetched, fetched, remember};
use super::kconfig::Fragment;
use super::{Kernel, cache, kernel, sha256};
use program::{Error, Scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What is built.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// The sources.
    pub tree: &'a Path,
    /// Fragments of a configuration, each over those before it and over the minimal one.
    pub fragments: &'a [PathBuf],
    /// A folder in which an earlier build of other sources of the same tree has left what it made;
    /// none for a new one.
    pub folder: Option<&'a Path>,
    /// What is known of the sources; of none the tree is read.
    pub origin: Option<&'a Origin>,
}

/// What a build starts, and the packages of Debian's that have it.
const TOOLS: [(&str, &str); 5] =
    [("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("ld", "binutils")];
const INSTALL: &str = "apt-get install make gcc binutils flex bison bc libelf-dev";
/// What would otherwise differ between two builds of the same sources.
const FIXED: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "2026-01-01"),
    ("KBUILD_BUILD_USER", "schedlab"),
    ("KBUILD_BUILD_HOST", "schedlab"),
    ("KBUILD_BUILD_VERSION", "1"),
];
/// The architecture of guests.
const ARCH: &str = "ARCH=x86_64";
const IMAGE: &str = "arch/x86/boot/bzImage";
/// The suite that the cache names for what was built here.
pub const SUITE: &str = "built here";

/// What is known of sources that were fetched for a build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The name of the kernel in the cache; of none it is made of its version and the key.
    pub name: Option<String>,
    /// What they are, in words.
    pub source: String,
    /// What identifies them.
    pub identity: String,
}

/// What a build is made with, and the key of all that it depends on.
struct Plan {
    compiler: Compiler,
    minimal: Fragment,
    asked: Fragment,
    all: Fragment,
    key: String,
}

impl Plan {
    fn new(identity: &str, fragments: &[PathBuf]) -> Result<Plan, Error> {
        let asked = Fragment::read(fragments)?;
        expect_tools(std::env::var_os("PATH").unwrap_or_default().as_os_str())?;
        let compiler = compiler()?;
        let minimal = Fragment::minimal()?;
        let all = minimal.clone().with(asked.clone());
        let parts = [identity, &compiler.version, &all.text()];
        let key = sha256(parts.iter().flat_map(|part| [part.as_bytes(), b"\0"]));
        Ok(Plan { compiler, minimal, asked, all, key })
    }
}

impl Origin {
    /// The kernel that was built of these sources and `fragments`, if it is in the cache.
    ///
    /// # Errors
    /// As of [`Recipe::kernel`].
    pub fn cached(&self, fragments: &[PathBuf]) -> Result<Option<Kernel>, Error> {
        let plan = Plan::new(&self.identity, fragments)?;
        let Some(name) = &self.name else { return Ok(None) };
        in_cache(name, &plan.key)
    }
}

/// The kernel by this name that has this key.
fn in_cache(name: &str, key: &str) -> Result<Option<Kernel>, Error> {
    let directory = kernel::cache()?.join(name);
    let is_same = fetched(&directory).is_some_and(|fetched| fetched.package_sha256 == key);
    Ok(if is_same { kernel::cached(name, &directory) } else { None })
}

impl Recipe<'_> {
    /// The kernel: from the cache, or built in minutes, which `say` announces.
    ///
    /// # Errors
    /// [`Error::Missing`] if a tool is missing. [`Error::Input`] if the tree is none of Linux's,
    /// the fragments ask for what it does not have, or it does not build.
    pub fn kernel(&self, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let tree = &fs::canonicalize(self.tree)
            .map_err(|error| Error::Input(format!("{}: {error}", self.tree.display())))?;
        if !["Makefile", "Kconfig"].iter().all(|file| tree.join(file).is_file()) {
            return Err(Error::Input(format!(
                "{} is no source tree of Linux: it has no Makefile and Kconfig",
                tree.display()
            )));
        }
        let version = self.version(tree)?;
        let of_tree = || -> Result<Origin, Error> {
            let identity = sources::identity(tree)?;
            Ok(Origin { name: None, source: format!("linux {version}"), identity })
        };
        let origin = self.origin.cloned().map_or_else(of_tree, Ok)?;
        let plan = Plan::new(&origin.identity, self.fragments)?;
        let name = origin.name.unwrap_or_else(|| format!("{version}-built-{}", &plan.key[..12]));
        if let Some(kernel) = in_cache(&name, &plan.key)? {
            return Ok(kernel);
        }
        say(&format!("building kernel {name} out of {}, which takes minutes", origin.source));
        let directory = kernel::cache()?.join(&name);
        let parent = directory.parent().unwrap_or(&directory);
        fs::create_dir_all(parent).map_err(|error| Error::output(parent, error))?;
        let work = Scratch::within(parent)?;
        let own = work.path().join("out");
        let out = self.folder.unwrap_or(&own);
        let Plan { compiler, minimal, asked, all, key } = plan;
        let configuration = configure(tree, out, &all, &compiler)?;
        asked.expect_in(&configuration, tree)?;
        let mut lost = minimal.lost(&configuration);
        lost.retain(|symbol| !asked.has(symbol));
        if !lost.is_empty() {
            say(&format!("{version} has no {}, as newer or older kernels do", lost.join(", ")));
        }
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let done = make(tree, out, &compiler, &[&format!("-j{jobs}"), "bzImage"])?;
        succeeded(done, &format!("kernel {version} in {} does not build", tree.display()))?;
        let whole = work.path().join("whole");
        let package = format!("{}, {}", origin.source, compiler.version);
        lay_out(out, &whole, package, key)?;
        // What lies there is incomplete or harmed, or another build has just been faster.
        cache::replace(&directory, &whole)?;
        kernel::cached(&name, &directory).ok_or_else(|| {
            Error::Internal(format!("{} is not what was written there", directory.display()))
        })
    }

    /// The version of the sources, as in 6.1.192.
    fn version(&self, tree: &Path) -> Result<String, Error> {
        let mut command = Command::new("make");
        command.args(["-s", "--no-print-directory", "kernelversion"]).arg("-C").arg(tree);
        let what = format!("the sources in {} have no version", tree.display());
        let version = succeeded(run(&mut command)?, &what)?;
        let version = version.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
        match !version.is_empty() && version.chars().all(is_plain) {
            true => Ok(version.to_string()),
            false => Err(Error::Input(format!("{what}: make kernelversion says {version:?}"))),
        }
    }
}

/// Lays image and configuration that were made in `out` out in the folder `whole`.
fn lay_out(out: &Path, whole: &Path, package: String, key: String) -> Result<(), Error> {
    fs::create_dir(whole).map_err(|error| Error::output(whole, error))?;
    for (from, to) in [(IMAGE, "vmlinuz"), (".config", "config")] {
        let to = whole.join(to);
        fs::copy(out.join(from), &to).map_err(|error| Error::output(&to, error))?;
    }
    // What it is not shows in its image, and what it lacks in its configuration.
    let kernel = Kernel::open(&whole.join("vmlinuz"))?;
    kernel.require(&[])?;
    let fetched = Fetched {
        package,
        suite: SUITE.to_string(),
        package_sha256: key,
        image_sha256: kernel.sha256,
        also: Vec::new(),
    };
    remember(whole, &fetched)
}

/// What compiles.
struct Compiler {
    program: String,
    /// What it and its linker say of themselves.
    version: String,
}

/// The compiler that the environment names (`CC`), or gcc.
fn compiler() -> Result<Compiler, Error> {
    let program = std::env::var("CC").ok().filter(|name| !name.is_empty());
    let program = program.unwrap_or_else(|| "gcc".to_string());
    let first_line = |program: &str| -> Result<String, Error> {
        let output = Command::new(program).arg("--version").output();
        let output = output.map_err(|error| {
            Error::Missing(format!("{program} cannot be run: {error}; install it with: {INSTALL}"))
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(said.lines().next().unwrap_or_default().trim().to_string())
    };
    let version = format!("{}, {}", first_line(&program)?, first_line("ld")?);
    Ok(Compiler { program, version })
}

/// Checks that all tools are in `path`.
fn expect_tools(path: &std::ffi::OsStr) -> Result<(), Error> {
    let is_there = |tool: &str| std::env::split_paths(path).any(|place| place.join(tool).is_file());
    match TOOLS.iter().find(|(tool, _)| !is_there(tool)) {
        None => Ok(()),
        Some((tool, package)) => Err(Error::Missing(format!(
            "a kernel cannot be built without {tool} of the package {package}; install what is \
             needed with: {INSTALL}"
        ))),
    }
}

/// Makes the configuration in `out`, and gives it.
fn configure(
    tree: &Path,
    out: &Path,
    all: &Fragment,
    compiler: &Compiler,
) -> Result<Configuration, Error> {
    fs::create_dir_all(out).map_err(|error| Error::output(out, error))?;
    let asked = out.join("all.config");
    fs::write(&asked, all.text()).map_err(|error| Error::output(&asked, error))?;
    let presets = format!("KCONFIG_ALLCONFIG={}", asked.display());
    let done = make(tree, out, compiler, &[&presets, "allnoconfig"])?;
    let what = format!("the sources in {} cannot be configured", tree.display());
    succeeded(done, &what)?;
    let file = out.join(".config");
    let text = fs::read_to_string(&file).map_err(|error| {
        Error::Input(format!("{what}: make allnoconfig left no .config: {error}"))
    })?;
    Ok(Configuration::new(text))
}

fn make(tree: &Path, out: &Path, compiler: &Compiler, words: &[&str]) -> Result<Output, Error> {
    let mut command = Command::new("make");
    command.arg("-C").arg(tree).arg(format!("O={}", out.display())).args([ARCH, "LOCALVERSION="]);
    command.arg(format!("CC={}", compiler.program)).args(words).envs(FIXED);
    run(&mut command)
}

fn run(command: &mut Command) -> Result<Output, Error> {
    // Of a make that has started this program.
    let command = command.stdin(Stdio::null()).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let program = command.get_program().to_string_lossy().into_owned();
    command.env("LC_ALL", "C").output().map_err(|error| {
        Error::Missing(format!("{program} cannot be run: {error}; install it with: {INSTALL}"))
    })
}

/// What a command that has succeeded has printed.
fn succeeded(output: Output, what: &str) -> Result<String, Error> {
    /// The errors of parallel jobs are followed by as many lines of make's.
    const LINES: usize = 12;
    /// What a command says before make says that it failed.
    const BEFORE: usize = 3;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.iter().position(|line| line.contains("error") || line.contains("***"));
    let from = first.map_or(lines.len().saturating_sub(LINES), |at| at.saturating_sub(BEFORE));
    let shown: String =
        lines[from..].iter().take(LINES).map(|line| format!("\n    {line}")).collect();
    Err(Error::Input(format!("{what}:{shown}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_missing_is_named_with_its_package() {
        let tools = tempfile::tempdir().unwrap();
        for (tool, _) in TOOLS.iter().filter(|(tool, _)| *tool != "bison") {
            fs::write(tools.path().join(tool), "").unwrap();
        }
        let error = expect_tools(tools.path().as_os_str()).unwrap_err();
        assert_eq!(error.exit_code(), 77);
        assert!(error.to_string().contains("without bison") && error.to_string().contains(INSTALL));
        fs::write(tools.path().join("bison"), "").unwrap();
        assert!(expect_tools(tools.path().as_os_str()).is_ok());
    }

    #[test]
    fn what_is_no_source_tree_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("Makefile"), "all:\n").unwrap();
        let recipe = Recipe { tree: tree.path(), fragments: &[], folder: None, origin: None };
        let error = recipe.kernel(&|_| {}).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("no source tree of Linux"), "{error}");
    }
}
