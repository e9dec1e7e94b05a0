//! The measured and printed series of a claim, replicate by replicate.

use super::expression::Names;
use super::series::Series;
use results::Row;
use std::collections::BTreeMap;

/// One series for each replicate, or why there is none.
pub type Curves = Result<Vec<Series>, String>;

/// The evidence for a claim.
pub struct Evidence<'a> {
    /// The measured series of the claim, by name.
    pub curves: BTreeMap<&'a str, Curves>,
    /// The printed series.
    pub printed: BTreeMap<&'a str, Series>,
    /// The kind of replicates.
    pub replicates: Replicates,
    /// The regime, if there are several.
    pub regime: Option<&'a str>,
    /// The coordinates of a row about the claim.
    pub row: Row,
}

/// The kind of replicates of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicates {
    /// Complete experiments, each of which the claim is tested on, such as an assignment of levels.
    Each,
    /// Noisy runs; the claim is about their mean. The interval is the jackknife's: the numbers
    /// without each run.
    Mean,
}

/// The series of a claim in one replicate.
pub struct Replicate<'a> {
    /// The measured series.
    pub series: BTreeMap<&'a str, &'a Series>,
    /// The printed series.
    pub printed: &'a BTreeMap<&'a str, Series>,
}

impl Names for Replicate<'_> {
    fn series(&self, name: &str) -> Option<&Series> {
        self.series.get(name).copied()
    }

    fn printed(&self, name: &str) -> Option<&Series> {
        self.printed.get(name)
    }
}

impl Evidence<'_> {
    /// The measured series, replicate by replicate. Series without measurements are absent.
    pub fn replicates(&self) -> Vec<Replicate<'_>> {
        let usable =
            || self.curves.iter().filter_map(|(&name, curves)| Some((name, curves.as_ref().ok()?)));
        let count = usable().map(|(_, curves)| curves.len()).max().unwrap_or(0);
        let one = |index: usize| {
            usable()
                .filter(|(_, curves)| !curves.is_empty())
                .map(|(name, curves)| (name, &curves[index.min(curves.len() - 1)]))
                .collect()
        };
        (0..count).map(|index| Replicate { series: one(index), printed: &self.printed }).collect()
    }
}
