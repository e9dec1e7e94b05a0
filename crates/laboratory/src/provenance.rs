//! The origin of numbers: one hash over all of their inputs.
//!
//! It covers the workload: the bytes of a recording, else the description. It covers the machine,
//! the candidate with its options, the baseline, the number of CPUs, the seed and other settings
//! that affect numbers. It also covers the build of the program, and the world with its own inputs.
//! For a guest these are the hashes of kernel, emulator and runner, which are coordinates. It does
//! not cover the path of a file, the output directory or the time.

use super::Settings;

use results::{Row, World as Name};
use std::fmt::{self, Debug, Write as _};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use twox_hash::XxHash3_128;
use worlds::{Candidate, Program, World};

/// Sets the provenance of `rows`, which are of `program` in `world`. The content of a caller's own
/// policy or of a command is unknown: those rows have none.
pub fn fill(
    rows: &mut [Row],
    program: &Program,
    world: &dyn World,
    candidates: &[Candidate<'_>],
    settings: &Settings,
) {
    let Some(content) = content(program) else { return };
    // Settings that affect only output are left out.
    let settings =
        Settings { check: false, events: false, parts: 0, output: None, ..settings.clone() };
    let shared =
        Hash::new().with(&content).with(&world.name()).with(&world.inputs()).with(&settings);
    let is_own = |row: &Row| {
        candidates
            .iter()
            .any(|one| matches!(one, Candidate::Own(_)) && one.to_string() == row.candidate)
    };
    for row in rows.iter_mut().filter(|row| !is_own(row)) {
        let own = shared
            .clone()
            .with(&row.candidate)
            .with(&row.baseline)
            .with(&row.cpus)
            .with(&row.point);
        row.provenance = Some(own.text());
    }
}

/// The same for the rows of the recording that `program` replays.
pub fn fill_recorded(rows: &mut [Row], program: &Program) {
    let Program::Replay(replay) = program else { return };
    let Some(bytes) = bytes(&replay.path) else { return };
    let hash = Hash::new().with(&bytes).with(&Name::Recorded).text();
    rows.iter_mut().for_each(|row| row.provenance = Some(hash.clone()));
}

/// The content of a workload, without its name; none if it is unknown.
fn content(program: &Program) -> Option<u128> {
    let hash = match program {
        Program::Replay(replay) => {
            let recorded = &replay.recorded;
            let hash = Hash::new()
                .with(&bytes(&replay.path)?)
                .with(&recorded.machine)
                .with(&recorded.mips.map(f64::to_bits));
            match &replay.changed {
                None => hash,
                Some(changed) => {
                    hash.with(&changed.workload).with(&changed.machine).with(&changed.until)
                }
            }
        }
        Program::Closed(closed) | Program::Yields(_, closed) => {
            let description = closed.workload.description();
            Hash::new().with(description).with(&closed.machine).with(&closed.mips.map(f64::to_bits))
        }
        Program::Open(workload) => {
            let mut unnamed = (**workload).clone();
            unnamed.name.clear();
            Hash::new().with(&unnamed)
        }
        Program::Command(_) => return None,
    };
    Some(hash.0.finish_128())
}

/// The hash of a file.
fn bytes(path: &Path) -> Option<u128> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).ok()?);
    let (mut hasher, mut buffer) = (XxHash3_128::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finish_128()),
            count => hasher.write(&buffer[..count]),
        }
    }
}

/// A hash of inputs by their debug text, each separated from the next.
#[derive(Clone)]
struct Hash(XxHash3_128);

impl Hash {
    /// Starts with the build of this program.
    fn new() -> Hash {
        Hash(XxHash3_128::new()).with(&program::build())
    }

    fn with(mut self, input: &(impl Debug + ?Sized)) -> Hash {
        // Never an error: the hasher accepts all input.
        let _ = write!(self, "{input:?}\0");
        self
    }

