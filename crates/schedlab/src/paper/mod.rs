//! A paper's tables, figures and claims, measured again and held against what is printed.
//!
//! A paper is a [`folder`] of data: what was measured, the printed numbers, and [claims](claim) as comparisons in a small [language](expression). A source
//! of numbers measures everything that they speak of at once; [`queues`] takes them from the cost atlas. [`verdict`] puts every comparison to our numbers, and to the
//! printed ones.

pub mod claim;
pub mod expression;
pub mod figure;
pub mod folder;
pub mod queues;
pub mod series;
pub mod table;
pub mod text;
pub mod verdict;

use crate::output::Row;
use crate::toml_file::TomlFile;
use crate::{Error, no_such};
use claim::Claim;
use figure::Drawing;
use folder::Folder;
use queues::{Measured, Settings};
use table::{Experiments, Figure, Printed, TableData};

/// A paper.
pub struct Paper {
    /// Its short name.
    pub name: String,
    /// What was done.
    pub experiments: Experiments,
    /// What came of it.
    pub printed: Printed,
    /// What was concluded.
    pub claims: Vec<Claim>,
}

/// The outcome.
pub struct Outcome {
    /// Every number and every verdict.
    pub rows: Vec<Row>,
    /// The figures, ready to be drawn.
    pub figures: Vec<Drawing>,
    /// Verdicts that differ from those on record.
    pub surprises: Vec<String>,
}

impl Paper {
    /// Reads the paper of that name, or in the folder at that path.
    ///
    /// # Errors
    /// If there is none, or what is wrong with it, with file and line.
    pub fn load(name: &str) -> Result<Paper, Error> {
        let folder = Folder::find(name)?;
        let (experiments, claims) = (folder.toml("experiments.toml")?, folder.toml("claims.toml")?);
        let paper = Paper {
            experiments: experiments.parse()?,
            printed: Printed::read(&folder.path("tables.csv"), folder.text("tables.csv").unwrap_or_default())?,
            claims: Claim::read(&claims)?,
            name: folder.name,
        };
        paper.check_references(&experiments, &claims)?;
        Ok(paper)
    }

    /// Whether all that it speaks of is there.
    fn check_references(&self, experiments: &TomlFile, claims: &TomlFile) -> Result<(), Error> {
        for (index, table) in self.experiments.table.iter().enumerate() {
            if let Some(place) = table.column.iter().position(|column| self.printed.rows(&table.id, &column.name).is_empty()) {
                let message = format!("tables.csv has no cell of {}/{}", table.id, table.column[place].name);
                return Err(experiments.wrong(&format!("table[{index}].column[{place}].name"), &message));
            }
        }
        for (index, figure) in self.experiments.figure.iter().enumerate() {
            for (place, id) in figure.series.iter().enumerate() {
                self.column(id).map_err(|why| experiments.wrong(&format!("figure[{index}].series[{place}]"), &why))?;
            }
        }
        for (index, claim) in self.claims.iter().enumerate() {
            for (name, id) in claim.bindings.iter().filter_map(|(name, binding)| Some((name, binding.column()?))) {
                self.column(id).map_err(|why| claims.wrong(&format!("claim[{index}].let.{name}"), &why))?;
            }
        }
        Ok(())
    }

    /// The ids of everything in it.
    pub fn ids(&self) -> Vec<String> {
        let tables = self.experiments.table.iter().map(TableData::claim_id);
        let mut ids: Vec<String> = tables.chain(self.experiments.figure.iter().map(|figure| figure.id.clone())).collect();
        ids.extend(self.claims.iter().map(|claim| claim.id.clone()));
        ids.sort();
        ids.dedup();
        ids
    }

    /// The table of that name, such as `T07`.
    pub fn table(&self, id: &str) -> Option<&TableData> {
        self.experiments.table.iter().find(|table| table.id == id)
    }

