//! The cost of a scheduling decision by the number of waiting tasks.

use crate::Nanos;

/// What a policy takes of the CPU that dispatches: the cost of its ready queue, or of its instructions
/// where it counts those itself.
///
/// One operation of a ready queue is an insert and the pop that answers it. Its cost is a function of
/// the number of tasks in the queue.
///
/// A table of measured points. Between points, costs are interpolated along the logarithm of the
/// number of tasks. After the last point the last line continues (O(log n)); before the first one
/// the cost is constant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueueCost {
    /// `(log2 of tasks, ns)`, in order.
    points: Vec<(f64, f64)>,
    /// What an instruction of a policy takes that counts its own, in ns.
    instruction: f64,
}

impl QueueCost {
    /// Builds the table from `(tasks, ns)`; points without tasks and non-numbers are left out.
    pub fn new(points: impl IntoIterator<Item = (u32, f64)>) -> QueueCost {
        let usable =
            points.into_iter().filter(|&(tasks, ns)| tasks > 0 && ns.is_finite() && ns >= 0.0);
        let mut points: Vec<(f64, f64)> =
            usable.map(|(tasks, ns)| (libm::log2(f64::from(tasks)), ns)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by_key(|point| point.0);
        QueueCost { points, instruction: 0.0 }
    }

    /// The cost of a policy that counts its instructions itself
    /// ([`Policy::take_work`](crate::policy::Policy::take_work)), on a CPU that executes this many
    /// million of them per second.
    pub fn of_instructions(mips: f64) -> QueueCost {
        QueueCost { points: Vec::new(), instruction: 1000.0 / mips }
    }

    /// The cost of these instructions.
    pub fn of_work(&self, instructions: u64) -> Nanos {
        Nanos(libm::round(instructions as f64 * self.instruction) as u64)
    }

    /// The cost of an operation on a queue of `tasks`, including the inserted one.
    pub fn of(&self, tasks: u32) -> Nanos {
        let x = libm::log2(f64::from(tasks.max(1)));
        let cost = match self.points[..] {
            [] => 0.0,
            [only] => only.1,
            [first, ..] if x <= first.0 => first.1,
            [.., before, last] if x >= last.0 => line(before, last, x),
            _ => {
                let after = self.points.partition_point(|point| point.0 <= x);
                line(self.points[after - 1], self.points[after], x)
            }
        };
        Nanos(libm::round(cost.max(0.0)) as u64)
    }
}

/// The line through two points, at `x`.
fn line(a: (f64, f64), b: (f64, f64), x: f64) -> f64 {
    a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_interpolated_along_the_logarithm() {
        let cost = QueueCost::new([(100, 200.0), (10, 100.0), (0, 7.0), (1, f64::NAN)]);
        let at = |tasks| cost.of(tasks).0;
        assert_eq!([0, 1, 10, 100, 1000].map(at), [100, 100, 100, 200, 300]);
        assert_eq!(at(32), 151); // log10 32 = 1.505
        assert_eq!(QueueCost::new([(5, 30.0)]).of(5000), Nanos(30));
        let counted = QueueCost::of_instructions(2000.0);
        assert_eq!((counted.of(5), counted.of_work(1001)), (Nanos::ZERO, Nanos(501)));
        assert_eq!(cost.of_work(1001), Nanos::ZERO);
        assert_eq!(QueueCost::default().of(5), Nanos::ZERO);
    }
}
