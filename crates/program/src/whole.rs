//! A file that is complete or absent, however its program ends.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempPath};

/// A file being written. It has its name, or replaces what has it, only from [`finish`] on: a
/// reader never sees a part, even with several writers. Dropped before, it is gone.
///
/// What is no file (a pipe, a device) is written to directly.
///
/// [`finish`]: Whole::finish
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    file: Unfinished,
}

#[derive(Debug)]
enum Unfinished {
    /// Without a name, so that nothing is left if the program is killed.
    Nameless(File),
    /// With a temporary name, where the file system has no nameless files.
    Named(NamedTempFile),
    /// A pipe or a device.
    Direct(File),
}

const SUFFIX: &str = ".unfinished";

impl Whole {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn create(path: &Path) -> io::Result<Whole> {
        let file = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() || path.starts_with("/dev") => {
                Unfinished::Direct(OpenOptions::new().write(true).open(path)?)
            }
            _ => Unfinished::within(folder(path))?,
        };
        Ok(Whole { path: path.to_path_buf(), file })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If that is not possible; what had the name still has it.
    pub fn finish(self) -> io::Result<()> {
        match self.file {
            Unfinished::Direct(_) => Ok(()),
            Unfinished::Named(file) => {
                file.persist(&self.path)?;
                Ok(())
            }
            Unfinished::Nameless(file) => match name(&file, &self.path) {
                // Only a rename replaces a file at once.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let given = temporary().make_in(folder(&self.path), |path| name(&file, path));
                    let given: TempPath = given?.into_temp_path();
                    Ok(given.persist(&self.path)?)
                }
                named => named,
            },
        }
    }

    /// As [`finish`](Whole::finish), when the disk has its bytes.
    ///
    /// # Errors
    /// As of [`finish`](Whole::finish), or if the disk does not take them.
    pub fn finish_on_disk(mut self) -> io::Result<()> {
        // A pipe has no disk.
        if !matches!(self.file, Unfinished::Direct(_)) {
            self.file().sync_all()?;
        }
        self.finish()
    }

    fn file(&mut self) -> &mut File {
        match &mut self.file {
            Unfinished::Nameless(file) | Unfinished::Direct(file) => file,
            Unfinished::Named(file) => file.as_file_mut(),
        }
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Unfinished {
    fn within(folder: &Path) -> io::Result<Unfinished> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        match open(folder, flags, Mode::from_raw_mode(0o666)) {
            // Names are given through /proc.
            Ok(file) if descriptor(&file).exists() => Ok(Unfinished::Nameless(file.into())),
            _ => Ok(Unfinished::Named(temporary().tempfile_in(folder)?)),
        }
    }
}

fn temporary() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.suffix(SUFFIX).permissions(Permissions::from_mode(0o666));
    builder
}

fn descriptor(file: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Gives a file without a name the name `path`, which nothing may have.
fn name(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The directory of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, mknodat};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn written(whole: Whole) {
        let mut whole = whole;
        whole.write_all(b"new").unwrap();
        whole.finish().unwrap();
    }

    #[test]
    fn nothing_is_seen_of_a_file_until_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("one");
        let mut whole = Whole::create(&path).unwrap();
        whole.write_all(b"half").unwrap();
        // A kill at this point leaves what is seen now.
        if matches!(whole.file, Unfinished::Nameless(_)) {
            assert_eq!(names(place.path()), Vec::<String>::new());
        }
        drop(whole);
        assert_eq!(names(place.path()), Vec::<String>::new());
        for _ in ["made", "replaced"] {
            written(Whole::create(&path).unwrap());
            assert_eq!(
                (names(place.path()), fs::read(&path).unwrap()),
                (vec!["one".into()], b"new".into())
            );
            fs::write(&path, "old").unwrap();
        }
    }

    #[test]
    fn a_file_system_without_nameless_files_gets_named_ones() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("one");
        let named = || Whole {
            path: path.clone(),
            file: Unfinished::Named(temporary().tempfile_in(place.path()).unwrap()),
        };
        assert!(names(place.path()).is_empty());
        drop(named());
        assert!(names(place.path()).is_empty());
        written(named());
        assert_eq!(
            (names(place.path()), fs::read(&path).unwrap()),
            (vec!["one".into()], b"new".into())
        );
    }

    #[test]
    fn its_mode_is_that_of_any_new_file() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("usual"), "").unwrap();
        written(Whole::create(&place.path().join("one")).unwrap());
        let mode = |name: &str| fs::metadata(place.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("one"), mode("usual"));
    }

    #[test]
    fn a_pipe_stays_a_pipe_and_a_folder_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        written(Whole::create(&path).unwrap());
        assert_eq!(reader.join().unwrap(), b"new");
        assert_eq!(names(place.path()), ["pipe"]);
        assert!(Whole::create(place.path()).is_err());
        assert!(Whole::create(&place.path().join("none/one")).is_err());
    }
}
