//! The files of a program that runs in a guest: itself, its libraries, its interpreter, and the
//! files and programs that its command names. Or a whole file system.

use super::elf::{self, Start};
use super::initramfs::{GuestFile, Kind};
use super::packaged;
use program::{Error, Scratch};
use schedlab_runner::session::{DIRECTORY, PATH, ROOT};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the files of a program are taken from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The file system in which it runs: a directory or a tar archive. Without it, what its command
    /// needs is taken from this machine.
    pub root: Option<PathBuf>,
    /// Packages of Debian's that are the file system, instead.
    pub packages: Vec<String>,
    /// Further files and directories of this machine.
    pub with: Vec<PathBuf>,
    /// Where relative paths begin; by default where this program runs.
    pub directory: Option<PathBuf>,
}

/// A program with its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    /// The path of the program in its file system.
    pub path: String,
    /// All files, with their paths in the guest.
    pub files: Vec<GuestFile>,
}

impl Packed {
    /// The bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }
}

impl Origin {
    /// Whether the command is one of this machine, as a user would find it.
    pub fn is_of_this_machine(&self) -> bool {
        self.root.is_none() && self.packages.is_empty() && self.directory.is_none()
    }

    /// With the file system of its packages, if it has some; `say` is called before they are fetched.
    ///
    /// # Errors
    /// As of [`packaged::file_system`].
    pub fn rooted(&self, say: &dyn Fn(&str)) -> Result<Origin, Error> {
        let mut rooted = self.clone();
        if !self.packages.is_empty() {
            rooted.root = Some(packaged::file_system(&self.packages, say)?);
        }
        Ok(rooted)
    }

    /// Packs the program of a command.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such program. [`Error::Input`] if a file cannot be read or
    /// used in a guest. [`Error::Missing`] if a library is not there.
    pub fn pack(&self, words: &[String]) -> Result<Packed, Error> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Error::Usage("give a command behind --".to_string()));
        };
        let mut files = Files { origin: self, by_path: BTreeMap::new() };
        let path = match &self.root {
            None => files.with_command(program, arguments)?,
            Some(root) => {
                files.with_root(root)?;
                files.program_inside(program)?
            }
        };
        for path in &self.with {
            let at = self.place(&path.to_string_lossy());
            let at = files.resolved(&at).unwrap_or(at);
            files.named(&self.here(path), &at)?;
        }
        if self.root.is_none() || !self.packages.is_empty() {
            files.with_accounts();
        }
        let all = files.by_path.into_iter().map(|(path, (bytes, kind))| GuestFile {
            path: format!("{ROOT}{path}"),
            bytes,
            kind,
        });
        Ok(Packed { path, files: all.collect() })
    }

    /// A path of this machine, from where relative ones begin.
    fn here(&self, path: &Path) -> PathBuf {
        self.directory.as_ref().map_or_else(|| path.to_path_buf(), |from| from.join(path))
    }

    /// Where a file with this name lies in the program's file system. It does not depend on where
    /// the command was given.
    fn place(&self, name: &str) -> String {
        plain(&Path::new(DIRECTORY).join(name))
    }
}

/// Files by their paths in the program's file system.
struct Files<'a> {
    origin: &'a Origin,
    by_path: BTreeMap<String, (Vec<u8>, Kind)>,
}

/// Where the guest has file systems of its own.
const MOUNTED: [&str; 3] = ["/proc", "/sys", "/dev"];

