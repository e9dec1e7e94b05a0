//! What a paper's claims do not cover: what its authors missed, advice for readers, and how gaps in
//! its text were filled.

use crate::SCHEMA;
use program::{Error, write_whole};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The content of `findings.toml`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Findings {
    /// What the original study missed.
    pub missed: Vec<Missed>,
    /// Advice: which queue or policy for which need.
    pub advice: Vec<Advice>,
    /// Errors and gaps in the text, and how they were resolved.
    pub decision: Vec<Decision>,
}

/// An effect that the original study could have found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// A short title.
    pub title: String,
    /// What the effect is and how it shows.
    pub says: String,
    /// The claims whose checks show it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Whether it belongs to the main findings, listed first.
    #[serde(default)]
    pub surprising: bool,
}

/// A ready queue or a policy for a need.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The need.
    pub need: String,
    /// The ready queue or policy to use.
    pub take: String,
    /// The reason.
    pub because: String,
    /// The claims whose checks show it.
    #[serde(default)]
    pub claims: Vec<String>,
}

/// How an unclear passage was read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The id: `P-ERR01`, ….
    pub id: String,
    /// The decision.
    pub says: String,
    /// The claims that it affects.
    #[serde(default)]
    pub claims: Vec<String>,
}

/// The findings of all measured papers, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AllFindings {
    /// The version of this schema, the same as that of the results.
    pub schema: u32,
    /// The version of schedlab.
    pub version: String,
    /// All findings, ordered by paper.
    pub findings: Findings,
}

impl AllFindings {
    /// Joins the findings of several papers.
    pub fn new<'f>(papers: impl Iterator<Item = &'f Findings>) -> AllFindings {
        let mut findings = Findings::default();
        for one in papers.cloned() {
            findings.missed.extend(one.missed);
            findings.advice.extend(one.advice);
            findings.decision.extend(one.decision);
        }
        AllFindings { schema: SCHEMA, version: program::VERSION.to_string(), findings }
    }

    /// Writes them to `path`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self)
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(path, json.as_bytes())
    }
}

/// Whether `id` equals `one` or is a part of it: `L-CLM01-sim` is a part of `L-CLM01`.
pub fn is_of(id: &str, one: &str) -> bool {
    id.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}
