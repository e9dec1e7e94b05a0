//! Wait queues: who waits for an object, in the order in which the kernel wakes them.
//!
//! A waiter that is not exclusive stands at the head, so that the last to come is woken first, and
//! all of them are. Exclusive ones stand behind them in order of arrival, and one is woken. A waiter
//! that is woken leaves the queue, and stands in it anew if it has to wait again.
//!
//! Source: Linux, `kernel/sched/wait.c`.

use crate::TaskId;
use std::collections::VecDeque;

/// What has happened to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// There is something to receive.
    In,
    /// There is room to send.
    Out,
}

/// A receiver of news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    Task(TaskId),
    /// A source of a set, which stays in the queue.
    Source(u32),
    /// A task that polls several objects, which stays in the queue until one has data.
    Poller(TaskId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiter {
    who: Who,
    /// The only news that wake it, if it chooses.
    only: Option<News>,
    is_exclusive: bool,
}

/// The tasks that wait for an object.
#[derive(Debug, Default)]
pub struct WaitQueue(VecDeque<Waiter>);

impl WaitQueue {
    /// `task` waits with all others, for any news.
    pub fn add(&mut self, task: TaskId) {
        self.0.push_front(Waiter { who: Who::Task(task), only: None, is_exclusive: false });
    }

    /// A source of a set or a task that polls, which stays in the queue and hears all such news.
    pub fn watch(&mut self, who: Who, only: News) {
        self.0.push_front(Waiter { who, only: Some(only), is_exclusive: false });
    }

    /// A source of a set that takes news from those behind it, if a task waits for its set.
    pub fn watch_exclusive(&mut self, who: Who, only: News) {
        self.0.push_back(Waiter { who, only: Some(only), is_exclusive: true });
    }

    /// `task` polls no more.
    pub fn leave(&mut self, task: TaskId) {
        self.0.retain(|waiter| waiter.who != Who::Poller(task));
    }

    /// `task` waits with all others behind those who wait already.
    pub fn add_last(&mut self, task: TaskId) {
        self.0.push_back(Waiter { who: Who::Task(task), only: None, is_exclusive: false });
    }

    /// `task` waits for its turn to get such news.
    pub fn add_exclusive(&mut self, task: TaskId, only: News) {
        self.0.push_back(Waiter { who: Who::Task(task), only: Some(only), is_exclusive: true });
    }

    /// The number of waiters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes those who are woken, all that are not exclusive and one that is, and adds them to
    /// `woken`. An exclusive source is that one if a task waits for its set.
    pub fn wake(&mut self, news: News, woken: &mut Vec<Who>, has_waiter: impl Fn(u32) -> bool) {
        let mut is_served = false;
        self.0.retain(|waiter| {
            let hears = waiter.only.is_none_or(|only| only == news);
            if !hears || is_served {
                return true;
            }
            is_served = waiter.is_exclusive
                && match waiter.who {
                    Who::Source(source) => has_waiter(source),
                    Who::Task(_) | Who::Poller(_) => true,
                };
            woken.push(waiter.who);
            matches!(waiter.who, Who::Source(_) | Who::Poller(_))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_are_woken_last_first_and_one_that_is_exclusive() {
        let mut queue = WaitQueue::default();
        let wake = |queue: &mut WaitQueue, news| {
            let mut woken = Vec::new();
            queue.wake(news, &mut woken, |source| source != 88);
            let number = |who| match who {
                Who::Task(task) | Who::Poller(task) => task.0,
                Who::Source(source) => source,
            };
            woken.into_iter().map(number).collect::<Vec<u32>>()
        };
        queue.watch(Who::Source(77), News::In);
        for task in 0..3 {
            queue.add_exclusive(TaskId(task), News::In);
            queue.add(TaskId(10 + task));
        }
        assert_eq!(wake(&mut queue, News::Out), [12, 11, 10]);
        queue.add(TaskId(9));
        assert_eq!(wake(&mut queue, News::In), [9, 77, 0]);
        assert_eq!(wake(&mut queue, News::In), [77, 1]);
        queue.add_exclusive(TaskId(0), News::In);
        assert_eq!(wake(&mut queue, News::In), [77, 2]);
        assert_eq!(wake(&mut queue, News::In), [77, 0]);
        assert_eq!(wake(&mut queue, News::In), [77]);
        assert!(wake(&mut queue, News::Out).is_empty());
        // A set for which no task waits passes news on to the next.
        for source in [88, 99, 111] {
            queue.watch_exclusive(Who::Source(source), News::In);
        }
        assert_eq!(wake(&mut queue, News::In), [77, 88, 99]);
    }
}
