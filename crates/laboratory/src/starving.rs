//! Detects candidates that look good because programs starve.

use super::Section;
use results::{Row, Verdict, counted};
use std::collections::BTreeMap;
use worlds::{Run, Trial};

/// A candidate under which programs starve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Starving {
    /// The candidate.
    pub candidate: String,
    /// The number of CPUs.
    pub cpus: u16,
    /// The programs, by name.
    pub programs: Vec<String>,
}

impl Starving {
    /// The programs that starve under `trial` in at least half of its runs, each compared with the
    /// baseline's run of the same number.
    pub fn of(trial: &Trial<'_>, runs: &[Run], baseline: &[Run]) -> Option<Starving> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let starving = runs.iter().zip(baseline).flat_map(|(run, baseline)| run.starves(baseline));
        starving.for_each(|name| *counts.entry(name).or_default() += 1);
        let pairs = runs.len().min(baseline.len());
        let programs: Vec<String> = counts
            .into_iter()
            .filter(|(_, count)| 2 * count >= pairs)
            .map(|(name, _)| name)
            .collect();
        let of = |programs| Starving {
            candidate: trial.candidate.to_string(),
            cpus: trial.cpus,
            programs,
        };
        (!programs.is_empty()).then(|| of(programs))
    }

    /// `starves xz, tar and 3 more`.
    pub fn text(&self) -> String {
        const NAMES: usize = 5;
        let names =
            self.programs.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.programs.len().saturating_sub(NAMES);
        if more > 0 {
            format!("starves {names} and {more} more")
        } else {
            format!("starves {names}")
        }
    }

    fn is_of(&self, row: &Row) -> bool {
        row.candidate == self.candidate && row.cpus == self.cpus
    }
}

/// Adds a note to each row of a starving candidate. A better result for all tasks together becomes
/// undecided: the starving programs pay for it.
pub fn mark(section: &mut Section<'_>) {
    for row in &mut section.rows {
        let Some(starving) = section.starving.iter().find(|starving| starving.is_of(row)) else {
            continue;
        };
        let text = starving.text();
        if row.verdict == Some(Verdict::Better) && row.subject.is_none() {
            row.verdict = Some(Verdict::Undecided);
            row.reason = Some(format!("the candidate {text}"));
        }
        row.note = Some(row.note.take().map_or(text.clone(), |note| format!("{note}; {text}")));
    }
}

/// A line for each candidate that starves programs.
pub fn lines(section: &Section<'_>) -> String {
    let line = |starving: &Starving| {
        let cpus = counted(starving.cpus.into(), "CPU");
        format!(
            "{} on {cpus} {}: its longest wait is more than ten times that under the \
             baseline, or it gets less than a tenth of the CPU time.\n",
            starving.candidate,
            starving.text()
        )
    };
    let lines: String = section.starving.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
