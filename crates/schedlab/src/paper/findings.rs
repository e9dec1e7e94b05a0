//! What a paper's claims do not say: what its authors missed, what follows for a reader, and how it was decided what they leave open.
//!
//! A file of the paper's folder, `findings.toml`; each entry names the claims that it rests on, so that their verdicts and numbers stand beside it.

use super::is_of;
use crate::output::{SCHEMA, write_whole};
use crate::toml_file::TomlFile;
use crate::{Error, no_such};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What stands in `findings.toml`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Findings {
    /// What the original missed.
    pub missed: Vec<Missed>,
    /// What to take for what.
    pub advice: Vec<Advice>,
    /// Slips and gaps of the text, and what was made of them.
    pub decision: Vec<Decision>,
}

/// Something that the original could have seen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// In a few words.
    pub title: String,
    /// What it is, and how it shows.
    pub says: String,
    /// The claims whose checks show it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Whether it is one of the things to tell first.
    #[serde(default)]
    pub surprising: bool,
}

/// A ready queue or a policy for a need.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Who needs what.
    pub need: String,
    /// What serves it.
    pub take: String,
    /// Why.
    pub because: String,
    /// The claims whose checks show it.
    #[serde(default)]
    pub claims: Vec<String>,
}

/// How something was read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// `P-ERR01`, ….
    pub id: String,
    /// The decision.
    pub says: String,
    /// The claims that it touches.
    #[serde(default)]
    pub claims: Vec<String>,
}

impl Findings {
    /// Reads `file`, of a paper with these ids.
    ///
    /// # Errors
    /// If it names a claim that the paper does not have.
    pub fn read(file: &TomlFile, ids: &[String]) -> Result<Findings, Error> {
        let findings: Findings = file.parse()?;
        let named = |kind: &'static str, index: usize, claims: &[String]| {
            let unknown = claims.iter().position(|claim| !ids.iter().any(|id| is_of(id, claim)));
            unknown.map_or(Ok(()), |place| {
                let why = no_such("claim", &claims[place], ids, "They stand in claims.toml and experiments.toml.");
                Err(file.wrong(&format!("{kind}[{index}].claims[{place}]"), &why))
            })
        };
        findings.missed.iter().enumerate().try_for_each(|(index, one)| named("missed", index, &one.claims))?;
        findings.advice.iter().enumerate().try_for_each(|(index, one)| named("advice", index, &one.claims))?;
        findings.decision.iter().enumerate().try_for_each(|(index, one)| named("decision", index, &one.claims))?;
        Ok(findings)
    }
}

/// The findings of all papers that were measured, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AllFindings {
    /// The version of this shape, the same as that of the results.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
    /// Joined, in the order of the papers.
    pub findings: Findings,
}

impl AllFindings {
    /// Those of this program.
    pub fn new<'f>(papers: impl Iterator<Item = &'f Findings>) -> AllFindings {
        let mut findings = Findings::default();
        for one in papers.cloned() {
            findings.missed.extend(one.missed);
            findings.advice.extend(one.advice);
            findings.decision.extend(one.decision);
        }
        AllFindings { schema: SCHEMA, version: env!("CARGO_PKG_VERSION").to_string(), findings }
    }

    /// Writes them to `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self).map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(path, json.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_names_claims_that_there_are() {
        let read = |text: &str| Findings::read(&TomlFile::of("findings.toml", text), &["X-CLM01-sim".to_string()]);
        let text = "[[missed]]\ntitle = \"a\"\nsays = \"b\"\nclaims = [\"X-CLM01\"]\n";
        assert_eq!(read(text).unwrap().missed[0].claims, ["X-CLM01"]);
        for (text, words) in [
            (text.replace("CLM01", "CLM02"), "findings.toml:4: missed[0].claims[0]: there is no claim named `X-CLM02`"),
            (text.replace("says", "sais"), "findings.toml:3: missed[0].sais"),
        ] {
            let message = read(&text).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
