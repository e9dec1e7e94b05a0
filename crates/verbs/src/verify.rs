//! `schedlab verify`: repeats results, and compares byte for byte.

use super::{Caller, Measuring};
use clap::Args;
use program::{Error, print, shell_words};
use results::{InputLock, LOCK, Results};
use std::fs;
use std::path::{Path, PathBuf};
use worlds::vm::pins;

/// Repeats results, and compares them byte for byte
///
/// Runs the command again that wrote a results.json, and compares the two files. Their inputs (the
/// kernel, QEMU, the files of workloads) must be those of the lock file beside it. Only the command
/// line, the host's kernel and its CPU may differ: digits do not depend on them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab compare yield:8 --on vm -o results\n  \
                        schedlab verify results/results.json\nExit codes: 0 the same bytes, 3 not \
                        results, or of a real machine, 6 not the same, 77 an input is missing; the \
                        message has its SHA-256 and says where to put a copy.")]
pub struct Verify {
    /// A results.json, or a directory with one
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Verify {
    /// Verifies, and prints the outcome.
    pub fn run(self) -> Result<(), Error> {
        let file =
            if self.file.is_dir() { self.file.join("results.json") } else { self.file.clone() };
        let name = file.display();
        let before =
            fs::read_to_string(&file).map_err(|error| Error::Input(format!("{name}: {error}")))?;
        let recorded =
            Results::from_json(&before).map_err(|why| Error::Input(format!("{name}: {why}")))?;
        let Some(command) = recorded.reproduce.clone() else {
            return Err(Error::Input(format!(
                "{name}: nothing repeats these results: they are of a real machine, or a time \
                 limit ended the runs"
            )));
        };
        let lock = file.with_file_name(LOCK);
        let lock = lock.exists().then_some(lock);
        let lock = lock.map(|lock| Ok::<_, Error>((InputLock::read(&lock)?, lock))).transpose()?;
        if let Some((lock, _)) = &lock {
            pins::expect_workloads(lock)?;
        }
        let words = words(&command, lock.as_ref().map(|(_, path)| path.as_path()))
            .map_err(|why| Error::Input(format!("{name}: {why}")))?;
        let again = Measuring::read(&words)?.answer(&Caller::default())?.results;
        let again = Results {
            command: recorded.command.clone(),
            reproduce: again.reproduce.map(|_| command.clone()),
            kernel: recorded.kernel.clone(),
            cpu: recorded.cpu.clone(),
            ..again
        };
        match difference(&before, &again.to_json()?) {
            None => print(&format!("{name}: the same bytes again, {} rows\n", again.rows.len())),
            Some(differs) => Err(Error::Irreproducible(format!(
                "{name}: not the same again: {differs}\n(the command: {command})"
            ))),
        }
    }
}

/// The words of a recorded command line, without its program and its output, with the lock file if
/// it has guests.
fn words(command: &str, lock: Option<&Path>) -> Result<Vec<String>, String> {
    let mut words = shell_words(command)?.into_iter().skip(1);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match &*word {
            // A gate holds numbers against files that are elsewhere, and writes files.
            "-o" | "--against" | "--fail-if" | "--gate-output" => drop(words.next()),
            "--allow-environment" => {}
            gate if ["--against=", "--fail-if=", "--gate-output="]
                .iter()
                .any(|of| gate.starts_with(of)) => {}
            // A file from elsewhere must not start programs here.
            "--" => return Err("its command runs a program of this machine".to_string()),
            _ => kept.push(word),
        }
    }
    let values: Vec<&str> = kept
        .windows(2)
        .filter(|pair| pair[0] == "--on")
        .map(|pair| &*pair[1])
        .chain(kept.iter().filter_map(|word| word.strip_prefix("--on=")))
        .collect();
    let is_on = |world: &str| values.iter().any(|value| value.split(',').any(|on| on == world));
    if is_on("host") {
        return Err("its command runs on this machine, which never repeats itself".to_string());
    }
    if let Some(lock) = lock.filter(|_| is_on("vm")) {
        kept.extend(["--lock".to_string(), lock.display().to_string()]);
    }
    Ok(kept)
}

/// The first line in which two texts differ.
fn difference(before: &str, again: &str) -> Option<String> {
    if before == again {
        return None;
    }
    let (mut old, mut new) = (before.split('\n'), again.split('\n'));
    let mut number = 0;
    loop {
        number += 1;
        match (old.next(), new.next()) {
            (None, None) => return Some("the same lines".to_string()),
            (before, again) if before != again => {
                let [before, again] = [before, again].map(|line| line.unwrap_or("(nothing)"));
                return Some(format!("line {number} is\n    {before}\nand now\n    {again}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_command_is_read_without_its_output_and_starts_no_program() {
        let of = |text| words(text, Some(Path::new("inputs.lock")));
        assert_eq!(
            of("schedlab compare 'hogs:1?work=5ms' -o 'my results' --seed 2").unwrap(),
            ["compare", "hogs:1?work=5ms", "--seed", "2"]
        );
        assert_eq!(
            of("schedlab compare yield:2 --on sim,vm").unwrap()[4..],
            ["--lock", "inputs.lock"]
        );
        let gate = "schedlab compare a --against b --fail-if 'c > +1%' --gate-output=x.xml \
                    --allow-environment";
        assert_eq!(of(gate).unwrap(), ["compare", "a"]);
        for refused in ["schedlab compare --on host -- rm -rf x", "schedlab compare a --on=host"] {
            assert!(of(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_changed_digit_is_shown_with_its_line() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert!(difference("a\n1.5\n", "a\n1.6\n").unwrap().contains("line 2"));
        assert!(difference("a\n", "a\nb").is_some());
        assert!(difference("a", "a\n").is_some());
    }
}
