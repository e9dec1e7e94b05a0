//! The claims of a paper: in our own words, as comparisons that could fail.

use super::check::{Fault, unused};
use super::expression::{Check, KnownSeries};
use super::table::part;
use super::{commands, grids, queues};
use crate::output::Verdict;
use crate::toml_file::TomlFile;
use crate::{Error, no_such};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A series of a claim or of a figure, by its source.
#[derive(Clone, Debug)]
pub enum Binding {
    /// From a grid of simulations.
    Grid(grids::Binding),
    /// From a command of this program's.
    Command(commands::Binding),
    /// From the cost atlas.
    Queue(queues::Binding),
}

/// Series by the names that expressions call them by.
pub type Bindings = BTreeMap<String, Binding>;

impl<'de> Deserialize<'de> for Binding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Binding, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        match value.as_table() {
            Some(table) if table.contains_key("grid") => part(value).map(Binding::Grid),
            Some(table) if table.contains_key("command") => part(value).map(Binding::Command),
            _ => queues::Binding::read(value).map(Binding::Queue),
        }
    }
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
    pub bindings: Bindings,
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
    /// The claims in `file`, of a paper with these regimes; `known` says what is known of series, or which speaks of what is not there.
    ///
    /// # Errors
    /// What cannot be judged: a claim without a comparison, or one that names what is not there.
    pub fn read(file: &TomlFile, regimes: &[String], known: impl Fn(&Bindings) -> Result<KnownSeries, Fault>) -> Result<Vec<Claim>, Error> {
        let Claims { claim: mut claims } = file.parse()?;
        for index in 0..claims.len() {
            let (before, rest) = claims.split_at_mut(index);
            let wrong = |(key, message): Fault| file.wrong(&format!("claim[{index}].{key}"), &message);
            let claim = &mut rest[0];
            if before.iter().any(|other| other.id == claim.id) {
                return Err(wrong(("id".to_string(), format!("there is another claim {}", claim.id))));
            }
            claim.check(regimes).map_err(wrong)?;
            let known = known(&claim.bindings).map_err(wrong)?;
            let read = |(place, text): (usize, &String)| {
                let key = format!("claim[{index}].check[{place}]");
                Check::parse(text, &known).map_err(|fault| file.wrong_within(&key, &fault.at, &fault.message))
            };
            claim.checks = claim.check.iter().enumerate().map(read).collect::<Result<_, Error>>()?;
            unused(&claim.bindings, |name| claim.checks.iter().any(|check| check.uses(name))).map_or(Ok(()), |fault| Err(wrong(fault)))?;
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

    /// Whether there is something to judge, and the verdicts on record are of checks and regimes that there are.
    fn check(&self, regimes: &[String]) -> Result<(), Fault> {
        if self.check.is_empty() == self.skipped.is_none() {
            let what = "needs either a threshold that could fail (`check`) or the reason why it is not measured (`skipped`)";
            return Err(("id".to_string(), format!("{} {what}", self.id)));
        }
        let no_regime = |wrong: &str| no_such("regime", wrong, regimes, "They stand in experiments.toml.");
        if let Some((index, wrong)) = self.regimes.iter().flatten().enumerate().find(|(_, regime)| !regimes.contains(regime)) {
            return Err((format!("regimes[{index}]"), no_regime(wrong)));
        }
        for (part, known) in &self.known {
            let key = format!("known.{part}");
            let (number, regime) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
            if !number.parse().is_ok_and(|part: usize| (1..=self.check.len()).contains(&part)) {
                return Err((key, format!("there is no check {part} of {}; it has {}", self.id, self.check.len())));
            }
            if !regime.is_empty() && !regimes.iter().any(|one| one == regime) {
                return Err((key, no_regime(regime)));
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
    use crate::paper::expression::Known;

    fn complaint(text: &str) -> String {
        let text = text.replace("CLAIM", "[[claim]]\nid = \"P-CLM01\"\nsays = \"it is flat\"\nlet.list = \"T07/Linked List\"");
        let known = |bindings: &Bindings| Ok(bindings.keys().map(|name| (name.clone(), Known::default())).collect());
        Claim::read(&TomlFile::of("claims.toml", &text), &["S".to_string()], known)
            .map(|claims| format!("{} claims", claims.len()))
            .unwrap_or_else(|why| why.to_string())
    }

    #[test]
    fn what_cannot_be_judged_is_said_with_line_and_key() {
        assert_eq!(complaint("CLAIM\ncheck = [\"max(list) < 3\"]\n"), "1 claims");
        for (text, words) in [
            ("CLAIM\n", ["claims.toml:2: claim[0].id", "P-CLM01 needs either a threshold"]),
            ("CLAIM\ncheck = [\"list < 1\"]\nskipped = \"no\"\n", ["claims.toml:2: claim[0].id", "needs either"]),
            ("CLAIM\ncheck = [\"max(list)\"]\n", ["claims.toml:5: claim[0].check[0]", "expected <="]),
            ("CLAIM\ncheck = [\n\"max(list) < 3\",\n\"last(lisp) < 3\"]\n", ["claims.toml:7: claim[0].check[1]", "Did you mean `list`?"]),
            ("CLAIM\ncheck = [\"list < 1\"]\nCLAIM\ncheck = [\"list < 1\"]\n", ["claims.toml:7: claim[1].id", "another claim P-CLM01"]),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.2 = { verdict = \"inconclusive\", because = \"\" }\n",
                ["claims.toml:6: claim[0].known.2", "no check 2"],
            ),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.1Q = { verdict = \"skipped\", because = \"\" }\n",
                ["claims.toml:6: claim[0].known.1Q", "there is no regime named `Q`"],
            ),
            (
                "CLAIM\nlet.a = \"T07/Linked List\"\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].let.a", "nothing uses the series `a`"],
            ),
            ("CLAIM\nregimes = [\"S\", \"s\"]\ncheck = [\"list < 1\"]\n", ["claims.toml:5: claim[0].regimes[1]", "`s`"]),
            ("CLAIM\nlet.a = { gird = \"g\" }\ncheck = [\"list < 1\"]\n", ["claims.toml:5: claim[0].let.a", "this has gird"]),
            (
                "CLAIM\nlet.a = { load = { queue = \"rr\" }, tasks = [1], mesure = \"examined\" }\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].let.a", "`mesure`. Did you mean `measure`?"],
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
