//! Temporary folders that are gone after any end of the program.
//!
//! The end of a scope and the signals that can be handled remove a folder at once. After `SIGKILL`
//! the next program that makes one beside it removes it. A folder in use is locked by its program,
//! and the kernel opens the lock when that program ends.

use crate::Error;
use crate::ending;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A temporary folder, removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Says to others that the folder is in use.
    _lock: File,
}

impl Scratch {
    /// What the names of temporary folders begin with.
    pub const PREFIX: &str = "schedlab-scratch-";

    /// A folder where temporary files lie (`TMPDIR`, or `/tmp`).
    ///
    /// # Errors
    /// [`Error::Output`] if none can be made.
    pub fn new() -> Result<Scratch, Error> {
        Scratch::within(&std::env::temp_dir())
    }

    /// A folder in `parent`, for files that are to be moved from there by a rename.
    ///
    /// # Errors
    /// [`Error::Output`] if none can be made.
    pub fn within(parent: &Path) -> Result<Scratch, Error> {
        sweep_once(parent);
        Scratch::make(parent).map_err(|error| Error::output(parent, error))
    }

    fn make(parent: &Path) -> io::Result<Scratch> {
        const TRIES: usize = 16;
        for _ in 0..TRIES {
            let path = ending::register(|| {
                tempfile::Builder::new()
                    .prefix(Scratch::PREFIX)
                    .tempdir_in(parent)
                    .map(tempfile::TempDir::keep)
            })?;
            match lock(&path) {
                Some(lock) => return Ok(Scratch { path, _lock: lock }),
                // Another program took it for a dead one, and removes it.
                None => ending::forget(&path),
            }
        }
        Err(io::Error::other("its temporary folders vanish"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        ending::remove(&self.path);
        ending::forget(&self.path);
    }
}

/// Locks the folder at `path`; none if another has locked or removed it.
fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    folder.try_lock().ok()?;
    let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let is_there = inode(fs::symlink_metadata(path).ok()?) == inode(folder.metadata().ok()?);
    is_there.then_some(folder)
}

/// Removes the folders in `parent` whose programs have ended, at the first call for `parent`.
fn sweep_once(parent: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(parent.to_path_buf()) {
        sweep(parent);
    }
}

fn sweep(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(Scratch::PREFIX);
        // A link is no folder, and no other user can replace a folder of this one by it.
        let is_own = |metadata: fs::Metadata| metadata.is_dir() && metadata.uid() == user;
        if is_named && entry.metadata().is_ok_and(is_own) {
            let folder = entry.path();
            if let Some(_lock) = lock(&folder) {
                ending::remove(&folder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_folders_are_removed_and_those_in_use_and_of_others_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let used = Scratch::within(parent.path()).unwrap();
        fs::write(used.path().join("state"), b"in use").unwrap();
        let dead = at(&format!("{}dead", Scratch::PREFIX));
        fs::create_dir_all(dead.join("deeper")).unwrap();
        fs::write(dead.join("deeper/state"), b"73 MB").unwrap();
        let elsewhere = at("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("kept"), b"").unwrap();
        std::os::unix::fs::symlink(&elsewhere, at(&format!("{}link", Scratch::PREFIX))).unwrap();
        sweep(parent.path());
        assert!(!dead.exists(), "a dead folder stays");
        assert!(used.path().join("state").exists(), "a folder in use is removed");
        assert!(elsewhere.join("kept").exists(), "what a link points to is removed");
        let path = used.path().to_path_buf();
        drop(used);
        assert!(!path.exists(), "a folder outlives its use");
    }

    #[test]
    fn many_programs_make_and_sweep_at_once_and_none_loses_its_folder() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let scratch = Scratch::make(parent.path()).unwrap();
                        sweep(parent.path());
                        fs::write(scratch.path().join("file"), b"here").unwrap();
                        assert_eq!(fs::read(scratch.path().join("file")).unwrap(), b"here");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
