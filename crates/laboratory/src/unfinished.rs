//! Tasks that a candidate leaves unfinished at the end of its runs: other tasks ran in their place.

use super::Section;
use results::Metric;
use std::collections::BTreeMap;
use worlds::{Run, Trial};

/// A candidate whose runs end while tasks run or are runnable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// The candidate.
    pub candidate: String,
    /// The number of CPUs.
    pub cpus: u16,
    /// The smallest and largest number in a run.
    pub counts: (usize, usize),
    /// The names of their programs, the most frequent first.
    pub programs: Vec<String>,
}

/// The number of names shown.
const NAMES: usize = 5;
/// More candidates than these have one line together.
const SHOWN: usize = 3;

impl Unfinished {
    /// The unfinished tasks of `trial` in `runs`, if there are any.
    pub fn of(trial: &Trial<'_>, runs: &[Run]) -> Option<Unfinished> {
        let names: Vec<Vec<String>> = runs.iter().map(Run::unfinished).collect();
        let counts = names.iter().map(Vec::len);
        let counts = counts.clone().min().zip(counts.max()).filter(|(_, most)| *most > 0)?;
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        names.into_iter().flatten().for_each(|name| *times.entry(name).or_default() += 1);
        let mut programs: Vec<(String, usize)> = times.into_iter().collect();
        programs.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let programs = programs.into_iter().map(|(name, _)| name).collect();
        Some(Unfinished {
            candidate: trial.candidate.to_string(),
            cpus: trial.cpus,
            counts,
            programs,
        })
    }

    /// `3 to 5 tasks (xz, tar and 3 more)`.
    fn text(&self) -> String {
        let (least, most) = self.counts;
        let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let tasks = if most == 1 { "task" } else { "tasks" };
        format!("{count} {tasks} ({})", self.names())
    }

    fn names(&self) -> String {
        let names =
            self.programs.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.programs.len().saturating_sub(NAMES) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

/// Adds a note to the number of each candidate with unfinished tasks.
pub fn mark(section: &mut Section<'_>) {
    for row in section
        .rows
        .iter_mut()
        .filter(|row| row.metric == Metric::unfinished_tasks && row.subject.is_none())
    {
        let own = section
            .unfinished
            .iter()
            .find(|own| own.candidate == row.candidate && own.cpus == row.cpus);
        if let Some(own) = own {
            row.note = Some(
                row.note.take().map_or(own.names(), |note| format!("{note}; {}", own.names())),
            );
        }
    }
}

/// The unfinished tasks on this number of CPUs: one line if all candidates leave the same or many
/// leave some, else a line for each.
pub fn lines(section: &Section<'_>, cpus: u16) -> String {
    let own: Vec<&Unfinished> = section.unfinished.iter().filter(|own| own.cpus == cpus).collect();
    let candidates = section.trials.iter().filter(|trial| trial.cpus == cpus).count();
    match &own[..] {
        [] => String::new(),
        [first, others @ ..]
            if own.len() == candidates
                && candidates > 1
                && others.iter().all(|other| other.text() == first.text()) =>
        {
            format!("Unfinished at the end, under all candidates: {}\n", first.text())
        }
        several if several.len() > SHOWN => {
            let least = several.iter().map(|own| own.counts.0).min().unwrap_or(0);
            let most = several.iter().map(|own| own.counts.1).max().unwrap_or(0);
            format!(
                "Unfinished at the end under {} of {candidates} candidates: {least} to {most} tasks; \
                 unfinished_tasks in the results has each\n",
                several.len()
            )
        }
        several => several
            .iter()
            .map(|own| format!("Unfinished at the end under {}: {}\n", own.candidate, own.text()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(candidate: &str, counts: (usize, usize), programs: &[&str]) -> Unfinished {
        Unfinished {
            candidate: candidate.to_string(),
            cpus: 2,
            counts,
            programs: programs.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn tasks_are_counted_and_named() {
        assert_eq!(left("a", (1, 1), &["xz"]).text(), "1 task (xz)");
        assert_eq!(left("a", (0, 3), &["xz", "tar"]).text(), "0 to 3 tasks (xz, tar)");
        assert_eq!(
            left("a", (7, 7), &["a", "b", "c", "d", "e", "f", "g"]).text(),
            "7 tasks (a, b, c, d, e and 2 more)"
        );
    }

    #[test]
    fn unfinished_tasks_are_shown_below_the_table_and_beside_the_number() {
        let mut section = Section::new();
        section.unfinished = vec![left("a", (2, 2), &["xz"]), left("b", (1, 1), &["tar"])];
        let row = |candidate: &str| results::Row {
            candidate: candidate.to_string(),
            cpus: 2,
            ..results::Row::new(results::World::Sim, Metric::unfinished_tasks)
        };
        section.rows = vec![row("a"), row("c")];
        mark(&mut section);
        assert_eq!(
            [section.rows[0].note.as_deref(), section.rows[1].note.as_deref()],
            [Some("xz"), None]
        );
        assert_eq!(
            lines(&section, 2),
            "Unfinished at the end under a: 2 tasks (xz)\nUnfinished at the end under b: 1 task \
             (tar)\n"
        );
        assert_eq!(lines(&section, 4), "");
        section.unfinished.extend([left("c", (0, 1), &["xz"]), left("d", (5, 7), &["xz"])]);
        assert!(
            lines(&section, 2).starts_with("Unfinished at the end under 4 of 0 candidates: 0 to 7")
        );
    }
}
