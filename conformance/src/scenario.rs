//! Plays a scenario: the runner is the CPU, its timer and the tasks; the subject decides.
//!
//! At one time, the running task's program continues first, then sleepers wake in the order of their
//! numbers, then the tick comes. A pick follows whatever ends a run or asks for one.

use crate::format::{Answer, Event, Op};
use crate::header::Header;
use crate::ideal::{Client, Ideal};
use crate::ledger::Ledger;
use crate::outcome::{Difference, Outcome, Verdict};
use crate::program::{Action, Program};
use crate::property::Property;
use crate::stated::{Seen, Stated};
use crate::subject::Subject;

/// A task at work.
struct Actor<'a> {
    program: &'a Program,
    /// Its next action.
    next: usize,
    /// What is left of its run, in ns.
    left: i64,
    /// If it sleeps, until when.
    sleeps: Option<i64>,
    joined: bool,
}

struct Cpu<'a> {
    subject: &'a mut dyn Subject,
    now: i64,
    actors: Vec<Actor<'a>>,
    /// The place of the running task in `actors`.
    running: Option<usize>,
    ledger: Ledger,
    ideal: Ideal,
    stated: Stated<'a>,
    last: String,
    outcome: Outcome,
    header: &'a Header,
}

/// Plays the programs to `subject`.
pub(crate) fn play(header: &Header, programs: &[Program], subject: &mut dyn Subject) -> Outcome {
    let (tick, until) = (header.tick.unwrap_or(1), header.until.unwrap_or(1));
    let actor = |program| Actor { program, next: 0, left: 0, sleeps: None, joined: false };
    let client = |program: &Program| Client {
        weight: program.weight,
        slice: program.slice,
        is_hungry: program.is_hungry(),
        leaves: !program.is_hungry(),
    };
    let mut cpu = Cpu {
        subject,
        now: 0,
        actors: programs.iter().map(actor).collect(),
        running: None,
        ledger: Ledger::default(),
        ideal: Ideal::new(tick, programs.iter().map(client)),
        stated: Stated::new(header),
        last: String::new(),
        outcome: Outcome::new(),
        header,
    };
    cpu.actors.iter_mut().for_each(|actor| actor.sleeps = Some(actor.program.begin));
    if let Err(verdict) = cpu.play(tick, until) {
        cpu.outcome.verdict = verdict;
    }
    cpu.outcome
}

