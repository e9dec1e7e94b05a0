//! What guests are made for, and which sessions one guest serves.

use super::Driver;
use crate::Trial;
use program::Error;

/// What a guest is made for.
pub(super) struct Purpose<'t> {
    pub driver: Driver,
    pub cpus: u16,
    pub command: Option<&'t [String]>,
}

impl<'t> Purpose<'t> {
    pub fn of(trial: &Trial<'t>) -> Result<Purpose<'t>, Error> {
        let (driver, program) = (Driver::of(&trial.candidate)?, trial.program);
        Ok(Purpose { driver, cpus: trial.cpus, command: program.command() })
    }

    /// Whether one guest serves both. The kernel's own classes are attributes of tasks, and need
    /// nothing else in the guest.
    fn shares_a_guest(&self, other: &Purpose<'_>) -> bool {
        let is_alike = self.driver == other.driver
            || (!self.driver.is_sched_ext() && !other.driver.is_sched_ext());
        self.cpus == other.cpus && self.command == other.command && is_alike
    }
}

/// Purposes, each of which needs a guest of its own.
#[derive(Default)]
pub(super) struct Purposes<'t>(pub Vec<Purpose<'t>>);

impl<'t> Purposes<'t> {
    /// The number of the guest for a purpose.
    pub fn place(&mut self, purpose: Purpose<'t>) -> usize {
        let known = self.0.iter().position(|known| known.shares_a_guest(&purpose));
        known.unwrap_or_else(|| {
            self.0.push(purpose);
            self.0.len() - 1
        })
    }
}

impl<'t> FromIterator<Purpose<'t>> for Purposes<'t> {
    fn from_iter<I: IntoIterator<Item = Purpose<'t>>>(all: I) -> Self {
        let mut purposes = Purposes::default();
        all.into_iter().for_each(|purpose| _ = purposes.place(purpose));
        purposes
    }
}
