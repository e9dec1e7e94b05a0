//! Schedulers with an order and a topology of their own: their names, and what their options set.

use super::catalog::{Choice, PolicyVisitor};
use super::own::Own;
use super::topology::choose;
use super::{
    Book, Cfs, CfsOptions, Deadline, DeadlineOptions, DeadlineOrder, Eevdf, EevdfOptions, FairOptions, Fifo, Lottery, Mlfq, O1, O1Options,
    Placement, ProportionalOptions, PsList, PsListOptions, Rr, RrOptions, Stride, Textbook, Windows,
};
use crate::Nanos;
use std::ops::RangeInclusive;

/// A scheduler and how it is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Whole {
    Eevdf(EevdfOptions),
    Cfs(CfsOptions),
    O1(O1Options),
    PsList(PsListOptions),
    Mlfq(Windows),
    Textbook(Book),
    /// With throttling.
    Fifo(Option<Nanos>),
    Rr(RrOptions),
    Stride(ProportionalOptions),
    Lottery(ProportionalOptions),
    /// Earliest deadline first, or rate monotonic.
    Deadline(DeadlineOptions),
    /// A policy of yours.
    Own(Own),
}

const SCHEDULERS: [Choice; 12] = [
    Choice { name: "eevdf", summary: "Linux 6.18's fair scheduler: weights, lag, virtual deadlines, wakeup preemption, load balancing" },
    Choice { name: "cfs", summary: "Linux 6.1's fair scheduler: weights, virtual run times, wakeup preemption, load balancing" },
    Choice { name: "o1", summary: "Linux 2.6.22's scheduler: active and expired arrays, a bonus for sleepers, slices by nice value" },
    Choice {
        name: "pslist",
        summary: "the partially sorted list: virtual run times, O(1), whoever runs goes on until it has passed the next",
    },
    Choice {
        name: "mlfq",
        summary: "Windows' multi-level feedback queue: 32 levels, a boost on waking and one for starvation; macOS' is alike",
    },
    Choice {
        name: "mlfq-textbook",
        summary: "the textbook's feedback queue: down a level with every quantum, everybody to the top now and then",
    },
    Choice { name: "fifo", summary: "SCHED_FIFO for every task: strict priorities, first in first out, nobody is stopped for an equal" },
    Choice { name: "rr", summary: "SCHED_RR for every task: strict priorities, equals take turns of 100 ms" },
    Choice { name: "stride", summary: "stride scheduling: shares by weight to the quantum, whose pass is least runs" },
    Choice { name: "lottery", summary: "lottery scheduling: shares by weight on average, who holds the drawn ticket runs" },
    Choice { name: "rm", summary: "rate monotonic: of tasks that reserve CPU time, the shortest period runs; the others in what is left" },
    Choice {
        name: "deadline",
        summary: "SCHED_DEADLINE: of tasks that reserve CPU time, the earliest deadline runs, each held to what it reserved; the others in what is left",
    },
];

/// The options that only these take.
pub const OPTIONS: [Choice; 16] = [
    Choice {
        name: "throttle",
        summary: "fifo, rr, eevdf, cfs, o1, pslist: for how long real-time tasks may run in each second (default no limit)",
    },
    Choice {
        name: "server",
        summary: "eevdf, cfs, o1, pslist: for how long fair tasks run in each second in which real-time tasks leave them no time (default 0)",
    },
    Choice { name: "tick", summary: "eevdf, cfs, o1, pslist: the period of the tick (default 4ms)" },
    Choice { name: "slice", summary: "eevdf: how much a task requests at a time, on one CPU (default 700us)" },
    Choice {
        name: "delay",
        summary: "eevdf: yes or no: whether a task that sleeps in debt stays in the queue until it has paid (default yes)",
    },
    Choice {
        name: "hot",
        summary: "eevdf, cfs, o1, pslist: a task that ran less than this ago is not moved to another CPU (default 500us)",
    },
    Choice {
        name: "sync",
        summary: "eevdf, cfs, o1, pslist: yes or no: whether wakings announce that the waker is about to sleep (default no)",
    },
    Choice { name: "latency", summary: "cfs: the period in which everybody shall run once, on one CPU (default 6ms)" },
    Choice { name: "granularity", summary: "cfs: the shortest slice, on one CPU (default 750us)" },
    Choice { name: "wakeup", summary: "cfs: how far behind a woken task must be to preempt, on one CPU (default 1ms)" },
    Choice {
        name: "stretch",
        summary: "mlfq: by how much quanta of foreground tasks, all but batch and idle ones, are longer, 1 to 3 (default 1)",
    },
    Choice { name: "boost", summary: "mlfq: by how many levels a task is better when it wakes, 0 to 14 (default 1)" },
    Choice {
        name: "placement",
        summary: "deadline, rm: where tasks may run: global, on every CPU (the default), or partitioned, on the first with room for them",
    },
    Choice { name: "limit", summary: "deadline, rm: how much of each CPU may be reserved, in percent (default deadline 95, rm 100)" },
    Choice { name: "cbs", summary: "deadline: yes or no: whether a task is stopped that asks for more than it reserved (default yes)" },
    Choice { name: "period", summary: "mlfq-textbook: how often all tasks go to the top (default 1s)" },
];

