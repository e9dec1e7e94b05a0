//! The verdict of a comparison or a claim.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// The verdict on a candidate against its baseline, on two runs, or on a claim.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// The candidate is better than the baseline.
    Better,
    /// The candidate is worse than the baseline.
    Worse,
    /// Candidate and baseline are equivalent within the margin.
    Equivalent,
    /// The data does not decide the comparison, or the claim.
    Undecided,
    /// Two runs differ; neither is better.
    Different,
    /// The claim holds.
    Holds,
    /// The claim does not hold.
    DoesNotHold,
    /// The claim could not be tested here; the reason stands beside it.
    Untestable,
}

impl Verdict {
    /// The verdicts on claims, in the order in which tables count them.
    pub const OF_CLAIMS: [Verdict; 4] =
        [Verdict::Holds, Verdict::DoesNotHold, Verdict::Undecided, Verdict::Untestable];

    /// The word in results.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_table_use_the_same_word() {
        use Verdict::{Better, Different, Equivalent, Worse};
        for verdict in [Better, Worse, Equivalent, Different].into_iter().chain(Verdict::OF_CLAIMS)
        {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.word());
        }
    }
}
