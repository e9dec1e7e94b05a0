//! Real kernels as a reproducible laboratory: an unmodified Linux under QEMU's software emulation,
//! with a clock that counts instructions.
//!
//! One instruction takes one virtual nanosecond and nothing random reaches the guest. So two runs
//! of the same command give the same digits on any machine. [`prove`] runs a session twice and
//! compares every line.
//!
//! - [`kernel`]: the kernels and their sources ([`debian`]), by [`release`], with their
//!   [`configuration`]. [`built`]: those that are built out of a source tree, of fragments of
//!   [`kconfig`], or out of [`commits`].
//! - [`cache`]: where they are kept, for several programs at once.
//! - [`qemu`]: the emulator: its version, hash and command line. [`newer_qemu`]: the one that
//!   guests with more than one CPU need, which is fetched. [`lockstep`]: the reason.
//! - [`shape`]: how its CPUs lie.
//! - [`initramfs`]: the files of a guest: the runner, its session, and further files.
//! - [`identity`]: what the digits depend on.
//! - [`pins`]: the inputs of a guest in a lock file.
//! - [`mod@boot`]: one boot, from the first event to the last; [`settled`]: the state from which
//!   sessions begin; [`proof`]: two that must be the same.
//! - [`foreign`]: any scheduler of sched_ext, an unmodified program.
//! - [`scheduler`]: one of our policies as the guest scheduler, through sched_ext.
//! - [`yields`]: the cost of a yield, and how it grows with the number of tasks; [`functions`]: the
//!   kernel's functions that it consists of.
//! - [`conformance`]: whether the kernel chose the task that the simulated policy chooses.
//! - [`background_load`]: what ran there beside the workload, so that the simulator can repeat it.
//! - [`marks`]: any image that is no Linux of ours, and what it marks.
//! - [`closed`]: any workload of tasks in phases, undisturbed and with the kernel's scheduling
//!   events.
//! - [`any_program`]: any program, with its [`program_files`].

pub mod any_program;
mod apt;
pub mod as_recorded;
pub mod background_load;
pub mod bare_scheduler;
pub mod boot;
pub mod built;
pub mod cache;
pub mod catalogue;
pub mod closed;
pub mod commits;
pub mod configuration;
pub mod conformance;
pub mod debian;
pub mod decisions;
pub mod described;
pub(crate) mod elf;
pub mod fetched;
pub mod foreign;
pub mod functions;
pub mod identity;
mod image;
pub mod initramfs;
pub mod kconfig;
pub mod kernel;
pub mod lockstep;
pub mod marks;
mod monitor;
pub mod newer_qemu;
pub mod packaged;
pub mod pins;
pub mod program_files;
pub mod proof;
pub mod published;
pub mod qemu;
pub mod release;
mod reports;
pub mod scheduler;
pub mod settled;
pub mod shape;
pub mod source_package;
pub mod timing;
pub mod unpack;
pub mod witness;
pub mod yields;

pub use boot::{Guest, Transcript, boot};
pub use foreign::Foreign;
pub use identity::Identity;
pub use initramfs::GuestFile;
pub use kernel::Kernel;
pub use lockstep::Lockstep;
pub use proof::{Orders, Proved, prove, prove_each};
pub use qemu::Qemu;
pub use scheduler::Scheduler;
pub use settled::Settled;
pub use shape::Shape;

use sha2::{Digest, Sha256};

/// The SHA-256 of `parts`, one after another, in hexadecimal.
pub fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
