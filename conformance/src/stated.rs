//! Whether what a subject states in a scenario fits what must hold: the mathematics, no kernel.

use crate::format::{Answer, Event, Op, State};
use crate::header::Header;
use crate::ideal::Client;
use crate::outcome::Outcome;
use crate::property::Property;
use std::collections::BTreeMap;

/// What was found: the task, the property, what should be, and what came.
pub(crate) type Found = Option<(u32, Property, String, String)>;

/// What a subject has stated.
pub(crate) struct Stated<'a> {
    claimed: &'a [Property],
    /// Of each task, its state when it was last charged, and when that was.
    charged: BTreeMap<u32, (State, i64)>,
    /// How many events the running task has been charged for since.
    events: i128,
}

/// An event and its answer.
pub(crate) struct Seen<'a> {
    pub event: &'a Event,
    pub answer: &'a Answer,
    /// Who ran until the event.
    pub running: Option<u32>,
    /// Every task that has ever joined is ready, so the mean is theirs alone.
    pub all_ready: bool,
}

impl<'a> Stated<'a> {
    pub fn new(header: &'a Header) -> Stated<'a> {
        Stated { claimed: &header.properties, charged: BTreeMap::new(), events: 0 }
    }

    /// The task's virtual times may move by more than its service.
    pub fn forget(&mut self, task: u32) {
        self.charged.remove(&task);
    }

    /// Compares the states after an event with each other and with those before.
    pub fn check(
        &mut self,
        outcome: &mut Outcome,
        seen: &Seen,
        clients: BTreeMap<u32, Client>,
    ) -> Found {
        self.events += 1;
        if seen.answer.tasks.is_empty() {
            return None;
        }
        self.charges(outcome, seen, &clients)
            .or_else(|| self.deadlines(outcome, seen, &clients))
            .or_else(|| self.mean(outcome, seen, &clients))
            .or_else(|| self.eligible(outcome, seen))
    }

    /// The growth of the running task's vruntime, and whether its deadline stays until then.
    fn charges(
        &mut self,
        outcome: &mut Outcome,
        seen: &Seen,
        clients: &BTreeMap<u32, Client>,
    ) -> Found {
        if seen.event.op == Op::Yield {
            self.charged.clear();
        }
        if !matches!(seen.event.op, Op::Tick | Op::Block | Op::Pick) {
            return None;
        }
        let now = seen.event.at;
        let mut found = None;
        if let Some(task) = seen.running
            && let (Some(state), Some((before, since)), Some(client)) =
                (seen.answer.state(task), self.charged.get(&task), clients.get(&task))
            && let (Some(old), Some(new)) = (before.vruntime, state.vruntime)
        {
            let weight = i128::from(client.weight);
            let ran = i128::from(now - since);
            let grown = i128::from(new) - i128::from(old);
            // Each charge rounds.
            let slack = weight * (2 + self.events);
            if self.claims(Property::Charge) {
                outcome.count(Property::Charge);
                if (grown * weight - ran * 1024).abs() > slack {
                    let expected = format!("vruntime grows by {}", ran * 1024 / weight);
                    found = Some((task, Property::Charge, expected, grown.to_string()));
                }
            }
            if found.is_none()
                && self.claims(Property::Deadline)
                && let (Some(due), Some(is_due)) = (before.deadline, state.deadline)
                && new < due
            {
                outcome.count(Property::Deadline);
                if is_due != due {
                    let expected = format!("the deadline stays {due}, as vruntime is {new}");
                    found = Some((task, Property::Deadline, expected, is_due.to_string()));
                }
            }
        }
        self.events = 0;
        for state in &seen.answer.tasks {
            self.charged.insert(state.task, (*state, now));
        }
        found
    }

    /// No request is longer than it should be, and after a charge none is over.
    fn deadlines(
        &self,
        outcome: &mut Outcome,
        seen: &Seen,
        clients: &BTreeMap<u32, Client>,
    ) -> Found {
        if !self.claims(Property::Deadline) || seen.event.op == Op::Yield {
            return None;
        }
        seen.answer.tasks.iter().find_map(|state| {
            let client = clients.get(&state.task)?;
            let left = i128::from(state.deadline?) - i128::from(state.vruntime?);
            let whole = i128::from(client.slice) * 1024 / i128::from(client.weight);
            outcome.count(Property::Deadline);
            let is_over = left <= 0 && seen.event.op == Op::Tick;
            (left > whole + 2 || is_over).then(|| {
                let expected = format!("0 to {whole} until the deadline");
                (state.task, Property::Deadline, expected, left.to_string())
            })
        })
    }

    /// The lags by weight sum to 0.
    fn mean(&self, outcome: &mut Outcome, seen: &Seen, clients: &BTreeMap<u32, Client>) -> Found {
        if !self.claims(Property::Mean) || !seen.all_ready {
            return None;
        }
        let (mut sum, mut weights) = (0, 0);
        for state in &seen.answer.tasks {
            let weight = i128::from(clients.get(&state.task)?.weight);
            sum += weight * i128::from(state.lag?);
            weights += weight;
        }
        outcome.count(Property::Mean);
        (sum.abs() > 2 * weights).then(|| {
            let task = seen.answer.tasks[0].task;
            let expected = "the lags by weight sum to 0".to_string();
            (task, Property::Mean, expected, format!("{} ns on average", sum / weights))
        })
    }

    /// Eligible is who has lag ≥ 0.
    fn eligible(&self, outcome: &mut Outcome, seen: &Seen) -> Found {
        if !self.claims(Property::Eligible) {
            return None;
        }
        seen.answer.tasks.iter().find_map(|state| {
            let (lag, eligible) = (state.lag?, state.eligible?);
            outcome.count(Property::Eligible);
            (lag.abs() > 1 && eligible != (lag >= 0)).then(|| {
                let expected = format!("with a lag of {lag}, eligible is {}", lag >= 0);
                (state.task, Property::Eligible, expected, eligible.to_string())
            })
        })
    }

    /// `runs` is picked and did not run: it is eligible, and no eligible one is due before.
    pub fn pick(&self, outcome: &mut Outcome, runs: u32, answer: &Answer) -> Found {
        let chosen = answer.state(runs).filter(|_| self.claims(Property::Pick))?;
        outcome.count(Property::Pick);
        // Rounding may hide a lag of 1.
        if chosen.eligible == Some(false) || chosen.lag.is_some_and(|lag| lag < -1) {
            let expected = "who begins to run is eligible".to_string();
            return Some((runs, Property::Pick, expected, "it is not".into()));
        }
        let due = chosen.deadline?;
        let earlier = answer.tasks.iter().find(|state| {
            state.eligible == Some(true) && state.deadline.is_some_and(|other| other < due)
        })?;
        let (expected, got) =
            (format!("task {} runs, which is due before", earlier.task), format!("task {runs}"));
        Some((runs, Property::Pick, expected, got))
    }

    fn claims(&self, property: Property) -> bool {
        self.claimed.contains(&property)
    }
}
