//! Judges a history: whether the decisions in it, whoever took them, keep what is claimed.
//!
//! Nothing is played, so the scheduler may be one whose input cannot be forced, as in a kernel.
//! `conserve` is judged always, `share` if the claim is `proportional` or `eevdf`, and `lag-bound`
//! if it is `eevdf`.

use crate::format::{Event, Op};
use crate::header::Header;
use crate::ideal::{Client, Ideal};
use crate::ledger::Ledger;
use crate::outcome::{Difference, Outcome, Verdict};
use crate::property::Property;
use crate::read::{Body, Step, Vector};
use std::collections::{BTreeMap, BTreeSet};

/// The most that a kernel takes for itself in a lag, in ns: it notices a tick late.
const LATE: i64 = 1_000_000;
/// The longest that no task may run between an event and the pick that follows from it, in ns: an
/// idle CPU that no interrupt wakes looks for work at its next tick, at 100 Hz.
const LEAVING_IDLE: i64 = 10_000_000;
/// The tick and the request of a history that does not know them, in ns.
const UNKNOWN: i64 = 1;

/// The most tasks that the bounds of tasks may depend on, summed up over the changes of both.
const MAX_BOUNDS: usize = 1_000_000_000;

/// What the judge receives beside the history. What is missing is the history's own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judging {
    /// Whose behaviour it should be.
    pub claims: Option<String>,
    /// The tick's period, in ns.
    pub tick: Option<i64>,
    /// The request of each task, in ns.
    pub slice: Option<i64>,
    /// By how many ns a task's CPU time may differ from its share.
    pub tolerance: Option<i64>,
}

/// Judges the decisions of a history. Read it with [`Vector::read_to_judge`].
pub fn judge(vector: &Vector, judging: &Judging) -> Outcome {
    let refused = |why: &str| Outcome { verdict: Verdict::Refused(why.into()), ..Outcome::new() };
    let Body::History(steps) = &vector.body else {
        return refused("a scenario is played, not judged; give a history");
    };
    let mut judge = Judge::new(&vector.header, steps, judging);
    if judge.claims(Property::LagBound) && !judge.knows_bounds {
        return refused(
            "`lag-bound` depends on the tick and the request, which are unknown here; give --tick \
             and --slice",
        );
    }
    let changes = steps.iter().filter(|step| {
        let op = step.event.op;
        op.task().is_some() || matches!(op, Op::Block | Op::Exit)
    });
    let hungry = judge.clients().filter(|client| client.is_hungry).count();
    if changes.count().saturating_mul(hungry).saturating_mul(judge.tasks.len()) > MAX_BOUNDS {
        return refused("too many tasks come and go for the bounds of each; judge a shorter part");
    }
    for step in steps {
        judge.outcome.events += 1;
        if let Err(verdict) = judge.step(step) {
            judge.outcome.verdict = verdict;
            return judge.outcome;
        }
    }
    if let Some(last) = steps.last() {
        for place in 0..judge.tasks.len() {
            if let Err(verdict) = judge.share(place, last) {
                judge.outcome.verdict = verdict;
                break;
            }
        }
    }
    judge.outcome
}

struct Judge {
    claims: String,
    tolerance: i64,
    /// The tick and all requests are known.
    knows_bounds: bool,
    tasks: Vec<Task>,
    ledger: Ledger,
    /// All tasks.
    all: Ideal,
    /// Those that never sleep, on a CPU that has the time that they got together.
    hungry: Ideal,
    now: i64,
    /// For how long no task has run though one is ready, in ns.
    idle: i64,
    /// What the never sleeping tasks got together, in ns.
    together: i64,
    outcome: Outcome,
}

struct Task {
    number: u32,
    /// It never sleeps nor yields.
    is_hungry: bool,
    /// What the never sleeping tasks had got together when it joined, while it is among them.
    since: Option<i64>,
}

impl Judge {
    fn new(header: &Header, steps: &[Step], judging: &Judging) -> Judge {
        let tick = steps.iter().find_map(|step| match step.event.op {
            Op::Reset { tick, .. } => Some(tick),
            _ => None,
        });
        let tick = judging.tick.or(tick).unwrap_or(UNKNOWN);
        let Habits { sleeps, ends } = Habits::of(steps);
        let slices = slices(steps);
        let (mut tasks, mut clients) = (Vec::new(), Vec::new());
        for step in steps {
            if let Op::Task { task, weight, slice, .. } = step.event.op {
                let is_hungry = !sleeps.contains(&task);
                let longest = slices.get(&task).copied().unwrap_or(slice);
                tasks.push(Task { number: task, is_hungry, since: None });
                clients.push(Client {
                    weight,
                    slice: judging.slice.unwrap_or(longest),
                    is_hungry,
                    leaves: !is_hungry || ends.contains(&task),
                });
            }
        }
        let knows_bounds = tick != UNKNOWN && clients.iter().all(|client| client.slice != UNKNOWN);
        if !knows_bounds {
            clients.iter_mut().for_each(|client| client.is_hungry = false);
        }
        Judge {
            claims: judging.claims.clone().unwrap_or_else(|| header.claims.clone()),
            tolerance: judging.tolerance.unwrap_or(header.tolerance),
            knows_bounds,
            tasks,
            ledger: Ledger::default(),
            all: Ideal::new(tick, clients.iter().copied()),
            // Nobody asks it for bounds.
            hungry: Ideal::new(tick, clients.iter().map(|&c| Client { is_hungry: false, ..c })),
            now: 0,
            idle: 0,
            together: 0,
            outcome: Outcome::new(),
        }
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        self.all.clients().iter()
    }