    /// Measures what `only` names, or all of it.
    ///
    /// # Errors
    /// If `only` names what the paper has not.
    pub fn reproduce(&self, only: &[String], settings: &Settings) -> Result<Outcome, Error> {
        let ids = self.ids();
        if let Some(wrong) = only.iter().find(|id| !ids.contains(id)) {
            let (first, last) = (ids.first().map_or("", String::as_str), ids.last().map_or("", String::as_str));
            let see = format!("{} has {} of them, from {first} to {last}.", self.name, ids.len());
            return Err(Error::Usage(no_such("table, figure or claim", wrong, &ids, &see)));
        }
        let wanted = |id: &str| only.is_empty() || only.iter().any(|one| one == id);
        let tables: Vec<&TableData> = self.experiments.table.iter().filter(|table| wanted(&table.claim_id())).collect();
        let figures: Vec<&Figure> = self.experiments.figure.iter().filter(|figure| wanted(&figure.id)).collect();
        let claims: Vec<&Claim> = self.claims.iter().filter(|claim| wanted(&claim.id)).collect();

        let mut measured = Measured::new(self, settings);
        tables.iter().for_each(|table| table.column.iter().for_each(|column| measured.want_column(table, column)));
        for id in figures.iter().flat_map(|figure| &figure.series) {
            measured.want(id).map_err(Error::Internal)?;
        }
        for binding in figures.iter().filter_map(|figure| figure.overhead.as_ref()).flat_map(|overhead| overhead.bindings()) {
            measured.want_binding(&binding).map_err(Error::Internal)?;
        }
        for binding in claims.iter().flat_map(|claim| claim.bindings.values()) {
            measured.want_binding(binding).map_err(Error::Internal)?;
        }
        measured.count();

        let mut rows: Vec<Row> = tables.iter().flat_map(|table| measured.table_rows(table)).collect();
        let mut surprises = Vec::new();
        for claim in claims {
            let (mut verdicts, mut unexpected) = verdict::judge(claim, &measured);
            rows.append(&mut verdicts);
            surprises.append(&mut unexpected);
        }
        let figures = figures.into_iter().map(|figure| Drawing::of(figure, &measured)).collect::<Result<_, Error>>()?;
        Ok(Outcome { rows, figures, surprises })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_is_complete() {
        let paper = Paper::load("porter-2021").unwrap();
        assert_eq!(paper.experiments.table.len(), 23);
        assert_eq!(paper.experiments.figure.len(), 25);
        assert_eq!(paper.printed.numbers(), 620);
        let ids = paper.ids();
        for id in (1..=19).map(|n| format!("P-CLM{n:02}")).chain((1..=4).map(|n| format!("P-CHK{n:02}"))) {
            assert!(ids.contains(&id), "{id}");
        }
        let described: usize = paper
            .experiments
            .table
            .iter()
            .flat_map(|table| table.column.iter().map(|column| paper.printed.rows(&table.id, &column.name).len()))
            .sum();
        assert_eq!(described, 620, "every printed number has a column that says what it measures");
        assert!(Paper::load("porter").is_err());
    }

    #[test]
    fn what_a_paper_speaks_of_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let complaint = |file: &str, from: &str, to: &str| {
            for name in ["experiments.toml", "tables.csv", "claims.toml"] {
                let text = Folder::find("porter-2021").unwrap().text(name).unwrap().to_string();
                std::fs::write(dir.path().join(name), if name == file { text.replacen(from, to, 1) } else { text }).unwrap();
            }
            Paper::load(dir.path().to_str().unwrap()).map(|_| "fine".to_string()).unwrap_or_else(|why| why.to_string())
        };
        assert_eq!(complaint("claims.toml", "", ""), "fine");
        for (file, from, to, words) in [
            (
                "claims.toml",
                "\"T07/Linked List\"",
                "\"T77/Linked List\"",
                ["claims.toml:11: claim[0].let.list", "no column `T77/Linked List`"],
            ),
            (
                "tables.csv",
                "1 second,Number of Time-Slices,46751",
                "1 second,Number of Time-Slices,",
                ["tables.csv:2: value", "is missing"],
            ),
            ("tables.csv", "46751", "4675I", ["tables.csv:2: value", "`4675I`, which is no number"]),
            (
                "experiments.toml",
                "name = \"Number of Time-Slices\"",
                "name = \"Time-Slices\"",
                ["experiments.toml:11: table[0].column[0].name", "no cell of T01/Time-Slices"],
            ),
            ("experiments.toml", "queue = \"rr-rbtree+idle\"", "queu = \"rr\"", ["experiments.toml:1", "table[0].column[1]"]),
        ] {
            let message = complaint(file, from, to);
            assert!(words.iter().all(|word| message.contains(word)), "{file}, {to}: {message}");
        }
        assert!(Paper::load("./nowhere").err().unwrap().to_string().contains("nowhere"));
    }
}
