//! QEMU as several CPUs in lockstep need it: this machine's own if it is new enough, else Debian's
//! from the backports. That one is unpacked beside the system with all the libraries that it needs,
//! and started through its own loader.

use super::apt::Apt;
use super::cache;
use super::fetched::Package;
use super::qemu::{Plugin, Program, Qemu};
use program::{Error, Scratch};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Where it is looked for, what it needs first.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];
const PACKAGE: &str = "qemu-system-x86";
const INSTEAD: &str = "guests of several CPUs need QEMU 11.1 or later, in PATH or fetched; `--cpus 1` \
                       needs none of that";
/// What is kept of the packages, of what lies in `usr`.
const KEPT: [&str; 4] = ["bin", "lib", "share/qemu", "share/seabios"];
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// What the cache knows of it.
#[derive(Serialize, Deserialize)]
struct Fetched {
    /// Its version.
    version: String,
    /// The SHA-256 of the program and of the firmware that runs before the kernel.
    sha256: String,
    /// The packages, by the names of their files.
    packages: Vec<Package>,
}

/// The emulator for a guest of `cpus`: this machine's own for one.
///
/// # Errors
/// As of [`Qemu::find`] and [`find`].
pub fn of(cpus: u16, say: &dyn Fn(&str)) -> Result<Qemu, Error> {
    if cpus == 1 { Qemu::find() } else { find(say) }
}

/// The emulator that runs several CPUs in lockstep; it is fetched if it is neither in `PATH` nor in
/// the cache, and `say` is called.
///
/// # Errors
/// [`Error::Missing`] with the version that is needed if it cannot be fetched.
pub fn find(say: &dyn Fn(&str)) -> Result<Qemu, Error> {
    // No other QEMU would help.
    if !Plugin::ALL.into_iter().any(|plugin| plugin.has_lockstep() && !plugin.library().is_empty())
    {
        return Err(Error::Missing(format!(
            "this schedlab was built without its plugin for QEMU, and `cargo build` said why; \
             {INSTEAD}"
        )));
    }
    if let Ok(own) = Qemu::find()
        && own.plugin.is_some_and(Plugin::has_lockstep)
    {
        return Ok(own);
    }
    let directory = cache::folder("qemu")?;
    if let Some(qemu) = cached(&directory) {
        return Ok(qemu);
    }
    let _lock = cache::lock(directory.parent().unwrap_or(&directory), say)?;
    if let Some(qemu) = cached(&directory) {
        return Ok(qemu);
    }
    say("fetching QEMU for several CPUs in lockstep (38 MB)");
    fetch(&directory)?;
    cached(&directory).ok_or_else(|| {
        Error::Missing(format!("the QEMU in {} does not start; {INSTEAD}", directory.display()))
    })
}

/// What lies in `directory`, if it is there, unharmed and new enough.
fn cached(directory: &Path) -> Option<Qemu> {
    let known: Fetched =
        serde_json::from_slice(&fs::read(directory.join("package.json")).ok()?).ok()?;
    let qemu = open(directory).ok()?;
    let is_good = qemu.sha256 == known.sha256 && qemu.plugin.is_some_and(Plugin::has_lockstep);
    is_good.then_some(qemu)
}

/// The emulator unpacked in `directory`.
fn open(directory: &Path) -> Result<Qemu, Error> {
    let at = |path: &str| directory.join(path);
    let libraries = at(LIBRARIES);
    let firmware = ["usr/share/qemu", "usr/share/seabios"];
    let arguments = [
        "--library-path".into(),
        libraries.clone().into_os_string(),
        at("usr/bin/qemu-system-x86_64").into_os_string(),
    ];
    let firmware = firmware.iter().flat_map(|folder| ["-L".into(), at(folder).into_os_string()]);
    Qemu::at(Program {
        start: libraries.join("ld-linux-x86-64.so.2"),
        arguments: arguments.into_iter().chain(firmware).collect(),
        variables: vec![("QEMU_MODULE_DIR", libraries.join("qemu").into_os_string())],
        file: at("usr/bin/qemu-system-x86_64"),
    })
}

/// Fetches the newest into `directory`.
fn fetch(directory: &Path) -> Result<(), Error> {
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(|error| Error::output(parent, error))?;
    let work = Scratch::within(parent)?;
    let apt = Apt::prepare(work.path(), &SUITES, INSTEAD)?;
    let (unpacked, whole) = (work.path().join("unpacked"), work.path().join("whole"));
    let packages = apt.unpack_all(&apt.download_all(&[PACKAGE], SUITES[1])?, &unpacked)?;
    for kept in KEPT {
        let (from, to) = (unpacked.join("usr").join(kept), whole.join("usr").join(kept));
        let parent = to.parent().unwrap_or(&to);
        fs::create_dir_all(parent)
            .and_then(|()| fs::rename(&from, &to))
            .map_err(|error| Error::output(&to, error))?;
    }
    let qemu = open(&whole)?;
    let fetched = Fetched { version: qemu.version, sha256: qemu.sha256, packages };
    let json =
        serde_json::to_vec_pretty(&fetched).map_err(|error| Error::Internal(error.to_string()))?;
    program::write_whole(&whole.join("package.json"), &json)?;
    // What lies there is incomplete, harmed or too old.
    cache::replace(directory, &whole)
}
