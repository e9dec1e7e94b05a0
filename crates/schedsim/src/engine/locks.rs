//! The locks of ready queues, and the CPUs that make scheduling decisions.
//!
//! A decision holds the lock of its task's queue. CPUs that want the same lock spin, and each of
//! them slows down the hand-over of the lock. Their reads are on the bus that the holder's write
//! needs (Anderson 1990). Wendorf (1987) therefore lets few processors decide. At most that many
//! decisions are under way at a time. The other CPUs wait for one of them without spinning.

use crate::{CpuId, Machine, Nanos, Time};
use std::collections::VecDeque;

/// The locks and the deciders of a machine whose locks are held for some time.
#[derive(Debug)]
pub(super) struct Locks {
    /// When each decision under way at a queue ends, in order.
    queues: Vec<VecDeque<Time>>,
    /// When each decider is free; empty if every CPU decides for itself.
    deciders: Vec<Time>,
}

impl Locks {
    /// `None` if holding a lock takes no time.
    pub(super) fn new(machine: &Machine) -> Option<Locks> {
        let deciders = machine.deciders.map_or(0, |deciders| usize::from(deciders.get()));
        (machine.lock_hold > Nanos::ZERO).then(|| Locks {
            queues: vec![VecDeque::new(); usize::from(machine.cpus)],
            deciders: vec![Time::ZERO; deciders],
        })
    }

    /// A decision that begins now and holds the lock of `queue` for `hold`, longer by `contention`
    /// for each decision that it finds there. Returns when it ends.
    pub(super) fn decide(&mut self, now: Time, queue: CpuId, hold: Nanos, contention: f64) -> Time {
        let decider = self.deciders.iter_mut().min();
        let start = decider.as_ref().map_or(now, |free| now.max(**free));
        let held = &mut self.queues[queue.index()];
        while held.front().is_some_and(|&end| end <= now) {
            held.pop_front();
        }
        let ahead = held.iter().filter(|&&end| end > start).count();
        let longer = if contention > 0.0 && ahead > 0 {
            Nanos((hold.0 as f64 * contention * ahead as f64) as u64)
        } else {
            Nanos::ZERO
        };
        let end = held.back().map_or(start, |&last| start.max(last)) + hold + longer;
        held.push_back(end);
        if let Some(free) = decider {
            *free = end;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;

    /// When decisions of one queue end that all begin at 0 and hold its lock for 100.
    fn ends(deciders: Option<u16>, contention: f64, decisions: usize) -> Vec<u64> {
        let machine = Machine {
            lock_hold: Nanos(100),
            deciders: deciders.and_then(NonZero::new),
            ..Machine::ideal(4)
        };
        let mut locks = Locks::new(&machine).unwrap();
        (0..decisions)
            .map(|_| locks.decide(Time::ZERO, CpuId(0), machine.lock_hold, contention).0)
            .collect()
    }

    #[test]
    fn who_spins_slows_the_lock_and_few_deciders_spin_little() {
        assert_eq!(ends(None, 0.0, 4), [100, 200, 300, 400]);
        // The second finds one there, the third two, the fourth three.
        assert_eq!(ends(None, 0.5, 4), [100, 250, 450, 700]);
        // Two deciders: never more than one waits at the lock.
        assert_eq!(ends(Some(2), 0.5, 4), [100, 250, 400, 550]);
        assert_eq!(ends(Some(1), 0.5, 4), [100, 200, 300, 400]);
        // As many as there are CPUs make no difference; without contention no number does.
        assert_eq!(ends(Some(4), 0.5, 4), ends(None, 0.5, 4));
        assert_eq!(ends(Some(1), 0.0, 4), ends(None, 0.0, 4));
    }

    #[test]
    fn queues_have_locks_of_their_own_and_deciders_serve_all() {
        let machine = Machine { lock_hold: Nanos(100), ..Machine::ideal(2) };
        let both = |machine: &Machine| {
            let mut locks = Locks::new(machine).unwrap();
            [0, 1].map(|cpu| locks.decide(Time(5), CpuId(cpu), Nanos(100), 1.0).0)
        };
        assert_eq!(both(&machine), [105, 105]);
        assert_eq!(both(&Machine { deciders: NonZero::new(1), ..machine }), [105, 205]);
        assert!(Locks::new(&Machine::ideal(2)).is_none());
    }
}
