//! Finds event loops: waits for a set, each followed by calls on the objects that had data.
//!
//! A recording has the order in which data came. In the replay the loop is "for each object with
//! data: handle it", so that batches follow the schedule. What a handler does, and what it costs,
//! is what was recorded for its object, in order. The third time that an object is handled is its
//! third time in the recording. A loop ends when all that was recorded is done.
//!
//! A round is what happens between two waits. It costs something itself (`round_work`). Its part
//! for an object begins with the work before the first read from it and contains all reads from it.
//! A write is part of the object that was read last, unless it is an answer. An answer always goes
//! to an object that was read before in the same round, and not always after the same one. Such a
//! program answers when it has read all. In the replay an answer is owed (an event counter in the
//! set), and given in the next round. A write for which the set watches room, to an object that was
//! not read in the round, is a part of its own. All that a task does otherwise (sleeps, tokens,
//! locks, reads elsewhere) ends the loop, as its order is not that of the objects.

mod round_work;

use super::carriers::{Carrier, carried_by, carrier, room_for, taken_from};
use super::latches::{Placed, name_of};
use super::log::{Deed, Did};
use super::report::ReplayReport;
use super::task::Task;
use crate::workload::{
    Action, Eventfd, Operation, Rounds, Script, Serve, Shared, Source, Step, Trigger, Watched,
    Workload,
};
use crate::{Nanos, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer rounds are no loop.
const FEWEST: usize = 2;

/// Who takes data from what.
pub(super) struct Takers {
    /// The only task that takes data from an object; `None` if several do.
    only: BTreeMap<Watched, Option<TaskId>>,
    /// The tasks that wait for sets.
    waiting: BTreeSet<TaskId>,
}

/// What a task does for each object of a set, in parts: one for each round.
type Parts = BTreeMap<Watched, Vec<Vec<Step>>>;

impl Takers {
    pub fn of(tasks: &[Task], shared: &Shared, placed: &Placed) -> Takers {
        let mut takers = Takers { only: BTreeMap::new(), waiting: BTreeSet::new() };
        if shared.serves.is_empty() {
            return takers;
        }
        for (task, state) in (0..).map(TaskId).zip(tasks) {
            for (_, deed) in state.log.entries() {
                let Deed::Called { did, .. } = deed else { continue };
                if let Did::Operation(Operation::Serve(_)) = did {
                    takers.waiting.insert(task);
                }
                let taken = match did {
                    Did::Operation(operation) => taken_from(operation),
                    did => placed.taken(did),
                };
                if let Some(taken) = taken {
                    let only = takers.only.entry(taken).or_insert(Some(task));
                    *only = only.filter(|only| *only == task);
                }
            }
        }
        takers
    }

    /// Whether a task waits for a set.
    pub fn waits(&self, task: TaskId) -> bool {
        self.waiting.contains(&task)
    }

    /// A script that does the same in loops, where there are any.
    pub fn find_loops(
        &self,
        task: TaskId,
        script: &Script,
        shared: &mut Shared,
        report: &mut ReplayReport,
    ) -> Script {
        let mut steps: Vec<Step> = script.steps().collect();
        let mut found = Script::new();
        let (mut rooms, mut answers) = (Rooms::of(shared), Answers::behind(shared));
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            let rounds = self.rounds(task, &steps[at..], shared);
            let Some((serve, end, count)) = rounds.filter(|(_, _, count)| *count >= FEWEST) else {
                rooms.change(step.then);
                found.push(step.run, step.then);
                at += 1;
                continue;
            };
            if step.run > Nanos::ZERO {
                found.push(step.run, Action::Continue);
            }
            let epoll = shared.serves[serve as usize].epoll;
            let round = round_work::take_off(&mut steps[at..at + end]);
            let (parts, rest) = parts(&steps[at..at + end], epoll, &mut rooms, &mut answers);
            answers.place(epoll, shared);
            // Where answers are given in the next round, there are two for each of the recording.
            let round = Nanos(round.0 / if answers.are_among(&parts) { 2 } else { 1 });
            write(&mut found, serve, (round, parts), shared);
            rest.into_iter().for_each(|step| found.push(step.run, step.then));
            report.event_loops += 1;
            report.loop_rounds += count as u64;
            at += end;
        }
        found.shrink();
        found
    }

    /// If these steps begin with a loop: its wait, how many steps it has, and how many rounds.
    fn rounds(&self, task: TaskId, steps: &[Step], shared: &Shared) -> Option<(u32, usize, usize)> {
        let Action::Do(Operation::Serve(serve)) = steps.first()?.then else { return None };
        let epoll = shared.serves.get(serve as usize)?.epoll;
        let set = shared.epolls.get(epoll as usize)?;
        let is_own =
            |source: Watched| set.has(source) && self.only.get(&source) == Some(&Some(task));
        let is_part = |step: &&Step| match step.then {
            Action::Continue | Action::Wake(_) => true,
            Action::Do(Operation::Serve(other)) => other == serve,
            Action::Do(Operation::Watch { .. }) => true,
            Action::Do(operation) => match taken_from(operation) {
                Some(source) => is_own(source),
                None => carrier(operation).is_some(),
            },
            _ => false,
        };
        let end = steps.iter().take_while(is_part).count();
        // What follows the last read or write stands behind the loop.
        let is_last = |step: &Step| match step.then {
            Action::Do(Operation::Watch { .. }) => true,
            Action::Do(operation) => carrier(operation).is_some(),
            _ => false,
        };
        let end = steps[..end].iter().rposition(is_last)? + 1;
        let is_wait = |step: &&Step| step.then == Action::Do(Operation::Serve(serve));
        Some((serve, end, steps[..end].iter().filter(is_wait).count()))
    }
}

