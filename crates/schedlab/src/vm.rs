//! Real kernels as a reproducible laboratory: an unmodified Linux under QEMU's software emulation, with a clock that counts instructions.
//!
//! One instruction is one virtual nanosecond, nothing random reaches the guest, and so two runs of the same command give the same digits on any machine.
//! [`prove`] runs a session twice and compares every line.
//!
//! - [`kernel`]: which kernels there are, and where they come from ([`debian`]).
//! - [`qemu`]: the emulator: its version, hash and command line.
//! - [`initramfs`]: what a guest finds when it starts: the runner, its session, and further files.
//! - [`identity`]: what the digits depend on.
//! - [`mod@boot`]: one boot, from the first event to the last; [`proof`]: two that must be the same.
//! - [`scheduler`]: a policy of ours in charge of the guest's tasks, through sched_ext.
//! - [`yields`]: what a yield costs, and how that grows with the number of tasks; [`functions`]: which of the kernel's functions that is.
//! - [`conformance`]: whether the kernel chose whom the simulated policy chooses.
//! - [`surroundings`]: what a workload met there beside its scheduler, so that the simulator meets it, too.
//! - [`closed`]: any workload of tasks that go through phases, undisturbed and with the kernel's scheduling events.

pub mod as_recorded;
pub mod boot;
pub mod closed;
pub mod conformance;
pub mod debian;
pub mod decisions;
pub mod functions;
pub mod identity;
pub mod initramfs;
pub mod kernel;
pub mod proof;
pub mod qemu;
pub mod scheduler;
pub mod surroundings;
pub mod timing;
pub mod unpack;
pub mod yields;

pub use boot::{Guest, Transcript, boot};
pub use identity::Identity;
pub use initramfs::GuestFile;
pub use kernel::Kernel;
pub use proof::{Proved, prove};
pub use qemu::Qemu;
pub use scheduler::Scheduler;

use sha2::{Digest, Sha256};

/// The SHA-256 of `parts`, one after another, in hexadecimal.
pub(crate) fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
