//! Dispatch queues (DSQs), as `kernel/sched/ext.c` has them.

use schedsim::TaskId;
use std::collections::BTreeMap;

/// Where a task waits: a queue of the kernel's, or one of the scheduler's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueueId {
    /// Of the tasks that this CPU runs next.
    Local(u16),
    /// Of all CPUs of a node.
    Global(u16),
    /// Created by the scheduler.
    Own(u64),
}

/// The place of a task in its queue: its rank, then the order in which tasks came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    rank: u64,
    turn: i64,
}

/// How a task is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// Before all others.
    Head,
    /// Behind all others.
    Tail,
    /// By its virtual time, behind its equals.
    Rank(u64),
}

/// A queue in order of arrival, or of virtual time.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The tasks, each with its number in order of arrival.
    tasks: BTreeMap<Place, (TaskId, u64)>,
    /// How many tasks have come (`dsq->seq`).
    arrivals: u64,
    /// The virtual time of the first task of an empty queue. Times are compared by their distance
    /// from it, as they wrap around.
    base: u64,
    is_ranked: bool,
    first: i64,
    last: i64,
}

/// Half of all virtual times.
const MIDDLE: u64 = 1 << 63;

impl Queue {
    /// Inserts `task`. Returns its place, or what is wrong: a queue is either in order of arrival or
    /// of virtual time.
    pub fn insert(&mut self, task: TaskId, at: At) -> Result<Place, &'static str> {
        let is_ranked = matches!(at, At::Rank(_));
        if self.tasks.is_empty() {
            self.is_ranked = is_ranked;
        } else if is_ranked != self.is_ranked {
            return Err(match is_ranked {
                true => "already had FIFO-enqueued tasks",
                false => "already had PRIQ-enqueued tasks",
            });
        }
        let place = match at {
            At::Head => {
                self.first -= 1;
                Place { rank: 0, turn: self.first }
            }
            At::Tail => {
                self.last += 1;
                Place { rank: 0, turn: self.last }
            }
            At::Rank(time) => {
                if self.tasks.is_empty() {
                    self.base = time;
                }
                self.last += 1;
                Place { rank: self.rank(time), turn: self.last }
            }
        };
        self.arrivals += 1;
        self.tasks.insert(place, (task, self.arrivals));
        Ok(place)
    }

    /// Takes the task at `place` out.
    pub fn remove(&mut self, place: Place) -> Option<TaskId> {
        self.tasks.remove(&place).map(|(task, _)| task)
    }

    /// The task at `place` has another virtual time; returns its place. In order of arrival it stays.
    pub fn rank_again(&mut self, place: Place, time: u64) -> Place {
        if !self.is_ranked {
            return place;
        }
        let Some(of) = self.tasks.remove(&place) else { return place };
        let moved = Place { rank: self.rank(time), ..place };
        self.tasks.insert(moved, of);
        moved
    }

    fn rank(&self, time: u64) -> u64 {
        time.wrapping_sub(self.base).wrapping_add(MIDDLE)
    }

    /// The first task.
    pub fn first(&self) -> Option<(Place, TaskId)> {
        self.tasks.first_key_value().map(|(&place, &(task, _))| (place, task))
    }

    /// How many tasks have come so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Whether the task at `place` is one of the first `arrivals` that came.
    pub fn came_within(&self, place: Place, arrivals: u64) -> bool {
        self.tasks.get(&place).is_some_and(|&(_, number)| number <= arrivals)
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether no task is in it.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// All tasks in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Place, TaskId)> + '_ {
        self.tasks.iter().map(|(&place, &(task, _))| (place, task))
    }

    /// The next task behind `place`, or before it if `backwards`; the first one of none.
    pub fn next(&self, place: Option<Place>, backwards: bool) -> Option<(Place, TaskId)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let found = match (place, backwards) {
            (None, false) => self.tasks.first_key_value(),
            (None, true) => self.tasks.last_key_value(),
            (Some(place), false) => self.tasks.range((Excluded(place), Unbounded)).next(),
            (Some(place), true) => self.tasks.range(..place).next_back(),
        };
        found.map(|(&place, &(task, _))| (place, task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_leave_in_order_and_times_wrap_around() {
        let mut queue = Queue::default();
        let times = [u64::MAX - 1, 3, u64::MAX, 3, 0];
        for (task, time) in (0..).map(TaskId).zip(times) {
            queue.insert(task, At::Rank(time)).unwrap();
        }
        let order: Vec<u32> = queue.iter().map(|(_, task)| task.0).collect();
        assert_eq!(order, [0, 2, 4, 1, 3]);
        assert!(queue.insert(TaskId(9), At::Tail).is_err());
    }

    #[test]
    fn a_task_at_the_head_is_first_and_a_cursor_outlives_its_task() {
        let mut queue = Queue::default();
        let places: Vec<Place> = [At::Tail, At::Tail, At::Head, At::Tail]
            .into_iter()
            .enumerate()
            .map(|(task, at)| queue.insert(TaskId(task as u32), at).unwrap())
            .collect();
        let order: Vec<u32> = queue.iter().map(|(_, task)| task.0).collect();
        assert_eq!(order, [2, 0, 1, 3]);
        assert_eq!(queue.remove(places[0]), Some(TaskId(0)));
        assert_eq!(queue.next(Some(places[0]), false).map(|(_, task)| task.0), Some(1));
        assert_eq!(queue.next(Some(places[0]), true).map(|(_, task)| task.0), Some(2));
        assert!(queue.insert(TaskId(9), At::Rank(1)).is_err());
    }

    #[test]
    fn a_task_that_came_later_is_told_apart_also_at_the_head_and_in_an_emptied_queue() {
        let mut queue = Queue::default();
        let old = queue.insert(TaskId(0), At::Tail).unwrap();
        let begun = queue.arrivals();
        let head = queue.insert(TaskId(1), At::Head).unwrap();
        assert!(queue.came_within(old, begun) && !queue.came_within(head, begun));
        queue.remove(old);
        queue.remove(head);
        let again = queue.insert(TaskId(0), At::Tail).unwrap();
        assert!(!queue.came_within(again, begun) && !queue.came_within(old, begun));
    }
}
