//! This machine's own apt, with lists and a cache of its own: Debian's packages come from the site
//! that this machine uses. They are checked against Debian's keys, and are only unpacked.

use super::fetched::Package;
use super::sha256;
use program::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// apt in a directory.
pub(super) struct Apt {
    work: PathBuf,
    /// What to do without it.
    instead: &'static str,
}

impl Apt {
    /// Reads the lists of `suites` into the directory `work`. Messages end in `instead`: what to do
    /// without apt.
    ///
    /// # Errors
    /// [`Error::Missing`] if apt or the network is not there, [`Error::Output`] if `work` cannot be
    /// written; so of all that follows.
    pub fn prepare(work: &Path, suites: &[&str], instead: &'static str) -> Result<Apt, Error> {
        let apt = Apt { work: work.to_path_buf(), instead };
        for directory in ["lists/partial", "cache/archives/partial", "parts"] {
            let directory = work.join(directory);
            fs::create_dir_all(&directory).map_err(|error| Error::output(&directory, error))?;
        }
        let signed = if Path::new(KEYRING).exists() {
            format!(" signed-by={KEYRING}")
        } else {
            String::new()
        };
        let site = apt.site()?;
        let source = |suite: &&str| {
            format!("deb [arch=amd64 target=Packages{signed}] {site} {suite} main\n")
        };
        apt.write("sources.list", &suites.iter().map(source).collect::<String>())?;
        // Nothing is installed, so that a package comes with all that it needs.
        apt.write("status", "")?;
        apt.run(
            apt.command("apt-get").args(["-o", "APT::Update::Error-Mode=any", "update"]),
            &format!("read the list of {}", suites.join(" and ")),
        )?;
        Ok(apt)
    }

    /// The packages whose names begin with `prefix`.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let names = self.run(
            self.command("apt-cache").args(["pkgnames", prefix]),
            "read the list of packages",
        )?;
        Ok(names.lines().map(str::to_string).collect())
    }

    /// Fetches a package, and gives its file.
    pub fn download(&self, package: &str) -> Result<PathBuf, Error> {
        self.run(self.command("apt-get").args(["download", package]), &format!("fetch {package}"))?;
        let file = packages(&self.work).into_iter().next();
        file.ok_or_else(|| self.missing(&format!("apt fetched {package} but left no file")))
    }

    /// Fetches packages of `suite` with all that they need, and gives their files.
    pub fn download_all(&self, names: &[&str], suite: &str) -> Result<Vec<PathBuf>, Error> {
        let mut command = self.command("apt-get");
        command.args(["install", "--download-only", "--yes", "--no-install-recommends"]);
        command.args(["--target-release", suite]).args(names);
        self.run(&mut command, &format!("fetch {}", names.join(", ")))?;
        Ok(packages(&self.work.join("cache/archives")))
    }

    /// Unpacks the packages in `files` into the directory `to`, in this order. Returns what they are,
    /// by the names of their files.
    pub fn unpack_all(&self, files: &[PathBuf], to: &Path) -> Result<Vec<Package>, Error> {
        let unpacked = |file: &PathBuf| {
            let bytes = fs::read(file).map_err(|error| Error::output(file, error))?;
            self.unpack(file, to)?;
            let package = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Package { package, sha256: sha256([bytes.as_slice()]) })
        };
        files.iter().map(unpacked).collect()
    }

    /// Unpacks the package in `file` into the directory `to`.
    pub fn unpack(&self, file: &Path, to: &Path) -> Result<(), Error> {
        unpack(file, to, self.instead)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.work.join(name);
        fs::write(&path, text).map_err(|error| Error::output(&path, error))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str, path: &str| format!("{name}={}", self.work.join(path).display());
        let places = [
            at("Dir::Etc::SourceList", "sources.list"),
            at("Dir::Etc::SourceParts", "parts"),
            at("Dir::Etc::PreferencesParts", "parts"),
            at("Dir::State::Lists", "lists"),
            at("Dir::State::status", "status"),
            at("Dir::Cache", "cache"),
        ];
        // As root apt would hand the work to a user who cannot write here; others may not lock what
        // they do not use.
        let options = [
            "APT::Sandbox::User=root",
            "APT::Architecture=amd64",
            "Acquire::Languages=none",
            "Acquire::Retries=2",
            "Debug::NoLocking=1",
        ]
        .map(str::to_string);
        places.iter().chain(&options).for_each(|option| {
            command.args(["-o", option]);
        });
        command.current_dir(&self.work).env("LC_ALL", "C");
        command
    }

    /// The first site that apt is set up to use.
    fn site(&self) -> Result<String, Error> {
        let targets = self.run(
            Command::new("apt-get").args(["indextargets", "--format", "$(SITE) $(RELEASE)"]),
            "say where packages come from",
        )?;
        let sites = targets.lines().filter_map(|line| line.split_once(' '));
        let main = sites
            .filter(|(_, release)| !release.contains('-'))
            .map(|(site, _)| site.to_string())
            .next();
        main.ok_or_else(|| self.missing("apt is not set up to fetch packages from anywhere"))
    }

    fn missing(&self, what: &str) -> Error {
        missing(what, self.instead)
    }

    fn run(&self, command: &mut Command, what: &str) -> Result<String, Error> {
        run(command, what, self.instead)
    }
}

/// Unpacks the package in `file` into the directory `to`.
pub(super) fn unpack(file: &Path, to: &Path, instead: &str) -> Result<(), Error> {
    let mut command = Command::new("dpkg");
    run(command.arg("-x").arg(file).arg(to), "unpack the package", instead).map(drop)
}

fn missing(what: &str, instead: &str) -> Error {
    Error::Missing(format!("{what}; {instead}"))
}

/// Runs one of Debian's tools and gives what it prints.
fn run(command: &mut Command, what: &str, instead: &str) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| missing(&format!("{program} cannot {what}: {error}"), instead))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> =
        said.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
    let what = format!(
        "{program} cannot {what}: {}. Is there a network, and room where the cache is \
         (XDG_CACHE_HOME says where)?",
        said.join(" / ")
    );
    Err(missing(&what, instead))
}

/// The packages in a directory, in the order of their names.
fn packages(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    files.sort();
    files
}
