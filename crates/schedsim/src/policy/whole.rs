//! Schedulers with an order and a topology of their own: their names, and what their options set.

use super::catalog::{Choice, PolicyVisitor};
use super::{Cfs, CfsOptions, Eevdf, EevdfOptions, Fifo, Rr, RrOptions};
use crate::Nanos;

/// A scheduler and how it is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Whole {
    Eevdf(EevdfOptions),
    Cfs(CfsOptions),
    /// With throttling.
    Fifo(Option<Nanos>),
    Rr(RrOptions),
}

const SCHEDULERS: [Choice; 4] = [
    Choice { name: "eevdf", summary: "Linux 6.18's fair scheduler: weights, lag, virtual deadlines, wakeup preemption, load balancing" },
    Choice { name: "cfs", summary: "Linux 6.1's fair scheduler: weights, virtual run times, wakeup preemption, load balancing" },
    Choice { name: "fifo", summary: "SCHED_FIFO for every task: strict priorities, first in first out, nobody is stopped for an equal" },
    Choice { name: "rr", summary: "SCHED_RR for every task: strict priorities, equals take turns of 100 ms" },
];

/// The options that only these take.
pub const OPTIONS: [Choice; 7] = [
    Choice { name: "throttle", summary: "fifo, rr, eevdf, cfs: for how long real-time tasks may run in each second (default no limit)" },
    Choice {
        name: "server",
        summary: "eevdf, cfs: for how long fair tasks run in each second in which real-time tasks leave them no time (default 0)",
    },
    Choice { name: "tick", summary: "eevdf, cfs: the period of the tick (default 4ms)" },
    Choice { name: "slice", summary: "eevdf: how much a task requests at a time, on one CPU (default 700us)" },
    Choice { name: "latency", summary: "cfs: the period in which everybody shall run once, on one CPU (default 6ms)" },
    Choice { name: "granularity", summary: "cfs: the shortest slice, on one CPU (default 750us)" },
    Choice { name: "wakeup", summary: "cfs: how far behind a woken task must be to preempt, on one CPU (default 1ms)" },
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
            "fifo" => Whole::Fifo(None),
            "rr" => Whole::Rr(RrOptions::default()),
            _ => return None,
        })
    }

    /// Sets an option; `None` if this scheduler has no such option, an error that says what it takes if the value will not do.
    pub fn set(&mut self, option: &str, value: &str) -> Option<Result<(), String>> {
        let parsed = value.parse().ok().filter(|&time| Nanos::ZERO < time && time <= Nanos::from_millis(100_000));
        let (mut changed, time) = (*self, parsed.unwrap_or_default());
        match (&mut changed, option) {
            (Whole::Eevdf(eevdf), "slice") => eevdf.base_slice = time,
            (Whole::Cfs(cfs), "latency") => cfs.latency = time,
            (Whole::Cfs(cfs), "granularity") => cfs.min_granularity = time,
            (Whole::Cfs(cfs), "wakeup") => cfs.wakeup_granularity = time,
            (Whole::Eevdf(EevdfOptions { fair, .. }) | Whole::Cfs(CfsOptions { fair, .. }), _) => match option {
                "tick" => fair.tick = time,
                "quantum" => fair.realtime.quantum = Some(time),
                "throttle" => fair.realtime.throttle = Some(time),
                "server" => fair.server = Some(time),
                _ => return None,
            },
            (Whole::Rr(rr), "quantum") => rr.quantum = time,
            (Whole::Rr(RrOptions { throttle, .. }) | Whole::Fifo(throttle), "throttle") => *throttle = Some(time),
            _ => return None,
        }
        if parsed.is_none() {
            return Some(Err("a duration above zero and up to 100s, as in 1ms".to_string()));
        }
        *self = changed;
        Some(Ok(()))
    }

    /// Builds the scheduler for a machine of `cpus` CPUs and hands it to `visitor`.
    pub fn visit<V: PolicyVisitor>(self, cpus: u16, visitor: V) -> V::Out {
        match self {
            Whole::Eevdf(options) => visitor.visit(Eevdf::new(cpus, options)),
            Whole::Cfs(options) => visitor.visit(Cfs::new(cpus, options)),
            Whole::Fifo(throttle) => visitor.visit(Fifo::new(cpus, throttle)),
            Whole::Rr(options) => visitor.visit(Rr::new(cpus, options)),
        }
    }
}
