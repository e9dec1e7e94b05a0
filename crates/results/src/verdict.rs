//! What was decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What was decided about a number: of a candidate against its baseline, of two runs, or of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate is better than the baseline.
    Better,
    /// It is worse.
    Worse,
    /// Both are the same.
    Equivalent,
    /// The difference is within the error.
    Undecided,
    /// Two runs are not the same; neither is better.
    Different,
    /// The claim holds.
    Reproduced,
    /// It does not hold.
    NotReproduced,
    /// The numbers do not decide the claim.
    Inconclusive,
    /// The claim was not tested.
    Skipped,
}

impl Verdict {
    /// Those on a claim, in the order in which they are counted.
    pub const OF_CLAIMS: [Verdict; 4] = [Verdict::Reproduced, Verdict::NotReproduced, Verdict::Inconclusive, Verdict::Skipped];

    /// The word for it in results.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
            Verdict::Different => "different",
            Verdict::Reproduced => "reproduced",
            Verdict::NotReproduced => "not-reproduced",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_a_file_is_the_word_in_a_table() {
        use Verdict::{Better, Different, Equivalent, Undecided, Worse};
        for verdict in [Better, Worse, Equivalent, Undecided, Different].into_iter().chain(Verdict::OF_CLAIMS) {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.word());
        }
    }
}
