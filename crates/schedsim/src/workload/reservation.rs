//! Reservations of periodic tasks (CPU time in each period, before a deadline), and schedulability
//! tests for a set of them.
//!
//! Sources: Liu & Layland 1973, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
//! Environment" (the bound of rate monotonic, EDF's utilisation). Bini, Buttazzo & Buttazzo 2003
//! (the hyperbolic bound). Joseph & Pandya 1986, Audsley et al. 1993 (response times under fixed
//! priorities). Baruah, Rosier & Howell 1990 (EDF's processor demand). Goossens, Funk & Baruah 2003
//! (global EDF). Linux 6.18, `kernel/sched/deadline.c` (admission).
//!
//! ```
//! use schedsim::Nanos;
//! use schedsim::workload::{Reservation, Schedulability};
//!
//! // 2 of 5 and 4 of 7: 97 % of a CPU, which EDF can give and rate monotonic cannot.
//! let ms = Nanos::from_millis;
//! let set = [(2, 5), (4, 7)].map(|(runtime, period)| Reservation {
//!     runtime: ms(runtime),
//!     deadline: ms(period),
//!     period: ms(period),
//! });
//! let known = Schedulability::of(&set, 1);
//! assert_eq!((known.edf, known.rate_monotonic()), (Some(true), false));
//! assert_eq!(known.response_times, [Some(ms(2)), None]);
//! ```

use crate::Nanos;

/// CPU time in each period, before a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Reservation {
    /// The CPU time in each period (`sched_runtime`).
    pub runtime: Nanos,
    /// The deadline, from the start of a period (`sched_deadline`).
    pub deadline: Nanos,
    /// The length of a period (`sched_period`).
    pub period: Nanos,
}

/// Utilisations are counted in units of 2^-20 of a CPU, rounded down, as the kernel's `to_ratio`
/// does.
const UNIT: u128 = 1 << 20;

impl Reservation {
    /// Its share of a CPU, in units of 2^-20.
    pub fn bandwidth(&self) -> u64 {
        (u128::from(self.runtime.0) * UNIT / u128::from(self.period.0.max(1))) as u64
    }

    /// Its share of a CPU.
    pub fn utilisation(&self) -> f64 {
        self.runtime.0 as f64 / self.period.0.max(1) as f64
    }

    /// Its runtime over its deadline.
    fn density(&self) -> f64 {
        self.runtime.0 as f64 / self.deadline.min(self.period).0.max(1) as f64
    }
}

/// The reservable bandwidth of `cpus` CPUs at `percent` each, in units of 2^-20.
pub fn reservable(cpus: u16, percent: u16) -> u64 {
    ((UNIT * u128::from(percent)) / 100) as u64 * u64::from(cpus)
}

/// The theory of a set of reservations whose tasks need no more, without other tasks.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedulability {
    /// The sum of utilisations.
    pub utilisation: f64,
    /// The sum of densities.
    pub density: f64,
    /// The utilisation up to which rate monotonic certainly meets all deadlines, for this number
    /// of tasks whose deadlines are their periods: n (2^(1/n) - 1).
    pub liu_layland: f64,
    /// Whether the product of all (utilisation + 1) is at most 2, a sharper form of the same test.
    pub hyperbolic: bool,
    /// On one CPU under rate monotonic, for each task in the given order: its longest response
    /// time, if within its deadline.
    pub response_times: Vec<Option<Nanos>>,
    /// Whether EDF meets all deadlines; `None` if the tests, which are exact only on one CPU, do
    /// not decide.
    pub edf: Option<bool>,
}

impl Schedulability {
    /// Tests a set on `cpus` CPUs.
    pub fn of(set: &[Reservation], cpus: u16) -> Schedulability {
        let utilisation: f64 = set.iter().map(Reservation::utilisation).sum();
        let count = set.len().max(1) as f64;
        Schedulability {
            utilisation,
            density: set.iter().map(Reservation::density).sum(),
            liu_layland: count * (libm::pow(2.0, 1.0 / count) - 1.0),
            hyperbolic: set.iter().map(|task| task.utilisation() + 1.0).product::<f64>() <= 2.0,
            response_times: (0..set.len()).map(|task| response_time(set, task)).collect(),
            edf: if cpus == 1 {
                Some(demand_fits(set))
            } else {
                global_edf(set, utilisation, cpus)
            },
        }
    }

    /// Whether rate monotonic meets all deadlines on one CPU, by response times, which is exact.
    pub fn rate_monotonic(&self) -> bool {
        self.response_times.iter().all(Option::is_some)
    }
}

/// Whether `a` precedes `b` under rate monotonic; ties go to the first.
fn precedes(set: &[Reservation], a: usize, b: usize) -> bool {
    (set[a].period, a) < (set[b].period, b)
}

/// The smallest `R` with `R = C + sum of ceil(R / Tj) Cj` over the tasks that precede it.
fn response_time(set: &[Reservation], task: usize) -> Option<Nanos> {
    let own = set[task];
    let limit = own.deadline.min(own.period).0;
    let mut response = own.runtime.0;
    while response <= limit {
        let before =
            (0..set.len()).filter(|&other| precedes(set, other, task)).map(|other| set[other]);
        let interference: u64 = before
            .map(|other| response.div_ceil(other.period.0.max(1)).saturating_mul(other.runtime.0))
            .sum();
        let next = own.runtime.0.saturating_add(interference);
        if next == response {
            return Some(Nanos(response));
        }
        response = next;
    }
    None
}

