//! Which files are meant.

use crate::read::Unusable;
use std::io;
use std::path::{Path, PathBuf};

/// The vectors that the paths mean, each a file or a folder of `*.jsonl`; those of a folder sorted.
///
/// # Errors
/// If a folder cannot be read, or has none.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Unusable> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            let unusable =
                |what: String| Unusable { file: path.display().to_string(), line: 0, what };
            walk(path, 0, &mut files)
                .map_err(|why| unusable(format!("{why}; give a readable folder")))?;
            if files.len() == before {
                return Err(unusable("no *.jsonl here; give vectors".to_string()));
            }
            files[before..].sort();
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth < 16 {
            walk(&path, depth + 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}
