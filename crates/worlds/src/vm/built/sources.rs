//! Which sources a kernel is built of.

use crate::vm::sha256;
use program::Error;
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What identifies the sources in `tree`: git's hash of their content if git knows it, otherwise a
/// hash of all files.
///
/// # Errors
/// [`Error::Input`] if a file cannot be read.
pub fn identity(tree: &Path) -> Result<String, Error> {
    match git(tree) {
        Some(hash) => Ok(format!("git tree {hash}")),
        None => files(tree).map(|hash| format!("files {hash}")),
    }
}

/// Git's hash of the tree, unless something in it was changed since.
fn git(tree: &Path) -> Option<String> {
    // A repository further up has other files too.
    if !tree.join(".git").exists() {
        return None;
    }
    let said = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(tree).args(words).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        output.status.success().then_some(text)
    };
    let is_clean = said(&["status", "--porcelain"])?.is_empty();
    said(&["rev-parse", "HEAD^{tree}"]).filter(|_| is_clean)
}

/// A hash of the paths and contents of all files.
fn files(tree: &Path) -> Result<String, Error> {
    let wrong =
        |path: &Path, error: std::io::Error| Error::Input(format!("{}: {error}", path.display()));
    let (mut folders, mut all): (_, Vec<PathBuf>) = (vec![tree.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| wrong(&folder, error))? {
            let entry = entry.map_err(|error| wrong(&folder, error))?;
            let kind = entry.file_type().map_err(|error| wrong(&entry.path(), error))?;
            match kind.is_dir() {
                true if entry.file_name() == ".git" => {}
                true => folders.push(entry.path()),
                false => all.push(entry.path()),
            }
        }
    }
    all.sort();
    let line = |path: &PathBuf| -> Result<String, Error> {
        let bytes = if path.is_symlink() {
            let target = fs::read_link(path).map_err(|error| wrong(path, error))?;
            target.into_os_string().into_encoded_bytes()
        } else {
            fs::read(path).map_err(|error| wrong(path, error))?
        };
        let name = path.strip_prefix(tree).unwrap_or(path).display();
        Ok(format!("{} {name}\n", sha256([bytes.as_slice()])))
    };
    let lines: Vec<String> = all.par_iter().map(line).collect::<Result<_, Error>>()?;
    Ok(sha256(lines.iter().map(String::as_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("kernel")).unwrap();
        fs::write(tree.path().join("kernel/fair.c"), "int a;").unwrap();
        std::os::unix::fs::symlink("kernel", tree.path().join("link")).unwrap();
        tree
    }

    #[test]
    fn every_byte_name_and_link_counts_and_the_place_does_not() {
        let (one, other) = (tree(), tree());
        let before = identity(one.path()).unwrap();
        assert_eq!(before, identity(other.path()).unwrap());
        fs::write(one.path().join("kernel/fair.c"), "int b;").unwrap();
        assert_ne!(before, identity(one.path()).unwrap());
        fs::write(one.path().join("kernel/fair.c"), "int a;").unwrap();
        assert_eq!(before, identity(one.path()).unwrap());
        fs::rename(one.path().join("kernel/fair.c"), one.path().join("kernel/rt.c")).unwrap();
        assert_ne!(before, identity(one.path()).unwrap());
        fs::remove_file(other.path().join("link")).unwrap();
        std::os::unix::fs::symlink("init", other.path().join("link")).unwrap();
        assert_ne!(before, identity(other.path()).unwrap());
    }

    #[test]
    fn git_knows_its_own_tree_until_it_is_changed() {
        let tree = tree();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(tree.path()).args(["-c", "user.name=n", "-c", "user.email=n@n"]);
            let output = command.args(words).output().expect("git, which the sources come with");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "one"]);
        let one = identity(tree.path()).unwrap();
        assert!(one.starts_with("git tree "), "{one}");
        fs::write(tree.path().join("kernel/fair.c"), "int b;").unwrap();
        assert!(identity(tree.path()).unwrap().starts_with("files "));
        git(&["commit", "-q", "-a", "-m", "two"]);
        let two = identity(tree.path()).unwrap();
        assert!(two.starts_with("git tree ") && two != one, "{two}");
        fs::write(tree.path().join("new.c"), "").unwrap();
        assert!(identity(tree.path()).unwrap().starts_with("files "), "an untracked file counts");
    }
}