/// Processor demand: in no interval from a common release on is more due than fits.
fn demand_fits(set: &[Reservation]) -> bool {
    let shares = |set: &[Reservation]| -> u128 {
        set.iter()
            .map(|task| u128::from(task.runtime.0) * UNIT * UNIT / u128::from(task.period.0.max(1)))
            .sum()
    };
    if shares(set) > UNIT * UNIT {
        return false;
    }
    if set.iter().all(|task| task.deadline >= task.period) {
        return true;
    }
    let busy = busy_period(set);
    let due = |time: u64| -> u64 {
        let of_task = |task: &Reservation| match time.checked_sub(task.deadline.0) {
            Some(rest) => (rest / task.period.0.max(1) + 1).saturating_mul(task.runtime.0),
            None => 0,
        };
        set.iter().map(of_task).fold(0, u64::saturating_add)
    };
    let deadlines = |task: &Reservation| {
        let task = *task;
        (0..)
            .map(move |job: u64| {
                task.deadline.0.saturating_add(job.saturating_mul(task.period.0.max(1)))
            })
            .take_while(move |&time| time <= busy)
    };
    set.iter().flat_map(deadlines).all(|time| due(time) <= time)
}

/// How long a CPU is busy after a release of all tasks at once, up to a hundred times the longest
/// period.
fn busy_period(set: &[Reservation]) -> u64 {
    let longest = set
        .iter()
        .map(|task| task.period.0.max(task.deadline.0))
        .max()
        .unwrap_or(0)
        .saturating_mul(100);
    let mut length: u64 = set.iter().map(|task| task.runtime.0).fold(0, u64::saturating_add);
    while length < longest {
        let next = set
            .iter()
            .map(|task| length.div_ceil(task.period.0.max(1)).saturating_mul(task.runtime.0))
            .fold(0, u64::saturating_add);
        if next == length {
            break;
        }
        length = next;
    }
    length.min(longest)
}

/// If the sum of densities is at most m - (m - 1) times the maximum, yes; if it is more than m, no;
/// in between, unknown.
fn global_edf(set: &[Reservation], utilisation: f64, cpus: u16) -> Option<bool> {
    let (sum, largest) = set
        .iter()
        .map(Reservation::density)
        .fold((0.0, 0.0f64), |(sum, largest), own| (sum + own, largest.max(own)));
    let cpus = f64::from(cpus);
    if utilisation > cpus || largest > 1.0 {
        return Some(false);
    }
    (sum <= cpus - (cpus - 1.0) * largest).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<const N: usize>(tasks: [(u64, u64, u64); N]) -> [Reservation; N] {
        tasks.map(|(runtime, deadline, period)| Reservation {
            runtime: Nanos(runtime),
            deadline: Nanos(deadline),
            period: Nanos(period),
        })
    }

    #[test]
    fn textbook_sets_are_judged_as_textbooks_do() {
        // Audsley et al.: response times 3, 6 and 20 of 3/7, 3/12 and 5/20.
        let known = Schedulability::of(&set([(3, 7, 7), (3, 12, 12), (5, 20, 20)]), 1);
        assert_eq!(known.response_times, [Some(Nanos(3)), Some(Nanos(6)), Some(Nanos(20))]);
        assert!(
            (known.liu_layland - 0.7798).abs() < 1e-4
                && known.utilisation > known.liu_layland
                && !known.hyperbolic
        );
        assert_eq!((known.rate_monotonic(), known.edf), (true, Some(true)));
        // Liu & Layland's bound of two tasks, 0.8284, is reached by 1/sqrt(2)-like ratios: 41 of
        // 100 and 59 of 141 fit exactly, one more does not.
        assert!(Schedulability::of(&set([(41, 100, 100), (59, 141, 141)]), 1).rate_monotonic());
        assert!(!Schedulability::of(&set([(41, 100, 100), (60, 141, 141)]), 1).rate_monotonic());
        // Constrained deadlines: 2 due at 2 and 3 due at 4 do not fit although they are 7/8 of a
        // CPU.
        assert_eq!(Schedulability::of(&set([(2, 2, 8), (3, 4, 5)]), 1).edf, Some(false));
        assert_eq!(Schedulability::of(&set([(2, 2, 8), (3, 5, 5)]), 1).edf, Some(true));
        assert_eq!(Schedulability::of(&set([(6, 10, 10), (5, 10, 10)]), 1).edf, Some(false));
        // Dhall & Liu: two light tasks and a heavy one on two CPUs, of which nothing is known.
        let dhall = set([(1, 10, 10), (1, 10, 10), (10, 11, 11)]);
        assert_eq!(
            (Schedulability::of(&dhall, 2).edf, Schedulability::of(&dhall[..2], 2).edf),
            (None, Some(true))
        );
    }

    #[test]
    fn shares_are_counted_as_the_kernel_counts_them() {
        let [third] = set([(10, 30, 30)]);
        assert_eq!((third.bandwidth(), reservable(2, 95)), (349_525, 2 * 996_147));
    }
}
