//! Numbers of a paper from commands of schedlab: what `schedlab compare` measures, in any world.
//!
//! ```toml
//! [[command]]
//! name = "yield"
//! run = "compare yield:{x} --policy cfs,pslist"   # as a user would type it
//! x = [2, 8, 32]                                  # the values of {x}, each in a separate run
//! seeds = 5                                       # replicates: the run with --seed 1 to 5
//! # Changes for `--quick`; also another `run`, or `skipped = "why"`.
//! quick = { x = [2, 32], seeds = 3 }
//! ```
//!
//! Where a tool of its own measures, `recorded = "builds.csv"` in place of `run` names its rows, which
//! lie beside `experiments.toml`.
//!
//! A command line runs as a library call, with the paper's files in a directory, so that it can
//! name a workload file beside `experiments.toml`. Its rows are what a user sees. If a world is not
//! available (exit code 77), the message becomes the reason.
//!
//! Of an ensemble in guests that is [on record](ensembles), a quick run measures the first member
//! again, which must give the same digits. Claims are judged by all members on record.

pub mod ensembles;
mod measured;
mod recorded;

use super::cache::Cache;
use super::compiler;
use super::fault::{Fault, MOST_SEEDS, metric, none_of};
use super::folder::Folder;
use ensembles::Ensembles;
use formats::machine_file::MachineFile;
use program::Error;
use recorded::RECORDED;
use results::{Answer, Metric, Row, World};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use verbs::{Caller, Coverage, Measuring};
use worlds::vm::{Scheduler, sha256};

pub use measured::Measured;

/// A command in `experiments.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandData {
    /// Its name in claims.
    pub name: String,
    /// The command, without the program's name.
    #[serde(default)]
    run: String,
    /// The file with its rows, if another tool measured them.
    recorded: Option<String>,
    #[serde(default)]
    x: Vec<Place>,
    #[serde(default)]
    seeds: Option<u64>,
    #[serde(default)]
    quick: Extent,
    /// What its rows can be about, in a full run and in a quick one.
    #[serde(skip)]
    covered: Vec<Coverage>,
}

/// The changes for a quick run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extent {
    run: Option<String>,
    x: Option<Vec<Place>>,
    seeds: Option<u64>,
    /// Why it is skipped.
    skipped: Option<String>,
}

/// A value of the axis.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
enum Place {
    Number(f64),
    Word(String),
}

/// A metric of a command's rows.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The command.
    pub command: String,
    /// The metric, by id.
    #[serde(deserialize_with = "metric")]
    pub metric: Metric,
    /// The workload, if there are several: its name, which can continue after a `:`, `?` or `&`.
    pub workload: Option<String>,
    /// The policy, if there are several.
    pub policy: Option<String>,
    /// The world, if there are several.
    pub world: Option<World>,
    /// The number of CPUs, if there are several.
    pub cpus: Option<u16>,
    /// The coordinate of the rows that is x. `workload` is the text after the colon of the
    /// workload's name [default: the `{x}` of the command, by position if it is not a number].
    pub x: Option<String>,
    /// Values of other coordinates.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
}

/// How to run the commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Fewer runs.
    pub quick: bool,
    /// With `quick`: the first member of every ensemble on record, however long it takes.
    pub is_every_member: bool,
    /// The first seed.
    pub seed: u64,
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
struct Run {
    /// Its position on the axis.
    x: f64,
    words: Vec<String>,
}

impl CommandData {
    /// Whether a quick run leaves it out.
    pub fn needs_full(&self, ensembles: &Ensembles) -> bool {
        self.quick.skipped.is_some() && !self.is_on_record(ensembles, 1)
    }

    /// Whether all its ensembles are on record, from this seed on.
    fn is_on_record(&self, ensembles: &Ensembles, seed: u64) -> bool {
        let runs = self.replicates(Settings { seed, ..Settings::default() }).concat();
        !runs.is_empty() && runs.iter().all(|run| ensembles.get(&run.key()).is_some())
    }