/// The rooms that sets watch, as far as a task's steps have gone.
struct Rooms(BTreeSet<(u32, Watched)>);

impl Rooms {
    fn of(shared: &Shared) -> Rooms {
        let is_room = |object| matches!(object, Watched::Room(_) | Watched::PipeRoom(_));
        let sets = (0..).zip(&shared.epolls).flat_map(|(epoll, set)| {
            let on = set.sources.iter().filter(|of| !of.is_off && is_room(of.object));
            on.map(move |of| (epoll, of.object))
        });
        Rooms(sets.collect())
    }

    fn change(&mut self, then: Action) {
        if let Action::Do(Operation::Watch { epoll, object, on }) = then {
            match on {
                true => self.0.insert((epoll, object)),
                false => self.0.remove(&(epoll, object)),
            };
        }
    }
}

/// What a task owes to whom, by the object that it has read.
#[derive(Default)]
struct Answers {
    /// The number of the event counter, from the first that a workload gets for this task on.
    counters: BTreeMap<Watched, u32>,
    first: u32,
    placed: usize,
}

impl Answers {
    fn behind(shared: &Shared) -> Answers {
        Answers { first: shared.eventfds.len() as u32, ..Answers::default() }
    }

    fn counter(&mut self, source: Watched) -> u32 {
        let next = self.first + self.counters.len() as u32;
        *self.counters.entry(source).or_insert(next)
    }

    fn are_among(&self, parts: &Parts) -> bool {
        self.counters.values().any(|counter| parts.contains_key(&Watched::Eventfd(*counter)))
    }

    /// Adds the new counters to the workload and to a set.
    fn place(&mut self, epoll: u32, shared: &mut Shared) {
        let mut all: Vec<(u32, Watched)> =
            self.counters.iter().map(|(source, counter)| (*counter, *source)).collect();
        all.sort_unstable();
        for (counter, source) in all.split_off(self.placed) {
            let name = format!("answers to {}", name_of(source, shared));
            shared.eventfds.push(Eventfd { name, is_semaphore: true, count: 0, wakes_one: false });
            debug_assert_eq!(shared.eventfds.len() as u32, counter + 1);
        }
        self.placed = self.counters.len();
        let set = &mut shared.epolls[epoll as usize];
        for counter in self.counters.values().map(|counter| Watched::Eventfd(*counter)) {
            if !set.has(counter) {
                set.sources.push(counter.into());
            }
        }
    }
}

