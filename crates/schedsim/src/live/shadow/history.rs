//! The last events of a recording, with checkpoints of the follower, from which the follower before
//! any of them is rebuilt.

use super::Observation;
use super::follower::{Follower, Outcome};
use crate::TaskId;
use crate::policy::Policy;
use std::collections::VecDeque;

/// The assumption that an event differed from its recording. Events are counted from the first of
/// the history.
#[derive(Clone)]
pub(super) struct Assumption {
    pub(super) event: usize,
    pub(super) recorded: Observation,
    /// The event at which the policy's decision differs, and the tasks in question.
    pub(super) explains: usize,
    pub(super) tasks: Vec<TaskId>,
}

/// The number of events that are kept.
const KEPT: usize = 1024;
/// The number of events between checkpoints. Each interval costs one clone; rebuilding a follower
/// replays fewer events than this.
const STEP: usize = 16;

/// See the module. The policy's decision differs at none of its events, except at the last.
pub(super) struct History<P> {
    /// The first of them has a checkpoint.
    pub(super) entries: VecDeque<Entry<P>>,
    /// The number of earlier events, which are gone.
    pub(super) gone: usize,
    /// The assumption since the last explained divergence.
    pub(super) assumption: Option<Assumption>,
}

pub(super) struct Entry<P> {
    pub observation: Observation,
    /// See [`Outcome::may_be_yield`].
    pub may_be_yield: bool,
    /// See [`Outcome::is_unheralded`].
    pub is_unheralded: bool,
    /// The follower before it.
    checkpoint: Option<Box<Follower<P>>>,
}

impl<P> Default for History<P> {
    fn default() -> History<P> {
        History { entries: VecDeque::new(), gone: 0, assumption: None }
    }
}

impl<P: Policy + Clone> History<P> {
    /// Whether the next event must come with the follower before it.
    pub(super) fn wants_checkpoint(&self) -> bool {
        (self.gone + self.entries.len()).is_multiple_of(STEP)
    }

    pub(super) fn push(
        &mut self,
        observation: Observation,
        outcome: &Outcome,
        checkpoint: Option<Follower<P>>,
    ) {
        let Outcome { may_be_yield, is_unheralded, .. } = *outcome;
        self.entries.push_back(Entry {
            observation,
            may_be_yield,
            is_unheralded,
            checkpoint: checkpoint.map(Box::new),
        });
        while self.entries.len() > KEPT
            || self.entries.front().is_some_and(|entry| entry.checkpoint.is_none())
        {
            self.entries.pop_front();
            self.gone += 1;
        }
    }

    /// The follower before the event at `at`.
    pub(super) fn before(&self, at: usize) -> Option<Follower<P>> {
        let (begin, checkpoint) =
            (0..=at).rev().find_map(|at| Some((at, self.entries[at].checkpoint.as_deref()?)))?;
        let mut follower = checkpoint.clone();
        self.entries.range(begin..at).for_each(|entry| drop(follower.follow(entry.observation)));
        Some(follower)
    }

    /// Replaces the event at `at`. Returns the follower after the last event.
    pub(super) fn rewrite(&mut self, at: usize, observation: Observation) -> Option<Follower<P>> {
        let mut follower = self.before(at)?;
        self.entries[at].observation = observation;
        for entry in self.entries.range_mut(at..) {
            if let Some(checkpoint) = &mut entry.checkpoint {
                **checkpoint = follower.clone();
            }
            let outcome = follower.follow(entry.observation);
            (entry.may_be_yield, entry.is_unheralded) =
                (outcome.may_be_yield, outcome.is_unheralded);
        }
        Some(follower)
    }
}
