//! Counts instructions with callgrind: the program runs itself under valgrind, with many cells in
//! one process.
//!
//! The parent sends the cells to `schedlab queue-cells` on standard input. For each cell the child
//! warms the structure up without counting. It counts one run of the measured loop, and lets
//! callgrind write the totals to a file with the cell's number.

use super::requests;
use super::rig::Cell;
use super::structure::Visitor;
use super::subject::Subject;
use indicatif::ProgressBar;
use program::Scratch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How to run callgrind.
#[derive(Clone, Debug)]
pub struct Callgrind {
    /// The binary with the measured loop: this one, or another build of it.
    pub binary: PathBuf,
    /// Whether to simulate caches.
    pub cache: bool,
    /// The number of parallel processes.
    pub jobs: usize,
}

/// The counts of a cell, by callgrind's names: `Ir`, and with caches `Dr`, `D1mr`, ….
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Events {
    /// The number of slices.
    pub slices: u64,
    counts: BTreeMap<String, u64>,
}

impl Events {
    /// Only instructions.
    pub fn instructions(slices: u64, count: u64) -> Events {
        Events { slices, counts: BTreeMap::from([("Ir".to_string(), count)]) }
    }

    /// The events of these kinds per slice; `None` if one was not counted.
    pub fn per_slice(&self, kinds: &[&str]) -> Option<f64> {
        kinds
            .iter()
            .map(|kind| self.counts.get(*kind))
            .sum::<Option<u64>>()
            .map(|sum| sum as f64 / self.slices as f64)
    }
}

/// The counts of a cell, or the reason for their absence.
pub type Counted = Result<Events, String>;

/// The next step if valgrind is missing.
pub const INSTALL: &str = "valgrind is not installed; `apt-get install valgrind`";

impl Callgrind {
    /// Counts all cells. An error means that callgrind does not work here.
    pub fn count(&self, cells: &[Cell], progress: &ProgressBar) -> Result<Vec<Counted>, String> {
        let jobs = self.jobs.clamp(1, cells.len().max(1));
        // Cells are dealt round robin, because neighbours cost about the same.
        let hands: Vec<Vec<usize>> =
            (0..jobs).map(|job| (job..cells.len()).step_by(jobs).collect()).collect();
        let mut counted = vec![Err("was not counted".to_string()); cells.len()];
        let results: Vec<Result<Vec<(usize, Counted)>, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = hands
                .iter()
                .map(|hand| scope.spawn(|| self.count_hand(cells, hand, progress)))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err("a thread that ran callgrind panicked".to_string()))
                })
                .collect()
        });
        for result in results {
            for (index, value) in result? {
                counted[index] = value;
            }
        }
        Ok(counted)
    }

    fn count_hand(
        &self,
        cells: &[Cell],
        hand: &[usize],
        progress: &ProgressBar,
    ) -> Result<Vec<(usize, Counted)>, String> {
        let failed =
            |what: &str, error: std::io::Error| format!("callgrind: cannot {what}: {error}");
        let dir = Scratch::new().map_err(|error| format!("callgrind: {error}"))?;
        let mut child = self.spawn(dir.path())?;
        let selected: Vec<&Cell> = hand.iter().map(|&index| &cells[index]).collect();
        let input = serde_json::to_vec(&selected)
            .map_err(|error| format!("callgrind: cannot write the cells: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&input).map_err(|error| failed("give it the cells", error))?;
        }
        let mut counted = Vec::new();
        let mut slices = BTreeMap::new();
        for line in
            child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines())
        {
            let line = line.map_err(|error| failed("read its answers", error))?;
            let mut words = line.splitn(3, ' ');
            let kind = words.next();
            let number = words.next().and_then(|word| word.parse::<usize>().ok());
            let Some((number, cell)) = number.and_then(|at| Some((at, selected.get(at)?))) else {
                continue;
            };
            match (kind, words.next()) {
                (Some("counted"), Some(count)) => {
                    slices.insert(number, count.parse::<u64>().unwrap_or(1));
                }
                (Some("refused"), Some(why)) => counted.push((hand[number], Err(why.to_string()))),
                _ => continue,
            }
            progress.inc(cell.effort());
        }
        let mut complaint = String::new();
        let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut complaint));
        let status = child.wait().map_err(|error| failed("wait for it", error))?;
        if !status.success() {
            let last: Vec<&str> = complaint.lines().rev().take(3).collect();
            return Err(format!(
                "callgrind failed ({status}): {}",
                last.into_iter().rev().collect::<Vec<_>>().join(" | ")
            ));
        }
        let mut dumps = read_dumps(dir.path()).map_err(|error| failed("read its files", error))?;
        for (number, slices) in slices {
            let counts = dumps
                .remove(&number)
                .ok_or_else(|| format!("callgrind wrote no counts for cell {number}"))?;
            counted.push((hand[number], Ok(Events { slices, counts })));
        }
        Ok(counted)
    }

    fn spawn(&self, dir: &Path) -> Result<Child, String> {
        let mut out = std::ffi::OsString::from("--callgrind-out-file=");
        out.push(dir.join("cells"));
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--instr-atstart=no", "--combine-dumps=no"]).arg(out);
        // The pipes of its debugger, which nobody uses, stay in TMPDIR if it is killed.
        command.arg("--vgdb=no");
        if self.cache {
            command.arg("--cache-sim=yes");
        }
        command
            .arg(&self.binary)
            .arg("queue-cells")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => INSTALL.to_string(),
            _ => format!("valgrind cannot be started: {error}"),
        })
    }
}

