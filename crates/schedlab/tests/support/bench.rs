//! Stands in for the programs and the cache of a machine: an emulator that is a script, and a kernel
//! that is a header.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Programs that stand in for those of this machine, a cache and a place for temporary files.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// With an emulator that does `script` when it is to run a guest.
    pub fn new(script: &str) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        ["bin", "cache", "tmp"].iter().for_each(|name| fs::create_dir(bench.at(name)).unwrap());
        bench.program(
            "qemu-system-x86_64",
            &format!(
                "case \"$*\" in\n--version) echo 'QEMU emulator version 7.2.22 (Debian)';;\n\
                 '-L help'|*'-machine none'*) ;;\n*) {script};;\nesac"
            ),
        );
        fs::write(bench.at("vmlinuz"), image()).unwrap();
        bench
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn program(&self, name: &str, script: &str) {
        let path = self.at("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The program on this machine.
    pub fn command(&self) -> Command {
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let path = std::env::var("PATH").unwrap_or_default();
        schedlab
            .env("PATH", format!("{}:{path}", self.at("bin").display()))
            .env("XDG_CACHE_HOME", self.at("cache"))
            .env("TMPDIR", self.at("tmp"));
        schedlab
    }
}

/// A file with the header of a kernel's image.
pub fn image() -> Vec<u8> {
    let parts: [(usize, &[u8]); 5] = [
        (0x202, b"HdrS"),
        (0x206, &[0x0f, 0x02]),
        (0x20e, &[0x00, 0x01]),
        (0x236, &[1, 0]),
        (0x300, b"6.18.1-cloud-amd64 (builder) #1\0"),
    ];
    let mut bytes = vec![0; 0x400];
    for (at, part) in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
    }
    bytes
}
