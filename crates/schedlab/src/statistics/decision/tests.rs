//! Each condition of the rule alone decides a case; the rule as a whole is measured on noise.

use super::*;
use schedsim::Random;

/// Sixteen pairs around 100: differences of `mean`, give or take `noise`.
fn comparison(mean: f64, noise: f64) -> Comparison {
    let wave = |run: u32| if run.is_multiple_of(2) { noise } else { -noise };
    let pairs = (0..16).map(|run| (100.0 + mean + wave(run), 100.0)).collect();
    Comparison { pairs, heavy_tailed: false, lower_is_better: true, margin: Margin::Share(0.02), replay: Replay::None }
}

fn decided(comparison: Comparison) -> (Verdict, Option<Reason>) {
    let decision = decide(&[comparison], 0.05)[0];
    (decision.verdict, decision.reason)
}

#[test]
fn a_large_and_steady_difference_is_decided_by_its_direction() {
    assert_eq!(decided(comparison(-10.0, 1.0)), (Verdict::Better, None));
    assert_eq!(decided(comparison(10.0, 1.0)), (Verdict::Worse, None));
    assert_eq!(decided(Comparison { lower_is_better: false, ..comparison(10.0, 1.0) }), (Verdict::Better, None));
    let effect = decide(&[comparison(-10.0, 1.0)], 0.05)[0].effect.unwrap();
    let (low, high) = effect.interval.unwrap();
    assert!((effect.size + 0.1).abs() < 1e-12 && low < -0.1 && -0.1 < high && high < -0.09, "{effect:?}");
}

#[test]
fn each_condition_alone_withholds_a_verdict() {
    assert_eq!(decided(comparison(10.0, 30.0)), (Verdict::Undecided, Some(Reason::Interval)));
    let replayed = |error| Comparison { replay: Replay::Share(error), ..comparison(10.0, 1.0) };
    assert_eq!(decided(replayed(0.11)), (Verdict::Undecided, Some(Reason::Replay(Some(0.11)))));
    assert_eq!(decided(replayed(0.09)).0, Verdict::Worse);
    // Two runs of sixteen without the difference: the interval excludes zero, and no test objects.
    let mut two = comparison(10.0, 1.0);
    two.pairs[3].0 = 100.0;
    assert_eq!(decided(two.clone()).0, Verdict::Worse, "one run is allowed");
    two.pairs[7].0 = 99.0;
    assert_eq!(decided(two), (Verdict::Undecided, Some(Reason::Sign(2, 16))));
    // A difference that stands alone, and not among a hundred.
    let mut close = comparison(3.0, 0.0);
    close.pairs.iter_mut().enumerate().for_each(|(run, pair)| pair.0 = if run == 0 { 150.0 } else { 100.5 + 10.0 * (run % 2) as f64 });
    let alone = decided(close.clone());
    assert_eq!(alone, (Verdict::Worse, None));
    let many: Vec<Comparison> = std::iter::once(close).chain((0..100).map(|_| comparison(0.1, 30.0))).collect();
    assert_eq!(decide(&many, 0.05)[0].reason, Some(Reason::Comparisons(101)));
}

#[test]
fn inside_the_margin_equivalent_wins_over_better() {
    assert_eq!(decided(comparison(-1.0, 0.1)), (Verdict::Equivalent, None));
    assert_eq!(decided(Comparison { margin: Margin::Share(0.001), ..comparison(-1.0, 0.1) }).0, Verdict::Better);
    assert_eq!(decided(Comparison { margin: Margin::Fixed(0.5), ..comparison(-1.0, 0.1) }).0, Verdict::Better);
    assert_eq!(decided(comparison(0.0, 0.0)).0, Verdict::Equivalent);
    let zeros = Comparison { pairs: vec![(0.0, 0.0); 16], ..comparison(0.0, 0.0) };
    assert_eq!(
        decide(&[zeros], 0.05)[0],
        Decision { verdict: Verdict::Equivalent, reason: None, effect: None },
        "no margin of zero is needed"
    );
}

#[test]
fn no_more_than_all_is_lost() {
    let effect = decide(&[comparison(-99.0, 30.0)], 0.05)[0].effect.unwrap();
    assert!(effect.interval.unwrap().0 == -1.0 && effect.size > -1.0, "{effect:?}");
}

#[test]
fn heavy_tails_are_decided_by_ranks() {
    // One run of sixteen is a hundred times as far off: it rules the mean, and not the ranks.
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
    assert_eq!(decided(Comparison { heavy_tailed: true, ..few(4) }), (Verdict::Undecided, Some(Reason::Runs(4))));
    assert_eq!(decided(Comparison { replay: Replay::Unknown, ..comparison(10.0, 1.0) }), (Verdict::Undecided, Some(Reason::NotRecorded)));
}

#[test]
fn of_sixteen_errors_the_second_largest_is_the_replays() {
    let errors: Vec<f64> = (1..=16).map(f64::from).rev().collect();
    assert_eq!(error_of_replay(&errors), Some(15.0));
    assert_eq!(error_of_replay(&errors[..10]), Some(15.0), "nine of the ten from 7 to 16 are at most 15");
    assert_eq!(error_of_replay(&[3.0]), Some(3.0));
    assert_eq!(error_of_replay(&[]), None);
}

#[test]
fn a_reason_is_a_sentence() {
    let words = |reason: Reason| reason.to_string();
    assert_eq!(words(Reason::Replay(Some(0.0612))), "within the replay's error of 6.1 %");
    assert_eq!(words(Reason::Sign(3, 16)), "3 of 16 runs do not show it");
    assert_eq!(words(Reason::Comparisons(84)), "not beyond chance among 84 comparisons");
    assert_eq!(words(Reason::Runs(1)), "one run decides nothing");
}

/// A table of 40 rows, half of them heavy-tailed, of the same against the same: seldom is any row called better or worse. The same table with one true difference of two
/// standard deviations has it right nearly always.
#[test]
fn noise_is_not_decided_and_what_is_there_is_found() {
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
                Comparison { pairs, heavy_tailed, lower_is_better: true, margin: Margin::Share(1e-6), replay: Replay::None }
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
