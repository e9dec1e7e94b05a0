//! What a task has done of its event loops, and which of the objects of the last wait are left.

use crate::epoll;
use crate::program::{Serve, Source};
use crate::stage::Stage;
use phases::Trigger;
use std::collections::BTreeMap;
use std::vec;

/// Where a task is in its waits for sets.
#[derive(Default)]
pub struct EventLoops {
    /// The objects that the last wait returned and that are not handled yet, by place in the set.
    returned: vec::IntoIter<usize>,
    /// Of handlers that differ from round to round: where each continues, by the number of the wait.
    cursors: BTreeMap<usize, Vec<usize>>,
    /// The object whose round the task does.
    handling: Option<usize>,
    /// By set: the objects that the last wait returned and that the task is to drain.
    draining: BTreeMap<usize, Vec<usize>>,
}

impl EventLoops {
    /// Waits until an object has data. Returns the op at which the task continues if not the next;
    /// `None` if the kernel refuses.
    ///
    /// The kernel would return an object with data for ever. So an object of which all rounds are
    /// done is not watched until the loop ends; then the kernel looks at all again.
    pub fn wait(&mut self, stage: &Stage, serve: usize) -> Option<Option<usize>> {
        let Serve { epoll: set, handlers, after, rounds } = &stage.program.serves[serve];
        let (epoll, most) = (stage.epolls[*set], stage.program.epolls[*set].events);
        let objects = &stage.watched[*set];
        // What it left counts as news.
        let drained = self.draining.remove(set);
        epoll::watch(epoll, objects, drained.into_iter().flatten(), true)?;
        if let Some(rounds) = rounds {
            let is_new = !self.cursors.contains_key(&serve);
            let cursors = self.cursors.entry(serve).or_insert_with(|| handlers.clone());
            if is_new {
                let without =
                    (0..handlers.len()).filter(|&place| cursors[place] == rounds.ends[place]);
                epoll::watch(epoll, objects, without, false)?;
            }
            if *cursors == rounds.ends {
                self.cursors.remove(&serve);
                let own = |place: &usize| {
                    let Source { off, trigger, .. } = objects[*place].of;
                    !off && trigger != Trigger::Once
                };
                epoll::watch(epoll, objects, (0..objects.len()).filter(own), true)?;
                return Some(Some(*after));
            }
        }
        let returned = epoll::wait(epoll, most)?;
        let is_drained = |place: &usize| objects[*place].of.trigger == Trigger::Drained;
        let draining: Vec<usize> = returned.iter().copied().filter(is_drained).collect();
        if !draining.is_empty() {
            self.draining.insert(*set, draining);
        }
        self.returned = returned.into_iter();
        Some(None)
    }

    /// The op of the handler of the next object, or behind all, if the op before `at` ends a
    /// handler; `None` if the kernel refuses.
    pub fn next(&mut self, stage: &Stage, serve: usize, at: usize) -> Option<usize> {
        let Serve { epoll: set, handlers, after, rounds } = &stage.program.serves[serve];
        let Some(rounds) = rounds else {
            let next = self.returned.next();
            return Some(next.map_or(*after, |place| handlers[place]));
        };
        let cursors = self.cursors.get_mut(&serve)?;
        if let Some(last) = self.handling.take() {
            cursors[last] = at;
            if at == rounds.ends[last] {
                epoll::watch(stage.epolls[*set], &stage.watched[*set], [last].into_iter(), false)?;
            }
        }
        // One that is done may have been watched again.
        let next = self.returned.find(|&place| cursors[place] != rounds.ends[place]);
        self.handling = next;
        Some(next.map_or(rounds.begin, |place| cursors[place]))
    }
}
