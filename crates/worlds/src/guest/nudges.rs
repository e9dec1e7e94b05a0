//! What the members of an ensemble of a guest differ by. Each kind is drawn from the member's seed,
//! and is the same under every candidate.

use crate::vm::kernel;
use schedlab_runner::nudge::Nudge;
use schedsim::Random;
use std::fmt;
use std::str::FromStr;

/// A kind of difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// When the tasks begin, between two ticks.
    Start,
    /// In which order they are made.
    Order,
    /// When their timers are due.
    Timers,
    /// Where their stacks begin.
    Stack,
    /// Where the job's memory is mapped.
    Heap,
    /// Where in a page shared objects lie: mutexes, barriers, results.
    Data,
    /// How far the CPU that starts the tasks is in its span; only with several CPUs.
    Span,
    /// How far CPUs in lockstep may be apart; only with several CPUs.
    Interleave,
}

/// The latest start of a timer, as the simulator nudges it: the default slack of Linux's timers.
const SLACK_NS: u64 = 50_000;
/// The most frames by which stacks are deeper; together they are about a page.
const FRAMES: u64 = 40;
/// The most pages that are left free: two tables of pages.
const PAGES: u64 = 1024;
/// Makes the interleave's draw independent of the others, whose values it does not change.
const INTERLEAVE_SEED: u64 = 0x1e7e_71ea_7ed0_0001;
/// The number and the size of the places in a page.
const PLACES: u64 = 32;
const PLACE: u64 = 128;

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::Start,
        Kind::Order,
        Kind::Timers,
        Kind::Stack,
        Kind::Heap,
        Kind::Data,
        Kind::Span,
        Kind::Interleave,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Order => "order",
            Kind::Timers => "timers",
            Kind::Stack => "stack",
            Kind::Heap => "heap",
            Kind::Data => "data",
            Kind::Span => "span",
            Kind::Interleave => "interleave",
        }
    }

    /// What it moves, and by how much.
    fn description(self) -> &'static str {
        match self {
            Kind::Start => "when tasks begin, anywhere between two ticks",
            Kind::Order => "the order in which tasks are made",
            Kind::Timers => "starts and timers of each task, later by up to 50 us",
            Kind::Stack => "stacks, deeper by up to 40 frames",
            Kind::Heap => "mapped memory, by up to 1024 pages",
            Kind::Data => "shared objects, anywhere in a page",
            Kind::Span => "where a CPU in lockstep is in its span; only with several CPUs",
            Kind::Interleave => {
                "how far CPUs in lockstep may be apart, from half of --interleave to all of it; \
                 only with several CPUs"
            }
        }
    }
}

/// The name of a kind.
impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        Kind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let kind = |kind: Kind| format!("{} ({})", kind.name(), kind.description());
            format!("give one of {}", Kind::ALL.map(kind).join(", "))
        })
    }
}

/// The kinds by which members differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nudges(Vec<Kind>);

impl Nudges {
    /// These kinds.
    pub fn new(mut kinds: Vec<Kind>) -> Nudges {
        kinds.sort();
        kinds.dedup();
        Nudges(kinds)
    }

    /// Those that a command can have: the others are in the runner's own tasks.
    #[must_use]
    pub fn of_command(&self) -> Nudges {
        let kinds = self.0.iter().copied();
        Nudges(kinds.filter(|kind| [Kind::Start, Kind::Span].contains(kind)).collect())
    }

    /// The differences of the member with this seed on CPUs that are interleaved by this many
    /// instructions, if there are several.
    pub fn of(&self, seed: u64, interleave: Option<u32>) -> Nudge {
        // Each kind is drawn whether or not it is used, so that it is the same beside any others.
        let mut random = Random::new(seed);
        let start_ns = random.below(kernel::TICK.0);
        let (order, timers) = (random.bits() | 1, random.bits());
        let [stack, heap, data] = [FRAMES, PAGES, PLACES].map(|count| random.below(count) as u32);
        let span = random.below(interleave.unwrap_or(1).into()) as u32;
        let mut nudge = Nudge::default();
        for kind in &self.0 {
            match kind {
                Kind::Start => nudge.start_ns = start_ns,
                Kind::Order => nudge.order = order,
                Kind::Timers => (nudge.timers, nudge.timers_ns) = (timers, SLACK_NS),
                Kind::Stack => nudge.stack = stack,
                Kind::Heap => nudge.heap = heap,
                Kind::Data => nudge.data = data * PLACE as u32,
                Kind::Span => nudge.span = span,
                // It is a setting of the emulator, and no part of a job.
                Kind::Interleave => {}
            }
        }
        nudge
    }

    /// By how many instructions the CPUs of the member with this seed are interleaved, at `most`.
    ///
    /// Times must not depend on this number. As it is drawn, what depends on it widens the
    /// intervals of all rows.
    pub fn interleave(&self, seed: u64, most: u32) -> u32 {
        let fewer = Random::new(seed ^ INTERLEAVE_SEED).below(u64::from(most / 2) + 1) as u32;
        if self.0.contains(&Kind::Interleave) { most - fewer } else { most }
    }
}

/// Their names.
impl fmt::Display for Nudges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))
    }
}

impl Default for Nudges {
    fn default() -> Nudges {
        Nudges::new(Kind::ALL.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_has_its_own_value_beside_any_others() {
        let all = Nudges::default();
        for seed in 1..50 {
            let member = all.of(seed, Some(1000));
            assert_eq!(member, all.of(seed, Some(1000)));
            for kind in Kind::ALL {
                let alone = Nudges::new(vec![kind]).of(seed, Some(1000));
                let others = Kind::ALL.into_iter().filter(|other| *other != kind).collect();
                let others = Nudges::new(others).of(seed, Some(1000));
                let joined = Nudge {
                    start_ns: alone.start_ns | others.start_ns,
                    order: alone.order | others.order,
                    timers: alone.timers | others.timers,
                    timers_ns: alone.timers_ns | others.timers_ns,
                    stack: alone.stack | others.stack,
                    heap: alone.heap | others.heap,
                    data: alone.data | others.data,
                    span: alone.span | others.span,
                };
                assert_eq!(joined, member, "{kind:?} of {seed}");
            }
        }
    }

    #[test]
    fn members_differ_in_every_kind_and_one_cpu_has_no_span() {
        let values = |of: fn(Nudge) -> u64, interleave| {
            let member = |seed| of(Nudges::default().of(seed, interleave));
            (1..=16).map(member).collect::<BTreeSet<_>>().len()
        };
        let all: [fn(Nudge) -> u64; 7] = [
            |nudge| nudge.start_ns,
            |nudge| nudge.order,
            |nudge| nudge.timers,
            |nudge| nudge.stack.into(),
            |nudge| nudge.heap.into(),
            |nudge| nudge.data.into(),
            |nudge| nudge.span.into(),
        ];
        for of in all {
            assert!(values(of, Some(1000)) > 8);
        }
        assert_eq!(values(|nudge| nudge.span.into(), None), 1);
    }

    #[test]
    fn cpus_are_interleaved_by_half_of_the_given_number_to_all_of_it() {
        let all: Vec<u32> = (1..200).map(|seed| Nudges::default().interleave(seed, 1000)).collect();
        assert!(all.iter().all(|drawn| (500..=1000).contains(drawn)), "{all:?}");
        assert!(all.iter().any(|drawn| *drawn < 600) && all.iter().any(|drawn| *drawn > 900));
        assert_eq!(Nudges::new(vec![Kind::Span]).interleave(7, 1000), 1000);
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = "phase".parse::<Kind>().unwrap_err();
        assert!(Kind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }
}
