//! Hashes the sources, for `SCHEDLAB_SOURCES`.

use std::fs;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// All that decides what a simulation comes to. They are links to the other crates, which a package has as files: both forms give the same hash.
const SOURCES: [&str; 7] = ["of/phases", "of/readyq", "of/results", "of/schedsim", "of/schedlab", "of/queue-atlas.json", "of/Cargo.lock"];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        list(Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = XxHash3_128::new();
    for file in files {
        let content = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; its package must have it", file.display()));
        for part in [file.to_string_lossy().as_bytes(), &content] {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
    }
    println!("cargo::rustc-env=SCHEDLAB_SOURCES={:032x}", hasher.finish_128());
}

/// The files at `path`, which may be one itself.
fn list(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| list(&entry.path(), files)),
        Err(_) => files.push(path.to_path_buf()),
    }
}