    /// Finds what its rows can be about, in a full run and in a quick one.
    ///
    /// # Errors
    /// If it is not a comparison, or names something that does not exist: a key, and a message.
    pub fn cover(&mut self, folder: &Folder) -> Result<(), Fault> {
        for (key, seeds) in [("seeds", self.seeds), ("quick.seeds", self.quick.seeds)] {
            if seeds.is_some_and(|seeds| !(1..=MOST_SEEDS).contains(&seeds)) {
                return Err((key.to_string(), format!("give 1 to {MOST_SEEDS} seeds")));
            }
        }
        if let Some(file) = &self.recorded {
            if !self.run.is_empty() {
                let why = format!("the rows are those of {file}; give one of the two");
                return Err(("run".to_string(), why));
            }
            let rows = recorded::rows(folder, file).map_err(|why| ("recorded".to_string(), why))?;
            self.covered.push(recorded::coverage(&rows));
            return Ok(());
        }
        let quick = self.quick.run.as_ref().map(|run| ("quick.run", run));
        for (key, run) in std::iter::once(("run", &self.run)).chain(quick) {
            self.check_form(key, run)?;
        }
        let quick = self.quick.run.as_ref().map(|_| "quick.run").or(self
            .quick
            .x
            .as_ref()
            .map(|_| "quick.x"));
        for (key, is_quick) in std::iter::once(("run", false)).chain(quick.map(|key| (key, true))) {
            let mut covered = Coverage::default();
            for run in self.runs(is_quick) {
                covered.add(run.coverage(folder).map_err(|why| (key.to_string(), why))?);
            }
            self.covered.push(covered);
        }
        Ok(())
    }

    /// Checks that it is a comparison, and that `x` and `{x}` occur together.
    fn check_form(&self, key: &str, run: &str) -> Result<(), Fault> {
        let (has_place, has_values) = (run.contains("{x}"), !self.x.is_empty());
        let wrong = |key: &str, why: &str| Err((key.to_string(), why.to_string()));
        match run.split_whitespace().next() {
            Some("compare") if has_place == has_values => Ok(()),
            Some("compare") if has_place => {
                wrong(key, "it contains {x}; give its values, as in `x = [ … ]`")
            }
            Some("compare") => wrong("x", &format!("`{key}` contains no {{x}} for these values")),
            _ => wrong(
                key,
                "must be a measuring command of schedlab, as in `compare yield:8 --policy \
                 cfs`",
            ),
        }
    }

    /// A run for each value of the axis.
    fn runs(&self, quick: bool) -> Vec<Run> {
        let runs = |quick: bool| {
            self.replicates(Settings { quick, seed: 1, ..Settings::default() }).into_iter().next()
        };
        runs(quick).unwrap_or_default()
    }

    /// The words of every run, quick or full.
    pub(crate) fn all_words(&self) -> Vec<Vec<String>> {
        let runs = [false, true].into_iter().flat_map(|quick| self.runs(quick));
        runs.map(|run| run.words).filter(|words| words[0] != RECORDED).collect()
    }

    /// Every x, in a quick run or in a full one.
    fn axis(&self) -> Vec<f64> {
        let mut axis: Vec<f64> =
            [false, true].into_iter().flat_map(|quick| self.runs(quick)).map(|run| run.x).collect();
        axis.sort_by(f64::total_cmp);
        axis.dedup();
        axis
    }

    /// Whether a full run measures it once, so that its numbers have no interval.
    #[cfg(test)]
    pub(crate) fn is_measured_once(&self) -> bool {
        let runs = self.replicates(Settings { seed: 1, ..Settings::default() });
        let words = runs.iter().flatten().next().map_or(&[][..], |run| &run.words[..]);
        let is_single = words.windows(2).any(|pair| pair == ["--ensemble", "1"]);
        runs.len() == 1 && (is_single || self.recorded.is_some())
    }

    /// The rows of a simulated command at each x up to `most`, under these policies instead of its
    /// own. Nothing for a command in another world.
    ///
    /// # Errors
    /// If a run fails.
    #[cfg(test)]
    pub(crate) fn simulated(
        &self,
        folder: &Folder,
        policies: &str,
        most: f64,
    ) -> Result<Vec<(f64, Vec<Row>)>, Error> {
        if self.run.contains("--on") || self.recorded.is_some() {
            return Ok(Vec::new());
        }
        let directory = folder.unpacked()?;
        let under = |mut run: Run| {
            if let Some(baseline) = run.words.iter().position(|word| word == "--baseline") {
                run.words.drain(baseline..baseline + 2);
            }
            // The limits are those of one run of each policy.
            if let Some(members) = run.words.iter().position(|word| word == "--ensemble") {
                run.words[members + 1] = "1".to_string();
            }
            let policy = run.words.iter().position(|word| word == "--policy");
            let place = policy.map_or(run.words.len(), |place| place + 1);
            run.words[place] = policies.to_string();
            let rows = run.rows(folder, directory.path())?;
            Ok((run.x, rows))
        };
        self.runs(false).into_iter().filter(|run| run.x <= most).map(under).collect()
    }

