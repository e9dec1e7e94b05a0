//! Builds the initial files of a guest: an archive in the kernel's `newc` format, never compressed.
//!
//! Source: linux/Documentation/driver-api/early-userspace/buffer-format.rst.

use program::Error;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The runner: a static program.
const RUNNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runner"));

const DIRECTORY: u32 = 0o040_755;

/// A further file of the guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestFile {
    /// Its path in the guest, from the root.
    pub path: String,
    /// Its content; of a link the path that it leads to.
    pub bytes: Vec<u8>,
    /// What it is.
    pub kind: Kind,
}

/// What a file of the guest is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file that is only read and written.
    Data,
    /// A file that can be executed.
    Executable,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
}

impl Kind {
    /// As `stat` has it.
    fn mode(self) -> u32 {
        match self {
            Kind::Data => 0o100_644,
            Kind::Executable => 0o100_755,
            Kind::Link => 0o120_777,
            Kind::Directory => DIRECTORY,
        }
    }
}

impl GuestFile {
    /// The file `from` of this machine, as `path` in the guest.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn copy(from: &Path, path: &str) -> Result<GuestFile, Error> {
        let bytes = std::fs::read(from)
            .map_err(|error| Error::Input(format!("{}: {error}", from.display())))?;
        Ok(GuestFile { path: path.to_string(), bytes, kind: Kind::Executable })
    }

    /// A program of this machine as `/bin/NAME`, with the shared libraries that it needs at their
    /// paths.
    ///
    /// # Errors
    /// If one of them cannot be found or read; `ldd` finds them.
    pub fn program(from: &Path) -> Result<Vec<GuestFile>, Error> {
        let name = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy();
        let mut files = vec![GuestFile::copy(from, &format!("/bin/{name}"))?];
        let listing = std::process::Command::new("ldd").arg(from).output();
        let listing = listing.map_err(|error| {
            Error::Missing(format!(
                "ldd cannot be run: {error}; install it with: apt-get install libc-bin"
            ))
        })?;
        for line in String::from_utf8_lossy(&listing.stdout).lines() {
            if line.contains("not found") {
                return Err(Error::Missing(format!(
                    "{}: a shared library is missing:{line}",
                    from.display()
                )));
            }
            // `libz.so.1 => /lib/libz.so.1 (0x…)`, or the loader: `/lib64/ld-linux-x86-64.so.2
            // (0x…)`.
            let path =
                line.split_once("=>").map_or(line, |(_, path)| path).split_whitespace().next();
            if let Some(path) = path.filter(|path| path.starts_with('/')) {
                files.push(GuestFile::copy(&PathBuf::from(path), path)?);
            }
        }
        Ok(files)
    }
}

/// Whether the program was built with the runner.
pub fn runner() -> Result<&'static [u8], Error> {
    match RUNNER {
        [] if !cfg!(feature = "runner") => Err(Error::not_built(
            "runner",
            "runner, which starts workloads on this machine and in guests",
        )),
        [] => Err(Error::Missing(
            "this schedlab was built without its runner, which needs Linux on x86-64 and a static \
             C library; install it and build again: apt-get install libc6-dev"
                .to_string(),
        )),
        runner => Ok(runner),
    }
}

/// The archive of a guest for `session` (JSON), with `files`.
///
/// # Errors
/// If the program was built without the runner.
pub fn archive(session: &[u8], files: &[GuestFile]) -> Result<Vec<u8>, Error> {
    const DEVICE: u32 = 0o020_600;
    let mut archive = Archive::default();
    let mut directories: BTreeSet<String> =
        ["dev", "proc", "sys", "tmp"].map(str::to_string).into();
    for file in files {
        let parents = Path::new(file.path.trim_start_matches('/')).ancestors().skip(1);
        directories.extend(
            parents
                .map(|parent| parent.to_string_lossy().into_owned())
                .filter(|parent| !parent.is_empty()),
        );
    }
    directories.iter().for_each(|directory| archive.entry(directory, DIRECTORY, (0, 0), &[]));
    archive.entry("dev/console", DEVICE, (5, 1), &[]);
    archive.entry("init", 0o100_755, (0, 0), runner()?);
    archive.entry("session.json", 0o100_644, (0, 0), session);
    for file in files {
        let name = file.path.trim_start_matches('/');
        archive.entry(name, file.kind.mode(), (0, 0), &file.bytes);
    }
    archive.entry("TRAILER!!!", 0, (0, 0), &[]);
    Ok(archive.bytes)
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let (size, name_size) = (contents.len() as u32, name.len() as u32 + 1);
        // inode, mode, user, group, links, time, size, the file system's and the file's own device
        // numbers, the name's length, no checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        fields
            .iter()
            .for_each(|field| self.bytes.extend_from_slice(format!("{field:08x}").as_bytes()));
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::qemu::Plugin;

    /// Clones in different folders would build different files, and one guest's results would not
    /// be another's.
    #[test]
    fn runner_and_plugins_hold_no_path_of_the_build() {
        let home = |name: &str| std::env::var(name).unwrap_or_default();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).unwrap().display().to_string();
        let paths = [
            root,
            here.display().to_string(),
            env!("OUT_DIR").to_string(),
            home("CARGO_HOME"),
            format!("{}/", home("HOME")), // a guest's own home may have this name
            "registry/src".to_string(),
            "/.cargo/".to_string(),
        ];
        let files = [RUNNER].into_iter().chain(Plugin::ALL.map(Plugin::library));
        for (number, file) in files.enumerate() {
            assert!(cfg!(not(feature = "runner")) || !file.is_empty(), "file {number} is empty");
            for path in paths.iter().filter(|path| path.len() > 1) {
                let is_in = file.windows(path.len()).any(|part| part == path.as_bytes());
                assert!(!is_in, "file {number} holds {path}");
            }
        }
    }
}
