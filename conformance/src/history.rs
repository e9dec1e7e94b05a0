//! Plays a history: the subject receives the events of a kernel, and must do as the kernel did.

use crate::format::{Answer, Op, State};
use crate::header::Header;
use crate::ledger::Ledger;
use crate::outcome::{Difference, Outcome, Verdict};
use crate::property::Property;
use crate::read::Step;
use crate::subject::Subject;
use std::collections::BTreeMap;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Member {
    Vruntime,
    Deadline,
    Lag,
    Eligible,
    Resched,
    Runs,
}

/// The state members, causes before consequences.
pub(crate) const STATES: [Member; 4] =
    [Member::Vruntime, Member::Deadline, Member::Lag, Member::Eligible];

/// To which property a member belongs after an event. `own`: it is of the task that the event
/// moves (it wakes, blocks, yields, gets another weight), not of another one.
pub(crate) fn property_of(op: &Op, member: Member, own: bool) -> Property {
    match (member, op) {
        (Member::Runs, _) => Property::Pick,
        (Member::Eligible, _) => Property::Eligible,
        (Member::Resched, Op::Wake { .. } | Op::New { .. }) => Property::Preempt,
        (Member::Resched, Op::Weight { .. }) => Property::Weight,
        (Member::Resched, Op::Slice { .. }) => Property::Slice,
        (Member::Resched, _) => Property::Tick,
        (Member::Lag, Op::Block) => Property::Delay,
        (_, Op::Wake { .. } | Op::Task { .. }) if own => Property::Place,
        (_, Op::New { .. }) if own => Property::New,
        (_, Op::Yield) if own => Property::Yield,
        (_, Op::Weight { .. }) if own => Property::Weight,
        (_, Op::Slice { .. }) if own => Property::Slice,
        (Member::Vruntime, _) => Property::Charge,
        (Member::Deadline, _) => Property::Deadline,
        (Member::Lag, _) => Property::Mean,
    }
}

/// The task that an event moves.
pub(crate) fn own_task(op: &Op, running: Option<u32>) -> Option<u32> {
    match op {
        Op::Block | Op::Exit | Op::Yield => running,
        op => op.task(),
    }
}

/// A state member, as a number of ns.
pub(crate) fn number(state: &State, member: Member) -> Option<i64> {
    match member {
        Member::Vruntime => state.vruntime,
        Member::Deadline => state.deadline,
        Member::Lag => state.lag,
        _ => None,
    }
}

/// What the runner knows between two events.
struct Play<'a> {
    header: &'a Header,
    ledger: Ledger,
    /// What the kernel last said of each task.
    kernel: BTreeMap<u32, State>,
    /// The subject's virtual times minus the kernel's.
    origin: Option<i128>,
    /// The kernel wants to pick since an earlier event.
    asked: bool,
    outcome: Outcome,
}

/// How a comparison ends the vector.
enum End {
    Differ(Property, String, String),
    /// Rounding could decide.
    Tie,
    Refused(String),
    Broken(String),
}

/// Plays `steps` to `subject`.
pub(crate) fn play(header: &Header, steps: &[Step], subject: &mut dyn Subject) -> Outcome {
    let mut play = Play {
        header,
        ledger: Ledger::default(),
        kernel: BTreeMap::new(),
        origin: None,
        asked: false,
        outcome: Outcome::new(),
    };
    for step in steps {
        let answer = match subject.event(&step.event) {
            Ok(answer) => answer,
            Err(why) => {
                play.outcome.verdict = Verdict::Broken(format!("line {}: {why}", step.line));
                break;
            }
        };
        play.outcome.events += 1;
        match play.step(step, &answer) {
            Ok(()) => continue,
            Err(End::Tie) => play.outcome.tie = Some(step.line),
            Err(End::Refused(why)) => play.outcome.verdict = Verdict::Refused(why),
            Err(End::Broken(why)) => {
                play.outcome.verdict = Verdict::Broken(format!("line {}: {why}", step.line));
            }
            Err(End::Differ(property, expected, got)) => {
                let (line, event) = (step.line, step.event.line());
                let rows = play.rows(&step.then, &answer);
                play.outcome.verdict =
                    Verdict::Differ(Difference { line, event, property, expected, got, rows });
            }
        }
        break;
    }
    play.outcome
}