    /// Why it is skipped.
    fn skipped(&self, settings: Settings) -> Option<&String> {
        self.quick.skipped.as_ref().filter(|_| settings.quick)
    }

    /// The runs of each replicate.
    fn replicates(&self, settings: Settings) -> Vec<Vec<Run>> {
        if self.skipped(settings).is_some() {
            return Vec::new();
        }
        if let Some(file) = &self.recorded {
            let words = [RECORDED, file].map(str::to_string).into();
            return vec![vec![Run { x: 0.0, words }]];
        }
        let quick = settings.quick.then_some(&self.quick);
        let places = quick.and_then(|quick| quick.x.as_ref()).unwrap_or(&self.x);
        let words = quick.and_then(|quick| quick.run.as_ref()).unwrap_or(&self.run);
        let seeds = quick.and_then(|quick| quick.seeds).or(self.seeds).unwrap_or(1);
        let run = |x: f64, place: &str, seed: u64| {
            let words: Vec<String> =
                words.replace("{x}", place).split_whitespace().map(str::to_string).collect();
            Run { x, words: with_option(&words, "--seed", &seed.to_string()) }
        };
        let of_seed = |seed: u64| match &places[..] {
            [] => vec![run(0.0, "", seed)],
            places => places
                .iter()
                .enumerate()
                .map(|(index, place)| run(place.coordinate(index), &place.text(), seed))
                .collect(),
        };
        (settings.seed..settings.seed + seeds).map(of_seed).collect()
    }
}

impl Place {
    fn coordinate(&self, index: usize) -> f64 {
        if let Place::Number(number) = self { *number } else { index as f64 }
    }

    fn text(&self) -> String {
        match self {
            Place::Number(number) => number.to_string(),
            Place::Word(word) => word.clone(),
        }
    }
}

/// Adds an option to a command line: at the end, or before the `--` that starts another command.
fn with_option(words: &[String], option: &str, value: &str) -> Vec<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let option = [option.to_string(), value.to_string()];
    words[..end].iter().cloned().chain(option).chain(words[end..].iter().cloned()).collect()
}

impl Run {
    fn key(&self) -> String {
        match &self.words[..] {
            [first, file] if first == RECORDED => file.clone(),
            words => format!("schedlab {}", words.join(" ")),
        }
    }

    /// The first member of its ensemble in guests, alone; `None` if it is none.
    fn first_member(&self) -> Option<Run> {
        let own = self.words.iter().position(|word| word == "--").unwrap_or(self.words.len());
        let (own, program) = self.words.split_at(own);
        let at = |option: &str| own.iter().position(|word| word == option);
        let is_in_guests = own.get(at("--on")? + 1).is_some_and(|on| on == "vm");
        let members = at("--ensemble").map(|at| at..(at + 2).min(own.len()));
        let is_single = members.clone().is_some_and(|at| own[at][1..] == ["1"]);
        if !is_in_guests || is_single {
            return None;
        }
        let mut words = own.to_vec();
        members.map(|at| words.drain(at).count());
        words.push("--first-member".to_string());
        words.extend_from_slice(program);
        Some(Run { x: self.x, words })
    }

    /// What its rows can be about, or why there will be none.
    fn coverage(&self, folder: &Folder) -> Result<Coverage, String> {
        let read = Measuring::read(&self.words).and_then(|arguments| {
            if let Some((_, machine)) = self.machine() {
                MachineFile::read(&folder.toml(machine)?)?;
            }
            arguments.coverage(&|name| folder.workload(name))
        });
        read.map_err(|why| format!("`{}`: {why}", self.words.join(" ")))
    }

    /// The machine file, if it is beside the paper's other files, and the index of its word.
    fn machine(&self) -> Option<(usize, &str)> {
        let place = self.words.iter().position(|word| word == "--machine")? + 1;
        self.words.get(place).map(|word| (place, word.as_str())).filter(|(_, word)| *word != "host")
    }

    /// All inputs besides this program: the words, and the content of the files that they name and
    /// of the scheduler for a guest.
    fn description(&self, folder: &Folder) -> String {
        let of_word =
            |word: &String| folder.text(word).or_else(|| folder.source(word).map(|(_, text)| text));
        let files = self.words.iter().filter_map(of_word).map(str::as_bytes);
        let scheduler =
            self.scheduler().and_then(|scheduler| std::fs::read(scheduler.program()).ok());
        let contents: Vec<&[u8]> = files.chain(scheduler.as_deref()).collect();
        if contents.is_empty() {
            self.key()
        } else {
            format!("{}, with {}", self.key(), sha256(contents))
        }
    }

