//! What the fuzz targets share.

use std::path::PathBuf;

/// A file with these bytes, one per target and process, in memory where the system has such a
/// place.
pub fn scratch(target: &str, bytes: &[u8]) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let path = place.join(format!("schedlab-fuzz-{target}-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}
