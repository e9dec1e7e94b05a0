//! What is tested.

use crate::format::{Answer, Event};
use std::fmt;

/// A scheduler of one CPU.
pub trait Subject {
    /// Receives the next event. An answer with `error` refuses the vector; an error ends it.
    fn event(&mut self, event: &Event) -> Result<Answer, Broken>;
}

/// The subject has ended, is silent, or says what is no answer. A sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}
