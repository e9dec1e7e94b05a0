//! Plays a vector of either kind.

use crate::outcome::{Outcome, Verdict};
use crate::property::Property;
use crate::read::{Body, Vector};
use crate::subject::Subject;
use crate::{history, scenario};

/// Plays `vector` to `subject`, which begins anew at `reset`.
pub fn play(vector: &Vector, subject: &mut dyn Subject) -> Outcome {
    if vector.header.is_judged() {
        let why = "this history states nothing that a subject could do again; judge it: --judge";
        return Outcome { verdict: Verdict::Refused(why.into()), ..Outcome::new() };
    }
    let mut outcome = match &vector.body {
        Body::History(steps) => history::play(&vector.header, steps, subject),
        Body::Scenario(programs) => scenario::play(&vector.header, programs, subject),
    };
    let none = |property: &Property| outcome.compared[*property as usize] == 0;
    outcome.untested = vector.header.properties.iter().copied().filter(none).collect();
    outcome
}
