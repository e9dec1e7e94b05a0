//! A paper's tables, figures and claims, measured again and held against what is printed.
//!
//! The paper is data (`papers/porter-2021/`): what each column measures, the printed numbers, and claims as comparisons. [`measured`] turns columns into
//! cells and counts them all at once; [`verdict`] puts every comparison to our numbers, and to the printed ones.

pub mod data;
pub mod expression;
pub mod figures;
pub mod measured;
pub mod series;
pub mod text;
pub mod verdict;

use crate::no_such;
use crate::output::Row;
use data::{Claim, Claims, Experiments, Figure, Printed, TableData};
use measured::{Measured, Settings};

/// A paper.
pub struct Paper {
    /// Its short name.
    pub name: &'static str,
    /// What was done.
    pub experiments: Experiments,
    /// What came of it.
    pub printed: Printed,
    /// What was concluded.
    pub claims: Vec<Claim>,
}

/// The papers about ready queues that are known.
pub const PAPERS: [&str; 1] = ["porter-2021"];

/// The outcome.
pub struct Outcome {
    /// Every number and every verdict.
    pub rows: Vec<Row>,
    /// The files of the figures: name and CSV.
    pub figures: Vec<(String, String)>,
    /// Verdicts that differ from those on record.
    pub surprises: Vec<String>,
}

impl Paper {
    /// Reads the paper of that name.
    pub fn load(name: &str) -> Result<Paper, String> {
        if name != PAPERS[0] {
            return Err(no_such("paper", name, &PAPERS.map(String::from), "There is porter-2021."));
        }
        let broken = |file: &str, why: &dyn std::fmt::Display| format!("{name}/{file}: {why}");
        let experiments = include_str!("../../../../../papers/porter-2021/experiments.toml");
        let claims: Claims =
            toml::from_str(include_str!("../../../../../papers/porter-2021/claims.toml")).map_err(|error| broken("claims.toml", &error))?;
        Ok(Paper {
            name: PAPERS[0],
            experiments: toml::from_str(experiments).map_err(|error| broken("experiments.toml", &error))?,
            printed: Printed::parse(include_str!("../../../../../papers/porter-2021/tables.csv"))?,
            claims: claims.claim,
        })
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
    pub fn reproduce(&self, only: &[String], settings: &Settings) -> Result<Outcome, String> {
        let ids = self.ids();
        if let Some(wrong) = only.iter().find(|id| !ids.contains(id)) {
            return Err(no_such(
                "table, figure or claim",
                wrong,
                &ids,
                "They are P-TAB01 to 23, P-FIG01 to 25, P-CLM01 to 19, P-CHK01 to 04, P-LAW01 to 03.",
            ));
        }
        let wanted = |id: &str| only.is_empty() || only.iter().any(|one| one == id);
        let tables: Vec<&TableData> = self.experiments.table.iter().filter(|table| wanted(&table.claim_id())).collect();
        let figures: Vec<&Figure> = self.experiments.figure.iter().filter(|figure| wanted(&figure.id)).collect();
        let claims: Vec<&Claim> = self.claims.iter().filter(|claim| wanted(&claim.id)).collect();

        let mut measured = Measured::new(self, settings);
        tables.iter().for_each(|table| table.column.iter().for_each(|column| measured.want_column(table, column)));
        for id in figures.iter().flat_map(|figure| &figure.series) {
            measured.want(id)?;
        }
        for binding in claims.iter().flat_map(|claim| claim.bindings.values()) {
            measured.want_binding(binding)?;
        }
        measured.count();

        let mut rows: Vec<Row> = tables.iter().flat_map(|table| measured.table_rows(table)).collect();
        let mut surprises = Vec::new();
        for claim in claims {
            let (mut verdicts, mut unexpected) = verdict::judge(claim, &measured);
            rows.append(&mut verdicts);
            surprises.append(&mut unexpected);
        }
        let figures = figures.into_iter().map(|figure| figures::csv(figure, &measured)).collect::<Result<_, String>>()?;
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
}
