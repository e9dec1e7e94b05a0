//! The saved state of a guest that has settled. Every session begins with this state, so earlier
//! sessions do not matter.

use super::boot::{Files, Start};
use super::{Guest, Transcript};
use program::Error;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session};

/// A guest that has booted, started its services and settled, with its reports until then.
pub struct Settled {
    guest: Guest,
    files: Files,
    said: Vec<String>,
}

impl Settled {
    /// Boots `guest`, without its jobs, and saves its state.
    ///
    /// # Errors
    /// As of [`boot`](super::boot()).
    pub fn boot(guest: &Guest, follow: &mut dyn FnMut(&Event)) -> Result<Settled, Error> {
        let guest = pausing(guest);
        let files = Files::of(&guest)?;
        let said = files.run(&guest, Start::Keep, Vec::new(), follow)?.lines;
        Ok(Settled { guest, files, said })
    }

    /// Runs `jobs` in it, until it is switched off. The saved state does not change.
    ///
    /// # Errors
    /// As of [`boot`](super::boot()).
    pub fn run(&self, jobs: &[Job], follow: &mut dyn FnMut(&Event)) -> Result<Transcript, Error> {
        self.run_interleaved(jobs, None, follow)
    }

    /// The same, with CPUs interleaved by this many instructions, if not as the guest says.
    ///
    /// # Errors
    /// As of [`boot`](super::boot()).
    pub fn run_interleaved(
        &self,
        jobs: &[Job],
        interleave: Option<u32>,
        follow: &mut dyn FnMut(&Event),
    ) -> Result<Transcript, Error> {
        self.go_on(jobs, None, interleave, follow)
    }

    /// The same, and counts in the windows of the jobs. It counts the instructions of each address,
    /// and of each call of the functions at the addresses `calls`. That takes longer on this
    /// machine's clock, not on the guest's.
    ///
    /// # Errors
    /// As of [`boot`](super::boot()), and if QEMU loads no plugin that counts.
    pub fn count(&self, jobs: &[Job], calls: &[u64]) -> Result<Transcript, Error> {
        self.go_on(jobs, Some(calls), None, &mut |_| {})
    }

    fn go_on(
        &self,
        jobs: &[Job],
        counts: Option<&[u64]>,
        interleave: Option<u32>,
        follow: &mut dyn FnMut(&Event),
    ) -> Result<Transcript, Error> {
        let orders =
            serde_json::to_vec(jobs).map_err(|error| Error::Internal(error.to_string()))?;
        self.files.run(
            &self.guest,
            Start::Restored { jobs: &orders, counts, interleave },
            self.said.clone(),
            follow,
        )
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Its reports until it had settled.
    pub fn said(&self) -> &[String] {
        &self.said
    }
}

/// `guest` without its jobs, for which it pauses.
fn pausing(guest: &Guest) -> Guest {
    let session = Session { pauses: true, jobs: Vec::new(), ..guest.session.clone() };
    Guest { session, ..guest.clone() }
}

/// Boots `guest` and runs `jobs` in it without saving its state: what [`Settled::run`] must equal.
///
/// # Errors
/// As of [`boot`](super::boot()).
pub fn unsaved(guest: &Guest, jobs: &[Job]) -> Result<Transcript, Error> {
    let guest = pausing(guest);
    let orders = serde_json::to_vec(jobs).map_err(|error| Error::Internal(error.to_string()))?;
    Files::of(&guest)?.run(&guest, Start::Unsaved(&orders), Vec::new(), &mut |_| {})
}