/// The counts of every dump in `dir` that belongs to a client request.
fn read_dumps(dir: &Path) -> std::io::Result<BTreeMap<usize, BTreeMap<String, u64>>> {
    let mut dumps = BTreeMap::new();
    for file in fs::read_dir(dir)? {
        if let Some((number, counts)) = parse_dump(&fs::read_to_string(file?.path())?) {
            dumps.insert(number, counts);
        }
    }
    Ok(dumps)
}

fn parse_dump(text: &str) -> Option<(usize, BTreeMap<String, u64>)> {
    let line = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix));
    let number = line("desc: Trigger: Client Request: ")?.trim().parse().ok()?;
    let totals = line("totals: ").or_else(|| line("summary: "))?;
    let counts = line("events: ")?
        .split_whitespace()
        .map(str::to_string)
        .zip(totals.split_whitespace().map_while(|word| word.parse().ok()));
    Some((number, counts.collect()))
}

/// The child process: counts the cells on standard input, under callgrind.
pub fn child() -> Result<(), String> {
    if !requests::under_valgrind() {
        return Err("`queue-cells` is what `schedlab queue` runs under valgrind; it does nothing \
                    elsewhere"
            .to_string());
    }
    let cells: Vec<Cell> = serde_json::from_reader(std::io::stdin().lock())
        .map_err(|error| format!("cannot read the cells: {error}"))?;
    for (number, cell) in cells.iter().enumerate() {
        match cell.build(false, CountCell { cell, number }) {
            Ok(Ok(slices)) => println!("counted {number} {slices}"),
            Ok(Err(why)) | Err(why) => println!("refused {number} {why}"),
        }
    }
    Ok(())
}

struct CountCell<'a> {
    cell: &'a Cell,
    number: usize,
}

impl Visitor for CountCell<'_> {
    type Out = Result<u64, String>;

    fn visit<S: Subject>(self, subject: S) -> Result<u64, String> {
        let levels = self.cell.assign();
        let slices = self.cell.slices(&levels);
        let name = CString::new(self.number.to_string()).unwrap_or_default();
        let mut run = self.cell.runner(subject, &levels)?;
        run(self.cell.warm_up(slices));
        requests::instrument(true);
        // The simulated caches are cold before every count; this warms them.
        run(u64::from(self.cell.tasks).min(slices));
        requests::zero();
        run(slices);
        requests::instrument(false);
        requests::dump(&name);
        Ok(slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_recognised_by_its_request() {
        let text = "version: 1\ndesc: Trigger: Client Request: 12\nevents: Ir Dr\nfn=(1)\n0 1 \
                    2\ntotals: 1000 20\n";
        let (number, counts) = parse_dump(text).unwrap();
        assert_eq!((number, counts["Ir"], counts["Dr"]), (12, 1000, 20));
        assert_eq!(parse_dump("desc: Trigger: Program termination\nevents: Ir\ntotals: 5\n"), None);
    }

    #[test]
    fn events_are_per_slice_and_missing_ones_are_absent() {
        let events =
            Events { slices: 10, counts: BTreeMap::from([("D1mr".into(), 3), ("D1mw".into(), 2)]) };
        assert_eq!(events.per_slice(&["D1mr", "D1mw"]), Some(0.5));
        assert_eq!(events.per_slice(&["Ir"]), None);
    }
}
