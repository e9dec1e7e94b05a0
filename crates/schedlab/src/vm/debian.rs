//! Fetches a kernel of Debian's through this machine's own apt, from the site that it uses, checked against Debian's keys, into a directory of ours.
//!
//! Nothing is installed: apt works on lists and a cache of its own, and the package is only unpacked.

use super::kernel::{Fetched, remember};
use super::sha256;
use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The series of Debian's stable suites; every other is looked for among the backports.
const STABLE: [(&str, &str); 2] = [("6.1", "bookworm"), ("6.12", "trixie")];
const BACKPORTS: &str = "trixie-backports";
/// Images for virtual machines: small, and with everything that a guest needs built in.
const FLAVOUR: &str = "-cloud-amd64";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const INSTEAD: &str = "`--kernel PATH` takes any bzImage";

/// Fetches the newest kernel of `series` into `directory`: `vmlinuz`, `config` and `package.json`.
///
/// # Errors
/// [`Error::Missing`] if apt, the network or the package is not there, [`Error::Output`] if `directory` cannot be written.
pub fn fetch(series: &str, directory: &Path) -> Result<(), Error> {
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(|error| Error::output(parent, error))?;
    let work = tempfile::tempdir_in(parent).map_err(|error| Error::output(parent, error))?;
    let suite = suite(series);
    let apt = Apt::prepare(work.path(), suite)?;
    let package = newest(series, suite, &apt.names()?)?;
    let file = apt.download(&package)?;
    let unpacked = work.path().join("unpacked");
    run(Command::new("dpkg").arg("-x").arg(&file).arg(&unpacked), "unpack the package")?;
    let whole = work.path().join("whole");
    let keep = |from: &str, to: &str| copy_with_prefix(&unpacked.join("boot"), from, &whole.join(to));
    fs::create_dir(&whole).map_err(|error| Error::output(&whole, error))?;
    keep("config-", "config")?;
    keep("vmlinuz-", "vmlinuz")?;
    let hash = |path: &Path| fs::read(path).map(|bytes| sha256([bytes.as_slice()])).map_err(|error| Error::output(path, error));
    let fetched = Fetched { package, suite: suite.to_string(), package_sha256: hash(&file)?, image_sha256: hash(&whole.join("vmlinuz"))? };
    remember(&whole, &fetched)?;
    // What lies there is incomplete or harmed, or another fetch has just been faster.
    let _ = fs::remove_dir_all(directory);
    fs::rename(&whole, directory).map_err(|error| Error::output(directory, error))
}

/// The suite in which a series is looked for.
pub fn suite(series: &str) -> &'static str {
    STABLE.iter().find(|(stable, _)| *stable == series).map_or(BACKPORTS, |&(_, suite)| suite)
}

/// The series that `schedlab list kernels` names beside those in the cache.
pub const KNOWN: [(&str, &str); 3] = [("6.1", "CFS; one CPU only"), ("6.12", "EEVDF and sched_ext"), ("6.18", "EEVDF and sched_ext")];

/// apt with lists and a cache of its own.
struct Apt {
    work: PathBuf,
}

impl Apt {
    fn prepare(work: &Path, suite: &str) -> Result<Apt, Error> {
        let apt = Apt { work: work.to_path_buf() };
        for directory in ["lists/partial", "cache/archives/partial", "parts"] {
            let directory = work.join(directory);
            fs::create_dir_all(&directory).map_err(|error| Error::output(&directory, error))?;
        }
        let signed = if Path::new(KEYRING).exists() { format!(" signed-by={KEYRING}") } else { String::new() };
        let source = format!("deb [arch=amd64 target=Packages{signed}] {} {suite} main\n", site()?);
        let list = work.join("sources.list");
        fs::write(&list, source).map_err(|error| Error::output(&list, error))?;
        run(apt.command("apt-get").args(["-o", "APT::Update::Error-Mode=any", "update"]), &format!("read the list of {suite}"))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str, path: &str| format!("{name}={}", self.work.join(path).display());
        let places = [
            at("Dir::Etc::SourceList", "sources.list"),
            at("Dir::Etc::SourceParts", "parts"),
            at("Dir::State::Lists", "lists"),
            at("Dir::Cache", "cache"),
        ];
        // As root apt would hand the work to a user who cannot write here.
        let options = ["APT::Sandbox::User=root", "Acquire::Languages=none", "Acquire::Retries=2"].map(str::to_string);
        places.iter().chain(&options).for_each(|option| {
            command.args(["-o", option]);
        });
        command.current_dir(&self.work).env("LC_ALL", "C");
        command
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let names = run(self.command("apt-cache").args(["pkgnames", "linux-image-"]), "read the list of packages")?;
        Ok(names.lines().map(str::to_string).collect())
    }

