//! Schedulers with an order and a topology of their own: their names, and what their options set.

use super::catalog::{Choice, PolicyVisitor};
use super::{Cfs, CfsOptions, Eevdf, EevdfOptions, FairOptions};
use crate::Nanos;

/// A scheduler and how it is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Whole {
    Eevdf(EevdfOptions),
    Cfs(CfsOptions),
}

const SCHEDULERS: [Choice; 2] = [
    Choice { name: "eevdf", summary: "Linux 6.18's fair scheduler: weights, lag, virtual deadlines, wakeup preemption, load balancing" },
    Choice { name: "cfs", summary: "Linux 6.1's fair scheduler: weights, virtual run times, wakeup preemption, load balancing" },
];

/// All of them.
pub fn schedulers() -> impl Iterator<Item = Choice> {
    SCHEDULERS.into_iter()
}

impl Whole {
    /// The scheduler of this name, set as by default.
    pub fn named(name: &str) -> Option<Whole> {
        Some(match name {
            "eevdf" => Whole::Eevdf(EevdfOptions::default()),
            "cfs" => Whole::Cfs(CfsOptions::default()),
            _ => return None,
        })
    }

    /// Sets an option; `None` if this scheduler has no such option, an error that says what it takes if the value will not do.
    pub fn set(&mut self, option: &str, value: &str) -> Option<Result<(), String>> {
        let place = match self {
            Whole::Eevdf(eevdf) => match option {
                "slice" => &mut eevdf.base_slice,
                _ => fair_option(&mut eevdf.fair, option)?,
            },
            Whole::Cfs(cfs) => match option {
                "latency" => &mut cfs.latency,
                "granularity" => &mut cfs.min_granularity,
                "wakeup" => &mut cfs.wakeup_granularity,
                _ => fair_option(&mut cfs.fair, option)?,
            },
        };
        let time = value.parse().ok().filter(|&time| Nanos::ZERO < time && time <= Nanos::from_millis(100_000));
        Some(time.map(|time| *place = time).ok_or_else(|| "a duration above zero and up to 100s, as in 1ms".to_string()))
    }

    /// Builds the scheduler for a machine of `cpus` CPUs and hands it to `visitor`.
    pub fn visit<V: PolicyVisitor>(self, cpus: u16, visitor: V) -> V::Out {
        match self {
            Whole::Eevdf(options) => visitor.visit(Eevdf::new(cpus, options)),
            Whole::Cfs(options) => visitor.visit(Cfs::new(cpus, options)),
        }
    }
}

fn fair_option<'a>(fair: &'a mut FairOptions, option: &str) -> Option<&'a mut Nanos> {
    match option {
        "tick" => Some(&mut fair.tick),
        _ => None,
    }
}
