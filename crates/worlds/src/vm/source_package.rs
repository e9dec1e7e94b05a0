//! A kernel out of the distribution's source package: a file names it by its hash. It also names
//! the patches and fragments of a configuration that make the kernel of it.

use super::apt::{self, Apt};
use super::built::{Origin, Recipe};
use super::{Kernel, cache, kernel, pins, sha256};
use formats::toml_file::TomlFile;
use program::{Error, Scratch};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TOOLS: &str = "apt-get install tar xz-utils patch";

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The name of the kernel, for `--kernel`.
    name: String,
    /// The package, and the suite of Debian's that has it.
    package: String,
    version: String,
    suite: String,
    /// The SHA-256 of the package's file.
    sha256: String,
    /// Beside the file, in the order in which they are applied.
    #[serde(default)]
    patches: Vec<PathBuf>,
    /// Beside the file, each over those before it.
    #[serde(default)]
    configuration: Vec<PathBuf>,
}

/// A source package, with what makes a kernel of it.
pub struct SourcePackage {
    written: Written,
    folder: PathBuf,
}

impl SourcePackage {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`Error::Input`] if it is not such a file.
    pub fn read(path: &Path) -> Result<SourcePackage, Error> {
        let file = TomlFile::read(path)?;
        let written: Written = file.parse()?;
        // A series of Debian's begins with a digit.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_name = written.name.starts_with(|c: char| c.is_ascii_alphabetic())
            && written.name.chars().all(is_plain);
        if !is_name {
            return Err(file.wrong("name", "a name begins with a letter, as in pslist-6.1"));
        }
        if written.sha256.len() != 64 || !written.sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(file.wrong("sha256", "give the SHA-256 of the package in 64 digits"));
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(SourcePackage { written, folder })
    }

    /// The kernel: from the cache, or fetched, patched and built, which `say` announces. `more` are
    /// fragments over its own configuration.
    ///
    /// # Errors
    /// As of [`Recipe::kernel`]; [`Error::Missing`] with the hash if the package cannot be had;
    /// [`Error::Input`] if a patch does not apply.
    pub fn kernel(&self, more: &[PathBuf], say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let own = self.written.configuration.iter().map(|file| self.folder.join(file));
        let fragments: Vec<PathBuf> = own.chain(more.iter().cloned()).collect();
        // With more in its configuration it is another kernel than that of this name.
        let name = more.is_empty().then(|| self.written.name.clone());
        let origin = Origin { name, source: self.source(), identity: self.identity()? };
        if let Some(kernel) = origin.cached(&fragments)? {
            return Ok(kernel);
        }
        let parent = kernel::cache()?;
        fs::create_dir_all(&parent).map_err(|error| Error::output(&parent, error))?;
        let work = Scratch::within(&parent)?;
        let file = self.file(work.path(), say)?;
        say(&format!("unpacking {}", self.source()));
        let tree = self.unpack(&file, work.path(), &[])?;
        self.patch(&tree)?;
        Recipe { tree: &tree, fragments: &fragments, folder: None, origin: Some(&origin) }
            .kernel(say)
    }

    fn source(&self) -> String {
        let Written { package, version, patches, .. } = &self.written;
        let patches: Vec<String> =
            patches.iter().map(|patch| patch.display().to_string()).collect();
        let with = if patches.is_empty() { String::new() } else { " with ".to_string() };
        format!("{package} {version}{with}{}", patches.join(", "))
    }

    fn patches(&self) -> impl Iterator<Item = PathBuf> {
        self.written.patches.iter().map(|patch| self.folder.join(patch))
    }

    /// Package and patches, by their bytes.
    fn identity(&self) -> Result<String, Error> {
        let mut identity = format!("package {}", self.written.sha256);
        for patch in self.patches() {
            let bytes = fs::read(&patch)
                .map_err(|error| Error::Input(format!("{}: {error}", patch.display())))?;
            identity += &format!(" patch {}", sha256([bytes.as_slice()]));
        }
        Ok(identity)
    }

    /// The package's file, in the cache.
    fn file(&self, work: &Path, say: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        let Written { package, version, suite, sha256: expected, .. } = &self.written;
        let kept = pins::place(expected)?;
        if hash(&kept).is_ok_and(|found| found == *expected) {
            return Ok(kept);
        }
        let _lock = cache::lock(&kernel::cache()?, say)?;
        if hash(&kept).is_ok_and(|found| found == *expected) {
            return Ok(kept);
        }
        let missing = |why: &str| {
            Error::Missing(format!(
                "the package {package} {version} with sha256 {expected} is needed and is not here: \
                 {why}. Any copy with this hash will do: put it as the file {}",
                kept.display()
            ))
        };
        say(&format!("fetching {package} {version}"));
        let fetch = || -> Result<PathBuf, Error> {
            let apt = Apt::prepare(work, &[suite], "a copy of the package will do")?;
            apt.download(&format!("{package}={version}"))
        };
        let file = fetch().map_err(|error| missing(&error.to_string()))?;
        let found = hash(&file)?;
        if found != *expected {
            return Err(missing(&format!("what apt fetched has sha256 {found}")));
        }
        let folder = kept.parent().unwrap_or(&kept);
        fs::create_dir_all(folder)
            .and_then(|()| fs::rename(&file, &kept))
            .map_err(|error| Error::output(&kept, error))?;
        Ok(kept)
    }

    /// Unpacks the package in `file` in the folder `work`: all of its sources, or `members` only.
    fn unpack(&self, file: &Path, work: &Path, members: &[String]) -> Result<PathBuf, Error> {
        let package = &self.written.package;
        let unpacked = work.join("package");
        apt::unpack(file, &unpacked, "dpkg unpacks it")?;
        let archive = unpacked.join(format!("usr/src/{package}.tar.xz"));
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--xz", "--directory"]).arg(work).arg("--file").arg(&archive);
        // With members it ends as soon as it has all of them.
        tar.args((!members.is_empty()).then_some("--occurrence"));
        tar.args(members.iter().map(|member| format!("{package}/{member}")));
        let what = || Error::Input(format!("{} does not unpack", archive.display()));
        run(&mut tar)?.map_err(|said| Error::Input(format!("{}: {said}", what())))?;
        fs::remove_dir_all(&unpacked).map_err(|error| Error::output(&unpacked, error))?;
        Ok(work.join(package))
    }

    /// Applies the patches to the sources in `tree`, each line where it says.
    fn patch(&self, tree: &Path) -> Result<(), Error> {
        for patch in self.patches() {
            let input = fs::canonicalize(&patch)
                .map_err(|error| Error::Input(format!("{}: {error}", patch.display())))?;
            let mut command = Command::new("patch");
            command.args(["--strip=1", "--fuzz=0", "--forward", "--batch", "--directory"]);
            command.arg(tree).arg("--input").arg(input);
            run(&mut command)?.map_err(|said| {
                Error::Input(format!(
                    "{} does not apply to {} {}: {said}",
                    patch.display(),
                    self.written.package,
                    self.written.version
                ))
            })?;
        }
        Ok(())
    }
}

