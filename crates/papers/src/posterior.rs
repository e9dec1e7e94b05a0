//! Verdicts over all readings that a text leaves open, where the paper has `posterior.csv`.
//!
//! A simulation at chosen inputs is one reading of a text. Where a posterior over its open inputs
//! was inferred, it judges. A check that holds under some readings and fails under others is
//! *undetermined by the text*, whatever it does at the chosen inputs. The rows keep the number at
//! these, and say beside it with what share of the posterior the check holds and fails.

use super::claim::Claim;
use program::{Error, no_such};
use results::{Row, Verdict};
use serde::Deserialize;

/// A check over the posterior: a row of `posterior.csv`.
#[derive(Clone, Debug, Deserialize)]
struct Judged {
    claim: String,
    part: usize,
    regime: String,
    check: String,
    /// The shares of the posterior in which it holds, and in which it fails.
    holds: f64,
    fails: f64,
    verdict: Standing,
}

/// How a check stands over the posterior.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Standing {
    Holds,
    DoesNotHold,
    /// The runs decide too little.
    Undecided,
    #[serde(rename = "undetermined by the text")]
    Undetermined,
}

impl Standing {
    fn verdict(self) -> Verdict {
        match self {
            Standing::Holds => Verdict::Holds,
            Standing::DoesNotHold => Verdict::DoesNotHold,
            Standing::Undecided | Standing::Undetermined => Verdict::Undecided,
        }
    }
}

impl Judged {
    /// Whether it is about the check of this row, in this regime or in another.
    fn is_about(&self, row: &Row) -> bool {
        row.text("claim") == self.claim
            && (self.regime == CLOSED_FORM || row.text("check") == self.check)
    }
}

/// The regime of what is computed and not simulated: it is about all checks of its claim.
const CLOSED_FORM: &str = "closed form";

/// Why a check that flips is undecided.
const UNDETERMINED: &str = "undetermined by the text";

/// The checks of a paper over its posterior; none if it has no `posterior.csv`.
#[derive(Clone, Debug, Default)]
pub struct Posterior {
    judged: Vec<Judged>,
}

impl Posterior {
    /// Reads `posterior.csv` of a paper with these claims and regimes.
    ///
    /// # Errors
    /// A row that is damaged, or that is about no check of `claims.toml`, with its line.
    pub fn read(
        path: &str,
        text: &str,
        claims: &[Claim],
        regimes: &[String],
    ) -> Result<Posterior, Error> {
        let mut judged: Vec<Judged> = Vec::new();
        for (index, row) in csv::Reader::from_reader(text.as_bytes()).deserialize().enumerate() {
            let at = |why: String| Error::Input(format!("{path}:{}: {why}", index + 2));
            let row: Judged = row.map_err(|error| at(error.to_string()))?;
            let claim = claims.iter().find(|claim| claim.id == row.claim);
            let own = claim.and_then(|claim| claim.check.get(row.part.wrapping_sub(1)));
            let is_closed_form = row.regime == CLOSED_FORM;
            if claim.is_none() || (!is_closed_form && own != Some(&row.check)) {
                return Err(at(format!(
                    "claims.toml has no check {} of {} that reads `{}`; judge the claims again",
                    row.part, row.claim, row.check
                )));
            }
            if !is_closed_form && !regimes.contains(&row.regime) {
                return Err(at(no_such("regime", &row.regime, regimes, "or `closed form`")));
            }
            let is_share = |share: f64| (0.0..=1.0).contains(&share);
            if !is_share(row.holds) || !is_share(row.fails) || row.holds + row.fails > 1.001 {
                return Err(at(format!(
                    "the shares {} and {} are no parts of a posterior",
                    row.holds, row.fails
                )));
            }
            judged.push(row);
        }
        Ok(Posterior { judged })
    }

