//! `schedlab verify`: repeats results, and compares byte for byte.

use super::{Caller, Measuring};
use clap::Args;
use laboratory::sweep::grid_of;
use program::{Error, Scratch, print, shell_words};
use results::{InputLock, LOCK, Results};
use std::fs;
use std::path::{Path, PathBuf};
use worlds::vm::pins;

/// Repeats results, and compares them byte for byte
///
/// Runs the command again that wrote a results.json (compare, run, sweep, queue). It compares the
/// two files, and the rows in the other files of the directory. Their inputs (the kernel, QEMU, the
/// files of workloads) must be those of the lock file beside it. Only the command line, the host's
/// kernel and its CPU may differ: digits do not depend on them. Times of this machine are left out.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab compare yield:8 --on vm -o results\n  \
                        schedlab verify results/results.json\nExit codes: 0 the same bytes, 3 not \
                        results, or of a real machine, or of an input that has changed, 6 not the \
                        same, 77 an input is missing; the message has its SHA-256 and says where \
                        to put a copy.")]
pub struct Verify {
    /// A results.json, or a directory with one
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// The name of the results in their directory.
const RESULTS: &str = "results.json";

impl Verify {
    /// Verifies, and prints the outcome.
    pub fn run(self) -> Result<(), Error> {
        let file = if self.file.is_dir() { self.file.join(RESULTS) } else { self.file.clone() };
        let name = file.display();
        let unusable = |why: &str| Error::Input(format!("{name}: {why}"));
        let (recorded, before) = Results::read_with_text(&file)?;
        let Some(command) = recorded.reproduce.clone() else {
            return Err(unusable(
                "nothing repeats these results: they are of a real machine, or a time limit ended \
                 the runs",
            ));
        };
        let lock = file.with_file_name(LOCK);
        let lock = lock.exists().then_some(lock);
        let lock = lock.map(|lock| Ok::<_, Error>((InputLock::read(&lock)?, lock))).transpose()?;
        if let Some((lock, path)) = &lock {
            expect_whole(&recorded, lock, path)?;
            pins::expect_named_files(lock)?;
        }
        let scratch = Scratch::new()?;
        // The scratch folder itself is locked.
        let place = scratch.path().join("again");
        let words = words(&command, lock.as_ref().map(|(_, path)| path.as_path()), &place)
            .map_err(|why| unusable(&why))?;
        let again = Measuring::read(&words)?.answer(&Caller::default())?.results;
        let again = Results {
            command: recorded.command.clone(),
            reproduce: again.reproduce.map(|_| command.clone()),
            kernel: recorded.kernel.clone(),
            cpu: recorded.cpu.clone(),
            ..again
        };
        let counted = recorded.rows.iter().filter(|row| !row.world.is_of_machine()).cloned();
        let counted = Results { rows: counted.collect(), ..recorded.clone() };
        let differs = differs(&recorded.to_json()?, &before)
            .or(differs(&counted.to_json()?, &again.to_json()?))
            .map_or_else(|| beside(&file, &recorded, &place), |differs| Ok(Some(differs)));
        if let Some(differs) = differs? {
            return Err(Error::Irreproducible(format!(
                "{name}: not the same again: {differs}\n(the command: {command})"
            )));
        }
        let left_out = match recorded.rows.len() - counted.rows.len() {
            0 => String::new(),
            times => format!(", without {times} of this machine"),
        };
        let inputs = again.inputs.map_or(String::new(), |hash| format!("; inputs {hash}"));
        print(&format!(
            "{name}: the same bytes again, {} rows{left_out}{inputs}\n",
            again.rows.len()
        ))
    }
}

/// Refuses a lock file that is not that of the results.
fn expect_whole(recorded: &Results, lock: &InputLock, path: &Path) -> Result<(), Error> {
    let (Some(recorded), combined) = (&recorded.inputs, pins::combined(lock)) else {
        return Ok(());
    };
    if *recorded == combined {
        return Ok(());
    }
    Err(Error::Input(format!(
        "{}: the results are of the inputs {recorded}, and these are {combined}: the lock file was \
         changed, or another build of schedlab wrote the results (this is {})",
        path.display(),
        program::build()
    )))
}

/// How the rows in the other files of a directory of results differ from those of `recorded`, which
/// are right. A sweep wrote its runs, and the grid with all that it names, to `again`.
fn beside(file: &Path, recorded: &Results, again: &Path) -> Result<Option<String>, Error> {
    if file.file_name().is_none_or(|name| name != RESULTS) {
        return Ok(None);
    }
    let at = |name: &str| file.with_file_name(name);
    let mut differing = None;
    if let Ok(csv) = fs::read_to_string(at("results.csv")) {
        differing = differs(&csv, &recorded.to_csv()?).map(|line| format!("results.csv: {line}"));
    }
    let rows = |path: &Path| fs::read(path).ok().map(results::from_parquet);
    if results::expect_parquet().is_ok() {
        let mut expect = |name: &str, right: &[results::Row]| match rows(&at(name)) {
            Some(rows) if rows.as_deref() != Ok(right) => {
                differing.get_or_insert(format!("the rows of {name} are others"));
            }
            _ => {}
        };
        expect("results.parquet", &recorded.rows);
        if let Some(Ok(runs)) = rows(&again.join("runs.parquet")) {
            expect("runs.parquet", &runs);
        }
    }
    let grids = [grid_of(&at("")), grid_of(again)].map(|grid| fs::read_to_string(grid).ok());
    if let [Some(before), Some(now)] = grids
        && let Some(line) = differs(&before, &now)
    {
        return Err(Error::Input(format!(
            "{}: a file that the grid names has changed: {line}",
            grid_of(&at("")).display()
        )));
    }
    Ok(differing)
}

/// The options of a recorded command line that name what it writes, or what a gate holds its numbers
/// against.
const OUTPUTS: [&str; 9] = [
    "-o",
    "--output",
    "--trace",
    "--stdout",
    "--stderr",
    "--dask",
    "--against",
    "--fail-if",
    "--gate-output",
];

/// The words of a recorded command line, without its program and what it writes, with the lock file
/// if it has guests. A sweep goes to `scratch`.
fn words(command: &str, lock: Option<&Path>, scratch: &Path) -> Result<Vec<String>, String> {
    let mut words = shell_words(command)?.into_iter().skip(1);
    let (mut kept, mut program) = (Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        let (option, value) = word.split_once('=').unzip();
        let option = option.unwrap_or(&word);
        if word == "--" {
            program = std::iter::once(word).chain(words).collect();
            break;
        } else if OUTPUTS.contains(&option) {
            if value.is_none() {
                words.next();
            }
        } else if !word.starts_with("-o") && option != "--allow-environment" {
            kept.push(word);
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
    // A file from elsewhere must not start programs here. A guest may.
    if !program.is_empty() && values != ["vm"] {
        return Err("its command runs a program of this machine".to_string());
    }
    if let Some(lock) = lock.filter(|_| is_on("vm")) {
        kept.extend(["--lock".to_string(), lock.display().to_string()]);
    }
    if kept.first().is_some_and(|verb| verb == "sweep") {
        kept.extend(["-o".to_string(), scratch.display().to_string()]);
    }
    kept.append(&mut program);
    Ok(kept)
}

/// The first line in which two texts differ.
fn differs(before: &str, again: &str) -> Option<String> {
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
        let of = |text| words(text, Some(Path::new("inputs.lock")), Path::new("scratch"));
        assert_eq!(
            of("schedlab compare 'hogs:1?work=5ms' -o 'my results' --seed 2").unwrap(),
            ["compare", "hogs:1?work=5ms", "--seed", "2"]
        );
        assert_eq!(
            of("schedlab compare yield:2 --on sim,vm").unwrap()[4..],
            ["--lock", "inputs.lock"]
        );
        assert_eq!(
            of("schedlab sweep a.grid.toml --jobs=2 -oout --dask=x").unwrap(),
            ["sweep", "a.grid.toml", "--jobs=2", "-o", "scratch"]
        );
        let guest = "schedlab run --on vm --trace ../a --stdout=b --output c -- cat -o x";
        assert_eq!(
            of(guest).unwrap(),
            ["run", "--on", "vm", "--lock", "inputs.lock", "--", "cat", "-o", "x"]
        );
        let gate = "schedlab compare a --against b --fail-if 'c > +1%' --gate-output=x.xml \
                    --allow-environment";
        assert_eq!(of(gate).unwrap(), ["compare", "a"]);
        for refused in [
            "schedlab compare --on host -- rm -rf x",
            "schedlab compare a --on=host",
            "schedlab run --policy eevdf -- rm x",
            "schedlab compare --on vm --on sim -- rm x",
        ] {
            assert!(of(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_changed_digit_is_shown_with_its_line() {
        assert_eq!(differs("a\nb\n", "a\nb\n"), None);
        assert!(differs("a\n1.5\n", "a\n1.6\n").unwrap().contains("line 2"));
        assert!(differs("a\n", "a\nb").is_some());
        assert!(differs("a", "a\n").is_some());
    }
}
