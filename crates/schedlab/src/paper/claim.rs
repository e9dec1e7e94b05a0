//! The claims of a paper: in our own words, as comparisons that could fail.

use super::expression::Check;
use super::{commands, grids, queues};
use crate::output::Verdict;
use crate::toml_file::TomlFile;
use crate::{Error, no_such};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A series of a claim or of a figure, by its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected { grid, policy, metric, x }, { command, metric }, a column as in \"T07/Linked List\", { column, measure } or { load, tasks }"
)]
pub enum Binding {
    /// From a grid of simulations.
    Grid(grids::Binding),
    /// From a command of this program's.
    Command(commands::Binding),
    /// From the cost atlas.
    Queue(queues::Binding),
}

/// What stands in `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// `P-CLM01`, ….
    pub id: String,
    /// What it says.
    pub says: String,
    /// The series it speaks about.
    #[serde(default, rename = "let")]
    pub bindings: BTreeMap<String, Binding>,
    /// Comparisons that hold if the claim does.
    #[serde(default)]
    pub check: Vec<String>,
    /// Whether they can be put to the printed numbers too.
    #[serde(default = "yes")]
    pub in_print: bool,
    /// The regimes that it is about, of those that the paper has; all unless given.
    pub regimes: Option<Vec<String>>,
    /// The verdict that is known, where it is not `reproduced`, and why: by the check's number, behind which the regime may stand.
    #[serde(default)]
    pub known: BTreeMap<String, Known>,
    /// Why it is not measured at all.
    pub skipped: Option<String>,
    /// What a reader must know.
    pub note: Option<String>,
    /// The comparisons, parsed.
    #[serde(skip)]
    pub checks: Vec<Check>,
}

fn yes() -> bool {
    true
}

/// A verdict on record other than `reproduced`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// It.
    pub verdict: Verdict,
    /// Why.
    pub because: String,
}

impl Claim {
    /// The claims in `file`.
    ///
    /// # Errors
    /// What cannot be judged: a claim without a comparison, a comparison that is none, or that speaks of a series which the claim does not name.
    pub fn read(file: &TomlFile) -> Result<Vec<Claim>, Error> {
        let Claims { claim: mut claims } = file.parse()?;
        for index in 0..claims.len() {
            let (before, rest) = claims.split_at_mut(index);
            let wrong = |(key, message): (String, String)| file.wrong(&format!("claim[{index}]{key}"), &message);
            if before.iter().any(|other| other.id == rest[0].id) {
                return Err(wrong((".id".to_string(), format!("there is another claim {}", rest[0].id))));
            }
            rest[0].prepare().map_err(wrong)?;
        }
        Ok(claims)
    }

    /// What is on record about a check, if it is not that it holds.
    pub fn known(&self, part: usize, regime: Option<&str>) -> Option<&Known> {
        let here = regime.and_then(|regime| self.known.get(&format!("{part}{regime}")));
        here.or_else(|| self.known.get(&part.to_string()))
    }

    /// Whether it is about this regime.
    pub fn is_about(&self, regime: &str) -> bool {
        self.regimes.as_ref().is_none_or(|regimes| regimes.iter().any(|own| own == regime))
    }

    /// Parses the comparisons; an error is a key and what is wrong there.
    fn prepare(&mut self) -> Result<(), (String, String)> {
        if self.check.is_empty() == self.skipped.is_none() {
            let what = "needs either a threshold that could fail (`check`) or the reason why it is not measured (`skipped`)";
            return Err((String::new(), format!("{} {what}", self.id)));
        }
        for (index, text) in self.check.iter().enumerate() {
            let key = format!(".check[{index}]");
            let check = Check::parse(text).map_err(|why| (key.clone(), why))?;
            if let Some(name) = check.names().into_iter().find(|name| !self.bindings.contains_key(name)) {
                let names: Vec<String> = self.bindings.keys().cloned().collect();
                return Err((key, no_such("series", &name, &names, "`let.NAME = …` names the series of a claim.")));
            }
            self.checks.push(check);
        }
        for (part, known) in &self.known {
            let key = format!(".known.{part}");
            let number = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            if !number.parse().is_ok_and(|part: usize| (1..=self.check.len()).contains(&part)) {
                return Err((key, format!("there is no check {part} of {}; it has {}", self.id, self.check.len())));
            }
            if !Verdict::OF_CLAIMS.contains(&known.verdict) {
                let words = Verdict::OF_CLAIMS.map(Verdict::word).join(", ");
                return Err((key, format!("`{}` is no verdict on a claim; write {words}", known.verdict)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        let text = text.replace("CLAIM", "[[claim]]\nid = \"P-CLM01\"\nsays = \"it is flat\"\nlet.list = \"T07/Linked List\"");
        Claim::read(&TomlFile::of("claims.toml", &text))
            .map(|claims| format!("{} claims", claims.len()))
            .unwrap_or_else(|why| why.to_string())
    }

    #[test]
    fn what_cannot_be_judged_is_said_with_line_and_key() {
        assert_eq!(complaint("CLAIM\ncheck = [\"max(list) < 3\"]\n"), "1 claims");
        for (text, words) in [
            ("CLAIM\n", ["claims.toml:1: claim[0]", "P-CLM01 needs either a threshold"]),
            ("CLAIM\ncheck = [\"list < 1\"]\nskipped = \"no\"\n", ["claims.toml:1: claim[0]", "needs either"]),
            ("CLAIM\ncheck = [\"max(list)\"]\n", ["claims.toml:5: claim[0].check[0]", "expected <="]),
            ("CLAIM\ncheck = [\n\"max(list) < 3\",\n\"last(lisp) < 3\"]\n", ["claims.toml:7: claim[0].check[1]", "Did you mean `list`?"]),
            ("CLAIM\ncheck = [\"list < 1\"]\nCLAIM\ncheck = [\"list < 1\"]\n", ["claims.toml:7: claim[1].id", "another claim P-CLM01"]),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.2 = { verdict = \"inconclusive\", because = \"\" }\n",
                ["claims.toml:6: claim[0].known.2", "no check 2"],
            ),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.1 = { verdict = \"better\", because = \"\" }\n",
                ["claims.toml:6: claim[0].known.1", "`better` is no verdict on a claim"],
            ),
            ("CLAIM\nchecks = [\"list < 1\"]\n", ["claims.toml:5: claim[0].checks", "Did you mean `check`?"]),
            ("CLAIM\nlet.tree = 3\ncheck = [\"list < 1\"]\n", ["claims.toml:5: claim[0].let.tree", "T07/Linked List"]),
        ] {
            let message = complaint(text);
            assert!(words.iter().all(|word| message.contains(word)), "{text}: {message}");
        }
    }
}