impl Files<'_> {
    /// Adds a program of this machine and what its arguments name. Returns its path.
    fn with_command(&mut self, program: &str, arguments: &[String]) -> Result<String, Error> {
        let (from, at) = self.found(program).ok_or_else(|| {
            Error::Usage(format!("cannot run {program}: there is no such command"))
        })?;
        self.program(&from, &at)?;
        for argument in arguments {
            let path = self.origin.here(Path::new(argument));
            if path.is_dir() {
                let at = self.origin.place(argument);
                // All of this machine is meant by `--root /`.
                if at != "/" {
                    self.named(&path, &at)?;
                }
                continue;
            }
            // A script in an argument names programs and files, too.
            let words = argument.split(|c: char| c.is_whitespace() || "'\"`;|&()<>=,".contains(c));
            for name in std::iter::once(argument.as_str()).chain(words) {
                if let Some((from, at)) = self.found(name) {
                    self.program(&from, &at)?;
                }
            }
        }
        Ok(at)
    }

    /// The file or program of this machine with this name, and where it lies in the guest.
    fn found(&self, name: &str) -> Option<(PathBuf, String)> {
        let file = self.origin.here(Path::new(name));
        if !name.is_empty() && file.is_file() {
            let at = self.origin.place(name);
            return (!is_mounted(&at)).then_some((file, at));
        }
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let path = std::env::var_os("PATH")?;
        let found =
            std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| {
                fs::metadata(file)
                    .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
            })?;
        let at = plain(&found);
        Some((found, at))
    }

    /// Adds a file of this machine; if it is a program, with all that starts it.
    fn program(&mut self, from: &Path, at: &str) -> Result<(), Error> {
        if self.by_path.contains_key(at) {
            return Ok(());
        }
        let start = self.file(from, at)?;
        match start {
            Start::Nothing | Start::Kernel => Ok(()),
            Start::Foreign => Err(Error::Input(format!(
                "{}: a program for another architecture, and guests are x86-64",
                from.display()
            ))),
            Start::Loader(loader) => {
                self.program(Path::new(&loader), &loader)?;
                self.libraries(from, &loader)
            }
            Start::Interpreter(interpreter, rest) => {
                let missing = |name: &str| {
                    Error::Missing(format!(
                        "{}: its interpreter {name} is not on this machine",
                        from.display()
                    ))
                };
                let path = Path::new(&interpreter);
                if !path.is_file() {
                    return Err(missing(&interpreter));
                }
                self.program(path, &interpreter)?;
                if path.file_name().is_some_and(|name| name == "env") {
                    // `env` looks for the first word that is neither an option nor a variable.
                    let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
                    let name = rest.split_whitespace().find(is_name).unwrap_or_default();
                    let (from, at) = self.found(name).ok_or_else(|| missing(name))?;
                    self.program(&from, &at)?;
                }
                Ok(())
            }
        }
    }

    /// Adds the shared libraries of a program, which its loader lists by its own rules, without
    /// those that only newer CPUs can run.
    fn libraries(&mut self, of: &Path, loader: &str) -> Result<(), Error> {
        let list = |more: &[&str]| {
            let mut command = Command::new(loader);
            command.args(more).arg("--list").arg(of).stdin(Stdio::null());
            command.output().map_err(|error| Error::Missing(format!("{loader}: {error}")))
        };
        let plain_cpu = list(&["--glibc-hwcaps-mask", ""])?;
        // Loaders before glibc 2.33, and those of musl, have no such option and no such libraries.
        let listing = if plain_cpu.status.success() { plain_cpu } else { list(&[])? };
        let text = String::from_utf8_lossy(&listing.stdout).into_owned();
        let said = String::from_utf8_lossy(&listing.stderr).into_owned();
        let lacking = text.lines().chain(said.lines()).find(|line| {
            line.contains("not found") || line.contains("cannot open shared object file")
        });
        if let Some(line) = lacking {
            return Err(Error::Missing(format!(
                "{}: a shared library is missing: {}",
                of.display(),
                line.trim()
            )));
        }
        // `libz.so.1 => /lib/libz.so.1 (0x…)`, the loader `/lib64/ld-linux-x86-64.so.2 (0x…)`, or
        // the kernel's `linux-vdso.so.1 (0x…)`.
        let entry = |line: &str| {
            let (name, path) = line.split_once("=>").unwrap_or(("", line));
            let path = path.split_whitespace().next().filter(|path| path.starts_with('/'))?;
            Some((name.trim().to_string(), path.to_string()))
        };
        let entries: Vec<(String, String)> = text.lines().filter_map(entry).collect();
        // The guest has no cache of libraries. It looks where the C library is.
        let usual = entries.iter().find(|(name, _)| name.starts_with("libc.so"));
        let usual = usual.and_then(|(_, path)| Path::new(path).parent()).map(Path::to_path_buf);
        for (name, path) in entries {
            let from = PathBuf::from(&path);
            let at = plain(&from);
            if !self.by_path.contains_key(&at) {
                self.file(&from, &at)?;
            }
            let second = usual.as_ref().filter(|_| !name.is_empty() && !name.contains('/'));
            if let Some(second) = second.map(|directory| plain(&directory.join(&name)))
                && !self.by_path.contains_key(&second)
            {
                self.by_path.insert(second, (at.into_bytes(), Kind::Link));
            }
        }
        Ok(())
    }

    /// Adds what a user names: a file, or a directory with all that is in it.
    fn named(&mut self, from: &Path, at: &str) -> Result<(), Error> {
        let from = fs::canonicalize(from).map_err(|error| unreadable(from, &error))?;
        match from.is_file() && self.origin.root.is_none() {
            true => self.program(&from, at),
            false => self.tree(&from, at),
        }
    }

    /// Adds what is there, as it is. Devices, sockets and pipes are left out: the guest has its
    /// own.
    fn tree(&mut self, from: &Path, at: &str) -> Result<(), Error> {
        let wrong = |error| unreadable(from, &error);
        let kind = fs::symlink_metadata(from).map_err(wrong)?.file_type();
        if is_mounted(at) {
            return Ok(());
        }
        if kind.is_symlink() {
            let to = fs::read_link(from).map_err(wrong)?.into_os_string().into_encoded_bytes();
            self.by_path.insert(at.to_string(), (to, Kind::Link));
        } else if kind.is_file() {
            self.file(from, at)?;
        } else if kind.is_dir() {
            if at != "/" {
                self.by_path.insert(at.to_string(), (Vec::new(), Kind::Directory));
            }
            for entry in fs::read_dir(from).map_err(wrong)? {
                let name = entry.map_err(wrong)?.file_name();
                self.tree(&from.join(&name), &plain(&Path::new(at).join(&name)))?;
            }
        }
        Ok(())
    }

    /// Adds a file, alone. Returns what starts it.
    fn file(&mut self, from: &Path, at: &str) -> Result<Start, Error> {
        let read = || Ok((fs::read(from)?, fs::metadata(from)?.permissions().mode()));
        let (bytes, mode) = read().map_err(|error| unreadable(from, &error))?;
        let kind = if mode & 0o111 == 0 { Kind::Data } else { Kind::Executable };
        let start = if kind == Kind::Data { Start::Nothing } else { elf::start(&bytes) };
        self.by_path.insert(at.to_string(), (bytes, kind));
        Ok(start)
    }

    /// Adds a whole file system.
    fn with_root(&mut self, root: &Path) -> Result<(), Error> {
        let root = self.origin.here(root);
        if root.is_dir() {
            return self.tree(&root, "/");
        }
        let scratch = Scratch::new()?;
        let mut tar = Command::new("tar");
        tar.args(["--no-same-owner", "--exclude=dev/*", "--exclude=./dev/*", "-xf"]).arg(&root);
        tar.arg("-C").arg(scratch.path()).stdin(Stdio::null());
        let output = tar.output().map_err(|error| {
            Error::Missing(format!(
                "tar cannot be run: {error}; install it with: apt-get install tar"
            ))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or_default().to_string();
            return Err(Error::Input(format!(
                "--root {}: neither a directory nor an archive that tar unpacks: {said}",
                root.display()
            )));
        }
        self.tree(scratch.path(), "/")
    }

    /// The path of a program in the file system that is there.
    fn program_inside(&self, name: &str) -> Result<String, Error> {
        let candidates = match name.contains('/') {
            true => vec![self.origin.place(name)],
            false => PATH.split(':').map(|directory| format!("{directory}/{name}")).collect(),
        };
        let found = candidates.into_iter().find(|path| {
            let file = self.resolved(path).and_then(|path| self.by_path.get(&path));
            file.is_some_and(|(_, kind)| *kind == Kind::Executable)
        });
        found.ok_or_else(|| {
            Error::Usage(format!(
                "cannot run {name}: its file system has no such program in {PATH}"
            ))
        })
    }

    /// The path without links.
    fn resolved(&self, path: &str) -> Option<String> {
        /// As many as Linux follows.
        const MOST: usize = 40;
        let mut path = plain(Path::new(path));
        for _ in 0..MOST {
            let parents: Vec<&Path> = Path::new(&path).ancestors().collect();
            let link = parents.into_iter().rev().find_map(|part| {
                let (to, kind) = self.by_path.get(&*part.to_string_lossy())?;
                (*kind == Kind::Link).then_some((part, String::from_utf8_lossy(to)))
            });
            let Some((part, to)) = link else { return Some(path) };
            let rest = Path::new(&path).strip_prefix(part).unwrap_or(Path::new(""));
            let from = part.parent().unwrap_or(Path::new("/"));
            path = plain(&from.join(&*to).join(rest));
        }
        None
    }

    /// Adds the accounts that programs look for.
    fn with_accounts(&mut self) {
        let files = [
            ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            ("/etc/group", "root:x:0:\n"),
            ("/etc/hosts", "127.0.0.1 localhost\n"),
        ];
        for (path, text) in files {
            let entry = self.by_path.entry(path.to_string());
            entry.or_insert_with(|| (text.as_bytes().to_vec(), Kind::Data));
        }
        let home = self.by_path.entry("/root".to_string());
        home.or_insert((Vec::new(), Kind::Directory));
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Input(format!("{}: {error}", path.display()))
}

fn is_mounted(path: &str) -> bool {
    MOUNTED.iter().any(|mounted| Path::new(path).starts_with(mounted))
}

/// An absolute path without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::ParentDir => _ = parts.pop(),
            _ => {}
        }
    }
    let names: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(ToString::to_string).collect()
    }

    fn file(directory: &Path, name: &str, text: &str, mode: u32) {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The files of a packed program, without the folder that they are in.
    fn kinds(packed: &Packed) -> BTreeMap<&str, Kind> {
        let file = |file: &'_ GuestFile| file.kind;
        packed
            .files
            .iter()
            .map(|of| (of.path.strip_prefix(ROOT).expect("it lies in the root"), file(of)))
            .collect()
    }

    #[test]
    fn a_command_takes_its_libraries_interpreter_and_what_it_names_along() {
        let directory = tempfile::tempdir().unwrap();
        file(directory.path(), "job.sh", "#!/usr/bin/env sh\nsort \"$1\"\n", 0o755);
        file(directory.path(), "data/in.txt", "b\na\n", 0o644);
        file(directory.path(), "data/more", "x", 0o644);
        let origin = Origin { directory: Some(directory.path().into()), ..Origin::default() };
        let packed =
            origin.pack(&words(&["./job.sh", "data/in.txt", "sort;uniq </dev/null"])).unwrap();
        assert_eq!(packed.path, "/here/job.sh");
        let files = kinds(&packed);
        for (path, kind) in [
            ("/here/job.sh", Kind::Executable),
            ("/here/data/in.txt", Kind::Data),
            ("/usr/bin/env", Kind::Executable),
            ("/etc/passwd", Kind::Data),
        ] {
            assert_eq!(files.get(path), Some(&kind), "{path}: {:?}", files.keys());
        }
        let has = |end: &str| files.keys().any(|path| path.ends_with(end));
        assert!(["/sh", "/sort", "/uniq", "/libc.so.6"].iter().all(|end| has(end)), "{files:?}");
        assert!(!has("/data/more") && !has("/null"), "nobody names it: {files:?}");
        let whole = origin.pack(&words(&["./job.sh", "data"])).unwrap();
        assert!(kinds(&whole).contains_key("/here/data/more"), "a directory is meant as a whole");
        // The names of the folder on this machine are nowhere.
        let here = directory.path().to_string_lossy().into_owned();
        assert!(!packed.files.iter().any(|file| file.path.contains(&here)));
        assert_eq!(
            packed,
            origin.pack(&words(&["./job.sh", "data/in.txt", "sort;uniq </dev/null"])).unwrap()
        );
    }

    #[test]
    fn what_is_missing_or_of_another_architecture_is_told_by_name() {
        let directory = tempfile::tempdir().unwrap();
        file(directory.path(), "lost", "#!/no/such/interpreter\n", 0o755);
        file(directory.path(), "lost-env", "#!/usr/bin/env no-such-interpreter\n", 0o755);
        file(directory.path(), "foreign", "\x7fELF\x01\x01\x01", 0o755);
        let origin = Origin { directory: Some(directory.path().into()), ..Origin::default() };
        for (program, code, word) in [
            ("./lost", 77, "/no/such/interpreter"),
            ("./lost-env", 77, "no-such-interpreter"),
            ("./foreign", 3, "another architecture"),
            ("no-such-command", 2, "no such command"),
        ] {
            let error = origin.pack(&words(&[program])).unwrap_err();
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
        let with = Origin { with: vec!["/no/such/file".into()], ..origin };
        assert_eq!(with.pack(&words(&["sh"])).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn a_root_is_taken_whole_from_a_directory_or_an_archive() {
        let root = tempfile::tempdir().unwrap();
        file(root.path(), "usr/bin/tool-1.0", "#!/bin/sh\n", 0o755);
        std::os::unix::fs::symlink("tool-1.0", root.path().join("usr/bin/tool")).unwrap();
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).unwrap();
        file(root.path(), "etc/passwd", "nobody\n", 0o644);
        file(root.path(), "proc/left-out", "", 0o644);
        let from = |root: &Path| Origin { root: Some(root.to_path_buf()), ..Origin::default() };
        let packed = from(root.path()).pack(&words(&["tool"])).unwrap();
        assert_eq!(packed.path, "/usr/bin/tool");
        let files = kinds(&packed);
        assert_eq!((files["/bin"], files["/usr/bin/tool"]), (Kind::Link, Kind::Link));
        assert!(!files.contains_key("/proc/left-out"), "the guest mounts its own");
        let passwd = packed.files.iter().find(|file| file.path.ends_with("/etc/passwd"));
        assert_eq!(passwd.map(|file| &file.bytes[..]), Some(b"nobody\n".as_slice()));
        let archive = root.path().with_extension("tar.gz");
        let mut tar = Command::new("tar");
        tar.args(["-czf"]).arg(&archive).arg("-C").arg(root.path()).arg(".");
        assert!(tar.status().unwrap().success());
        assert_eq!(from(&archive).pack(&words(&["/bin/tool"])).unwrap().files, packed.files);
        fs::remove_file(&archive).unwrap();
        assert_eq!(from(root.path()).pack(&words(&["sh"])).unwrap_err().exit_code(), 2);
        assert_eq!(
            from(Path::new("/etc/passwd")).pack(&words(&["sh"])).unwrap_err().exit_code(),
            3
        );
    }
}
