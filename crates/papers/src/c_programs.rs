//! Programs in C that a paper's commands run: built when a command needs them, beside the paper's
//! files.
//!
//! ```toml
//! [[program]]
//! source = "yields.c"        # `-- ./yields 8 1000` in a command runs it
//! ```

use super::fault::{Fault, none_of};
use super::folder::Folder;
use program::Error;
use serde::Deserialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program in `experiments.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramData {
    /// Its source, beside `experiments.toml`.
    pub source: String,
}

const ENDING: &str = ".c";
/// Static, so that a guest needs no libraries.
const FLAGS: [&str; 4] = ["-O2", "-static", "-pthread", "-Wall"];
const INSTALL: &str = "install it with: apt-get install gcc libc6-dev";

impl ProgramData {
    /// Its name: that of its source without the ending.
    fn name(&self) -> &str {
        self.source.trim_end_matches(ENDING)
    }

    /// What is wrong with it: a key, and a message.
    pub fn fault(&self, folder: &Folder) -> Option<Fault> {
        let wrong = |why: String| Some(("source".to_string(), why));
        let sources = folder.named(ENDING);
        if !sources.contains(&self.source) {
            return wrong(none_of("source", &self.source, &sources, "the paper's folder"));
        }
        None
    }

    /// Whether a command runs it.
    pub fn is_in<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> bool {
        let program = words.into_iter().skip_while(|word| *word != "--").nth(1);
        program.is_some_and(|word| word.strip_prefix("./") == Some(self.name()))
    }

    /// Builds it in `directory`, in which its source lies, unless it is there. Returns the error if
    /// that fails.
    pub fn build(&self, directory: &Path) -> Option<Error> {
        let to = directory.join(self.name());
        if to.exists() {
            return None;
        }
        let mut compiler = Command::new("cc");
        compiler.current_dir(directory).args(FLAGS).args(["-o", self.name(), &self.source]);
        match compiler.stdin(Stdio::null()).output() {
            Err(error) => Some(Error::Missing(format!("cc cannot be run: {error}; {INSTALL}"))),
            Ok(output) if output.status.success() => None,
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                Some(Error::Input(format!("{} does not compile:\n{said}", self.source)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(source: &str) -> ProgramData {
        ProgramData { source: source.to_string() }
    }

    #[test]
    fn a_program_must_have_a_source_and_a_command_runs_it() {
        let paper = crate::Paper::load("pslist").unwrap();
        let why = |source| program(source).fault(&paper.folder).map(|(_, why)| why);
        assert_eq!(why("yields.c"), None);
        assert!(why("yeilds.c").unwrap().contains("Did you mean `yields.c`?"));
        let commands = &paper.experiments.command;
        let runs = |one: &ProgramData| commands.iter().any(|command| command.runs_program(one));
        assert!(paper.experiments.program.iter().all(runs));
    }

    #[test]
    fn only_the_program_of_a_command_is_built() {
        let yields = program("yields.c");
        assert!(yields.is_in("compare --on vm -- ./yields 8".split(' ')));
        for other in ["compare ./yields", "compare -- ./yield", "compare -- sh ./yields"] {
            assert!(!yields.is_in(other.split(' ')), "{other}");
        }
    }

    /// The program is there once it is built, and a wrong one is named.
    #[test]
    fn a_source_is_compiled_once_and_a_wrong_one_refused() {
        let directory = tempfile::tempdir().unwrap();
        let right = program("right.c");
        std::fs::write(directory.path().join("right.c"), "int main(void) { return 7; }\n").unwrap();
        match right.build(directory.path()) {
            Some(Error::Missing(why)) => return eprintln!("skipped: {why}"),
            error => assert!(error.is_none(), "{error:?}"),
        }
        let status = Command::new(directory.path().join("right")).status().unwrap();
        assert_eq!(status.code(), Some(7));
        std::fs::write(directory.path().join("wrong.c"), "int main(void) { return x; }\n").unwrap();
        let error = program("wrong.c").build(directory.path()).expect("an error");
        assert!(error.exit_code() == 3 && error.to_string().contains("wrong.c"), "{error}");
    }
}