    fn text(&self) -> String {
        format!("{:032x}", self.0.finish_128())
    }
}

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Against, Experiment};
    use super::*;
    use formats::toml_file::TomlFile;
    use formats::workload::{ClosedWorkload, Parameters, Template};
    use schedsim::policy::PolicySpec;
    use schedsim::{Machine, Nanos};
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use worlds::load::Closed;
    use worlds::simulator::Simulator;

    const TASKS: &str = "[[task]]\nname = 'hog'\ncount = 2\nphases = [{ run = '3ms' }]\n";

    fn closed(name: &str, text: &str, machine: Machine) -> Program {
        let workload = ClosedWorkload::read(TomlFile::of(name, text)).expect("a workload");
        let closed = Closed::on(workload, machine).expect("scripts");
        Program::Closed(Box::new(closed))
    }

    fn open(load: f64) -> Program {
        let template = Template::parse("x.toml", "base = 'unix1990'\n").expect("a template");
        let mut parameters = Parameters::default();
        parameters.insert("tasks", 20.into());
        parameters.insert("load", load.into());
        Program::Open(Arc::new(template.with(&parameters).expect("a workload")))
    }

    /// The provenance of all rows of an experiment.
    fn of(program: Program, policy: &str, cpus: u16, settings: Settings) -> String {
        let experiment = Experiment {
            programs: vec![program],
            worlds: vec![Box::new(Simulator::new())],
            candidates: vec![Candidate::Policy(PolicySpec::parse(policy).expect("a policy"))],
            against: Against::Nothing,
            cpus: if cpus == 0 { Vec::new() } else { vec![cpus] },
            settings,
        };
        let rows = experiment.run().expect("results").results.rows;
        let all: BTreeSet<Option<String>> = rows.into_iter().map(|row| row.provenance).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().flatten().expect("a provenance")
    }

    #[test]
    fn every_input_changes_the_provenance_and_nothing_else_does() {
        let plain = || closed("a.toml", TASKS, Machine::ideal(2));
        let base = of(plain(), "fifo", 2, Settings::once(1));
        assert_eq!(base, of(plain(), "fifo", 2, Settings::once(1)), "another run at another time");
        assert_eq!(
            base,
            of(closed("elsewhere/b.toml", TASKS, Machine::ideal(2)), "fifo", 2, Settings::once(1)),
            "another path"
        );
        let comment = format!("# the same\n{TASKS}");
        assert_eq!(
            base,
            of(closed("a.toml", &comment, Machine::ideal(2)), "fifo", 2, Settings::once(1)),
            "a comment"
        );
        let checked = Settings { check: true, parts: 7, ..Settings::once(1) };
        assert_eq!(base, of(plain(), "fifo", 2, checked), "what is only looked at");

        let machine = Machine { switch_cost: Nanos(1), ..Machine::ideal(2) };
        let others = [
            of(
                closed("a.toml", &TASKS.replace("3ms", "4ms"), Machine::ideal(2)),
                "fifo",
                2,
                Settings::once(1),
            ),
            of(
                closed("a.toml", &TASKS.replace("count = 2", "count = 3"), Machine::ideal(2)),
                "fifo",
                2,
                Settings::once(1),
            ),
            of(closed("a.toml", TASKS, machine), "fifo", 2, Settings::once(1)),
            of(plain(), "fifo?throttle=950ms", 2, Settings::once(1)),
            of(plain(), "rr", 2, Settings::once(1)),
            of(plain(), "fifo", 1, Settings::once(1)),
            of(plain(), "fifo", 2, Settings::once(2)),
            of(open(0.3), "take:rr", 0, Settings::once(1)),
            of(open(0.5), "take:rr", 0, Settings::once(1)),
        ];
        let all: BTreeSet<&String> = others.iter().chain([&base]).collect();
        assert_eq!(all.len(), others.len() + 1, "{others:?}");
    }

    #[test]
    fn a_changed_byte_of_a_recording_changes_the_provenance_and_its_name_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, moved, other) =
            (folder.path().join("one"), folder.path().join("moved"), folder.path().join("other"));
        for (path, text) in [(&one, "recorded"), (&moved, "recorded"), (&other, "recordeb")] {
            std::fs::write(path, text).expect("a file");
        }
        assert_eq!(bytes(&one), bytes(&moved));
        assert_ne!(bytes(&one), bytes(&other));
        assert_eq!(bytes(&folder.path().join("none")), None);
    }
}
