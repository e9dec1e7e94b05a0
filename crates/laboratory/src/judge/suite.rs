//! A suite with its workloads.

use crate::sweep::Key;
use formats::toml_file::TomlFile;
use program::Error;
use results::judge::{Set, Suite};
use worlds::{Candidate, Program, Trial};

/// A suite, and the workloads that it names.
pub struct Cases {
    /// Its file, for messages.
    pub file: TomlFile,
    /// What it says.
    pub suite: Suite,
    /// Its workloads, those of the training first.
    pub cases: Vec<Case>,
    /// The hash of all that numbers depend on.
    pub hash: Key,
}

/// A workload on a number of CPUs.
#[derive(Clone, Debug)]
pub struct Case {
    /// The set that it belongs to.
    pub set: Set,
    /// The workload.
    pub program: Program,
    /// The number of CPUs.
    pub cpus: u16,
    /// Where the suite names it, as in `training[0]`.
    pub key: String,
}

impl Case {
    /// It under `candidate`.
    pub fn trial<'t>(&'t self, candidate: Candidate<'t>) -> Trial<'t> {
        Trial { program: &self.program, candidate, cpus: self.cpus }
    }
}

impl Case {
    /// All that its runs depend on, and nothing of the place where its file is.
    fn content(&self) -> String {
        match &self.program {
            Program::Replay(replay) => {
                let worlds::experiment::Recorded { workload, machine, .. } = &*replay.recorded;
                let changed = replay.changed.as_ref();
                let changed = changed.map(|changed| (&changed.workload, &changed.machine));
                format!("{workload:?} {machine:?} {changed:?}")
            }
            Program::Closed(closed) | Program::Yields(_, closed) => {
                format!("{:?} {:?}", closed.scripts, closed.machine)
            }
            Program::Open(workload) => format!("{workload:?}"),
            Program::Command(words) => words.join(" "),
        }
    }
}

impl Cases {
    /// Reads a suite; `resolve` finds a workload that it names, and on how many CPUs it runs.
    ///
    /// # Errors
    /// If it is no suite: the message points at the line and the key.
    pub fn read(
        file: TomlFile,
        resolve: impl Fn(&Suite, &str) -> Result<Vec<(Program, u16)>, Error>,
    ) -> Result<Cases, Error> {
        let suite: Suite = file.parse()?;
        let wrong = |key: &str, message: &str| Err(file.wrong(key, message));
        if suite.baseline.is_empty() {
            return wrong("baseline", "there is no baseline: name a policy, as in \"eevdf\"");
        }
        if suite.training.is_empty() {
            return wrong("training", "there is no workload: name one, as in [\"hackbench:1\"]");
        }
        if suite.score.is_empty() {
            return wrong("score", "there is no metric: add [[score]] with metric = \"NAME\"");
        }
        if !(1..=1000).contains(&suite.seeds) {
            return wrong("seeds", "give a number of runs from 1 to 1000");
        }
        if !(0.0..=1.0).contains(&suite.least_work) {
            return wrong("least_work", "give a share from 0 to 1, as in 0.95");
        }
        let limits = &suite.limits;
        for (key, value, (least, most)) in [
            ("limits.events", limits.events, (1, u64::MAX / 16)),
            ("limits.seconds", limits.seconds, (1, 86_400)),
            ("limits.memory_mib", limits.memory_mib, (64, 65_536)),
            ("limits.compile_seconds", limits.compile_seconds, (1, 86_400)),
        ] {
            if !(least..=most).contains(&value) {
                return wrong(key, &format!("give a number from {least} to {most}"));
            }
        }
        let mut cases = Vec::new();
        for (set, key, names) in [
            (Set::Training, "training", &suite.training),
            (Set::HeldOut, "held_out", &suite.held_out),
        ] {
            for (index, name) in names.iter().enumerate() {
                let key = format!("{key}[{index}]");
                let programs =
                    resolve(&suite, name).map_err(|error| file.wrong(&key, &error.to_string()))?;
                cases.extend(programs.into_iter().map(|(program, cpus)| Case {
                    set,
                    program,
                    cpus,
                    key: key.clone(),
                }));
            }
        }
        let texts =
            cases.iter().map(|case| format!("{:?} {} {}", case.set, case.cpus, case.content()));
        let texts: Vec<String> = std::iter::once(format!("{suite:?}")).chain(texts).collect();
        let hash = Key::of_all(texts.iter().map(String::as_str));
        Ok(Cases { file, suite, cases, hash })
    }
}
