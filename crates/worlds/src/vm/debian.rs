//! Fetches a kernel of Debian's into a directory of ours, however it is packaged.
//!
//! Up to 6.18 a package has the image, its configuration and its modules. From 6.19 on they are
//! three (`linux-binary-V`, `linux-base-V`, `linux-modules-V`), and from 7.2 on image and
//! configuration lie in `usr/lib/modules/V`, not in `boot`.

use super::apt::Apt;
use super::cache;
use super::fetched::{Fetched, Package, remember};
use super::release::{Release, releases};
use super::sha256;
use program::{Error, Scratch};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a release is looked for, one suite after another.
pub const SUITES: [&str; 4] = ["trixie-backports", "trixie", "bookworm", "sid"];
/// The series of stable suites.
const STABLE: [(&str, &str); 2] = [("6.1", "bookworm"), ("6.12", "trixie")];
/// The packages of a release, by what their names begin with: the image, and what it may lack.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-base-"];
const INSTEAD: &str = "`schedlab list kernels --refresh` lists what there is, and `--kernel PATH` \
                       takes any bzImage";

/// Fetches the newest kernel of `release` into `directory`: `vmlinuz`, `config` if it can be had,
/// and `package.json`.
///
/// # Errors
/// [`Error::Missing`] if apt, the network or the package is not there, [`Error::Output`] if
/// `directory` cannot be written.
pub fn fetch(release: &Release, directory: &Path) -> Result<(), Error> {
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(|error| Error::output(parent, error))?;
    let mut there = Vec::new();
    for suite in suites(release) {
        let work = Scratch::within(parent)?;
        let apt = Apt::prepare(work.path(), &[suite], INSTEAD)?;
        let packages = apt.names("linux-")?;
        let Some(name) = release.newest(&packages) else {
            there.extend(releases(&packages));
            continue;
        };
        let whole = download(&apt, work.path(), suite, &name, &packages)?;
        // What lies there is incomplete or harmed.
        return cache::replace(directory, &whole);
    }
    Err(no_such(release, &there))
}

/// The releases of each suite that can be had.
///
/// # Errors
/// As of [`fetch`].
pub fn available(work: &Path) -> Result<Vec<(String, Vec<Release>)>, Error> {
    fs::create_dir_all(work).map_err(|error| Error::output(work, error))?;
    let of = |suite: &str| {
        let work = Scratch::within(work)?;
        let packages = Apt::prepare(work.path(), &[suite], INSTEAD)?.names(PARTS[0])?;
        Ok((suite.to_string(), releases(&packages)))
    };
    SUITES.into_iter().map(of).collect()
}

/// All suites, the likeliest first: each read costs seconds.
fn suites(release: &Release) -> Vec<&'static str> {
    let of_series = |(series, _): &&(&str, &str)| {
        let rest = release.version.strip_prefix(series);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let first = STABLE.iter().find(of_series).map(|&(_, suite)| suite);
    let others = SUITES.into_iter().filter(|&suite| Some(suite) != first);
    first.into_iter().chain(others).collect()
}

fn no_such(release: &Release, there: &[Release]) -> Error {
    let mut series: Vec<Vec<u32>> = there
        .iter()
        .filter(|other| other.flavour == release.flavour)
        .map(Release::series)
        .collect();
    series.sort();
    series.dedup();
    let series: Vec<String> = series
        .iter()
        .map(|of| of.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
        .collect();
    Error::Missing(format!(
        "Debian has no kernel {release} in {}; it has {}; {INSTEAD}",
        SUITES.join(", "),
        if series.is_empty() { "none of that kind".to_string() } else { series.join(", ") }
    ))
}

/// Fetches the packages of the release `name`, and lays out what is kept of them.
fn download(
    apt: &Apt,
    work: &Path,
    suite: &str,
    name: &str,
    packages: &[String],
) -> Result<PathBuf, Error> {
    let (unpacked, whole) = (work.join("unpacked"), work.join("whole"));
    let (mut taken, mut with_image) = (Vec::new(), None);
    // A release whose first package is complete has no others, or needs none.
    for part in PARTS {
        let package = format!("{part}{name}");
        if !packages.contains(&package) || found(&unpacked, name).is_ok_and(|it| it.is_complete()) {
            continue;
        }
        let file = apt.download(&package)?;
        apt.unpack(&file, &unpacked)?;
        taken.push(Package { package, sha256: hash(&file)? });
        with_image =
            with_image.or_else(|| Some(taken.len() - 1).filter(|_| found(&unpacked, name).is_ok()));
        fs::remove_file(&file).map_err(|error| Error::output(&file, error))?;
    }
    let found = found(&unpacked, name)?;
    fs::create_dir(&whole).map_err(|error| Error::output(&whole, error))?;
    let keep = |from: &Path, to: &str| {
        let to = whole.join(to);
        fs::copy(from, &to).map(drop).map_err(|error| Error::output(&to, error))
    };
    keep(&found.image, "vmlinuz")?;
    found.config.as_ref().map_or(Ok(()), |config| keep(config, "config"))?;
    let Package { package, sha256 } = taken.remove(with_image.unwrap_or(0));
    let fetched = Fetched {
        package,
        suite: suite.to_string(),
        package_sha256: sha256,
        image_sha256: hash(&whole.join("vmlinuz"))?,
        also: taken,
    };
    remember(&whole, &fetched)?;
    Ok(whole)
}

/// What is needed of a kernel's packages.
#[derive(Debug)]
struct Found {
    image: PathBuf,
    config: Option<PathBuf>,
}

impl Found {
    fn is_complete(&self) -> bool {
        self.config.is_some()
    }
}

/// Finds image and configuration of the release `name` in unpacked packages.
fn found(unpacked: &Path, name: &str) -> Result<Found, Error> {
    let places = |file: &str| {
        let modules = |root: &str| unpacked.join(format!("{root}/{name}/{file}"));
        let boot = unpacked.join(format!("boot/{file}-{name}"));
        [boot, modules("usr/lib/modules"), modules("lib/modules")]
            .into_iter()
            .find(|path| path.is_file())
    };
    let image = places("vmlinuz").ok_or_else(|| {
        Error::Missing(format!(
            "the packages of kernel {name} have no image in boot/vmlinuz-{name} or \
             usr/lib/modules/{name}/vmlinuz; {INSTEAD}"
        ))
    })?;
    Ok(Found { image, config: places("config") })
}

fn hash(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|error| Error::output(path, error))?;
    Ok(sha256([bytes.as_slice()]))
}

#[cfg(test)]
mod tests;