fn hash(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|error| Error::output(path, error))?;
    Ok(sha256([bytes.as_slice()]))
}

/// Runs a command, and gives what it says if it fails.
fn run(command: &mut Command) -> Result<Result<(), String>, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|error| {
        Error::Missing(format!("{program} cannot be run: {error}; install it with: {TOOLS}"))
    })?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(6).collect();
    Ok(Err(lines.join(" / ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::described::DESCRIBED;

    /// The kernels of the repository.
    fn all() -> [PathBuf; DESCRIBED.len()] {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        DESCRIBED.map(|(_, file)| root.join(file))
    }

    /// The files that a patch changes.
    fn changed(patch: &Path) -> Vec<String> {
        let text = fs::read_to_string(patch).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::to_string).collect()
    }

    #[test]
    fn the_kernel_and_its_control_differ_by_the_patch_alone() {
        let all = all().map(|path| SourcePackage::read(&path).unwrap());
        assert_eq!(all.each_ref().map(|read| &*read.written.name), DESCRIBED.map(|(name, _)| name));
        let [kernel, control, debug, _] = all;
        assert_eq!(kernel.written.sha256, control.written.sha256);
        assert_eq!(kernel.written.configuration, control.written.configuration);
        assert_eq!((kernel.patches().count(), control.patches().count()), (1, 0));
        assert_ne!(kernel.identity().unwrap(), control.identity().unwrap());
        assert_eq!(kernel.identity().unwrap(), debug.identity().unwrap());
        let (own, with) = (&kernel.written.configuration, &debug.written.configuration);
        assert!(with.starts_with(own) && with.len() == own.len() + 1);
    }

    /// Where the package is in the cache: the patch applies without fuzz, and not twice.
    #[test]
    fn the_patch_applies_to_the_package_once() {
        let package = SourcePackage::read(&all()[0]).unwrap();
        let file = pins::place(&package.written.sha256).unwrap();
        if !file.is_file() {
            let Written { package, version, .. } = &package.written;
            eprintln!("skipped: the patch on its sources: {package} {version} is not in the cache");
            return;
        }
        let work = tempfile::tempdir().unwrap();
        let files: Vec<String> = package.patches().flat_map(|patch| changed(&patch)).collect();
        let tree = package.unpack(&file, work.path(), &files).unwrap();
        package.patch(&tree).unwrap();
        let fair = fs::read_to_string(tree.join("kernel/sched/fair.c")).unwrap();
        assert!(fair.contains("early_param(\"pslist\""));
        let error = package.patch(&tree).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("pslist.patch does not apply to linux-source-6.1"));
    }

    #[test]
    fn a_name_that_could_be_a_series_and_a_short_hash_are_refused_with_their_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel.toml");
        let good = fs::read_to_string(&all()[1]).unwrap();
        for (from, to, word) in [
            ("name = \"", "name = \"6.1-", "name: a name begins with a letter"),
            ("sha256 = \"", "sha256 = \"0", "sha256: give the SHA-256"),
            ("package = ", "packages = ", "packages"),
        ] {
            assert!(good.contains(from));
            fs::write(&path, good.replacen(from, to, 1)).unwrap();
            let error = SourcePackage::read(&path).err().unwrap();
            assert_eq!(error.exit_code(), 3);
            assert!(error.to_string().contains(word), "{word:?} is not in {error}");
        }
    }
}