/// All of them.
pub fn schedulers() -> impl Iterator<Item = Choice> {
    SCHEDULERS.into_iter().chain(Own::CHOICES.iter().copied())
}

impl Whole {
    /// The scheduler of this name, set as by default.
    pub fn named(name: &str) -> Option<Whole> {
        Some(match name {
            "eevdf" => Whole::Eevdf(EevdfOptions::default()),
            "cfs" => Whole::Cfs(CfsOptions::default()),
            "o1" => Whole::O1(O1Options::default()),
            "pslist" => Whole::PsList(PsListOptions::default()),
            "mlfq" => Whole::Mlfq(Windows::default()),
            "mlfq-textbook" => Whole::Textbook(Book::default()),
            "fifo" => Whole::Fifo(None),
            "rr" => Whole::Rr(RrOptions::default()),
            "stride" => Whole::Stride(ProportionalOptions::default()),
            "lottery" => Whole::Lottery(ProportionalOptions::default()),
            "rm" => Whole::Deadline(DeadlineOptions::RATE_MONOTONIC),
            "deadline" => Whole::Deadline(DeadlineOptions::DEADLINE),
            _ => return Own::named(name).map(Whole::Own),
        })
    }

    /// Sets an option; `None` if this scheduler has no such option, an error that says what it takes if the value will not do.
    pub fn set(&mut self, option: &str, value: &str) -> Option<Result<(), String>> {
        let mut changed = *self;
        let result = changed.slot(option)?.fill(value);
        *self = if result.is_ok() { changed } else { *self };
        Some(result)
    }

