//! The files of a paper.
//!
//! A paper is a folder of data. The papers of this project are built into the program; any other is
//! read from disk.

use formats::toml_file::TomlFile;
use formats::workload::{Workload, built_in};
use program::{Error, Scratch, no_such};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// The built-in papers: name and files.
const BUILT_IN: [(&str, &[(&str, &str)]); 6] = [
    (
        "porter-2021",
        &[
            ("experiments.toml", include_str!("../papers/porter-2021/experiments.toml")),
            ("tables.csv", include_str!("../papers/porter-2021/tables.csv")),
            ("claims.toml", include_str!("../papers/porter-2021/claims.toml")),
            ("findings.toml", include_str!("../papers/porter-2021/findings.toml")),
            ("ensembles.csv", include_str!("../papers/porter-2021/ensembles.csv")),
            ("builds.csv", include_str!("../papers/porter-2021/builds.csv")),
            ("real-time.toml", include_str!("../papers/porter-2021/real-time.toml")),
        ],
    ),
    (
        "curran-stumm-1990",
        &[
            ("experiments.toml", include_str!("../papers/curran-stumm-1990/experiments.toml")),
            ("grids.toml", include_str!("../papers/curran-stumm-1990/grids.toml")),
            ("claims.toml", include_str!("../papers/curran-stumm-1990/claims.toml")),
            ("findings.toml", include_str!("../papers/curran-stumm-1990/findings.toml")),
            ("bursts-0.7.toml", include_str!("../papers/curran-stumm-1990/bursts-0.7.toml")),
            ("bursts-0.9.toml", include_str!("../papers/curran-stumm-1990/bursts-0.9.toml")),
            ("uneven.toml", include_str!("../papers/curran-stumm-1990/uneven.toml")),
            ("posterior.csv", include_str!("../papers/curran-stumm-1990/posterior.csv")),
            ("ensembles.csv", include_str!("../papers/curran-stumm-1990/ensembles.csv")),
        ],
    ),
    (
        "pslist",
        &[
            ("experiments.toml", include_str!("../papers/pslist/experiments.toml")),
            ("claims.toml", include_str!("../papers/pslist/claims.toml")),
            ("findings.toml", include_str!("../papers/pslist/findings.toml")),
            ("ensembles.csv", include_str!("../papers/pslist/ensembles.csv")),
            ("cut-short.toml", include_str!("../papers/pslist/cut-short.toml")),
            ("yields.c", include_str!("../papers/pslist/yields.c")),
            ("switches.c", include_str!("../papers/pslist/switches.c")),
            ("files.c", include_str!("../papers/pslist/files.c")),
            ("spread.c", include_str!("../papers/pslist/spread.c")),
            ("checked.c", include_str!("../papers/pslist/checked.c")),
            ("cut-short-in-linux.toml", include_str!("../papers/pslist/cut-short-in-linux.toml")),
            ("desktop.toml", include_str!("../papers/pslist/desktop.toml")),
            ("pslist-steps.svg", include_str!("../papers/pslist/pslist-steps.svg")),
            ("pslist-100-steps.svg", include_str!("../papers/pslist/pslist-100-steps.svg")),
        ],
    ),
    (
        "preempt-none",
        &[
            ("experiments.toml", include_str!("../papers/preempt-none/experiments.toml")),
            ("claims.toml", include_str!("../papers/preempt-none/claims.toml")),
            ("findings.toml", include_str!("../papers/preempt-none/findings.toml")),
            ("ensembles.csv", include_str!("../papers/preempt-none/ensembles.csv")),
            ("s_lock.c", include_str!("../papers/preempt-none/s_lock.c")),
            ("spin.toml", include_str!("../papers/preempt-none/spin.toml")),
            ("clock.toml", include_str!("../papers/preempt-none/clock.toml")),
        ],
    ),
    (
        "st-andrews",
        &[
            ("experiments.toml", include_str!("../papers/st-andrews/experiments.toml")),
            ("claims.toml", include_str!("../papers/st-andrews/claims.toml")),
            ("grids.toml", include_str!("../papers/st-andrews/grids.toml")),
            ("findings.toml", include_str!("../papers/st-andrews/findings.toml")),
            ("ensembles.csv", include_str!("../papers/st-andrews/ensembles.csv")),
            ("beside.toml", include_str!("../papers/st-andrews/beside.toml")),
            ("pythagoras.c", include_str!("../papers/st-andrews/pythagoras.c")),
            ("cfs.svg", include_str!("../papers/st-andrews/cfs.svg")),
            ("mlfq.svg", include_str!("../papers/st-andrews/mlfq.svg")),
        ],
    ),
    (
        "td-tp",
        &[
            ("experiments.toml", include_str!("../papers/td-tp/experiments.toml")),
            ("claims.toml", include_str!("../papers/td-tp/claims.toml")),
            ("findings.toml", include_str!("../papers/td-tp/findings.toml")),
            ("terminal.c", include_str!("../papers/td-tp/terminal.c")),
            ("terminal.sh", include_str!("../papers/td-tp/terminal.sh")),
            ("ensembles.csv", include_str!("../papers/td-tp/ensembles.csv")),
            ("alike.toml", include_str!("../papers/td-tp/alike.toml")),
            ("waker-fifo.toml", include_str!("../papers/td-tp/waker-fifo.toml")),
            ("waker-other.toml", include_str!("../papers/td-tp/waker-other.toml")),
        ],
    ),
];

