//! The claims of a paper: in our own words, as comparisons that can fail.

use super::binding::{Bindings, unused};
use super::citation::shown;
use super::expression::{Check, KnownSeries};
use super::fault::Fault;
use formats::toml_file::TomlFile;
use program::{Error, no_such};
use results::Verdict;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The content of `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The id: `P-CLM01`, ….
    pub id: String,
    /// The statement.
    pub says: String,
    /// The series in its checks.
    #[serde(default, rename = "let")]
    pub bindings: Bindings,
    /// Comparisons that hold if the claim does.
    #[serde(default)]
    pub check: Vec<String>,
    /// Whether the checks also apply to the printed numbers.
    #[serde(default = "yes")]
    pub in_print: bool,
    /// The paper's regimes to which it applies; all if absent.
    pub regimes: Option<Vec<String>>,
    /// The known verdict, if it is not `holds`, and its reason: by the number of the check,
    /// with the regime after it if necessary.
    #[serde(default)]
    pub known: BTreeMap<String, Known>,
    /// Why it is not measured.
    pub skipped: Option<String>,
    /// A remark for the reader.
    pub note: Option<String>,
    /// The comparisons, parsed.
    #[serde(skip)]
    pub checks: Vec<Check>,
}

fn yes() -> bool {
    true
}

/// A recorded verdict other than `holds`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub because: String,
}

impl Claim {
    /// Reads the claims in `file`, of a paper with these regimes. `known` returns what is known of
    /// series, or an error for a name that does not exist.
    ///
    /// # Errors
    /// A claim that cannot be checked: it has no comparison, or names something that does not
    /// exist.
    pub fn read(
        file: &TomlFile,
        regimes: &[String],
        known: impl Fn(&Bindings) -> Result<KnownSeries, Fault>,
    ) -> Result<Vec<Claim>, Error> {
        let Claims { claim: mut claims } = file.parse()?;
        for index in 0..claims.len() {
            let (before, rest) = claims.split_at_mut(index);
            let wrong =
                |(key, message): Fault| file.wrong(&format!("claim[{index}].{key}"), &message);
            let claim = &mut rest[0];
            if before.iter().any(|other| other.id == claim.id) {
                return Err(wrong((
                    "id".to_string(),
                    format!("there is another claim {}", claim.id),
                )));
            }
            claim.check(regimes).map_err(wrong)?;
            for known in claim.known.values_mut() {
                known.because = shown(&known.because);
            }
            let known = known(&claim.bindings).map_err(wrong)?;
            let read = |(place, text): (usize, &String)| {
                let key = format!("claim[{index}].check[{place}]");
                Check::parse(text, &known)
                    .map_err(|fault| file.wrong_within(&key, &fault.at, &fault.message))
            };
            claim.checks =
                claim.check.iter().enumerate().map(read).collect::<Result<_, Error>>()?;
            unused(&claim.bindings, |name| claim.checks.iter().any(|check| check.uses(name)))
                .map_or(Ok(()), |fault| Err(wrong(fault)))?;
        }
        Ok(claims)
    }

    /// The recorded verdict of a check, if it is not `holds`.
    pub fn known(&self, part: usize, regime: Option<&str>) -> Option<&Known> {
        let here = regime.and_then(|regime| self.known.get(&format!("{part}{regime}")));
        here.or_else(|| self.known.get(&part.to_string()))
    }

    /// Whether it applies to this regime.
    pub fn is_about(&self, regime: &str) -> bool {
        self.regimes.as_ref().is_none_or(|regimes| regimes.iter().any(|own| own == regime))
    }

    /// Checks that there is a comparison, and that recorded verdicts are of existing checks and
    /// regimes.
    fn check(&self, regimes: &[String]) -> Result<(), Fault> {
        if self.check.is_empty() == self.skipped.is_none() {
            let what = "needs either a threshold that could fail (`check`) or the reason why it \
                        is not measured (`skipped`)";
            return Err(("id".to_string(), format!("{} {what}", self.id)));
        }
        let no_regime =
            |wrong: &str| no_such("regime", wrong, regimes, "They stand in experiments.toml.");
        if let Some((index, wrong)) =
            self.regimes.iter().flatten().enumerate().find(|(_, regime)| !regimes.contains(regime))
        {
            return Err((format!("regimes[{index}]"), no_regime(wrong)));
        }
        for (part, known) in &self.known {
            let key = format!("known.{part}");
            let (number, regime) =
                part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
            if !number.parse().is_ok_and(|part: usize| (1..=self.check.len()).contains(&part)) {
                return Err((
                    key,
                    format!("there is no check {part} of {}; it has {}", self.id, self.check.len()),
                ));
            }
            if !regime.is_empty() && !regimes.iter().any(|one| one == regime) {
                return Err((key, no_regime(regime)));
            }
            if !Verdict::OF_CLAIMS.contains(&known.verdict) {
                let words = Verdict::OF_CLAIMS.map(Verdict::word).join(", ");
                return Err((
                    key,
                    format!("`{}` is no verdict on a claim; write {words}", known.verdict),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Known;

    fn complaint(text: &str) -> String {
        let text = text.replace(
            "CLAIM",
            "[[claim]]\nid = \"P-CLM01\"\nsays = \"it is flat\"\nlet.list = \"T07/Linked List\"",
        );
        let known = |bindings: &Bindings| {
            Ok(bindings.keys().map(|name| (name.clone(), Known::default())).collect())
        };
        Claim::read(&TomlFile::of("claims.toml", &text), &["S".to_string()], known)
            .map(|claims| format!("{} claims", claims.len()))
            .unwrap_or_else(|why| why.to_string())
    }

    #[test]
    fn a_claim_that_cannot_be_checked_is_refused_with_line_and_key() {
        assert_eq!(complaint("CLAIM\ncheck = [\"max(list) < 3\"]\n"), "1 claims");
        for (text, words) in [
            ("CLAIM\n", ["claims.toml:2: claim[0].id", "P-CLM01 needs either a threshold"]),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nskipped = \"no\"\n",
                ["claims.toml:2: claim[0].id", "needs either"],
            ),
            (
                "CLAIM\ncheck = [\"max(list)\"]\n",
                ["claims.toml:5: claim[0].check[0]", "expected <="],
            ),
            (
                "CLAIM\ncheck = [\n\"max(list) < 3\",\n\"last(lisp) < 3\"]\n",
                ["claims.toml:7: claim[0].check[1]", "Did you mean `list`?"],
            ),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nCLAIM\ncheck = [\"list < 1\"]\n",
                ["claims.toml:7: claim[1].id", "another claim P-CLM01"],
            ),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.2 = { verdict = \"undecided\", because = \
                 \"\" }\n",
                ["claims.toml:6: claim[0].known.2", "no check 2"],
            ),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.1Q = { verdict = \"untestable\", because = \
                 \"\" }\n",
                ["claims.toml:6: claim[0].known.1Q", "there is no regime named `Q`"],
            ),
            (
                "CLAIM\nlet.a = \"T07/Linked List\"\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].let.a", "nothing uses the series `a`"],
            ),
            (
                "CLAIM\nregimes = [\"S\", \"s\"]\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].regimes[1]", "`s`"],
            ),
            (
                "CLAIM\nlet.a = { gird = \"g\" }\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].let.a", "this has gird"],
            ),
            (
                "CLAIM\nlet.a = { load = { queue = \"rr\" }, tasks = [1], mesure = \"examined\" \
                 }\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].let.a", "`mesure`. Did you mean `measure`?"],
            ),
            (
                "CLAIM\ncheck = [\"list < 1\"]\nknown.1 = { verdict = \"better\", because = \"\" \
                 }\n",
                ["claims.toml:6: claim[0].known.1", "`better` is no verdict on a claim"],
            ),
            (
                "CLAIM\nchecks = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].checks", "Did you mean `check`?"],
            ),
            (
                "CLAIM\nlet.tree = 3\ncheck = [\"list < 1\"]\n",
                ["claims.toml:5: claim[0].let.tree", "T07/Linked List"],
            ),
        ] {
            let message = complaint(text);
            assert!(words.iter().all(|word| message.contains(word)), "{text}: {message}");
        }
    }
}