/// Makes the sets fit the scripts, now that all are written.
pub(super) fn complete(workload: &mut Workload) {
    let Workload { tasks, shared, .. } = workload;
    // A wait that is in no loop is followed by what was recorded, whatever it returns: a source that
    // it takes off the list, and that nothing handles, would never come back.
    let is_special = |source: &Source| source.trigger != Trigger::Level;
    if shared.epolls.iter().any(|set| set.sources.iter().any(is_special)) {
        let mut plain = BTreeSet::new();
        for step in tasks.iter().flat_map(|task| task.script.steps()) {
            let Action::Do(Operation::Serve(serve)) = step.then else { continue };
            if let Some(Serve { epoll, rounds: None, .. }) = shared.serves.get(serve as usize) {
                plain.insert(*epoll);
            }
        }
        for epoll in plain {
            let sources = &mut shared.epolls[epoll as usize].sources;
            sources.iter_mut().for_each(|source| source.trigger = Trigger::Level);
        }
    }
    // A loop that was written before its set got an object has nothing to do for it.
    for Serve { epoll, handlers, after, rounds } in &mut shared.serves {
        let Some(Rounds { ends, .. }) = rounds else { continue };
        let sources = shared.epolls[*epoll as usize].sources.len();
        handlers.resize(sources, *after);
        ends.resize(sources, *after);
    }
}

/// The steps of a loop over a set by object, and what is left.
fn parts(
    steps: &[Step],
    epoll: u32,
    rooms: &mut Rooms,
    answers: &mut Answers,
) -> (Parts, Vec<Step>) {
    let answered = answered(steps);
    let mut parts = Parts::new();
    // Of this round: which objects were handled, the last of them, and steps before the first.
    let mut handled: BTreeSet<Watched> = BTreeSet::new();
    // To whom an answer of this round is owed.
    let mut owed: BTreeSet<Watched> = BTreeSet::new();
    let mut last: Option<Watched> = None;
    let mut before: Vec<Step> = Vec::new();
    for (number, &step) in steps.iter().enumerate() {
        rooms.change(step.then);
        let Action::Do(operation) = step.then else {
            push(&mut parts, last, &mut before, step);
            continue;
        };
        // A program that ends its loop deletes all objects, after whichever was the last. In another
        // order others come after that one: what ends is the object's own.
        if let Operation::Watch { object, on: false, .. } = operation
            && parts.contains_key(&object)
        {
            if step.run > Nanos::ZERO {
                let run = Step { run: step.run, then: Action::Continue };
                push(&mut parts, last, &mut before, run);
            }
            let ends = Step { run: Nanos::ZERO, then: step.then };
            push(&mut parts, Some(object), &mut before, ends);
            continue;
        }
        if let Operation::Serve(_) = operation {
            // The work before the wait is the last handler's; before the first one it was written.
            if number > 0 && step.run > Nanos::ZERO {
                let run = Step { run: step.run, then: Action::Continue };
                push(&mut parts, last, &mut before, run);
            }
            handled.clear();
            owed.clear();
            last = None;
            continue;
        }
        if let Some(source) = taken_from(operation) {
            // Who takes all that a counter has takes it one by one: in the replay there may be fewer,
            // and the set is ready again for the rest.
            let is_counter = matches!(source, Watched::Eventfd(_));
            if handled.insert(source) || is_counter {
                parts.entry(source).or_default().push(std::mem::take(&mut before));
            }
            last = Some(source);
            push(&mut parts, last, &mut before, step);
            continue;
        }
        let is_same = |source: &Watched| carrier(operation) == Some(carried_by(*source));
        let room = room_for(operation).filter(|room| rooms.0.contains(&(epoll, *room)));
        let is_awaited = |room: &Watched| handled.contains(room) || !handled.iter().any(is_same);
        if let Some(room) = room.filter(is_awaited) {
            if handled.insert(room) {
                parts.entry(room).or_default().push(std::mem::take(&mut before));
            }
            last = Some(room);
            push(&mut parts, last, &mut before, step);
            continue;
        }
        let is_answer = carrier(operation).is_some_and(|of| answered.contains(&of));
        if let Some(source) = handled.iter().copied().filter(|_| is_answer).find(is_same) {
            let eventfd = answers.counter(source);
            let counter = Watched::Eventfd(eventfd);
            if owed.insert(source) {
                let step = |operation| Step { run: Nanos::ZERO, then: Action::Do(operation) };
                let owes = step(Operation::Post { eventfd, count: 1 });
                push(&mut parts, Some(source), &mut before, owes);
                parts.entry(counter).or_default().push(vec![step(Operation::Take(eventfd))]);
            }
            last = Some(counter);
        }
        push(&mut parts, last, &mut before, step);
    }
    (parts, before)
}

