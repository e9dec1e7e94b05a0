//! Finds the length of the warm-up of a run: MSER-5 (White 1997; Franklin & White 2008).
//!
//! The response ratios of tasks, in order of arrival, are averaged in batches of five. The warm-up
//! ends where removing the batches before it minimises the standard error of the mean of the rest,
//! computed from the variance between batches. If that lies beyond the middle, the run is too short
//! to decide, and the middle is taken, as White advises.

use schedsim::Time;
use schedsim::trace::{Event, EventKind, Observer};

const BATCH: usize = 5;

/// Follows the response ratio of each of the first tasks to arrive.
pub struct ResponseRatios {
    /// By id: when the task arrived, and its place in the order of arrival. Ids are used again.
    alive: Vec<(Time, usize)>,
    /// By order of arrival; zero until a task has left.
    ratios: Vec<f64>,
    born: usize,
    wanted: usize,
}

impl ResponseRatios {
    /// For `tasks` tasks.
    pub fn new(tasks: u64) -> ResponseRatios {
        ResponseRatios { alive: Vec::new(), ratios: Vec::new(), born: 0, wanted: tasks as usize }
    }

    /// How many tasks to remove; none if some had not left when the run ended.
    pub fn mser5(&self) -> u64 {
        let left: Vec<f64> = self.ratios.iter().copied().filter(|&ratio| ratio > 0.0).collect();
        let means: Vec<f64> = left
            .chunks_exact(BATCH)
            .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
            .collect();
        (truncation(&means) * BATCH) as u64
    }
}

/// How many of `batches` to remove.
fn truncation(batches: &[f64]) -> usize {
    // From the end, so that each sum is that of the rest.
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (0, f64::INFINITY);
    for (from, value) in batches.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        let n = (batches.len() - from) as f64;
        let error = (squares - sum * sum / n) / (n * n);
        if from <= batches.len() / 2 && error <= best.1 {
            best = (from, error);
        }
    }
    best.0
}

impl Observer for ResponseRatios {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::JobRelease { task } => {
                    if self.alive.len() <= task.index() {
                        self.alive.resize(task.index() + 1, (Time::ZERO, 0));
                    }
                    self.alive[task.index()] = (event.time, self.born);
                    self.born += 1;
                    if self.born <= self.wanted {
                        self.ratios.push(0.0);
                    }
                }
                EventKind::JobComplete { task, demand } => {
                    let (came, number) = self.alive[task.index()];
                    if let Some(ratio) = self.ratios.get_mut(number) {
                        *ratio = event.time.since(came).0 as f64 / demand.0.max(1) as f64;
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transient_is_cut_off_and_a_steady_series_is_not() {
        // Up and down by one around 10, after a start that falls from 100.
        let steady = |index: usize| 10.0 + if index.is_multiple_of(2) { 1.0 } else { -1.0 };
        let series: Vec<f64> = (0..200)
            .map(|index| if index < 30 { 100.0 - 3.0 * index as f64 } else { steady(index) })
            .collect();
        assert_eq!(truncation(&series), 30);
        let series: Vec<f64> = (0..200).map(steady).collect();
        assert!(truncation(&series) <= 1);
        // Never steady: not more than half.
        let series: Vec<f64> = (0..200).map(|index| index as f64).collect();
        assert_eq!(truncation(&series), 100);
        assert_eq!(truncation(&[]), 0);
    }
}
