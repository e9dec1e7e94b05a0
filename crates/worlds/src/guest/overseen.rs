//! Sessions of overseen jobs for one scheduler: the guest's output is kept. So is that of a guest
//! that hangs or panics, because that is an answer, too.

use super::{Driver, GuestWorld, Purpose};
use crate::vm::{Identity, Transcript, boot, initramfs, newer_qemu, pins};
use program::Error;
use results::Input;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session as RunnerSession};

/// After how many seconds without a report a guest has hung: a step takes up to fifteen.
const SILENCE_S: u8 = 28;

/// What a guest said of overseen jobs.
pub struct Overseen {
    /// All of its reports, up to its end.
    pub transcript: Transcript,
    /// How it ended.
    pub end: Result<(), Error>,
    /// What its digits depend on.
    pub identity: Identity,
    /// What it is made of.
    pub inputs: Vec<Input>,
    /// The release of its kernel.
    pub release: String,
}

impl GuestWorld {
    /// Boots a guest with `cpus` CPUs for `driver` as often as `boots` says. Does `jobs` in it with
    /// the nudges of `seed`, and looks what the scheduler leaves behind. `follow` receives the
    /// events of the first boot.
    ///
    /// # Errors
    /// If something is missing, or the boots do not say the same ([`Error::Irreproducible`]). A
    /// guest that fails is no error.
    pub fn oversee(
        &mut self,
        driver: &Driver,
        cpus: u16,
        seed: u64,
        boots: u32,
        jobs: Vec<Job>,
        follow: &(dyn Fn(&Event) + Sync),
    ) -> Result<Overseen, Error> {
        initramfs::runner()?;
        let lockstep = Some(newer_qemu::find(&program::say)?);
        let kernel =
            pins::kernel(self.settings.lock.as_deref(), &self.settings.kernel, &program::say)?;
        driver.require(&kernel)?;
        self.found = Some(super::Found { kernel, qemu: lockstep.clone(), lockstep });
        let purpose = Purpose { driver: driver.clone(), cpus, command: None };
        let mut guest = self.guest(&purpose)?;
        let nudge = self.settings.nudges.of(seed, Some(self.settings.interleave));
        let class = driver.class();
        let jobs = jobs.into_iter().map(|job| Job { nudge, class, ..job }).collect();
        guest.session =
            RunnerSession { jobs, leftovers: true, silence_s: SILENCE_S, ..guest.session };
        self.settings.lock.as_deref().map_or(Ok(()), |lock| pins::expect(lock, &guest))?;
        let once = |is_first: bool| {
            let mut events = Vec::new();
            let booted = boot(&guest, &mut |event| {
                events.push(event.clone());
                if is_first {
                    follow(event);
                }
            });
            match booted {
                Ok(transcript) => (transcript, Ok(())),
                Err(error) => {
                    let lines = events.iter().filter_map(|event| serde_json::to_string(event).ok());
                    let lines = lines.collect();
                    (Transcript { lines, events, ..Transcript::default() }, Err(error))
                }
            }
        };
        let first = match boots {
            0 | 1 => once(true),
            _ => {
                let (first, second) = rayon::join(|| once(true), || once(false));
                crate::vm::proof::expect_same(&guest, &first.0.lines, &second.0.lines)?;
                first
            }
        };
        let (transcript, end) = first;
        if let Err(error @ (Error::Missing(_) | Error::Internal(_) | Error::Output { .. })) = end {
            return Err(error);
        }
        Ok(Overseen {
            transcript,
            end,
            identity: Identity::of(&guest),
            inputs: pins::of(&guest),
            release: guest.kernel.release.clone(),
        })
    }
}
