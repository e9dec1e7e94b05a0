//! The cache of what guests are made of, which several programs use at the same time.
//!
//! Who reads takes no lock: a folder of the cache appears complete, by a rename. Who writes locks
//! the folder above, and looks again: another program may have written it meanwhile.

use program::Error;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The folder `name` of the cache: `schedlab/NAME` in the user's cache directory.
///
/// # Errors
/// If the environment does not say where that is.
pub fn folder(name: &str) -> Result<PathBuf, Error> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let base = base.ok_or_else(|| {
        Error::Usage(
            "neither XDG_CACHE_HOME nor HOME says where kernels can be kept; set one".to_string(),
        )
    })?;
    Ok(base.join("schedlab").join(name))
}

/// Makes `folder` and locks it until the result is dropped. `say` is called if another program has
/// locked it.
///
/// # Errors
/// [`Error::Output`] if it cannot be made or locked.
pub(super) fn lock(folder: &Path, say: &dyn Fn(&str)) -> Result<File, Error> {
    let locked = || {
        fs::create_dir_all(folder)?;
        let file = File::open(folder)?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        say(&format!("waiting: another program is fetching into {}", folder.display()));
        file.lock()?;
        Ok(file)
    };
    locked().map_err(|error| Error::output(folder, error))
}

/// Puts `whole` in the place of `folder`, in one step for everybody who looks. What was there is
/// then where `whole` was.
///
/// # Errors
/// [`Error::Output`] if it cannot be renamed.
pub(super) fn replace(folder: &Path, whole: &Path) -> Result<(), Error> {
    let replaced = match renameat_with(CWD, whole, CWD, folder, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT) => fs::rename(whole, folder),
        // A file system that cannot exchange.
        Err(Errno::INVAL) => {
            let _ = fs::remove_dir_all(folder);
            fs::rename(whole, folder)
        }
        other => other.map_err(std::io::Error::from),
    };
    replaced.map_err(|error| Error::output(folder, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_folder_is_replaced_in_one_step_and_never_seen_without_its_files() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, stop) = (parent.path().join("kernel"), AtomicUsize::new(0));
        let whole = |number: usize| {
            let whole = parent.path().join(format!("whole-{number}"));
            fs::create_dir(&whole).unwrap();
            ["a", "b"].iter().for_each(|name| fs::write(whole.join(name), b"x").unwrap());
            whole
        };
        replace(&folder, &whole(0)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..200).for_each(|number| replace(&folder, &whole(number)).unwrap());
                stop.store(1, Ordering::Relaxed);
            });
            while stop.load(Ordering::Relaxed) == 0 {
                assert_eq!(fs::read(folder.join("a")).unwrap(), b"x", "a reader sees a gap");
            }
        });
    }

    #[test]
    fn one_at_a_time_has_the_lock_and_the_next_says_that_it_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (said, inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let say = |_: &str| {
            said.fetch_add(1, Ordering::Relaxed);
        };
        let first = lock(folder.path(), &say).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _lock = lock(folder.path(), &say).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
            while said.load(Ordering::Relaxed) < 4 {
                std::thread::yield_now();
            }
            drop(first);
        });
    }
}