    /// Puts the verdicts over the posterior into the rows of a claim, which have those at the
    /// chosen inputs.
    pub fn judge(&self, rows: &mut [Row]) {
        for row in rows.iter_mut() {
            let about = || self.judged.iter().filter(|judged| judged.is_about(row));
            let own = about().find(|judged| judged.regime == row.text("regime"));
            let Some(judged) = own.or_else(|| about().next()) else { continue };
            let at_inputs = row.verdict;
            let over = judged.verdict.verdict();
            // One reading cannot decide elsewhere what all readings together do not decide.
            let agrees = own.is_some() || at_inputs == Some(over);
            row.verdict = Some(if agrees { over } else { Verdict::Undecided });
            if judged.verdict == Standing::Undetermined || !agrees {
                row.reason = Some(UNDETERMINED.to_string());
            }
            let note = format!(
                "over the posterior of what the text leaves open{} it holds with {:.0} % and fails \
                 with {:.0} %{}; at our inputs: {}",
                if own.is_some() { String::new() } else { format!(" ({})", judged.regime) },
                100.0 * judged.holds,
                100.0 * judged.fails,
                if row.reason.is_some() { format!(", {UNDETERMINED}") } else { String::new() },
                at_inputs.map_or("", Verdict::word),
            );
            row.note = Some(match row.note.take() {
                Some(why) => format!("{note}; {why}"),
                None => note,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paper;
    use results::{Metric, World};

    const HEAD: &str =
        "claim,part,regime,check,posterior,holds,fails,value_5,value_50,value_95,verdict";

    fn row(regime: &str, verdict: Verdict) -> Row {
        Row { verdict: Some(verdict), ..Row::new(World::Sim, Metric::check) }
            .at("claim", "X-CLM01")
            .at("check", "a < 1")
            .at("regime", regime)
    }

    fn over(line: &str) -> Posterior {
        let mut reader = csv::Reader::from_reader(line.as_bytes());
        Posterior { judged: reader.deserialize().map(Result::unwrap).collect() }
    }

    /// The canary is the verdict at the chosen inputs: it must not come through.
    #[test]
    fn what_flips_over_the_posterior_is_undetermined_whatever_our_inputs_say() {
        let flips =
            over(&format!("{HEAD}\nX-CLM01,1,F,a < 1,all,0.6,0.4,0,1,2,undetermined by the text"));
        for at_inputs in [Verdict::Holds, Verdict::DoesNotHold, Verdict::Undecided] {
            let mut rows = [row("F", at_inputs), row("S", at_inputs)];
            flips.judge(&mut rows);
            for row in &rows {
                assert_eq!(row.verdict, Some(Verdict::Undecided));
                assert_eq!(row.reason.as_deref(), Some(UNDETERMINED));
            }
        }
        let fails = over(&format!("{HEAD}\nX-CLM01,1,F,a < 1,all,0.01,0.99,0,1,2,does-not-hold"));
        let mut rows =
            [row("F", Verdict::Holds), row("S", Verdict::Holds), row("S", Verdict::DoesNotHold)];
        fails.judge(&mut rows);
        assert_eq!(
            rows.each_ref().map(|row| row.verdict.unwrap()),
            [Verdict::DoesNotHold, Verdict::Undecided, Verdict::DoesNotHold],
            "in its regime it decides; elsewhere only where one reading agrees"
        );
        let whole = over(&format!("{HEAD}\nX-CLM01,1,closed form,b,all,1,0,0,1,2,holds"));
        let mut rows = [row("S", Verdict::Holds), row("S", Verdict::DoesNotHold)];
        whole.judge(&mut rows);
        let verdicts = rows.each_ref().map(|row| row.verdict.unwrap());
        assert_eq!(verdicts, [Verdict::Holds, Verdict::Undecided]);
        let mut other = [row("F", Verdict::Holds).at("check", "a < 2")];
        fails.judge(&mut other);
        assert_eq!(other[0].verdict, Some(Verdict::Holds), "it is about one check");
    }

    #[test]
    fn a_row_about_no_check_is_refused_with_its_line() {
        let paper = Paper::load("curran-stumm-1990").unwrap();
        let read = |line: &str| {
            let text = format!("{HEAD}\n{line}\n");
            Posterior::read("posterior.csv", &text, &paper.claims, &paper.regime_names())
                .map(|_| "fine".to_string())
                .unwrap_or_else(|why| why.to_string())
        };
        let check = &paper.claims[0].check[0];
        let id = &paper.claims[0].id;
        assert_eq!(read(&format!("{id},1,F,\"{check}\",all,0.5,0.5,0,1,2,holds")), "fine");
        for (line, words) in [
            (format!("{id},1,F,a < 1,all,0.5,0.5,0,1,2,holds"), "no check 1"),
            (format!("{id},0,F,a < 1,all,0.5,0.5,0,1,2,holds"), "no check 0"),
            (format!("{id},1,Q,\"{check}\",all,0.5,0.5,0,1,2,holds"), "no regime named `Q`"),
            ("X-CLM99,1,F,a < 1,all,0.5,0.5,0,1,2,holds".to_string(), "X-CLM99"),
            (format!("{id},1,F,\"{check}\",all,0.7,0.5,0,1,2,holds"), "0.7 and 0.5"),
            (format!("{id},1,F,\"{check}\",all,much,0.5,0,1,2,holds"), "invalid float"),
            (format!("{id},1,F,\"{check}\",all,0.5,0.5,0,1,2,better"), "better"),
        ] {
            let message = read(&line);
            assert!(
                message.starts_with("posterior.csv:2: ") && message.contains(words),
                "{line}: {message}"
            );
        }
    }

    /// The record has the verdicts over the posterior, not those at our inputs.
    #[test]
    fn the_record_is_judged_over_the_posterior() {
        let paper = Paper::load("curran-stumm-1990").unwrap();
        assert!(!paper.posterior.judged.is_empty());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = std::fs::read_to_string(root.join("papers/curran-stumm-1990/record.csv"));
        let rows: Vec<Row> = results::from_csv(&text.unwrap()).unwrap();
        let regimes = paper.regime_names();
        let mut seen = 0;
        for judged in paper.posterior.judged.iter().filter(|one| regimes.contains(&one.regime)) {
            let is_it = |row: &&Row| {
                row.text("claim") == judged.claim
                    && row.text("check") == judged.check
                    && row.text("regime") == judged.regime
            };
            let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no row of {judged:?}"));
            assert_eq!(row.verdict, Some(judged.verdict.verdict()), "{judged:?}");
            seen += 1;
        }
        assert!(seen > 100, "{seen}");
    }
}
