//! What a round of an event loop costs beside its handlers: the wait itself, timers, a program's own
//! housekeeping.
//!
//! A read or write costs as much as usual where it is not the first action of a round. The work
//! before that, and behind the last, is the round's too. So the work of a round is its time less
//! what its reads and writes usually cost, each by its object. A replay that batches differently
//! pays it as often as it has rounds. If it may be chance, by the sign test at 99 %, a round costs
//! nothing.

use super::{carrier, taken_from};
use crate::Nanos;
use crate::workload::replay::carriers::Carrier;
use crate::workload::{Action, Operation, Step};
use std::collections::BTreeMap;

/// The standard normal deviate of a 99 % interval.
const DEVIATE: f64 = 2.576;

/// Takes the work of a round off the steps of a loop, and returns it. What one round is too short for
/// is taken off the next.
pub(super) fn take_off(steps: &mut [Step]) -> Nanos {
    let rounds = rounds(steps);
    let edges = rounds.iter().map(|round| round.at_edges as i64).collect();
    let work = of(&rounds).min(median(edges)) as u64;
    let mut due = 0;
    let mut is_begun = true;
    for (number, step) in steps.iter_mut().enumerate() {
        let Action::Do(operation) = step.then else { continue };
        let is_wait = matches!(operation, Operation::Serve(_));
        if number > 0 && (is_wait || !is_begun && carrier(operation).is_some()) {
            let taken = step.run.0.min(due);
            step.run.0 -= taken;
            due -= taken;
            is_begun = true;
        }
        if is_wait {
            due += work;
            is_begun = false;
        }
    }
    Nanos(work)
}

/// A round: between two waits.
#[derive(Default)]
struct Round {
    time: u64,
    /// Of its time what is before the first thing it does, and behind the last.
    at_edges: u64,
    /// What it reads and writes, and the time before.
    calls: Vec<(Call, u64)>,
}

/// The object of a call, and whether it reads.
type Call = (Carrier, bool);

/// All complete rounds of a loop.
fn rounds(steps: &[Step]) -> Vec<Round> {
    let mut rounds = Vec::new();
    let (mut round, mut run) = (Round::default(), 0);
    for step in steps.iter().skip(1) {
        run += step.run.0;
        let Action::Do(operation) = step.then else { continue };
        let is_wait = matches!(operation, Operation::Serve(_));
        let object = carrier(operation);
        if is_wait || object.is_some() {
            let is_first = round.calls.is_empty();
            round.time += run;
            if is_wait || is_first {
                round.at_edges += run;
            }
            if let Some(object) = object {
                round.calls.push(((object, taken_from(operation).is_some()), run));
            }
            run = 0;
        }
        if is_wait {
            rounds.push(std::mem::take(&mut round));
        }
    }
    rounds
}

/// The work of a round.
fn of(rounds: &[Round]) -> i64 {
    let mut usual: BTreeMap<Call, Vec<i64>> = BTreeMap::new();
    for (call, time) in rounds.iter().flat_map(|round| round.calls.iter().skip(1)) {
        usual.entry(*call).or_default().push(*time as i64);
    }
    let usual: BTreeMap<Call, i64> =
        usual.into_iter().map(|(call, times)| (call, median(times))).collect();
    // By what a round does first. Calls of different objects are different, and what lies between two
    // of them may be either's: a round's work is there whatever it does first.
    let mut beyond: BTreeMap<Call, Vec<i64>> = BTreeMap::new();
    for Round { time, calls, .. } in rounds {
        let times = calls.iter().map(|(call, _)| usual.get(call).copied());
        // Of one that is always first it is not known.
        let work = times.sum::<Option<i64>>().map_or(0, |sum| *time as i64 - sum);
        if let Some((first, _)) = calls.first() {
            beyond.entry(*first).or_default().push(work);
        }
    }
    let mut all: Vec<i64> = beyond.values().flatten().copied().collect();
    all.sort_unstable();
    let n = all.len() as f64;
    let lowest = ((n - DEVIATE * n.sqrt()) / 2.0).floor();
    if lowest < 0.0 || all.get(lowest as usize).is_none_or(|least| *least <= 0) {
        return 0;
    }
    let mut work: Vec<i64> = beyond.into_values().map(median).collect();
    work.sort_unstable();
    work[(work.len() - 1) / 4].max(0)
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::workload::{Call, Until};

    /// Rounds of these sizes, in which each object costs what `each` says, and the round `work`.
    fn steps(sizes: &[u32], work: u64, mut each: impl FnMut() -> u64) -> Vec<Step> {
        let step = |run, operation| Step { run: Nanos(run), then: Action::Do(operation) };
        let mut steps = vec![step(7, Operation::Serve(0))];
        for (&size, first) in sizes.iter().zip(0..) {
            let mut run = work / 2;
            for number in 0..size {
                let pipe = (number + first) % 40;
                let read =
                    Operation::Read { pipe, bytes: 1, until: Until::Any, call: Call::Begins };
                steps.push(step(run + each(), read));
                run = 0;
            }
            steps.push(step(work - work / 2, Operation::Serve(0)));
        }
        steps
    }

    fn time(steps: &[Step]) -> u64 {
        steps.iter().map(|step| step.run.0).sum()
    }

    #[test]
    fn the_work_of_a_round_is_found_and_taken_off() {
        let sizes: Vec<u32> = (0..60).map(|round| if round % 9 == 0 { 40 } else { 1 }).collect();
        let mut all = steps(&sizes, 3_000, || 5_000);
        let before = time(&all);
        assert_eq!(take_off(&mut all), Nanos(3_000));
        assert_eq!(before - time(&all), 60 * 3_000);
        assert!(rounds(&all).iter().all(|round| round.time == 5_000 * round.calls.len() as u64));
    }

    #[test]
    fn rounds_that_cost_nothing_or_cannot_tell_are_left_alone() {
        let mut random = Random::new(1);
        let mixed: Vec<u32> = (0..200).map(|round| 1 + round % 7).collect();
        for (sizes, work) in
            [(&mixed[..], 0), (&[1; 50][..], 3_000), (&[3, 1][..], 0), (&[][..], 0)]
        {
            let mut all = steps(sizes, work, || 2_000 + random.below(6_000));
            let before = all.clone();
            assert_eq!((take_off(&mut all), &all), (Nanos::ZERO, &before));
        }
    }

    #[test]
    fn it_is_found_among_objects_that_cost_different_amounts() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let sizes: Vec<u32> = (0..300).map(|_| 1 + random.below(12) as u32).collect();
            let mut all = steps(&sizes, 4_000, || 3_000 + random.below(4_000));
            let Nanos(work) = take_off(&mut all);
            assert!((2_500..=4_500).contains(&work), "seed {seed}: {work} ns");
        }
    }
}
