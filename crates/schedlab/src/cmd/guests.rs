//! In which kernels workloads run, and how.

use crate::Error;
use crate::world::guest::GuestSettings;
use clap::Args;
use schedsim::Nanos;

/// Options of `--on vm`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of guests (--on vm)")]
pub struct GuestArguments {
    /// Kernels, separated by commas: series of Debian's, or paths of bzImages; `schedlab list kernels` shows them
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', default_value = "6.18")]
    kernel: Vec<String>,
    /// How long a kernel is left alone after its boot, on its own clock, before it is measured; longer if a scheduler of ours does not schedule by then
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    settle: Nanos,
    /// Split the instructions of yields by the kernel's functions, and show so many
    #[arg(long, value_name = "N")]
    functions: Option<usize>,
    /// Cut the guest into so many NUMA nodes. Artificial: the kernel takes them for nodes, and no memory is slower
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=8))]
    numa_nodes: u16,
    /// The classes of a kernel's own share a boot, one after another: faster, and each finds the kernel as the one before has left it
    #[arg(long)]
    one_boot: bool,
}

impl GuestArguments {
    /// Refuses what is about boots where nothing is booted.
    pub fn expect_none(&self) -> Result<(), Error> {
        match self.one_boot {
            false => Ok(()),
            true => Err(Error::Usage("--one-boot is about guests: add --on vm, or leave it out".to_string())),
        }
    }

    /// Of each kernel.
    pub fn settings(&self) -> Vec<GuestSettings> {
        let of = |kernel: &String| GuestSettings {
            kernel: kernel.clone(),
            settle: self.settle,
            nodes: self.numa_nodes,
            one_boot: self.one_boot,
            functions: self.functions.is_some(),
        };
        self.kernel.iter().map(of).collect()
    }

    /// Their names as they are given.
    pub fn kernels(&self) -> &[String] {
        &self.kernel
    }

    /// How many functions are shown, if yields are split by them.
    pub fn functions(&self) -> Option<usize> {
        self.functions
    }
}
