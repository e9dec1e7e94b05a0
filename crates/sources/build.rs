//! Hashes the sources into `SCHEDLAB_SOURCES`.

use std::fs;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// All sources that decide the result of a simulation. They are links to the other crates; a
/// published package has copies of the files. Both give the same hash.
const SOURCES: [&str; 15] = [
    "of/atlas",
    "of/formats",
    "of/laboratory",
    "of/papers",
    "of/phases",
    "of/program",
    "of/readyq",
    "of/results",
    "of/schedlab",
    "of/schedsim",
    "of/statistics",
    "of/verbs",
    "of/worlds",
    "of/queue-atlas.json",
    "of/Cargo.lock",
];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        list(Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = XxHash3_128::new();
    for file in files {
        let content = fs::read(&file).unwrap_or_else(|error| {
            panic!("{}: {error}; its package must have it", file.display())
        });
        for part in [file.to_string_lossy().as_bytes(), &content] {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
    }
    println!("cargo::rustc-env=SCHEDLAB_SOURCES={:032x}", hasher.finish_128());
}

/// The files at `path`, which may be a file itself.
fn list(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| list(&entry.path(), files)),
        Err(_) => files.push(path.to_path_buf()),
    }
}