impl Play<'_> {
    fn step(&mut self, step: &Step, answer: &Answer) -> Result<(), End> {
        if let Some(why) = &answer.error {
            return Err(End::Refused(why.clone()));
        }
        let own = own_task(&step.event.op, self.ledger.running);
        let mut tasks: Vec<&State> = step.then.tasks.iter().collect();
        tasks.sort_by_key(|state| Some(state.task) != own);
        for member in STATES {
            for theirs in &tasks {
                if let Some(mine) = answer.state(theirs.task) {
                    let property = property_of(&step.event.op, member, Some(theirs.task) == own);
                    self.state(member, property, theirs, mine)?;
                }
            }
        }
        self.resched(step, answer)?;
        if step.event.op == Op::Pick {
            self.runs(&step.then, answer)?;
        }
        self.note(&step.then);
        self.ledger
            .apply(&step.event, step.then.runs)
            .map_err(|why| End::Broken(format!("this history contradicts itself: {why}")))
    }

    /// Compares one member of one task.
    fn state(
        &mut self,
        member: Member,
        property: Property,
        theirs: &State,
        mine: &State,
    ) -> Result<(), End> {
        let task = theirs.task;
        if member == Member::Eligible {
            let (Some(expected), Some(got)) = (theirs.eligible, mine.eligible) else {
                return Ok(());
            };
            if theirs.lag.is_some_and(|lag| lag.abs() <= self.header.tolerance) {
                return Ok(()); // rounding could decide
            }
            self.outcome.count(property);
            return match expected == got {
                true => Ok(()),
                false => Err(End::Differ(
                    property,
                    format!("task {task} {}", eligible(expected)),
                    format!("it {}", eligible(got)),
                )),
            };
        }
        let (Some(expected), Some(got)) = (number(theirs, member), number(mine, member)) else {
            return Ok(());
        };
        let (name, origin) = match member {
            Member::Lag => ("lag", 0),
            Member::Deadline => match self.origin {
                Some(origin) => ("deadline", origin),
                None => return Ok(()), // no vruntime says where the subject's time begins
            },
            _ => {
                let first = i128::from(got) - i128::from(expected);
                if self.origin.is_none() {
                    self.origin = Some(first);
                    return Ok(());
                }
                ("vruntime", self.origin.unwrap_or(first))
            }
        };
        self.outcome.count(property);
        let got = i128::from(got) - origin;
        let by = got - i128::from(expected);
        if by.abs() <= i128::from(self.header.tolerance) {
            return Ok(());
        }
        if member == Member::Deadline && property != Property::Yield && self.may_be_due(theirs) {
            // One of them began a new request, and the other did not.
            let old = self.kernel.get(&task).and_then(|state| state.deadline).unwrap_or(expected);
            let stays = |due: i128| (due - i128::from(old)).abs() <= self.header.tolerance.into();
            if stays(got) || stays(expected.into()) {
                return Err(End::Tie);
            }
        }
        Err(End::Differ(
            property,
            format!("task {task} has {name} {expected}"),
            format!("{got}, {by:+} ns"),
        ))
    }

    /// Compares whether to pick anew. Once the kernel wants to, more wishes are not compared.
    fn resched(&mut self, step: &Step, answer: &Answer) -> Result<(), End> {
        let op = &step.event.op;
        let (Some(expected), Some(got), Some(running), true, false) =
            (step.then.resched, answer.resched, self.ledger.running, op.may_resched(), self.asked)
        else {
            return Ok(());
        };
        let property = property_of(op, Member::Resched, false);
        if expected == got {
            self.outcome.count(property);
            return Ok(());
        }
        let state = |task: u32| step.then.state(task).or(self.kernel.get(&task));
        let is_due = state(running).is_some_and(|state| self.may_be_due(state));
        if is_due || op.task().is_some_and(|task| self.is_tie(&step.then, task, running)) {
            self.outcome.close.push(step.line);
            self.asked = true; // one of the two wants to, and what follows is the kernel's pick
            return Ok(());
        }
        self.outcome.count(property);
        let wish = |wants: bool| if wants { "a new pick" } else { "no new pick" }.to_string();
        Err(End::Differ(property, wish(expected), wish(got)))
    }

    /// Compares who runs.
    fn runs(&mut self, then: &Answer, answer: &Answer) -> Result<(), End> {
        let Some(got) = answer.runs else {
            return Err(End::Broken("a pick needs an answer with `runs`".into()));
        };
        let expected = then.runs.unwrap_or(0);
        self.outcome.count(Property::Pick);
        self.outcome.count(Property::Conserve);
        self.asked = false;
        if got == expected {
            return Ok(());
        }
        if expected != 0 && self.ledger.is_ready(got) && self.is_tie(then, expected, got) {
            return Err(End::Tie);
        }
        let property = match self.ledger.is_ready(got) && expected != 0 {
            true => Property::Pick,
            false => Property::Conserve,
        };
        let who = |task: u32| match task {
            0 => "nobody runs".to_string(),
            task if self.ledger.is_ready(task) => format!("task {task} runs"),
            task => format!("task {task} runs, which is not ready"),
        };
        Err(End::Differ(property, who(expected), who(got)))
    }

    /// Whether the kernel's two tasks are within rounding of each other in what decides.
    fn is_tie(&self, then: &Answer, one: u32, other: u32) -> bool {
        let near = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => a.abs_diff(b) <= self.header.tolerance.unsigned_abs(),
            _ => false,
        };
        let known = |task: u32| then.state(task).or(self.kernel.get(&task)).copied();
        let (one_state, other_state) =
            (known(one).unwrap_or_default(), known(other).unwrap_or_default());
        if self.header.claims.ends_with("-cfs") {
            return near(one_state.vruntime, other_state.vruntime);
        }
        let lag = |task: u32| then.state(task).and_then(|state| state.lag);
        near(one_state.deadline, other_state.deadline)
            || near(lag(one), Some(0))
            || near(lag(other), Some(0))
    }

    /// Whether rounding could decide if the request of this task is over.
    fn may_be_due(&self, now: &State) -> bool {
        let before = self.kernel.get(&now.task).and_then(|state| state.deadline);
        now.vruntime.zip(before).is_some_and(|(vruntime, due)| {
            vruntime.abs_diff(due) <= self.header.tolerance.unsigned_abs()
        })
    }

    /// What kernel and subject say of each task in the kernel's queue.
    fn rows(&self, then: &Answer, answer: &Answer) -> Vec<String> {
        let shift = |time: Option<i64>| {
            let shifted = i128::from(time?) - self.origin.unwrap_or(0);
            i64::try_from(shifted).ok()
        };
        let row = |theirs: &State| {
            let mut row = format!("task {}: kernel {}", theirs.task, row(theirs));
            if let Some(mine) = answer.state(theirs.task) {
                let vruntime = shift(mine.vruntime);
                let mine = State { vruntime, deadline: shift(mine.deadline), ..*mine };
                row += &format!("; subject {}", self::row(&mine));
            }
            if let Some(before) = self.kernel.get(&theirs.task) {
                row += &format!("; kernel before {}", self::row(before));
            }
            row
        };
        then.tasks.iter().map(row).collect()
    }

    /// The kernel said `then`.
    fn note(&mut self, then: &Answer) {
        self.asked |= then.resched == Some(true);
        for state in &then.tasks {
            let known = self.kernel.entry(state.task).or_insert(*state);
            *known = State {
                vruntime: state.vruntime.or(known.vruntime),
                deadline: state.deadline.or(known.deadline),
                ..*state
            };
        }
    }
}

/// The members of a state, in words.
fn row(state: &State) -> String {
    let times = [("vruntime", state.vruntime), ("deadline", state.deadline), ("lag", state.lag)];
    let mut words: Vec<String> =
        times.iter().filter_map(|(name, time)| Some(format!("{name} {}", (*time)?))).collect();
    words.extend(state.eligible.map(|is| eligible(is).trim_start_matches("is ").to_string()));
    words.join(", ")
}

fn eligible(is: bool) -> &'static str {
    if is { "is eligible" } else { "is not eligible" }
}
