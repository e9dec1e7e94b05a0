//! Counts rows and decisions by workload, policy, change and true effect.

use super::judged::{Effect, Judged};
use super::{Change, Kind};
use program::Error;
use results::{Align, Table, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The counts for a workload, a policy, a change and a size of true effect.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The workload.
    pub workload: String,
    /// The policy.
    pub policy: String,
    /// The change.
    pub change: String,
    /// The lower end of the true effect in percent; empty if it was not measured.
    pub effect: String,
    /// The number of rows.
    pub rows: u32,
    /// Rows in which all runs of both are equal.
    pub alike: u32,
    /// Rows decided as better.
    pub better: u32,
    /// Rows decided as worse.
    pub worse: u32,
    /// Rows decided as equivalent.
    pub equivalent: u32,
    /// Undecided rows.
    pub undecided: u32,
    /// Rows decided as better or worse against the true effect.
    pub wrong: u32,
    /// Rows decided as equivalent with a true effect beyond the margin.
    pub missed: u32,
    /// Rows with a true effect beyond margin and replay error.
    pub due: u32,
    /// The part of them that is decided right.
    pub found: u32,
}

/// All lines.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// In order of their addition, then by size of effect.
    pub lines: Vec<Line>,
}

/// The summary of all lines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Assessment {
    /// The rows of null changes in which any run differs, and the number of them called better or
    /// worse.
    pub null: (u32, u32),
    /// The rows of known changes that should be found, and the number found; none if none was
    /// measured.
    pub due: (u32, u32),
}

/// The largest accepted share of decided rows without a difference.
const MOST_FALSE: f64 = 0.01;
/// The smallest accepted share of known differences found.
const LEAST_FOUND: f64 = 0.8;
/// The lower ends of the size classes, in percent.
const SIZES: [&str; 9] = ["0", "0.1", "0.5", "1", "2", "5", "10", "20", "50"];
/// The columns of the curve.
pub const CURVE_HEADER: [&str; 7] =
    ["true effect", "rows", "right", "wrong", "equivalent", "undecided", "found of due"];

impl Tally {
    /// Adds the rows of a comparison.
    pub fn add(&mut self, workload: &str, policy: &str, change: Change, rows: &[Judged]) {
        let mut by_size: BTreeMap<usize, Vec<Judged>> = BTreeMap::new();
        for row in rows {
            by_size
                .entry(row.truth.map_or(0, |truth| size(truth.size) + 1))
                .or_default()
                .push(*row);
        }
        for (size, rows) in by_size {
            let count =
                |is: &dyn Fn(&Judged) -> bool| rows.iter().filter(|row| is(row)).count() as u32;
            let verdict = |verdict: Verdict| count(&|row| row.verdict == verdict);
            let is = |row: &Judged, of: fn(&Effect) -> bool| row.truth.as_ref().is_some_and(of);
            self.lines.push(Line {
                workload: workload.to_string(),
                policy: policy.to_string(),
                change: change.to_string(),
                effect: size.checked_sub(1).map_or(String::new(), |size| SIZES[size].to_string()),
                rows: rows.len() as u32,
                alike: count(&|row| row.is_alike),
                better: verdict(Verdict::Better),
                worse: verdict(Verdict::Worse),
                equivalent: verdict(Verdict::Equivalent),
                undecided: verdict(Verdict::Undecided),
                wrong: count(&|row| {
                    row.is_decided() && row.truth.is_none_or(|truth| truth.verdict != row.verdict)
                }),
                missed: count(&|row| {
                    row.verdict == Verdict::Equivalent && is(row, |truth| truth.is_relevant)
                }),
                due: count(&|row| is(row, |truth| truth.is_due)),
                found: count(&|row| {
                    row.truth.is_some_and(|truth| truth.is_due && truth.verdict == row.verdict)
                }),
            });
        }
    }