    /// The scheduler of schedlab that a guest needs.
    fn scheduler(&self) -> Option<Scheduler> {
        let after = |option: &str| self.words.iter().skip_while(move |word| *word != option).nth(1);
        let is_in_guest = after("--on").is_some_and(|on| on.split(',').any(|on| on == "vm"));
        let policies = after("--policy").filter(|_| is_in_guest)?;
        policies
            .split(',')
            .find(|policy| !policy.starts_with("kernel:"))
            .and_then(|policy| Scheduler::find(policy).ok())
    }

    /// Its rows, from the cache or measured now, or why it cannot run.
    fn cached(
        &self,
        cache: &Cache,
        folder: &Folder,
        directory: &Path,
    ) -> Result<Result<Vec<Row>, String>, Error> {
        let of = self.description(folder);
        if let Some(rows) = cache.get::<Vec<Row>>(&of) {
            return Ok(Ok(rows));
        }
        if !folder.is_built_in() {
            program::say(&format!("runs `{}`", self.key()));
        }
        let rows = absent(self.rows(folder, directory)).map_err(|error| self.failed(error))?;
        if let Ok(rows) = &rows {
            cache.put(&of, rows)?;
        }
        Ok(rows)
    }

    /// Runs it, with the paper's files in `directory`. A program of the paper's in C is built there
    /// before, static, so that a guest needs no libraries. The rows of an ensemble's members follow
    /// those of the whole.
    fn rows(&self, folder: &Folder, directory: &Path) -> Result<Vec<Row>, Error> {
        if let [first, file] = &self.words[..]
            && first == RECORDED
        {
            return recorded::rows(folder, file).map_err(Error::Input);
        }
        for (file, _) in self.words.iter().filter_map(|word| folder.source(word)) {
            // Two that run at the same time may be of one program.
            static BUILDS: Mutex<()> = Mutex::new(());
            let _one = BUILDS.lock();
            compiler::build(directory, &folder.path(&file), &file)?;
        }
        let caller = Caller { directory: Some(directory), ..Caller::default() };
        let mut words = self.words.clone();
        if let Some((place, machine)) = self.machine() {
            words[place] = directory.join(machine).display().to_string();
        }
        let answer = Measuring::read(&words).and_then(|arguments| arguments.answer(&caller));
        answer.and_then(|Answer { results, members, end, .. }| match end {
            // Its own intervals are too wide, but the numbers exist, and replicates have their own
            // interval.
            Ok(()) | Err(Error::Inconclusive(_)) => {
                let members = members.into_iter().filter(|row| row.value.is_some());
                Ok(results.rows.into_iter().chain(members).collect())
            }
            Err(error) => Err(error),
        })
    }

    /// An error with the command that ended with it.
    fn failed(&self, error: Error) -> Error {
        match error {
            Error::Stopped => Error::Stopped,
            error => Error::Input(format!("{}: {error}", self.key())),
        }
    }
}

/// What is missing on this machine is no failure but a reason.
fn absent(rows: Result<Vec<Row>, Error>) -> Result<Result<Vec<Row>, String>, Error> {
    match rows {
        Ok(rows) => Ok(Ok(rows)),
        Err(Error::Missing(why)) => Ok(Err(why.lines().last().unwrap_or_default().to_string())),
        Err(error) => Err(error),
    }
}

impl Binding {
    /// Every x at which it has a point, if that is known before the command runs.
    ///
    /// # Errors
    /// If it refers to something that no row of the command can be about: a key, and a message.
    pub fn axis(&self, commands: &[CommandData]) -> Result<Option<Vec<f64>>, Fault> {
        let names: Vec<String> = commands.iter().map(|command| command.name.clone()).collect();
        let Some(command) = commands.iter().find(|command| command.name == self.command) else {
            return Err((
                ".command".to_string(),
                none_of("command", &self.command, &names, "experiments.toml"),
            ));
        };
        command.covered.iter().try_for_each(|covered| self.fault(covered).map_or(Ok(()), Err))?;
        Ok(self.x.is_none().then(|| command.axis()))
    }

