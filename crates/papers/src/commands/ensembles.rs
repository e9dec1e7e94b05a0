//! Ensembles of guests on record, in `ensembles.csv` beside `experiments.toml`.
//!
//! A row is a number of a whole ensemble, with two more coordinates. `run` is its command line.
//! `members` has the values of all members in order, `-` where one has none. It has nothing for
//! numbers of single tasks, which only the whole has. A guest gives the same digits anywhere, so
//! that a quick run measures only the first member of each ensemble again. If it is the same,
//! claims are judged by the members on record.

use super::{Run, member};
use crate::folder::Folder;
use results::Row;
use std::collections::BTreeMap;

/// Its file.
pub const ENSEMBLES: &str = "ensembles.csv";

/// The rows of each run on record, of the whole and of all members, by its key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ensembles(BTreeMap<String, Vec<Row>>);

/// What the first member of an ensemble, measured again, says of that on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Again {
    /// It is the same to the last digit.
    Same,
    /// It was not measured, and why.
    Left(String),
    /// It is not: the first difference.
    Differs(String),
    /// It is not, as the guests are made of something else: the first difference, and of what.
    OtherGuests(String),
}

impl Again {
    /// The rows to judge claims by, or why there are none: what guests on record did says nothing
    /// of others.
    pub(super) fn judged_by(&self, recorded: &[Row]) -> Result<Vec<Row>, String> {
        match self {
            Again::Same | Again::Left(_) | Again::Differs(_) => Ok(recorded.to_vec()),
            Again::OtherGuests(why) => {
                Err(format!("the guests are not those on record, --full measures these: {why}"))
            }
        }
    }
}

impl Ensembles {
    /// Reads those of a folder.
    ///
    /// # Errors
    /// If a row is not one, or its members are not numbers.
    pub fn read(folder: &Folder) -> Result<Ensembles, String> {
        let Some(text) = folder.text(ENSEMBLES) else { return Ok(Ensembles::default()) };
        let wrong = |why: String| format!("{}: {why}", folder.path(ENSEMBLES));
        let mut runs: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in results::from_csv(text).map_err(wrong)? {
            let words = row.text("run").split_whitespace().map(str::to_string).collect();
            let run = Run { x: 0.0, words };
            if run.first_member().is_none() {
                return Err(wrong(format!("`{}` is no ensemble in guests", run.key())));
            }
            let rows = expanded(&row).map_err(|why| wrong(format!("{}: {why}", run.key())))?;
            runs.entry(run.key()).or_default().extend(rows);
        }
        Ok(Ensembles(runs))
    }

    /// The rows of the ensemble with this key.
    pub fn get(&self, key: &str) -> Option<&Vec<Row>> {
        self.0.get(key)
    }
}

/// The row for the file that stands for this row of a whole and those of its members in `rows`.
pub(super) fn folded(run: &Run, whole: &Row, rows: &[Row]) -> Row {
    let own = rows.iter().filter(|row| is_about_the_same(row, whole));
    let values: BTreeMap<u64, Option<f64>> =
        own.filter_map(|row| Some((member(row)? as u64, row.value))).collect();
    let last = values.keys().next_back().copied().unwrap_or(0);
    let text = |value: Option<f64>| value.map_or("-".to_string(), |value| value.to_string());
    let members: Vec<String> =
        (1..=last).map(|number| text(values.get(&number).copied().flatten())).collect();
    whole.clone().at("run", run.words.join(" ")).at("members", members.join(" "))
}

/// The row of the whole, and those of its members.
fn expanded(row: &Row) -> Result<Vec<Row>, String> {
    let point = row.point.clone().without("run").without("members");
    let whole = Row { point, ..row.clone() };
    let of_member = |(index, value): (usize, &str)| {
        let value = value.parse().map_err(|_| format!("the member `{value}` is not a number"))?;
        let (ci_low, ci_high, note) = (None, None, None);
        let row = Row { value: Some(value), ci_low, ci_high, runs: 1, note, ..whole.clone() };
        Ok(row.at("member", index + 1))
    };
    let members = row.text("members").split_whitespace().enumerate();
    let members = members.filter(|(_, value)| *value != "-").map(of_member);
    let members = members.collect::<Result<Vec<Row>, String>>()?;
    Ok([vec![whole], members].concat())
}

/// Compares the first member on record with rows of it alone, measured again.
pub(super) fn compare(recorded: &[Row], again: &[Row]) -> Again {
    for before in recorded.iter().filter(|row| member(row) == Some(1.0)) {
        let now = again.iter().find(|row| is_about_the_same(row, before));
        let value = now.and_then(|row| row.value);
        if value == before.value {
            continue;
        }
        let number = |value: Option<f64>| value.map_or("none".to_string(), |v| v.to_string());
        let differs = format!(
            "{} of {} under {} was {} and is {}",
            before.metric,
            before.workload,
            before.candidate,
            number(before.value),
            number(value),
        );
        // Where this number is absent, another row of the run says of what the guest was made.
        let others = now.or(again.first()).map_or(Vec::new(), |now| other_inputs(before, now));
        return match &others[..] {
            [] => Again::Differs(differs),
            others => Again::OtherGuests(format!("{differs} (another {})", others.join(" and "))),
        };
    }
    Again::Same
}

