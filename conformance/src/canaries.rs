//! Tests the tests: a runner that does not see a changed expectation, or a fault, lies.

use crate::format::{Answer, Event, State};
use crate::history::{Member, STATES, own_task, property_of};
use crate::ledger::Ledger;
use crate::play::play;
use crate::property::Property;
use crate::queue::Options;
use crate::read::{Body, Step, Vector};
use crate::reference::Reference;
use crate::subject::{Broken, Subject};
use std::collections::BTreeSet;

/// How many expectations of a property are changed in a vector, at most, spread over its length.
const MOST: usize = 8;

/// A subject that says what a history says: it agrees.
struct Echo<'a>(std::slice::Iter<'a, Answer>);

impl Subject for Echo<'_> {
    fn event(&mut self, _: &Event) -> Result<Answer, Broken> {
        self.0.next().cloned().ok_or_else(|| Broken("the history is over".into()))
    }
}

/// An expectation of a history that can be changed.
#[derive(Clone, Copy)]
struct Place {
    step: usize,
    member: Member,
    /// Whose state; in [`Member::Runs`], who is to run instead.
    task: u32,
    property: Property,
}

/// For each property that a history claims, changes expectations that belong to it, one at a
/// time, and plays the changed history to a subject that agrees with the unchanged one. Returns
/// how many changes were found, and a sentence for each that was not found at its line.
///
/// A change that rounding could explain ends a history early; that does not count. A property
/// without any change that counts is not tested, which is a sentence too.
pub fn changed_expectations(vector: &Vector) -> (usize, Vec<String>) {
    let Body::History(steps) = &vector.body else { return (0, Vec::new()) };
    let answers: Vec<Answer> = steps.iter().map(|step| step.then.clone()).collect();
    let name = &vector.header.name;
    let mut lies = Vec::new();
    if !play(vector, &mut Echo(answers.iter())).agrees() {
        lies.push(format!("{name}: a subject that repeats this history does not agree"));
    }
    let (places, mut changed, mut found) = (places(vector, steps), vector.clone(), 0);
    for &property in &vector.header.properties {
        let of: Vec<&Place> = places.iter().filter(|place| place.property == property).collect();
        let before = found;
        for place in of.iter().step_by(of.len().div_ceil(MOST).max(1)) {
            let Body::History(steps) = &mut changed.body else { break };
            let (line, unchanged) = (steps[place.step].line, steps[place.step].then.clone());
            change(&mut steps[place.step].then, place, vector.header.tolerance);
            let outcome = play(&changed, &mut Echo(answers.iter()));
            let Body::History(steps) = &mut changed.body else { break };
            steps[place.step].then = unchanged;
            match outcome.difference() {
                Some(at) if (at.line, at.property) == (line, property) => found += 1,
                _ if outcome.tie == Some(line) || outcome.close.contains(&line) => {}
                other => lies.push(format!(
                    "{name}: a changed expectation of {} in line {line} gives {other:?}",
                    property.name()
                )),
            }
        }
        if found == before {
            lies.push(format!(
                "{name}: claims {} and states nothing that tests it",
                property.name()
            ));
        }
    }
    (found, lies)
}

/// All expectations that can be changed.
fn places(vector: &Vector, steps: &[Step]) -> Vec<Place> {
    let (mut places, mut ledger) = (Vec::new(), Ledger::default());
    let (mut has_origin, mut asked) = (false, false);
    for (step, Step { event, then, .. }) in steps.iter().enumerate() {
        let own = own_task(&event.op, ledger.running);
        for member in STATES {
            for state in &then.tasks {
                let is_own = Some(state.task) == own;
                let property = property_of(&event.op, member, is_own);
                let is_stated = match member {
                    Member::Vruntime => state.vruntime.is_some(),
                    Member::Deadline => state.deadline.is_some() && has_origin,
                    Member::Lag => state.lag.is_some(),
                    _ => state.eligible.is_some(),
                };
                // The first vruntime says where virtual time begins.
                let is_origin = member == Member::Vruntime && is_stated && !has_origin;
                has_origin |= is_origin;
                let is_rounded = member == Member::Eligible
                    && state.lag.is_some_and(|lag| lag.abs() <= vector.header.tolerance);
                if is_stated && !is_origin && !is_rounded {
                    places.push(Place { step, member, task: state.task, property });
                }
            }
        }
        if then.resched.is_some() && !asked && ledger.running.is_some() {
            let property = property_of(&event.op, Member::Resched, false);
            places.push(Place { step, member: Member::Resched, task: 0, property });
        }
        asked |= then.resched == Some(true);
        let before = ledger.clone();
        if ledger.apply(event, then.runs).is_err() {
            break;
        }
        if let Some(runs) = then.runs {
            asked = false;
            let other = before.ready().find(|&other| other != runs && runs != 0);
            let mut add = |task, property| {
                places.push(Place { step, member: Member::Runs, task, property });
            };
            other.into_iter().for_each(|task| add(task, Property::Pick));
            if runs != 0 {
                add(0, Property::Conserve);
            }
        }
    }
    places
}