/// What answers are written to: each time it was read before in the round, and not always last.
fn answered(steps: &[Step]) -> BTreeSet<Carrier> {
    let (mut unasked, mut read) = (BTreeSet::new(), BTreeSet::new());
    let mut last = None;
    let mut behind: BTreeMap<Carrier, BTreeSet<Option<Carrier>>> = BTreeMap::new();
    for step in steps {
        let Action::Do(operation) = step.then else { continue };
        if let Operation::Serve(_) = operation {
            read.clear();
        } else if let Some(of) = carrier(operation) {
            if taken_from(operation).is_some() {
                read.insert(of);
                last = Some(of);
            } else {
                behind.entry(of).or_default().insert(last);
                if !read.contains(&of) {
                    unasked.insert(of);
                }
            }
        }
    }
    let answers = behind.into_iter().filter(|(of, last)| last.len() > 1 && !unasked.contains(of));
    answers.map(|(of, _)| of).collect()
}

/// Adds a step to the latest part of an object, or to what stands before the next one.
fn push(parts: &mut Parts, of: Option<Watched>, before: &mut Vec<Step>, step: Step) {
    match of.and_then(|of| parts.get_mut(&of)).and_then(|parts| parts.last_mut()) {
        Some(part) => part.push(step),
        None => before.push(step),
    }
}

/// Writes a loop.
fn write(
    script: &mut Script,
    recorded: u32,
    (round, mut parts): (Nanos, Parts),
    shared: &mut Shared,
) {
    let number = shared.serves.len() as u32;
    let epoll = shared.serves[recorded as usize].epoll;
    let begin = script.end();
    script.push(Nanos::ZERO, Action::Do(Operation::Serve(number)));
    script.push(round, Action::Do(Operation::Handle(number)));
    let (mut handlers, mut ends) = (Vec::new(), Vec::new());
    for source in &shared.epolls[epoll as usize].sources {
        handlers.push(script.end());
        for part in parts.remove(&source.object).unwrap_or_default() {
            part.into_iter().for_each(|step| script.push(step.run, step.then));
            script.push(Nanos::ZERO, Action::Do(Operation::Handle(number)));
        }
        ends.push(script.end());
    }
    let rounds = Some(Rounds { begin, ends });
    shared.serves.push(Serve { epoll, handlers, after: script.end(), rounds });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Call, Until};

    /// A server that accepts all connections that there are took three in its first round. In a
    /// replay the first may be there alone: it is handled, and the others are awaited in the set.
    #[test]
    fn what_was_taken_at_once_is_handled_one_by_one() {
        let step = |run: u64, operation| Step { run: Nanos(run), then: Action::Do(operation) };
        let (wait, accept) = (Operation::Serve(0), Operation::Take(7));
        let read =
            |bytes| Operation::Read { pipe: 1, bytes, until: Until::Any, call: Call::Begins };
        let steps = [
            step(1, wait),
            step(2, accept),
            step(3, accept),
            step(4, accept),
            step(5, wait),
            step(6, read(10)),
            step(7, read(20)),
        ];
        let mut rooms = Rooms(BTreeSet::new());
        let (parts, rest) = parts(&steps, 0, &mut rooms, &mut Answers::default());
        let work = Step { run: Nanos(5), then: Action::Continue };
        let accepted = vec![vec![steps[1]], vec![steps[2]], vec![steps[3], work]];
        assert_eq!(parts[&Watched::Eventfd(7)], accepted);
        assert_eq!(parts[&Watched::Pipe(1)], vec![vec![steps[5], steps[6]]], "data is one message");
        assert!(rest.is_empty());
    }
}