impl Cpu<'_> {
    fn play(&mut self, tick: i64, until: i64) -> Result<(), Verdict> {
        self.send(Op::Reset { tick, slice: self.header.slice.unwrap_or(1) })?;
        for place in 0..self.actors.len() {
            let &Program { task, weight, slice, vruntime, lag, .. } = self.actors[place].program;
            self.send(Op::Task { task, weight, slice, vruntime, lag })?;
        }
        self.wake()?;
        loop {
            let wakes = self.actors.iter().filter_map(|actor| actor.sleeps).min();
            let ends = self.running.map(|place| self.now.saturating_add(self.actors[place].left));
            let ticks = self.running.map(|_| (self.now / tick + 1).saturating_mul(tick));
            let next = [wakes, ends, ticks].into_iter().flatten().min().unwrap_or(until);
            self.advance(next.min(until))?;
            if next >= until {
                return self.finish();
            }
            self.perform()?;
            self.wake()?;
            if self.now % tick == 0 && self.running.is_some() {
                self.send_and_pick(Op::Tick)?;
                self.perform()?;
            }
        }
    }

    /// Time advances to `to`.
    fn advance(&mut self, to: i64) -> Result<(), Verdict> {
        let ran = to - self.now;
        self.now = to;
        self.ideal.advance(ran, self.running);
        if let Some(place) = self.running {
            self.actors[place].left -= ran;
        }
        if !self.claims(Property::LagBound) {
            return Ok(());
        }
        let excess = self.ideal.excess(0);
        self.outcome.count(Property::LagBound);
        match excess {
            None => Ok(()),
            Some((place, bound, got)) => Err(self.differ(place, Property::LagBound, bound, got)),
        }
    }

    /// The running task does what needs no time.
    fn perform(&mut self) -> Result<(), Verdict> {
        while let Some(place) = self.running.filter(|&place| self.actors[place].left == 0) {
            let actor = &mut self.actors[place];
            let action = actor.program.actions[actor.next];
            actor.next = (actor.next + 1) % actor.program.actions.len();
            match action {
                Action::Run(time) => actor.left = time,
                Action::Sleep(time) => {
                    actor.sleeps = Some(self.now.saturating_add(time));
                    self.send(Op::Block)?;
                    self.running = None;
                    self.ideal.leave(place);
                    self.pick()?;
                }
                Action::Yield => {
                    self.send(Op::Yield)?;
                    self.pick()?;
                }
                Action::Weight(weight) => {
                    let task = actor.program.task;
                    self.ideal.reweigh(place, weight);
                    self.stated.forget(task);
                    self.send_and_pick(Op::Weight { task, weight })?;
                }
            }
        }
        Ok(())
    }

    /// Who has slept long enough wakes.
    fn wake(&mut self) -> Result<(), Verdict> {
        for place in 0..self.actors.len() {
            let actor = &mut self.actors[place];
            if actor.sleeps.is_some_and(|until| until <= self.now) {
                actor.sleeps = None;
                let task = actor.program.task;
                let is_new = !std::mem::replace(&mut actor.joined, true);
                self.ideal.join(place);
                self.stated.forget(task);
                self.send_and_pick(if is_new { Op::New { task } } else { Op::Wake { task } })?;
                self.perform()?;
            }
        }
        Ok(())
    }

    fn send_and_pick(&mut self, op: Op) -> Result<(), Verdict> {
        let answer = self.send(op)?;
        match answer.resched == Some(true) || self.running.is_none() {
            true => self.pick(),
            false => Ok(()),
        }
    }

    /// Asks who runs. The chosen one may have to [`perform`](Cpu::perform) at once.
    fn pick(&mut self) -> Result<(), Verdict> {
        let answer = self.send(Op::Pick)?;
        let Some(runs) = answer.runs else {
            return Err(Verdict::Broken(format!("at {}: a pick needs `runs`", self.now)));
        };
        self.outcome.count(Property::Conserve);
        let chosen = self.actors.iter().position(|actor| actor.program.task == runs);
        if let Some((expected, got)) = self.ledger.wrong_pick(runs) {
            let ready = self.actors.iter().position(|actor| actor.sleeps.is_none());
            return Err(self.differ(ready.unwrap_or(0), Property::Conserve, expected, got));
        }
        let before = std::mem::replace(&mut self.running, chosen);
        self.apply(&Event { at: self.now, op: Op::Pick }, Some(runs))?;
        if chosen.is_some() && before != chosen {
            let found = self.stated.pick(&mut self.outcome, runs, &answer);
            self.found(found)?;
        }
        Ok(())
    }

    /// The subject receives an event and answers.
    fn send(&mut self, op: Op) -> Result<Answer, Verdict> {
        let event = Event { at: self.now, op };
        self.last = event.line();
        let answer = self
            .subject
            .event(&event)
            .map_err(|why| Verdict::Broken(format!("at {}: {why}", self.now)))?;
        self.outcome.events += 1;
        if let Some(why) = answer.error {
            return Err(Verdict::Refused(why));
        }
        let seen = Seen {
            event: &event,
            answer: &answer,
            running: self.running.map(|place| self.actors[place].program.task),
            all_ready: self.actors.iter().all(|actor| !actor.joined || actor.sleeps.is_none()),
        };
        let clients = self.actors.iter().zip(self.ideal.clients());
        let found = self.stated.check(
            &mut self.outcome,
            &seen,
            clients.map(|(actor, client)| (actor.program.task, *client)).collect(),
        );
        self.found(found)?;
        if op != Op::Pick {
            self.apply(&event, None)?;
        }
        Ok(answer)
    }

    /// The event has happened; at a pick, `runs` runs from now on.
    fn apply(&mut self, event: &Event, runs: Option<u32>) -> Result<(), Verdict> {
        let why = |why| format!("at {}: this scenario contradicts itself: {why}", event.at);
        self.ledger.apply(event, runs).map_err(|error| Verdict::Broken(why(error)))
    }

    fn finish(&mut self) -> Result<(), Verdict> {
        if !self.claims(Property::Share) {
            return Ok(());
        }
        for place in 0..self.actors.len() {
            if !self.actors[place].program.is_hungry() {
                continue;
            }
            self.outcome.count(Property::Share);
            let (served, ideal) = self.ideal.served(place);
            if served.abs_diff(ideal) > self.header.tolerance.unsigned_abs() {
                let expected = format!("{ideal} ns by its weight, ± {}", self.header.tolerance);
                return Err(self.differ(place, Property::Share, expected, format!("{served} ns")));
            }
        }
        Ok(())
    }

    fn claims(&self, property: Property) -> bool {
        self.header.properties.contains(&property)
    }

    fn found(&self, found: Option<(u32, Property, String, String)>) -> Result<(), Verdict> {
        match found {
            None => Ok(()),
            Some((task, property, expected, got)) => {
                let place = self.actors.iter().position(|actor| actor.program.task == task);
                Err(self.differ(place.unwrap_or(0), property, expected, got))
            }
        }
    }

    fn differ(&self, place: usize, property: Property, expected: String, got: String) -> Verdict {
        let Program { line, task, .. } = *self.actors[place].program;
        let expected = match property {
            Property::Conserve => format!("at {}: {expected}", self.now),
            _ => format!("at {} task {task}: {expected}", self.now),
        };
        Verdict::Differ(Difference {
            line,
            event: self.last.clone(),
            property,
            expected,
            got,
            rows: Vec::new(),
        })
    }
}