    /// Writes a CSV file.
    pub fn to_csv(&self) -> Result<String, Error> {
        let wrong = |error: String| {
            Error::Internal(format!("lines of verdicts cannot be written: {error}"))
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        self.lines
            .iter()
            .try_for_each(|line| writer.serialize(line))
            .map_err(|error| wrong(error.to_string()))?;
        let bytes = writer.into_inner().map_err(|error| wrong(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
    }

    /// Reads a file that [`to_csv`](Self::to_csv) wrote.
    ///
    /// # Errors
    /// If a line is damaged.
    pub fn from_csv(text: &str) -> Result<Tally, Error> {
        let lines = csv::Reader::from_reader(text.as_bytes())
            .into_deserialize()
            .collect::<Result<Vec<Line>, csv::Error>>();
        lines
            .map(|lines| Tally { lines })
            .map_err(|error| Error::Input(format!("verdicts: {error}")))
    }

    /// The number of comparisons.
    pub fn comparisons(&self) -> usize {
        let mut all: Vec<_> =
            self.lines.iter().map(|line| (&line.workload, &line.policy, &line.change)).collect();
        all.dedup();
        all.len()
    }

    /// The summary.
    pub fn assess(&self) -> Assessment {
        let null = self.of_kind(Kind::Null);
        let known = self.of_kind(Kind::Known);
        Assessment {
            null: (
                null.clone().map(|line| line.rows - line.alike).sum(),
                null.map(|line| line.better + line.worse).sum(),
            ),
            due: (known.clone().map(|line| line.due).sum(), known.map(|line| line.found).sum()),
        }
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Line> + Clone {
        let names: Vec<String> = Change::all()
            .into_iter()
            .filter(|change| change.kind() == kind)
            .map(|change| change.to_string())
            .collect();
        self.lines.iter().filter(move |line| names.contains(&line.change))
    }

    /// By size of the true effect: its range in percent, and the sums of the lines.
    pub fn curve(&self) -> Vec<(String, Line)> {
        let of = |(at, size): (usize, &&str)| {
            let sum = Line::sum(self.lines.iter().filter(|line| line.effect == **size));
            let range = SIZES
                .get(at + 1)
                .map_or(format!("{size} % and more"), |next| format!("{size} to {next} %"));
            (sum.rows > 0).then_some((range, sum))
        };
        SIZES.iter().enumerate().filter_map(of).collect()
    }

    /// The table for people.
    pub fn text(&self) -> String {
        let mut text = "Equal candidates: rows in which any run differs, and those called \
                        better or worse\n\n"
            .to_string();
        let mut table = Table::new([
            ("change", Align::Left),
            ("rows", Align::Right),
            ("better", Align::Right),
            ("worse", Align::Right),
        ]);
        for (change, sum) in self.null_changes() {
            table.row([
                change.to_string(),
                (sum.rows - sum.alike).to_string(),
                sum.better.to_string(),
                sum.worse.to_string(),
            ]);
        }
        let _ = writeln!(text, "{table}");
        let curve = self.curve();
        if !curve.is_empty() {
            text +=
                "Longer slices, half the CPUs and a starving policy: decisions by true effect\n\n";
            let align = |(at, name): (usize, &'static str)| {
                (name, if at == 0 { Align::Left } else { Align::Right })
            };
            let mut table = Table::new(CURVE_HEADER.into_iter().enumerate().map(align));
            curve.iter().for_each(|(range, line)| table.row(line.cells(range)));
            let _ = writeln!(text, "{table}");
        }
        text + &self.assess().text()
    }

    /// The sums of each null change with lines.
    fn null_changes(&self) -> impl Iterator<Item = (Change, Line)> {
        let of = |change: Change| {
            (change, Line::sum(self.lines.iter().filter(|line| line.change == change.to_string())))
        };
        Change::null().into_iter().map(of).filter(|(_, sum)| sum.rows > 0)
    }
}

impl Line {
    fn sum<'l>(lines: impl Iterator<Item = &'l Line>) -> Line {
        let mut sum = Line {
            workload: String::new(),
            policy: String::new(),
            change: String::new(),
            effect: String::new(),
            rows: 0,
            alike: 0,
            better: 0,
            worse: 0,
            equivalent: 0,
            undecided: 0,
            wrong: 0,
            missed: 0,
            due: 0,
            found: 0,
        };
        for line in lines {
            sum.rows += line.rows;
            sum.alike += line.alike;
            sum.better += line.better;
            sum.worse += line.worse;
            sum.equivalent += line.equivalent;
            sum.undecided += line.undecided;
            sum.wrong += line.wrong;
            sum.missed += line.missed;
            sum.due += line.due;
            sum.found += line.found;
        }
        sum
    }

    /// The cells of a line of the curve's table.
    pub fn cells(&self, range: &str) -> [String; 7] {
        let share = |part: u32| percent(part, self.rows);
        let found =
            if self.due == 0 { "-".to_string() } else { format!("{} of {}", self.found, self.due) };
        let right = self.better + self.worse - self.wrong;
        [
            range.to_string(),
            self.rows.to_string(),
            share(right),
            share(self.wrong),
            share(self.equivalent),
            share(self.undecided),
            found,
        ]
    }
}

impl Judged {
    fn is_decided(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse)
    }
}

impl Assessment {
    /// Checks that equal candidates are called equal, and that differences are found.
    ///
    /// # Errors
    /// [`Error::Check`] if not.
    pub fn expect(&self) -> Result<(), Error> {
        let (rows, decided) = self.null;
        let (due, found) = self.due;
        if f64::from(decided) > MOST_FALSE * f64::from(rows) {
            return Err(Error::Check(format!(
                "{decided} of {rows} rows of equal candidates are called better or worse, more \
                 than {:.0} %: the rule decides too much",
                100.0 * MOST_FALSE
            )));
        }
        if f64::from(found) < LEAST_FOUND * f64::from(due) {
            return Err(Error::Check(format!(
                "{found} of {due} known differences are found, less than {:.0} %: the rule \
                 decides too little",
                100.0 * LEAST_FOUND
            )));
        }
        Ok(())
    }

    fn text(&self) -> String {
        let ((rows, decided), (due, found)) = (self.null, self.due);
        let mut text = format!(
            "{decided} of {rows} rows of equal candidates are called better or worse: {}\n",
            percent(decided, rows)
        );
        if due > 0 {
            let _ = writeln!(
                text,
                "{found} of {due} differences beyond margin and replay error are found: {}",
                percent(found, due)
            );
        }
        text
    }
}

fn percent(part: u32, whole: u32) -> String {
    if whole == 0 {
        "-".to_string()
    } else {
        format!("{:.1} %", 100.0 * f64::from(part) / f64::from(whole))
    }
}

/// The index in [`SIZES`] for an effect.
fn size(effect: f64) -> usize {
    const BEGINS: [f64; 9] = [0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    BEGINS.iter().rposition(|begin| effect >= *begin).unwrap_or(0)
}