/// The coordinates that say of what a guest is made.
fn is_input(name: &str) -> bool {
    name.ends_with("_sha256") || ["kernel", "qemu"].contains(&name)
}

/// Whether two rows are of the same number, whatever the guests were made of, and of which member
/// each is.
fn is_about_the_same(a: &Row, b: &Row) -> bool {
    let point = |row: &Row| -> Vec<(String, String)> {
        let own = row.point.iter().filter(|(name, _)| *name != "member" && !is_input(name));
        own.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    let name = |row: &Row| {
        let Row { workload, candidate, subject, .. } = row;
        (workload.clone(), candidate.clone(), subject.clone())
    };
    (a.metric, a.cpus, a.subject_kind) == (b.metric, b.cpus, b.subject_kind)
        && a.world == b.world
        && name(a) == name(b)
        && point(a) == point(b)
}

/// The inputs whose hashes differ.
fn other_inputs(a: &Row, b: &Row) -> Vec<String> {
    let hashes = a.point.iter().filter(|(name, _)| name.ends_with("_sha256"));
    let differing = hashes.filter(|(name, hash)| b.point.get(name) != Some(hash));
    differing.map(|(name, _)| name.trim_end_matches("_sha256").to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Metric, World};

    fn rows(values: &[Option<f64>], runner: &str) -> Vec<Row> {
        let row = |value| Row {
            workload: "yield:2".to_string(),
            candidate: "kernel:other".to_string(),
            cpus: 1,
            value,
            ..Row::new(World::Vm { kernel: "6.1".into() }, Metric::makespan_ns)
                .at("runner_sha256", runner)
                .at("nudges", "start")
        };
        let of = |(index, value): (usize, &Option<f64>)| row(*value).at("member", index + 1);
        [row(Some(2.5))].into_iter().chain(values.iter().enumerate().map(of)).collect()
    }

    fn run() -> Run {
        let words = "compare yield:2 --on vm --ensemble 3 --seed 1 -- a --ensemble";
        Run { x: 0.0, words: words.split(' ').map(str::to_string).collect() }
    }

    /// What a folder with this file would hold.
    fn folder(text: &str) -> Folder {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(ENSEMBLES), text).unwrap();
        Folder::find(&format!("{}/", dir.path().display())).unwrap()
    }

    #[test]
    fn an_ensemble_goes_into_the_file_and_comes_back() {
        let rows = rows(&[Some(0.1 + 0.2), None, Some(5.0)], "aa");
        let folded = folded(&run(), &rows[0], &rows);
        assert_eq!(folded.text("members"), "0.30000000000000004 - 5");
        let text = results::to_csv(&[folded]).unwrap();
        let read = Ensembles::read(&folder(&text)).unwrap();
        assert_eq!(
            run().first_member().unwrap().key(),
            "schedlab compare yield:2 --on vm --seed 1 --first-member -- a --ensemble"
        );
        let back = read.get(&run().key()).unwrap();
        let values = |rows: &[Row]| {
            rows.iter()
                .filter(|row| row.value.is_some())
                .map(|row| (member(row), row.value))
                .collect::<Vec<_>>()
        };
        assert_eq!(values(back), values(&rows));
        for (from, to, words) in [
            (" - 5", " - five", "the member `five` is not a number"),
            ("--on vm", "--on sim", "is no ensemble in guests"),
        ] {
            let why = Ensembles::read(&folder(&text.replace(from, to))).unwrap_err();
            assert!(why.contains(words) && why.contains(ENSEMBLES), "{why}");
        }
    }

    #[test]
    fn a_last_digit_is_a_difference_and_another_runner_says_why() {
        let before = rows(&[Some(0.3), Some(2.0), Some(5.0)], "aa");
        let again = |value: Option<f64>, runner: &str| {
            let whole = Row { value, ..rows(&[], runner)[0].clone() };
            compare(&before, &[whole])
        };
        assert_eq!(again(Some(0.3), "aa"), Again::Same);
        assert_eq!(again(Some(0.3), "bb"), Again::Same, "only numbers count");
        let words = "makespan_ns of yield:2 under kernel:other was 0.3 and is 0.30000000000000004";
        assert_eq!(again(Some(0.1 + 0.2), "aa"), Again::Differs(words.to_string()));
        let other = again(Some(0.1 + 0.2), "bb");
        assert_eq!(other, Again::OtherGuests(format!("{words} (another runner)")));
        assert!(other.judged_by(&before).unwrap_err().ends_with("(another runner)"));
        let Again::Differs(why) = again(None, "aa") else { panic!() };
        assert!(why.ends_with("was 0.3 and is none"), "{why}");
        assert!(matches!(compare(&before, &[]), Again::Differs(_)));
    }
}
