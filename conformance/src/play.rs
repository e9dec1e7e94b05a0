//! Plays a vector of either kind.

use crate::outcome::Outcome;
use crate::read::{Body, Vector};
use crate::subject::Subject;
use crate::{history, scenario};

/// Plays `vector` to `subject`, which begins anew at `reset`.
pub fn play(vector: &Vector, subject: &mut dyn Subject) -> Outcome {
    match &vector.body {
        Body::History(steps) => history::play(&vector.header, steps, subject),
        Body::Scenario(programs) => scenario::play(&vector.header, programs, subject),
    }
}
