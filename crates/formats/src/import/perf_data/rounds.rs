//! Sorts samples by time.
//!
//! perf writes the ring buffers of the CPUs one after another and marks the end of each such round.
//! No sample of a round is later than any sample of the round after the next. So perf passes on
//! what is not later than the latest of the round before. But a hypervisor may stop a CPU between
//! reading the clock and writing the sample, which then comes a round later. So here samples wait
//! for one round more. Memory holds the samples of three rounds.

use std::mem;

use crate::import::bytes::Bytes;
use crate::import::record::Current;
use schedsim::CpuId;

/// Samples that wait for their position in time.
#[derive(Default)]
pub(super) struct Rounds {
    /// Sorted by time up to the end of the last round, then in file order.
    waiting: Vec<Waiting>,
    /// Their fields.
    fields: Vec<u8>,
    /// The previous buffers of [`waiting`](Self::waiting) and [`fields`](Self::fields), kept to
    /// reuse their memory.
    spare: (Vec<Waiting>, Vec<u8>),
    /// The latest time of the two rounds before, the older one first, and of all rounds so far.
    before: [u64; 2],
    latest: u64,
}

/// A sample of a tracepoint, without its fields.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    pub time: u64,
    pub cpu: CpuId,
    pub current: Option<Current>,
    /// The tracepoint's event index.
    pub event: usize,
    /// The byte offset in the file.
    pub place: u64,
}

struct Waiting {
    stamp: Stamp,
    start: usize,
    length: usize,
}

impl Rounds {
    /// Adds a sample.
    #[inline]
    pub fn insert(&mut self, stamp: Stamp, fields: &[u8]) {
        let start = self.fields.len();
        self.fields.extend_from_slice(fields);
        self.latest = self.latest.max(stamp.time);
        self.waiting.push(Waiting { stamp, start, length: fields.len() });
    }

    /// Ends a round: passes ready samples to `take` in order of time; equal times keep the order of
    /// the file.
    pub fn finish_round<E>(
        &mut self,
        big_endian: bool,
        take: impl FnMut(Stamp, Bytes<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let [until, newer] = self.before;
        self.before = [newer, self.latest];
        self.release(until, big_endian, take)
    }

    /// Passes on all remaining samples.
    pub fn finish<E>(
        &mut self,
        big_endian: bool,
        take: impl FnMut(Stamp, Bytes<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.release(u64::MAX, big_endian, take)
    }

    fn release<E>(
        &mut self,
        until: u64,
        big_endian: bool,
        mut take: impl FnMut(Stamp, Bytes<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // The samples of each CPU are already sorted, so this sort merges.
        self.waiting.sort_by_key(|waiting| waiting.stamp.time);
        let (mut waiting, mut fields) = mem::take(&mut self.spare);
        for Waiting { stamp, start, length } in self.waiting.drain(..) {
            let own = self.fields.get(start..start.saturating_add(length)).unwrap_or_default();
            if stamp.time <= until {
                take(stamp, Bytes::new(own, big_endian))?;
            } else {
                let start = fields.len();
                fields.extend_from_slice(own);
                waiting.push(Waiting { stamp, start, length });
            }
        }
        self.fields.clear();
        mem::swap(&mut self.waiting, &mut waiting);
        mem::swap(&mut self.fields, &mut fields);
        self.spare = (waiting, fields);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` ends a round.
    fn order(samples: &[Option<u64>]) -> (Vec<(u64, u64)>, usize) {
        let mut rounds = Rounds::default();
        let (mut taken, mut most) = (Vec::new(), 0);
        let mut take = |stamp: Stamp, fields: Bytes<'_>| -> Result<(), ()> {
            assert_eq!(fields.unsigned(0, 8), Some(stamp.place), "each with its own fields");
            taken.push((stamp.time, stamp.place));
            Ok(())
        };
        for (place, time) in (0..).zip(samples) {
            match *time {
                Some(time) => rounds.insert(
                    Stamp { time, cpu: CpuId(0), current: None, event: 0, place },
                    &place.to_le_bytes(),
                ),
                None => rounds.finish_round(false, &mut take).unwrap(),
            }
            most = most.max(rounds.waiting.len());
        }
        rounds.finish(false, &mut take).unwrap();
        (taken, most)
    }

    #[test]
    fn samples_are_sorted_by_time_and_equal_times_keep_the_order_of_the_file() {
        let (taken, _) = order(&[
            Some(1),
            Some(3),
            Some(2),
            None,
            Some(3),
            Some(5),
            Some(4),
            None,
            Some(6),
            None,
        ]);
        assert_eq!(taken, [(1, 0), (2, 2), (3, 1), (3, 4), (4, 6), (5, 5), (6, 8)]);
    }

    /// A CPU stopped between reading the clock and writing the sample.
    #[test]
    fn a_sample_that_comes_a_round_too_late_has_its_place() {
        let (taken, _) = order(&[Some(5), None, Some(8), None, Some(4), Some(9), None]);
        assert_eq!(taken.iter().map(|taken| taken.0).collect::<Vec<_>>(), [4, 5, 8, 9]);
    }

    #[test]
    fn memory_holds_three_rounds_and_not_the_file() {
        // Two CPUs, 10 samples of each per round.
        let round = |number: u64| {
            (0..2)
                .flat_map(move |cpu| (0..10).map(move |index| Some(number * 10 + index + cpu)))
                .chain([None])
        };
        let (taken, most) = order(&(0..1000).flat_map(round).collect::<Vec<_>>());
        assert!(taken.is_sorted() && taken.len() == 20_000);
        assert!(most <= 60, "{most}");
    }
}