    /// Where the value of an option belongs, if this scheduler has such an option.
    fn slot(&mut self, option: &str) -> Option<Slot<'_>> {
        Some(match (self, option) {
            (Whole::Eevdf(eevdf), "slice") => Slot::Time(&mut eevdf.base_slice),
            (Whole::Eevdf(eevdf), "delay") => Slot::Flag(&mut eevdf.delay_dequeue),
            (Whole::Cfs(cfs), "latency") => Slot::Time(&mut cfs.latency),
            (Whole::Cfs(cfs), "granularity") => Slot::Time(&mut cfs.min_granularity),
            (Whole::Cfs(cfs), "wakeup") => Slot::Time(&mut cfs.wakeup_granularity),
            (Whole::PsList(pslist), "preempt") => Slot::Flag(&mut pslist.preempt),
            (Whole::Eevdf(EevdfOptions { fair, .. }) | Whole::Cfs(CfsOptions { fair, .. }), _) => return Slot::of_fair(fair, option),
            (Whole::O1(O1Options { fair }) | Whole::PsList(PsListOptions { fair, .. }), _) => return Slot::of_fair(fair, option),
            (Whole::Mlfq(windows), "quantum") => Slot::Time(&mut windows.quantum),
            (Whole::Mlfq(windows), "stretch") => Slot::Count(&mut windows.stretch, 1..=3),
            (Whole::Mlfq(windows), "boost") => Slot::Count(&mut windows.boost, 0..=14),
            (Whole::Textbook(book), "quantum") => Slot::Time(&mut book.quantum),
            (Whole::Textbook(book), "period") => Slot::Time(&mut book.period),
            (Whole::Textbook(book), "levels") => Slot::Count(&mut book.levels, 1..=140),
            (Whole::Stride(shares) | Whole::Lottery(shares), "quantum") => Slot::Time(&mut shares.quantum),
            (Whole::Deadline(deadline), "placement") => Slot::Placement(&mut deadline.placement),
            (Whole::Deadline(deadline), "limit") => Slot::Count(&mut deadline.limit, 1..=1000),
            (Whole::Deadline(deadline), "quantum") => Slot::Time(&mut deadline.quantum),
            (Whole::Deadline(DeadlineOptions { order: DeadlineOrder::Edf { served }, .. }), "cbs") => Slot::Flag(served),
            (Whole::Rr(rr), "quantum") => Slot::Time(&mut rr.quantum),
            (Whole::Rr(RrOptions { throttle, .. }) | Whole::Fifo(throttle), "throttle") => Slot::Limit(throttle),
            _ => return None,
        })
    }

    /// The ready queue whose operations cost what this one's do.
    pub fn structure(self) -> &'static str {
        match self {
            Whole::Eevdf(_) | Whole::Cfs(_) | Whole::Stride(_) | Whole::Deadline(_) => "rbtree",
            Whole::Lottery(_) => "sorted-list",
            Whole::PsList(_) => "pslist",
            Whole::O1(_) | Whole::Mlfq(_) | Whole::Textbook(_) | Whole::Fifo(_) | Whole::Rr(_) => "priority",
            Whole::Own(_) => "rr",
        }
    }

    /// Builds the scheduler for a machine of `cpus` CPUs and hands it to `visitor`.
    pub fn visit<V: PolicyVisitor>(self, cpus: u16, visitor: V) -> V::Out {
        match self {
            Whole::Eevdf(options) => visitor.visit(Eevdf::new(cpus, options)),
            Whole::Cfs(options) => visitor.visit(Cfs::new(cpus, options)),
            Whole::O1(options) => visitor.visit(O1::new(cpus, options)),
            Whole::PsList(options) => visitor.visit(PsList::new(cpus, options)),
            Whole::Mlfq(rules) => visitor.visit(Mlfq::new(cpus, rules)),
            Whole::Textbook(rules) => visitor.visit(Textbook::new(cpus, rules)),
            Whole::Fifo(throttle) => visitor.visit(Fifo::new(cpus, throttle)),
            Whole::Stride(options) => visitor.visit(Stride::new(cpus, options)),
            Whole::Lottery(options) => visitor.visit(Lottery::new(cpus, options)),
            Whole::Deadline(options) => visitor.visit(Deadline::new(cpus, options)),
            Whole::Rr(options) => visitor.visit(Rr::new(cpus, options)),
            Whole::Own(policy) => policy.visit(cpus, visitor),
        }
    }
}

/// What an option sets.
enum Slot<'a> {
    Time(&'a mut Nanos),
    Limit(&'a mut Option<Nanos>),
    Flag(&'a mut bool),
    Count(&'a mut u16, RangeInclusive<u16>),
    Placement(&'a mut Placement),
}

impl<'a> Slot<'a> {
    /// What the fair schedulers share.
    fn of_fair(fair: &'a mut FairOptions, option: &str) -> Option<Slot<'a>> {
        Some(match option {
            "tick" => Slot::Time(&mut fair.tick),
            "hot" => Slot::Time(&mut fair.cache_hot),
            "sync" => Slot::Flag(&mut fair.sync_wakeups),
            "quantum" => Slot::Limit(&mut fair.realtime.quantum),
            "throttle" => Slot::Limit(&mut fair.realtime.throttle),
            "server" => Slot::Limit(&mut fair.server),
            _ => return None,
        })
    }

    /// Puts in `value`, or says what would do.
    fn fill(self, value: &str) -> Result<(), String> {
        let time = || {
            let time = value.parse().ok().filter(|&time| Nanos::ZERO < time && time <= Nanos::from_millis(100_000));
            time.ok_or_else(|| "a duration above zero and up to 100s, as in 1ms".to_string())
        };
        match self {
            Slot::Time(slot) => *slot = time()?,
            Slot::Limit(slot) => *slot = Some(time()?),
            Slot::Flag(slot) => *slot = choose(value, [("yes", true), ("no", false)]).ok_or("yes or no")?,
            Slot::Placement(slot) => {
                let placements = [("global", Placement::Global), ("partitioned", Placement::Partitioned)];
                *slot = choose(value, placements).ok_or("global or partitioned")?;
            }
            Slot::Count(slot, range) => {
                let count = value.parse().ok().filter(|count| range.contains(count));
                *slot = count.ok_or_else(|| format!("{} to {}", range.start(), range.end()))?;
            }
        }
        Ok(())
    }
}
