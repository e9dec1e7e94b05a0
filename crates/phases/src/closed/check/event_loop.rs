//! Checks event loops, and who waits for a set.

use super::{Verdict, expect, invalid};
use crate::closed::{Closed, EventLoopPhase, LoopPhase, Phase, ServePhase};
use std::collections::BTreeMap;

impl Closed {
    pub(super) fn check_event_loop(&self, event_loop: &EventLoopPhase, key: &str) -> Verdict {
        self.check_handled(&event_loop.epoll, event_loop.handle.len(), false, key)?;
        let does_something = event_loop.handle.iter().any(|rounds| !rounds.is_empty());
        expect(does_something, key, || "no object has a round; write one".into())?;
        for (key, round) in event_loop.rounds(key) {
            check_round(round, &key)?;
        }
        Ok(())
    }

    /// An object of which all rounds are done stays in its set, and the task that is in the loop does
    /// not hear of it. Another task that waits for the set would.
    pub(super) fn check_waiters(&self) -> Verdict {
        let mut waiters: BTreeMap<&str, u64> = BTreeMap::new();
        let mut event_loops = Vec::new();
        for (index, tasks) in self.tasks.iter().enumerate() {
            let mut sets = Vec::new();
            for place in self.reached_by(tasks, &format!("task[{index}]")) {
                let epoll = match place.phase {
                    Phase::Serve(ServePhase { epoll, .. }) => epoll,
                    Phase::EventLoop(EventLoopPhase { epoll, .. }) => {
                        event_loops.push((epoll, place.key));
                        epoll
                    }
                    _ => continue,
                };
                if !sets.contains(&epoll.as_str()) {
                    sets.push(epoll);
                    let waiting = waiters.entry(epoll).or_default();
                    *waiting = waiting.saturating_add(u64::from(tasks.count));
                }
            }
        }
        for (epoll, key) in event_loops {
            let waiting = waiters.get(epoll.as_str()).copied().unwrap_or_default();
            expect(waiting <= 1, &key, || {
                format!(
                    "{waiting} tasks wait for the set {epoll}, and an event loop needs one of its \
                     own; give each task a set"
                )
            })?;
        }
        Ok(())
    }
}

/// A round ends, and leaves the loop where it is.
fn check_round(phases: &[Phase], key: &str) -> Verdict {
    for (index, phase) in phases.iter().enumerate() {
        let key = format!("{key}[{index}]");
        match phase {
            Phase::Loop(LoopPhase { times: None, .. }) | Phase::Exec(_) => {
                return invalid(key, "this phase never returns to its event loop");
            }
            Phase::Serve(_) | Phase::EventLoop(_) => {
                return invalid(key, "a task can be in one event loop at a time; poll the set");
            }
            Phase::Loop(inner) => check_round(&inner.phases, &format!("{key}.loop.phases"))?,
            _ => {}
        }
    }
    Ok(())
}