/// Changes one expectation.
fn change(then: &mut Answer, place: &Place, tolerance: i64) {
    let by = (10 * tolerance).max(10);
    let moved = |time: i64| if time > 0 { time - by } else { time + by };
    for State { task, vruntime, deadline, lag, eligible } in &mut then.tasks {
        if *task == place.task {
            match place.member {
                Member::Vruntime => *vruntime = vruntime.map(moved),
                Member::Deadline => *deadline = deadline.map(moved),
                Member::Lag => *lag = lag.map(moved),
                Member::Eligible => *eligible = eligible.map(|is| !is),
                Member::Resched | Member::Runs => {}
            }
        }
    }
    match place.member {
        Member::Resched => then.resched = then.resched.map(|wants| !wants),
        Member::Runs => then.runs = Some(place.task),
        _ => {}
    }
}

/// A vector that finds a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// At which property it differs.
    pub at: Property,
}

/// For each claim that the reference meets, and each property that a vector with this claim tests:
/// one that tests it, with which the reference agrees, and in which it does not with the fault of
/// that property. One that differs at just this property is preferred.
pub fn faults(vectors: &[Vector]) -> Vec<(String, Property, Option<Found>)> {
    let agrees = |vector: &&Vector| play(vector, &mut reference(vector, None)).agrees();
    let sound: Vec<&Vector> = vectors.iter().filter(agrees).collect();
    let tests = |vector: &Vector, claims: &str, property: Property| {
        vector.header.claims == claims && vector.header.properties.contains(&property)
    };
    let find = |claims: &str, property: Property| {
        let mut first = None;
        for vector in sound.iter().filter(|vector| tests(vector, claims, property)) {
            let outcome = play(vector, &mut reference(vector, Some(property)));
            if let Some(difference) = outcome.difference() {
                let (name, at) = (vector.header.name.clone(), difference.property);
                let found = Found { name, at };
                if at == property {
                    return Some(found);
                }
                first = first.or(Some(found));
            }
        }
        first
    };
    let claims: BTreeSet<&str> = sound.iter().map(|vector| vector.header.claims.as_str()).collect();
    let mut all = Vec::new();
    for claims in claims {
        for property in Property::ALL {
            if sound.iter().any(|vector| tests(vector, claims, property)) {
                all.push((claims.to_string(), property, find(claims, property)));
            }
        }
    }
    all
}

/// Why a vector with one changed expectation is not found to be changed there; none if it is.
pub fn missed(vector: &Vector) -> Option<String> {
    let Some(changed) = vector.header.canary else {
        return Some("the header has no `canary`; say where the change is".into());
    };
    let outcome = play(vector, &mut reference(vector, None));
    let at = outcome.difference().map(|at| (at.line, at.property));
    match at == Some((changed.line, changed.property)) {
        true => None,
        false => Some(format!(
            "the change of {} in line {} gives {:?}",
            changed.property.name(),
            changed.line,
            outcome.verdict
        )),
    }
}

/// The reference that `vector` means, with a fault.
fn reference(vector: &Vector, fault: Option<Property>) -> Reference {
    Reference::claiming(&vector.header.claims, Options { fault, ..Options::default() })
}
