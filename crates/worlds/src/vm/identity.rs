//! Identifies what a guest's digits depend on: the same hashes give the same digits on any machine.

use super::{Guest, initramfs, sha256};
use results::Point;
use std::fmt;

/// Emulator, kernel, runner and all other files of the guest, by their hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    qemu: String,
    qemu_sha256: String,
    kernel: String,
    kernel_sha256: String,
    runner_sha256: String,
    /// How many nanoseconds an instruction takes on each CPU.
    instruction_ns: u64,
    /// By how many instructions several CPUs are interleaved.
    interleave: Option<u32>,
    /// Of the further files, if there are any: the scheduler and its libraries.
    files_sha256: Option<String>,
}

impl Identity {
    /// Of a guest.
    pub fn of(guest: &Guest) -> Identity {
        Identity {
            qemu: guest.qemu.version.clone(),
            qemu_sha256: guest.qemu.sha256.clone(),
            kernel: guest.kernel.release.clone(),
            kernel_sha256: guest.kernel.sha256.clone(),
            instruction_ns: guest.lockstep.map_or(1, |lockstep| lockstep.instruction().0),
            interleave: guest.lockstep.map(|lockstep| lockstep.interleave),
            runner_sha256: sha256([initramfs::runner().unwrap_or_default()]),
            files_sha256: (!guest.files.is_empty())
                .then(|| sha256(guest.files.iter().map(|file| file.bytes.as_slice()))),
        }
    }

    /// As coordinates of a result.
    pub fn point(&self) -> Point {
        let pairs = [
            ("qemu", &self.qemu),
            ("qemu_sha256", &self.qemu_sha256),
            ("kernel", &self.kernel),
            ("kernel_sha256", &self.kernel_sha256),
            ("runner_sha256", &self.runner_sha256),
        ];
        let files = self.files_sha256.iter().map(|hash| ("files_sha256", hash));
        let mut point: Point = pairs.into_iter().chain(files).collect();
        point.set("instruction_ns", self.instruction_ns);
        if let Some(interleave) = self.interleave {
            point.set("interleave", u64::from(interleave));
        }
        point
    }
}

/// For people: versions and the begin of each hash.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        write!(
            f,
            "kernel {} sha256 {}, QEMU {} sha256 {}, runner sha256 {}",
            self.kernel,
            short(&self.kernel_sha256),
            self.qemu,
            short(&self.qemu_sha256),
            short(&self.runner_sha256)
        )?;
        self.files_sha256
            .as_ref()
            .map_or(Ok(()), |hash| write!(f, ", scheduler sha256 {}", short(hash)))
    }
}
