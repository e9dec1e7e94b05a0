//! The environment of a result: what numbers depend on beside the question and the candidate.

use results::{Answer, InputKind, InputLock, LOCK, Results, Row, World};
use std::path::Path;

/// Coordinates of guests that are their environment, and not the question.
const OF_GUESTS: [&str; 6] =
    ["kernel", "kernel_sha256", "qemu", "qemu_sha256", "runner_sha256", "instruction_ns"];
/// The coordinate that differs with the candidate itself.
const OF_CANDIDATE: &str = "files_sha256";

/// Two environments.
pub struct Environment<'a> {
    /// The file of the stored result.
    pub path: &'a Path,
    pub old: &'a Results,
    pub new: &'a Answer,
}

/// Whether two rows answer the same question, whatever the candidate and the environment.
pub fn is_same(old: &Row, new: &Row) -> bool {
    let is_of_question = |name: &str| !OF_GUESTS.contains(&name) && name != OF_CANDIDATE;
    let point = |row: &'_ Row| {
        let own = row.point.iter().filter(|(name, _)| is_of_question(name));
        own.map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>()
    };
    let world = |row: &Row| match &row.world {
        World::Vm { .. } => None,
        other => Some(other.clone()),
    };
    old.workload == new.workload
        && old.cpus == new.cpus
        && old.metric == new.metric
        && (old.subject_kind, &old.subject) == (new.subject_kind, &new.subject)
        && world(old) == world(new)
        && point(old) == point(new)
}

impl Environment<'_> {
    /// What differs, where `pairs` of rows answer the same questions; each once.
    pub fn differences<'r>(&self, pairs: impl Iterator<Item = (&'r Row, &'r Row)>) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut add = |what: &str, old: &str, new: &str| {
            let differs = format!("{what} was {old} and is {new}");
            if old != new && !all.contains(&differs) {
                all.push(differs);
            }
        };
        let results = &self.new.results;
        add("the version of schedlab", &self.old.version, &results.version);
        for (old, new) in pairs {
            if new.world == World::Host {
                add("this machine's kernel", &self.old.kernel, &results.kernel);
                add("this machine's CPU", &self.old.cpu, &results.cpu);
            }
            for name in OF_GUESTS {
                let [old, new] = [old, new]
                    .map(|row| row.point.get(name).map_or("none".to_string(), ToString::to_string));
                add(&format!("the guest's {}", name.replace('_', " ")), &old, &new);
            }
        }
        for (what, old, new) in self.workloads() {
            add(&what, &old, &new);
        }
        all
    }

    /// The files of workloads, by the lock file beside the stored result if there is one.
    fn workloads(&self) -> Vec<(String, String, String)> {
        let Ok(lock) = InputLock::read(&self.path.with_file_name(LOCK)) else { return Vec::new() };
        let own = self.new.inputs.iter().filter(|input| input.kind == InputKind::Workload);
        let both = own.filter_map(|input| Some((input, lock.find(input.kind, &input.name)?)));
        both.map(|(new, old)| {
            (format!("the SHA-256 of {new}"), old.sha256.clone(), new.sha256.clone())
        })
        .collect()
    }
}
