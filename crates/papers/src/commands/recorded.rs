//! Rows that another tool measured, in a file beside `experiments.toml`.

use crate::folder::Folder;
use results::{Metric, Row};
use std::collections::BTreeSet;
use verbs::Coverage;

/// The first word of a run whose rows are in a file.
pub const RECORDED: &str = "recorded";

/// The rows of a file in the folder.
pub fn rows(folder: &Folder, file: &str) -> Result<Vec<Row>, String> {
    let text = folder.text(file).ok_or_else(|| format!("there is no {}", folder.path(file)))?;
    results::from_csv(text).map_err(|why| format!("{}: {why}", folder.path(file)))
}

/// What these rows are about.
pub fn coverage(rows: &[Row]) -> Coverage {
    fn all<T: Ord>(of: impl Iterator<Item = T>) -> Vec<T> {
        of.collect::<BTreeSet<T>>().into_iter().collect()
    }
    let printed = rows.iter().filter(|row| matches!(row.metric, Metric::printed(_)));
    Coverage {
        workloads: all(rows.iter().map(|row| row.workload.clone())),
        candidates: all(rows.iter().map(|row| row.candidate.clone())),
        worlds: all(rows.iter().map(|row| row.world.to_string())),
        cpus: all(rows.iter().map(|row| row.cpus)),
        tasks: Vec::new(),
        coordinates: all(rows.iter().flat_map(|row| row.point.names().map(str::to_string))),
        printed: all(printed.map(|row| row.metric.to_string())),
    }
}
