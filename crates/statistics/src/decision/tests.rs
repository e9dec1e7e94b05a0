//! Each condition of the rule alone prevents a verdict; the complete rule is measured on noise.

use super::*;
use schedsim::Random;

/// Sixteen pairs around 100: differences of `mean`, plus or minus `noise`.
fn comparison(mean: f64, noise: f64) -> Comparison {
    let wave = |run: u32| if run.is_multiple_of(2) { noise } else { -noise };
    let pairs = (0..16).map(|run| (100.0 + mean + wave(run), 100.0)).collect();
    Comparison {
        pairs,
        heavy_tailed: false,
        lower_is_better: true,
        margin: Margin::Share(0.02),
        replay: Replay::None,
    }
}

fn decided(comparison: Comparison) -> (Verdict, Option<Reason>) {
    let decision = decide(&[comparison], 0.05)[0];
    (decision.verdict, decision.reason)
}

#[test]
fn a_large_and_steady_difference_is_decided_by_its_direction() {
    assert_eq!(decided(comparison(-10.0, 1.0)), (Verdict::Better, None));
    assert_eq!(decided(comparison(10.0, 1.0)), (Verdict::Worse, None));
    assert_eq!(
        decided(Comparison { lower_is_better: false, ..comparison(10.0, 1.0) }),
        (Verdict::Better, None)
    );
    let effect = decide(&[comparison(-10.0, 1.0)], 0.05)[0].effect.unwrap();
    let (low, high) = effect.interval.unwrap();
    assert!(
        (effect.size + 0.1).abs() < 1e-12 && low < -0.1 && -0.1 < high && high < -0.09,
        "{effect:?}"
    );
}

#[test]
fn each_condition_alone_prevents_a_verdict() {
    assert_eq!(decided(comparison(10.0, 30.0)), (Verdict::Undecided, Some(Reason::Interval)));
    let replayed = |error| Comparison { replay: Replay::Share(error), ..comparison(10.0, 1.0) };
    assert_eq!(decided(replayed(0.11)), (Verdict::Undecided, Some(Reason::Replay(Some(0.11)))));
    assert_eq!(decided(replayed(0.09)).0, Verdict::Worse);
    // Two runs of sixteen lack the difference: the interval excludes zero and both tests pass.
    let mut two = comparison(10.0, 1.0);
    two.pairs[3].0 = 100.0;
    assert_eq!(decided(two.clone()).0, Verdict::Worse, "one run is allowed");
    two.pairs[7].0 = 99.0;
    assert_eq!(decided(two), (Verdict::Undecided, Some(Reason::Sign(2, 16))));
    // A difference that is significant alone, but not among a hundred comparisons.
    let mut close = comparison(3.0, 0.0);
    close.pairs.iter_mut().enumerate().for_each(|(run, pair)| {
        pair.0 = if run == 0 { 150.0 } else { 100.5 + 10.0 * (run % 2) as f64 }
    });
    let alone = decided(close.clone());
    assert_eq!(alone, (Verdict::Worse, None));
    let many: Vec<Comparison> =
        std::iter::once(close).chain((0..100).map(|_| comparison(0.1, 30.0))).collect();
    assert_eq!(decide(&many, 0.05)[0].reason, Some(Reason::Comparisons(101)));
}

#[test]
fn inside_the_margin_the_verdict_is_equivalent_and_not_better() {
    assert_eq!(decided(comparison(-1.0, 0.1)), (Verdict::Equivalent, None));
    assert_eq!(
        decided(Comparison { margin: Margin::Share(0.001), ..comparison(-1.0, 0.1) }).0,
        Verdict::Better
    );
    assert_eq!(
        decided(Comparison { margin: Margin::Fixed(0.5), ..comparison(-1.0, 0.1) }).0,
        Verdict::Better
    );
    assert_eq!(decided(comparison(0.0, 0.0)).0, Verdict::Equivalent);
    let zeros = Comparison { pairs: vec![(0.0, 0.0); 16], ..comparison(0.0, 0.0) };
    assert_eq!(
        decide(&[zeros], 0.05)[0],
        Decision {
            verdict: Verdict::Equivalent,
            reason: None,
            difference: Some(Effect { size: 0.0, interval: Some((0.0, 0.0)) }),
            effect: None
        },
        "no margin of zero is needed"
    );
}

#[test]
fn a_loss_is_at_most_the_baseline() {
    let effect = decide(&[comparison(-99.0, 30.0)], 0.05)[0].effect.unwrap();
    assert!(effect.interval.unwrap().0 == -1.0 && effect.size > -1.0, "{effect:?}");
}