    /// The part of it that none of these rows can be about.
    fn fault(&self, covered: &Coverage) -> Option<Fault> {
        let command = format!("the command {}", self.command);
        let wrong = |key: &str, message: String| Some((format!(".{key}"), message));
        let one_of = |key: &str, given: &Option<String>, names: &[String]| {
            let given = given.as_ref().filter(|given| !names.contains(given))?;
            wrong(key, none_of(key, given, names, &command))
        };
        let printed = matches!(self.metric, Metric::printed(_)).then(|| self.metric.to_string());
        if let Some(fault) = one_of("metric", &printed, &covered.printed) {
            return Some(fault);
        }
        let world = self.world.as_ref().map(World::to_string);
        if let Some(fault) = one_of("policy", &self.policy, &covered.candidates)
            .or_else(|| one_of("world", &world, &covered.worlds))
        {
            return Some(fault);
        }
        if let Some(given) = self
            .workload
            .as_ref()
            .filter(|given| !covered.workloads.iter().any(|name| is_called(name, given)))
        {
            return wrong("workload", none_of("workload", given, &covered.workloads, &command));
        }
        if let Some(cpus) =
            self.cpus.filter(|cpus| !covered.cpus.is_empty() && !covered.cpus.contains(cpus))
        {
            return wrong(
                "cpus",
                format!("{command} runs on {:?} CPUs, not on {cpus}", covered.cpus),
            );
        }
        let mut coordinates = covered.coordinates.clone();
        if let Some(key) = self.at.keys().find(|key| !coordinates.contains(key)) {
            return wrong(&format!("at.{key}"), none_of("coordinate", key, &coordinates, &command));
        }
        let no_task = |name: &&String| {
            !covered.tasks.is_empty()
                && !covered.tasks.iter().any(|task| name.starts_with(task.as_str()))
        };
        if let Some(name) = self.at.get("task").filter(no_task) {
            return wrong("at.task", none_of("task", name, &covered.tasks, &command));
        }
        coordinates.push("workload".to_string());
        one_of("x", &self.x, &coordinates)
    }

    /// Whether a row matches, apart from its metric.
    fn is_about(&self, row: &Row) -> bool {
        self.workload.as_ref().is_none_or(|name| is_called(&row.workload, name))
            && self.policy.as_ref().is_none_or(|policy| *policy == row.candidate)
            && self.world.as_ref().is_none_or(|world| *world == row.world)
            && self.cpus.is_none_or(|cpus| cpus == row.cpus)
            && self.at.iter().all(|(key, value)| {
                row.coordinate(key).is_some_and(|known| known.to_string() == *value)
            })
    }

    /// The members in the rows of a run, if it is an ensemble of several.
    fn members(&self, rows: &[Row]) -> Vec<f64> {
        let own = rows.iter().filter(|row| row.metric == self.metric && self.is_about(row));
        let mut members: Vec<f64> = own.filter_map(member).collect();
        members.sort_by(f64::total_cmp);
        members.dedup();
        members
    }

    /// The points in the rows of a run: of one member, or of all together.
    fn points(&self, run: &Run, rows: &[Row], of: Option<f64>) -> Result<Vec<(f64, f64)>, String> {
        let is_of =
            |row: &&Row| row.metric == self.metric && member(row) == of && self.is_about(row);
        let found: Vec<&Row> = rows.iter().filter(is_of).collect();
        if found.is_empty() {
            return Err(format!("`{}` has no {} of this kind", run.key(), self.metric));
        }
        let mut points: Vec<(f64, f64)> = Vec::new();
        for row in found {
            let Some(value) = row.value else {
                return Err(row.note.clone().unwrap_or_else(|| {
                    format!("`{}` has no number for {}", run.key(), self.metric)
                }));
            };
            let coordinate = |key: &String| match key.as_str() {
                "workload" => row.workload.split([':', '?']).nth(1)?.parse().ok(),
                _ => row.coordinate(key)?.to_string().parse().ok(),
            };
            let x = match &self.x {
                Some(key) => coordinate(key).ok_or_else(|| {
                    format!("`{}` has no coordinate {key} that is a number", run.key())
                })?,
                None => run.x,
            };
            if points.iter().any(|point| point.0 == x) {
                return Err(format!(
                    "`{}` has several {} here; give the workload, policy, world or number of \
                     CPUs",
                    run.key(),
                    self.metric
                ));
            }
            points.push((x, value));
        }
        Ok(points)
    }
}

/// The number of the member of an ensemble that a row is of.
fn member(row: &Row) -> Option<f64> {
    row.point.get("member")?.number()
}

/// Whether a workload has the name `named`, which can continue after a `:`, `?` or `&`.
fn is_called(workload: &str, named: &str) -> bool {
    workload
        .strip_prefix(named)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '?', '&']))
}

#[cfg(test)]
mod tests;
