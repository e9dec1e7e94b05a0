//! A file system out of Debian's packages, for a program that this machine has not. It has the
//! packages with all that they need, fetched, unpacked and installed nowhere. Their scripts do not
//! run.

use super::apt::Apt;
use super::cache;
use super::fetched::Package;
use program::{Error, Scratch};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const SUITE: &str = "trixie";
/// What any command may take for granted: the usual folders, the plain locale, a shell, and what
/// scripts call.
const ALWAYS: [&str; 4] = ["base-files", "coreutils", "dash", "libc-bin"];
const INSTEAD: &str = "--root takes a file system that is already there";

/// What the cache knows of a file system.
#[derive(Serialize, Deserialize)]
struct Contents {
    suite: String,
    packages: Vec<Package>,
}

/// The folder of the cache with the file system of `packages`. If it is not there, it is fetched and
/// `say` is called.
///
/// # Errors
/// [`Error::Usage`] for what cannot be the name of a package, [`Error::Missing`] if one cannot be
/// had, [`Error::Output`] if the cache cannot be written.
pub fn file_system(packages: &[String], say: &dyn Fn(&str)) -> Result<PathBuf, Error> {
    let mut names: Vec<&str> = packages.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
        return Err(Error::Usage(format!("--package {wrong}: no name of a package of Debian's")));
    }
    let folder = cache::folder("packages")?.join(names.join(","));
    let root = folder.join("root");
    if contents(&folder).is_some() {
        return Ok(root);
    }
    let parent = folder.parent().unwrap_or(&folder);
    let _lock = cache::lock(parent, say)?;
    if contents(&folder).is_none() {
        say(&format!("fetching {} from Debian {SUITE} with all that is needed", names.join(", ")));
        fetch(&names, parent, &folder)?;
    }
    Ok(root)
}

fn contents(folder: &Path) -> Option<Contents> {
    serde_json::from_slice(&fs::read(folder.join("packages.json")).ok()?).ok()
}

fn fetch(names: &[&str], parent: &Path, folder: &Path) -> Result<(), Error> {
    let work = Scratch::within(parent)?;
    let apt = Apt::prepare(work.path(), &[SUITE], INSTEAD)?;
    let whole = work.path().join("whole");
    let root = whole.join("root");
    fs::create_dir_all(&root).map_err(|error| Error::output(&root, error))?;
    let mut files = apt.download_all(&[&ALWAYS, names].concat(), SUITE)?;
    // base-files has the links `bin` and `lib`, which have to be there before others use them.
    files.sort_by_key(|file| !is_of(file, "base-files"));
    let packages = apt.unpack_all(&files, &root)?;
    // No program reads these.
    for idle in ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian"] {
        let _ = fs::remove_dir_all(root.join(idle));
    }
    let contents = Contents { suite: SUITE.to_string(), packages };
    let json =
        serde_json::to_vec_pretty(&contents).map_err(|error| Error::Internal(error.to_string()))?;
    program::write_whole(&whole.join("packages.json"), &json)?;
    cache::replace(folder, &whole)
}

fn is_of(file: &Path, package: &str) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(package).is_some_and(|rest| rest.starts_with('_'))
}

/// As in Debian's policy, section 5.6.1.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() >= 2
        && name.bytes().next().is_some_and(is_plain)
        && name.bytes().all(|byte| is_plain(byte) || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_package_is_refused_before_anything_is_fetched() {
        for wrong in ["", "x", "Redis", "-o", "a b", "../etc", "redis;", "redis=1"] {
            let error = file_system(&[wrong.to_string()], &|_| panic!("nothing is fetched"));
            assert_eq!(error.unwrap_err().exit_code(), 2, "{wrong}");
        }
        assert!(["g++", "libc6", "redis-server", "0ad"].into_iter().all(is_name));
    }
}
