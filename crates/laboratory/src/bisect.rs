//! Finds where a number changes in a row of versions, with as few measurements as possible.
//!
//! As `git bisect`: the first version is good and the last is bad, and the middle of what is left
//! decides. A version that cannot be measured is skipped for its nearest neighbour. A number that
//! goes up and down has several changes, of which one is found.

use results::Better;

/// How a version is judged by its number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judge {
    /// What divides good numbers from bad ones.
    pub threshold: f64,
    /// Whether the bad ones are above it.
    pub bad_is_above: bool,
}

impl Judge {
    /// A judge by the numbers of a good and a bad version: their middle divides, or `threshold`.
    ///
    /// # Errors
    /// If the two are on the same side.
    pub fn between(
        good: f64,
        bad: f64,
        threshold: Option<f64>,
        better: Option<Better>,
    ) -> Result<Judge, String> {
        let threshold = threshold.unwrap_or(f64::midpoint(good, bad));
        let judge = Judge {
            threshold,
            bad_is_above: match better {
                Some(Better::Lower) => true,
                Some(Better::Higher) => false,
                _ => bad > good,
            },
        };
        if good == bad {
            return Err(format!("the good and the bad version have the same number, {good}"));
        }
        if judge.is_bad(good) || !judge.is_bad(bad) {
            let side = if judge.bad_is_above { "above" } else { "below" };
            return Err(format!(
                "bad is what is {side} {threshold}, but the good version has {good} and the bad \
                 one {bad}"
            ));
        }
        Ok(judge)
    }

    /// Whether a version with this number is bad.
    pub fn is_bad(&self, number: f64) -> bool {
        if self.bad_is_above { number > self.threshold } else { number < self.threshold }
    }
}

/// What a version showed.
#[derive(Clone, PartialEq, Debug)]
pub enum Shown {
    /// It was measured.
    Number(f64),
    /// It cannot be measured: why.
    Skipped(String),
}

/// A measured version.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Its place in the row.
    pub at: usize,
    /// What it showed.
    pub shown: Shown,
    /// Whether it is bad; none if it was skipped.
    pub is_bad: Option<bool>,
}

/// Where the number changes.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The last good version before it.
    pub last_good: usize,
    /// The first bad one after it. Versions between the two were skipped, and may have it.
    pub first_bad: usize,
    /// All measured versions, in the order of their measurement.
    pub steps: Vec<Step>,
}

/// Finds the change between version 0, whose number is `good`, and version `last`, whose number is
/// `bad`; `measure` measures those between.
///
/// # Errors
/// What `measure` gives up with.
pub fn bisect<E>(
    last: usize,
    judge: Judge,
    measure: &mut dyn FnMut(usize) -> Result<Shown, E>,
) -> Result<Change, E> {
    let (mut last_good, mut first_bad) = (0, last);
    let mut steps: Vec<Step> = Vec::new();
    while let Some(at) = next(last_good, first_bad, &steps) {
        let shown = measure(at)?;
        let is_bad = match shown {
            Shown::Number(number) => Some(judge.is_bad(number)),
            Shown::Skipped(_) => None,
        };
        match is_bad {
            Some(true) => first_bad = at,
            Some(false) => last_good = at,
            None => {}
        }
        steps.push(Step { at, shown, is_bad });
    }
    Ok(Change { last_good, first_bad, steps })
}

/// The version nearest to the middle of what is left that was not skipped.
fn next(last_good: usize, first_bad: usize, steps: &[Step]) -> Option<usize> {
    let is_skipped = |at: &usize| steps.iter().any(|step| step.at == *at);
    let middle = last_good.midpoint(first_bad);
    (last_good + 1..first_bad).filter(|at| !is_skipped(at)).min_by_key(|at| at.abs_diff(middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world of versions: each has its number, or does not boot.
    fn change(world: &[Option<f64>]) -> Change {
        let (good, bad) = (world[0].unwrap(), world[world.len() - 1].unwrap());
        let judge = Judge::between(good, bad, None, None).unwrap();
        let mut measure = |at: usize| -> Result<Shown, ()> {
            let panics = || Shown::Skipped("it panicked".to_string());
            Ok(world[at].map_or_else(panics, Shown::Number))
        };
        bisect(world.len() - 1, judge, &mut measure).unwrap()
    }

    /// The places of the change, and of the measured versions.
    fn found(world: &[Option<f64>]) -> (usize, usize, Vec<usize>) {
        let change = change(world);
        let measured = change.steps.iter().map(|step| step.at).collect();
        (change.last_good, change.first_bad, measured)
    }

    #[test]
    fn the_middle_decides() {
        let world = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0].map(Some);
        assert_eq!(found(&world), (5, 6, vec![4, 6, 5]));
        assert_eq!(found(&[Some(1.0), Some(2.0)]), (0, 1, vec![]));
    }

    #[test]
    fn a_version_that_does_not_boot_is_skipped_and_may_have_the_change() {
        let mut world = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0].map(Some);
        world[4] = None;
        assert_eq!(found(&world), (3, 5, vec![4, 3, 5]));
        let none_boots = [Some(1.0), None, None, Some(2.0)];
        assert_eq!(found(&none_boots), (0, 3, vec![1, 2]));
    }

    #[test]
    fn numbers_that_go_up_and_down_give_one_of_their_changes() {
        let world = [1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0, 2.0].map(Some);
        let (last_good, first_bad, _) = found(&world);
        assert_eq!((world[last_good], world[first_bad]), (Some(1.0), Some(2.0)));
        assert_eq!(first_bad, last_good + 1);
    }

    #[test]
    fn ends_that_do_not_differ_as_stated_are_refused() {
        let between = Judge::between;
        let middle = Judge { threshold: 2.0, bad_is_above: false };
        assert_eq!(between(3.0, 1.0, None, None), Ok(middle));
        assert!(between(1.0, 1.0, None, None).unwrap_err().contains("same number"));
        assert!(between(1.0, 2.0, Some(3.0), None).unwrap_err().contains("above 3"));
        assert!(between(1.0, 2.0, None, Some(Better::Higher)).unwrap_err().contains("below 1.5"));
        assert!(between(1.0, 2.0, None, Some(Better::Lower)).is_ok());
    }

    /// Every row of up to seven versions between a good and a bad one, each good, bad or not
    /// bootable.
    #[test]
    fn whatever_boots_and_whatever_the_numbers_one_change_is_found() {
        for between in 0..=7u32 {
            for number in 0..3usize.pow(between) {
                let state = |at: u32| [Some(1.0), Some(2.0), None][number / 3usize.pow(at) % 3];
                let ends = |end: f64| std::iter::once(Some(end));
                let world: Vec<Option<f64>> =
                    ends(1.0).chain((0..between).map(state)).chain(ends(2.0)).collect();
                let (last_good, first_bad, mut measured) = found(&world);
                assert_eq!((world[last_good], world[first_bad]), (Some(1.0), Some(2.0)));
                let left = &world[last_good + 1..first_bad];
                assert!(last_good < first_bad && left.iter().all(Option::is_none), "{world:?}");
                let count = measured.len();
                measured.sort_unstable();
                measured.dedup();
                assert_eq!(measured.len(), count, "one was measured twice: {world:?}");
                if world.iter().all(Option::is_some) {
                    assert!(count as u32 <= world.len().ilog2() + 1, "{world:?}");
                }
            }
        }
    }
}
