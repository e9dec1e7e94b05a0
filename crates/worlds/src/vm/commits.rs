//! The commits of a git tree: of Linux, each as a kernel, or of anything, each in a folder.
//!
//! They are checked out in a clone that shares the tree's objects. Kernels are built in one folder,
//! so that each step compiles what changed. The user's tree and its folder are only read.

use super::built::Recipe;
use super::{Kernel, kernel};
use program::{Error, Scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commits from a good to a bad one, along first parents.
pub struct Commits {
    /// Their hashes and subjects.
    all: Vec<(String, String)>,
    fragments: Vec<PathBuf>,
    work: Scratch,
}

impl Commits {
    /// Those of the repository `git` from `good` to `bad`, which has it among its ancestors. Their
    /// kernels have the `fragments`.
    ///
    /// # Errors
    /// [`Error::Usage`] if one is no commit there, or `good` no ancestor of `bad`;
    /// [`Error::Missing`] without git.
    pub fn between(
        git: &Path,
        good: &str,
        bad: &str,
        fragments: &[PathBuf],
    ) -> Result<Commits, Error> {
        let commit = |name: &str| -> Result<String, Error> {
            let of = format!("{name}^{{commit}}");
            let said = run(git, &["rev-parse", "--verify", "--quiet", "--end-of-options", &of])?;
            said.map_err(|_| {
                Error::Usage(format!("there is no commit `{name}` in {}", git.display()))
            })
        };
        let (first, last) = (commit(good)?, commit(bad)?);
        if first == last {
            return Err(Error::Usage(format!("{good} and {bad} are the same commit")));
        }
        if run(git, &["merge-base", "--is-ancestor", &first, &last])?.is_err() {
            return Err(Error::Usage(format!(
                "{good} is no ancestor of {bad} in {}: a change is looked for between a commit and \
                 one that came of it",
                git.display()
            )));
        }
        let lines = |words: &[&str]| -> Result<Vec<(String, String)>, Error> {
            let text = run(git, words)?.map_err(|said| wrong(git, &said))?;
            let line = |line: &str| {
                line.split_once(' ').map(|(hash, subject)| (hash.to_string(), subject.to_string()))
            };
            Ok(text.lines().filter_map(line).collect())
        };
        let range = format!("{first}..{last}");
        let mut all = lines(&["log", "-1", "--format=%H %s", &first])?;
        all.extend(lines(&["log", "--first-parent", "--reverse", "--format=%H %s", &range])?);
        let parent = kernel::cache()?;
        fs::create_dir_all(&parent).map_err(|error| Error::output(&parent, error))?;
        let work = Scratch::within(&parent)?;
        let (from, to) = (fs::canonicalize(git), work.path().join("tree"));
        let from = from.map_err(|error| wrong(git, &error.to_string()))?;
        let (from, to) = (from.display().to_string(), to.display().to_string());
        let words = ["clone", "--quiet", "--shared", "--no-checkout", "--", &from, &to];
        run(work.path(), &words)?.map_err(|said| wrong(git, &said))?;
        Ok(Commits { all, fragments: fragments.to_vec(), work })
    }

    /// Each by the begin of its hash, and its subject.
    pub fn names(&self) -> Vec<String> {
        self.all.iter().map(|(hash, subject)| format!("{} {subject}", &hash[..12])).collect()
    }

    /// The whole hash of number `at`.
    pub fn hash(&self, at: usize) -> &str {
        &self.all[at].0
    }

    /// A folder with the files of number `at`, which lasts as long as this.
    ///
    /// # Errors
    /// [`Error::Input`] if git cannot check it out.
    pub fn folder(&self, at: usize) -> Result<PathBuf, Error> {
        let (tree, hash) = (self.work.path().join("tree"), self.hash(at));
        let folder = self.work.path().join(&hash[..12]);
        if !folder.exists() {
            let to = folder.display().to_string();
            run(&tree, &["worktree", "add", "--quiet", "--detach", &to, hash])?
                .map_err(|said| wrong(&tree, &said))?;
        }
        Ok(folder)
    }

    /// The kernel of number `at`.
    ///
    /// # Errors
    /// As of [`Recipe::kernel`].
    pub fn kernel(&self, at: usize, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let (tree, out) = (self.work.path().join("tree"), self.work.path().join("out"));
        let words = ["checkout", "--quiet", "--force", "--detach", self.hash(at)];
        run(&tree, &words)?.map_err(|said| wrong(&tree, &said))?;
        let fragments = &self.fragments;
        Recipe { tree: &tree, fragments, folder: Some(&out), origin: None }.kernel(say)
    }
}

fn wrong(git: &Path, said: &str) -> Error {
    Error::Input(format!("git cannot read {}: {said}", git.display()))
}

/// What git prints in the folder `place`, or, if it fails, what it says.
fn run(place: &Path, words: &[&str]) -> Result<Result<String, String>, Error> {
    let output = Command::new("git").arg("-C").arg(place).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        Error::Missing(format!("git cannot be run: {error}; install it with: apt-get install git"))
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    Ok(if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
}