    fn download(&self, package: &str) -> Result<PathBuf, Error> {
        run(self.command("apt-get").args(["download", package]), &format!("fetch {package}"))?;
        let files = fs::read_dir(&self.work).map_err(|error| Error::output(&self.work, error))?;
        let file = files.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|extension| extension == "deb"));
        file.ok_or_else(|| Error::Missing(format!("apt fetched {package} but left no file; {INSTEAD}")))
    }
}

/// The first site that apt is set up to use.
fn site() -> Result<String, Error> {
    let targets = run(Command::new("apt-get").args(["indextargets", "--format", "$(SITE) $(RELEASE)"]), "say where packages come from")?;
    let sites = targets.lines().filter_map(|line| line.split_once(' '));
    let main = sites.filter(|(_, release)| !release.contains('-')).map(|(site, _)| site.to_string()).next();
    main.ok_or_else(|| Error::Missing(format!("apt is not set up to fetch packages from anywhere; {INSTEAD}")))
}

/// The newest image of `series` among `names`.
fn newest(series: &str, suite: &str, names: &[String]) -> Result<String, Error> {
    let version = |name: &&String| {
        let version = name.strip_prefix("linux-image-")?.strip_suffix(FLAVOUR)?;
        let numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u32>().ok());
        Some((version.to_string(), numbers.collect::<Vec<_>>()))
    };
    let found = names.iter().filter_map(|name| Some((version(&name)?, name)));
    let (of_series, others): (Vec<_>, Vec<_>) =
        found.partition(|((version, _), _)| version.strip_prefix(series).is_some_and(|rest| rest.starts_with(['.', '+', '-'])));
    match of_series.into_iter().max_by(|a, b| a.0.1.cmp(&b.0.1)) {
        Some((_, name)) => Ok(name.clone()),
        None => {
            let mut there: Vec<String> =
                others.into_iter().filter_map(|((_, numbers), _)| Some(format!("{}.{}", numbers.first()?, numbers.get(1)?))).collect();
            there.sort();
            there.dedup();
            Err(Error::Missing(format!(
                "Debian's {suite} has no package linux-image-{series}*{FLAVOUR}; it has {}; {INSTEAD}",
                if there.is_empty() { "none of that kind".to_string() } else { there.join(", ") }
            )))
        }
    }
}

/// Copies the file in `directory` whose name begins with `prefix`.
fn copy_with_prefix(directory: &Path, prefix: &str, to: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let from =
        entries.map(|entry| entry.path()).find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    let from = from.ok_or_else(|| Error::Missing(format!("the package has no {prefix}*; {INSTEAD}")))?;
    fs::copy(&from, to).map(drop).map_err(|error| Error::output(to, error))
}

/// Runs one of Debian's tools and gives what it prints.
fn run(command: &mut Command, what: &str) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Error::Missing(format!("{program} cannot {what}: {error}; {INSTEAD}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
    Err(Error::Missing(format!(
        "{program} cannot {what}: {}. Is there a network, and room where the cache is (XDG_CACHE_HOME says where)? {INSTEAD}",
        said.join(" / ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_series_is_taken_and_a_series_that_is_gone_is_named() {
        let names = ["6.1.0-9", "6.1.0-50", "6.18.9+deb13", "6.18.15+deb13", "6.19.1+deb13"];
        let mut names: Vec<String> = names.iter().map(|version| format!("linux-image-{version}-cloud-amd64")).collect();
        names.push("linux-image-6.18.99+deb13-amd64".to_string());
        let newest = |series| newest(series, "trixie-backports", &names);
        assert_eq!(newest("6.1").unwrap(), "linux-image-6.1.0-50-cloud-amd64");
        assert_eq!(newest("6.18").unwrap(), "linux-image-6.18.15+deb13-cloud-amd64");
        assert_eq!(newest("6.18.9").unwrap(), "linux-image-6.18.9+deb13-cloud-amd64");
        let gone = newest("6.17").unwrap_err();
        assert_eq!(gone.exit_code(), 77);
        for word in ["6.17", "trixie-backports", "6.18, 6.19", "--kernel PATH"] {
            assert!(gone.to_string().contains(word), "{gone}");
        }
    }
}