    fn claims(&self, property: Property) -> bool {
        match property {
            Property::Conserve => true,
            Property::Share => ["proportional", "eevdf"].contains(&self.claims.as_str()),
            Property::LagBound => self.claims == "eevdf",
            _ => false,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), Verdict> {
        let event = &step.event;
        self.advance(step)?;
        if let Some(runs) = step.then.runs {
            self.outcome.count(Property::Conserve);
            if let Some((expected, got)) = self.ledger.wrong_pick(runs) {
                return Err(differ(step, Property::Conserve, expected, got));
            }
        }
        let running = self.place(self.ledger.running);
        let is_alone = self.ledger.ready().next().is_none();
        self.ledger.apply(event, step.then.runs).map_err(|why| {
            Verdict::Broken(format!("line {}: this history contradicts itself: {why}", step.line))
        })?;
        self.follow(event, running, is_alone);
        match (event.op, running) {
            (Op::Exit, Some(place)) => {
                let shared = self.share(place, step);
                self.tasks[place].since = None;
                shared
            }
            _ => Ok(()),
        }
    }

    /// The ideals follow an event. `running` ran until then; `is_alone`: no task was ready.
    fn follow(&mut self, event: &Event, running: Option<usize>, is_alone: bool) {
        let own = self.place(event.op.task());
        match (event.op, own, running) {
            (Op::Wake { .. } | Op::New { .. }, Some(place), _) => {
                if !is_alone && matches!(event.op, Op::Wake { .. }) {
                    // It may have kept a lag.
                    self.all.forget_beginning();
                }
                self.all.join(place);
                if self.tasks[place].is_hungry {
                    self.tasks[place].since = Some(self.together);
                    self.hungry.join(place);
                }
            }
            (Op::Weight { weight, .. }, Some(place), _) => {
                self.all.reweigh(place, weight);
                self.hungry.reweigh(place, weight);
            }
            (Op::Block | Op::Exit, _, Some(place)) => {
                self.all.leave(place);
                if self.tasks[place].is_hungry {
                    self.hungry.leave(place);
                }
            }
            _ => {}
        }
    }

    /// Time advances to the step.
    fn advance(&mut self, step: &Step) -> Result<(), Verdict> {
        let time = step.event.at.saturating_sub(self.now);
        self.now = step.event.at;
        let Some(place) = self.place(self.ledger.running) else {
            let Some((expected, got)) = self.ledger.wrong_pick(0) else { return Ok(()) };
            self.idle = self.idle.saturating_add(time);
            if self.idle <= LEAVING_IDLE {
                return Ok(());
            }
            let got = format!("{got} for {} ns", self.idle);
            return Err(differ(step, Property::Conserve, expected, got));
        };
        self.idle = 0;
        self.all.advance(time, Some(place));
        if self.tasks[place].is_hungry {
            self.hungry.advance(time, Some(place));
            self.together = self.together.saturating_add(time);
        }
        if !self.claims(Property::LagBound) || !self.clients().any(|client| client.is_hungry) {
            return Ok(());
        }
        self.outcome.count(Property::LagBound);
        match self.all.excess(self.tolerance.min(LATE)) {
            None => Ok(()),
            Some((place, bound, got)) => {
                let expected = format!("task {} has {bound}", self.tasks[place].number);
                Err(differ(step, Property::LagBound, expected, got))
            }
        }
    }

    /// Whether a task that never sleeps has got its share until the step.
    fn share(&mut self, place: usize, step: &Step) -> Result<(), Verdict> {
        let Task { number, since: Some(since), .. } = self.tasks[place] else { return Ok(()) };
        let (least, most) = if self.knows_bounds { self.all.bound(place) } else { (0, 0) };
        let allowed = i128::from(self.tolerance).saturating_add(most.max(-least));
        // In less time, or alone, no task can be that far off.
        let time = i128::from(self.together - since);
        let is_alone = self.tasks.iter().filter(|task| task.is_hungry).count() < 2;
        if !self.claims(Property::Share) || is_alone || time <= allowed {
            return Ok(());
        }
        self.outcome.count(Property::Share);
        let (served, ideal) = self.hungry.served(place);
        match i128::from(served.abs_diff(ideal)) <= allowed {
            true => Ok(()),
            false => {
                let expected = format!("task {number} gets {ideal} ns by its weight, ± {allowed}");
                Err(differ(step, Property::Share, expected, format!("{served} ns")))
            }
        }
    }

    fn place(&self, task: Option<u32>) -> Option<usize> {
        self.tasks.iter().position(|known| Some(known.number) == task)
    }
}

fn differ(step: &Step, property: Property, expected: String, got: String) -> Verdict {
    let event = step.event.line();
    Verdict::Differ(Difference {
        line: step.line,
        event,
        property,
        expected,
        got,
        rows: Vec::new(),
    })
}

/// What the tasks of a history do at some time.
struct Habits {
    /// Sleep or yield.
    sleeps: BTreeSet<u32>,
    ends: BTreeSet<u32>,
}

impl Habits {
    fn of(steps: &[Step]) -> Habits {
        let mut habits = Habits { sleeps: BTreeSet::new(), ends: BTreeSet::new() };
        let mut running = None;
        for Step { event, then, .. } in steps {
            match (event.op, running) {
                (Op::Pick, _) => running = then.runs,
                (Op::Block | Op::Yield, Some(task)) => _ = habits.sleeps.insert(task),
                (Op::Exit, Some(task)) => _ = habits.ends.insert(task),
                _ => {}
            }
        }
        habits
    }
}

/// The longest request of each task, in ns.
fn slices(steps: &[Step]) -> BTreeMap<u32, i64> {
    let mut slices = BTreeMap::new();
    for step in steps {
        if let Op::Task { task, slice, .. } | Op::Slice { task, slice } = step.event.op {
            let longest = slices.entry(task).or_insert(slice);
            *longest = slice.max(*longest);
        }
    }
    slices
}