#[test]
fn heavy_tails_are_decided_by_ranks() {
    // One run of sixteen is a hundred times as far off: it dominates the mean, but not the ranks.
    let mut tailed = comparison(10.0, 1.0);
    tailed.pairs[5].0 = -5_000.0;
    assert_eq!(decided(tailed.clone()).0, Verdict::Undecided);
    let by_ranks = Comparison { heavy_tailed: true, ..tailed };
    assert_eq!(decided(by_ranks.clone()), (Verdict::Worse, None));
    let effect = decide(&[by_ranks], 0.05)[0].effect.unwrap();
    assert!((effect.size - 0.1).abs() < 0.02, "{effect:?}");
}

#[test]
fn too_few_runs_decide_nothing() {
    let few = |runs: usize| {
        let full = comparison(10.0, 1.0);
        Comparison { pairs: full.pairs[..runs].to_vec(), ..full }
    };
    assert_eq!(decided(few(0)), (Verdict::Undecided, Some(Reason::Runs(0))));
    assert_eq!(decided(few(1)), (Verdict::Undecided, Some(Reason::Runs(1))));
    assert_eq!(
        decided(Comparison { heavy_tailed: true, ..few(4) }),
        (Verdict::Undecided, Some(Reason::Runs(4)))
    );
    assert_eq!(
        decided(Comparison { replay: Replay::Unknown, ..comparison(10.0, 1.0) }),
        (Verdict::Undecided, Some(Reason::NotRecorded))
    );
}

#[test]
fn the_error_of_a_replay_is_the_second_largest_of_sixteen() {
    let errors: Vec<f64> = (1..=16).map(f64::from).rev().collect();
    assert_eq!(error_of_replay(&errors), Some(15.0));
    assert_eq!(
        error_of_replay(&errors[..10]),
        Some(15.0),
        "nine of the ten from 7 to 16 are at most 15"
    );
    assert_eq!(error_of_replay(&[3.0]), Some(3.0));
    assert_eq!(error_of_replay(&[]), None);
}

#[test]
fn a_reason_is_a_sentence() {
    let words = |reason: Reason| reason.to_string();
    assert_eq!(words(Reason::Replay(Some(0.0612))), "within the replay's error of 6.1 %");
    assert_eq!(words(Reason::Sign(3, 16)), "3 of 16 runs do not show it");
    assert_eq!(words(Reason::Comparisons(84)), "not beyond chance among 84 comparisons");
    assert_eq!(words(Reason::Runs(1)), "one run is too few");
}

/// A table of 40 rows, half of them heavy-tailed, that compares a policy with itself: rarely is any
/// row called better or worse. The same table with one true difference of two standard deviations
/// finds it nearly always.
#[test]
fn noise_gets_no_verdict_and_a_true_difference_gets_one() {
    let mut random = Random::new(11);
    let mut uniform = move || (random.below(1 << 32) as f64 + 0.5) / (1u64 << 32) as f64;
    let mut draw = |heavy: bool| {
        let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        if heavy { (1.5 * normal).exp() } else { 100.0 + normal }
    };
    let (mut wrong, mut found) = (0, 0);
    for _ in 0..200 {
        let mut table: Vec<Comparison> = (0..40)
            .map(|row| {
                let heavy_tailed = row % 2 == 1;
                let pairs = (0..16).map(|_| (draw(heavy_tailed), draw(heavy_tailed))).collect();
                Comparison {
                    pairs,
                    heavy_tailed,
                    lower_is_better: true,
                    margin: Margin::Share(1e-6),
                    replay: Replay::None,
                }
            })
            .collect();
        let is_decided = |decision: &Decision| decision.verdict != Verdict::Undecided;
        wrong += usize::from(decide(&table, 0.05).iter().any(is_decided));
        table[0].pairs.iter_mut().for_each(|pair| pair.0 += 4.0);
        found += usize::from(decide(&table, 0.05)[0].verdict == Verdict::Worse);
    }
    assert!(wrong <= 10, "{wrong} of 200 tables have a false verdict");
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn a_difference_of_ten_baselines_or_more_has_no_share() {
    let decided = |base: f64, difference: f64| {
        let pairs =
            (0..16).map(|run| (base + difference + 0.01 * f64::from(run % 3), base)).collect();
        let comparison = Comparison {
            pairs,
            heavy_tailed: false,
            lower_is_better: true,
            margin: Margin::Share(0.02),
            replay: Replay::None,
        };
        decide(&[comparison], 0.05)[0]
    };
    let near_nothing = decided(1.0, 20.0);
    assert_eq!((near_nothing.verdict, near_nothing.effect), (Verdict::Worse, None));
    let difference = near_nothing.difference.expect("a difference");
    assert!(
        (difference.size - 20.01).abs() < 0.01
            && difference.interval.is_some_and(|(low, high)| low > 19.9 && high < 20.1)
    );
    assert!(decided(0.0, 5.0).effect.is_none() && decided(0.0, 5.0).difference.is_some());
    assert!(decided(1.0, 9.0).effect.is_some_and(|effect| (effect.size - 9.01).abs() < 0.01));
}
