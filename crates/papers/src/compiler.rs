//! Programs of a paper in C.

use program::Error;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Builds the program of the source `file` in `directory`, unless it is there.
///
/// # Errors
/// If the source is not C, by the name `path`; [`Error::Missing`] if there is no compiler.
pub fn build(directory: &Path, path: &str, file: &str) -> Result<(), Error> {
    let program = directory.join(file.trim_end_matches(".c"));
    if program.exists() {
        return Ok(());
    }
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-Wall", "-static", "-pthread", "-o"])
        .arg(&program)
        .arg(directory.join(file))
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let directory = format!("{}/", directory.display());
            Err(Error::Input(format!("{path} cannot be built:\n{}", said.replace(&directory, ""))))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::Missing(format!(
            "{path} needs a C compiler, and there is no `cc`; install it, as in apt install gcc \
             libc6-dev"
        ))),
        Err(error) => Err(Error::Internal(format!("cc cannot be started: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::Scratch;

    #[test]
    fn a_program_is_built_once_and_what_is_no_program_is_refused_with_its_line() {
        let directory = Scratch::new().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        write("one.c", "int main(void) { return 3; }\n");
        for _ in 0..2 {
            build(directory.path(), "paper/one.c", "one.c").unwrap();
            // A second build would fail.
            write("one.c", "no\n");
        }
        let program = directory.path().join("one");
        assert_eq!(Command::new(program).status().unwrap().code(), Some(3));
        write("two.c", "int main(void)\n{ return x; }\n");
        let error = build(directory.path(), "paper/two.c", "two.c").unwrap_err();
        assert_eq!(error.exit_code(), 3);
        let text = error.to_string();
        assert!(text.contains("paper/two.c cannot be built") && text.contains("two.c:2"), "{text}");
    }
}