/// The names of the built-in papers.
pub fn names() -> Vec<String> {
    BUILT_IN.iter().map(|(name, _)| name.to_string()).collect()
}

/// The largest file of a paper.
const MOST_BYTES: u64 = 64 << 20;

/// The folder of a paper.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The paper's short name.
    pub name: String,
    /// The argument that named it.
    pub argument: String,
    path: String,
    files: Vec<(String, Cow<'static, str>)>,
}

impl Folder {
    /// Finds a paper by name, or the folder at a path with a `/` in it.
    ///
    /// # Errors
    /// If there is no such paper, or its files cannot be read.
    pub fn find(paper: &str) -> Result<Folder, Error> {
        if paper.contains('/') {
            return Folder::read(Path::new(paper));
        }
        let Some((name, files)) = BUILT_IN.iter().find(|(name, _)| *name == paper) else {
            let see = format!(
                "There are {}; use `./{paper}` for a folder with your own paper.",
                names().join(", ")
            );
            return Err(Error::Usage(no_such("paper", paper, &names(), &see)));
        };
        let files =
            files.iter().map(|&(file, text)| (file.to_string(), Cow::Borrowed(text))).collect();
        Ok(Folder {
            name: name.to_string(),
            argument: name.to_string(),
            path: format!("papers/{name}"),
            files,
        })
    }

    fn read(dir: &Path) -> Result<Folder, Error> {
        let input = |path: &Path, error: std::io::Error| {
            let what = "a paper is a folder with claims.toml and what it measures, as in \
                        papers/porter-2021";
            Error::Input(format!("{}: {error}; {what}", path.display()))
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(|error| input(dir, error))? {
            let path = entry.map_err(|error| input(dir, error))?.path();
            if path.extension().is_some_and(|extension| {
                ["toml", "csv", "svg", "sh", "c"].iter().any(|known| extension == *known)
            }) {
                let about = path.symlink_metadata().map_err(|error| input(&path, error))?;
                if !about.is_file() || about.len() > MOST_BYTES {
                    let why = "a paper has files of at most 64 MiB, no links, pipes or devices";
                    return Err(Error::Input(format!("{}: {why}", path.display())));
                }
                let text = std::fs::read_to_string(&path).map_err(|error| input(&path, error))?;
                files.push((
                    path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                    Cow::Owned(text),
                ));
            }
        }
        files.sort();
        let name = dir
            .file_name()
            .map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned());
        let argument = dir.display().to_string();
        Ok(Folder { name, path: argument.trim_end_matches('/').to_string(), argument, files })
    }

    /// Whether it is one of this program's.
    pub fn is_built_in(&self) -> bool {
        self.files.iter().all(|(_, text)| matches!(text, Cow::Borrowed(_)))
    }

    /// The names of its files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// A workload by name: a file of the paper, a built-in one, or one at an absolute path.
    ///
    /// # Errors
    /// If it does not exist, or is not a workload.
    pub fn workload(&self, name: &str) -> Result<Workload, Error> {
        if self.text(name).is_some() {
            return Workload::described(self.toml(name)?);
        }
        if Path::new(name).is_absolute() {
            return Workload::resolve(OsStr::new(name));
        }
        built_in::find(name).unwrap_or_else(|| {
            let mut names: Vec<String> =
                self.names().filter(|name| name.ends_with(".toml")).map(str::to_string).collect();
            names.extend(built_in::ALL.iter().map(|built_in| built_in.name.to_string()));
            let see = "A workload is a file beside experiments.toml or one of those that \
                       `schedlab list workloads` shows.";
            Err(Error::Input(no_such("workload", name, &names, see)))
        })
    }

    /// The name of a file in messages.
    pub fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.path)
    }

    /// The text of a file, if the paper has it.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.files.iter().find(|(name, _)| name == file).map(|(_, text)| &**text)
    }

    /// The source in C of the program that a command runs as `./NAME`, if the paper has it, and its
    /// file's name.
    pub fn source(&self, word: &str) -> Option<(String, &str)> {
        let file = format!("{}.c", word.strip_prefix("./")?);
        let text = self.text(&file)?;
        Some((file, text))
    }

    /// Its files, in a directory that is removed on drop.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn unpacked(&self) -> Result<Scratch, Error> {
        let directory = Scratch::new()?;
        for (name, text) in &self.files {
            let path = directory.path().join(name);
            std::fs::write(&path, &**text).map_err(|error| Error::output(&path, error))?;
        }
        Ok(directory)
    }

    /// A TOML file of the paper.
    ///
    /// # Errors
    /// If the paper does not have this file.
    pub fn toml(&self, file: &str) -> Result<TomlFile, Error> {
        let missing = || {
            Error::Input(format!(
                "{}: there is no such file; see papers/porter-2021 for the files of a paper",
                self.path(file)
            ))
        };
        self.text(file).map(|text| TomlFile::of(&self.path(file), text)).ok_or_else(missing)
    }
}
