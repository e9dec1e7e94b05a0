//! Options for workloads in guest kernels.

mod changes;
mod source;

use super::command::CommandArguments;
use changes::ChangeArguments;
use clap::Args;
use formats::machine_file::MachineFile;
use laboratory::results_directory::SCHEDULERS;
use program::Error;
use results::InputLock;
use schedsim::Nanos;
pub use source::SourceArguments;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use worlds::guest::nudges::Kind;
use worlds::guest::{CPUS, GuestSettings, MEMORY, Nudges};
use worlds::vm::described::build_command;
use worlds::vm::lockstep::INTERLEAVE;
use worlds::vm::{Kernel, Shape};

/// The kernel of a guest if none is named.
const USUAL: &str = "6.18";

/// Options of `--on vm`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of guests (--on vm)")]
pub struct GuestArguments {
    /// Kernels, separated by commas: series or releases of Debian's, as 6.18, 6.18.9 or 6.18-rt, or
    /// paths of bzImages; `schedlab list kernels` lists them [default: 6.18, or the one that
    /// --kernel-source builds]
    #[arg(long, value_name = "KERNEL", value_delimiter = ',')]
    kernel: Vec<String>,
    #[command(flatten)]
    source: SourceArguments,
    /// Idle time of a kernel between boot and measurement, on its own clock; longer if a scheduler
    /// of schedlab is not active by then
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    settle: Nanos,
    /// Split the instructions of yields, and of workloads on one CPU, by the kernel's functions, and
    /// show this many
    #[arg(long, value_name = "N")]
    functions: Option<usize>,
    /// Memory of the guest in MiB, at least 32 for each CPU. A command may take half of it, and two
    /// tasks for each MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY,
          value_parser = clap::value_parser!(u32).range(256..=65_536))]
    memory: u32,
    /// Number of NUMA nodes of the guest. Artificial: the kernel sees nodes, but no memory is
    /// slower
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=8))]
    numa_nodes: u16,
    /// With several CPUs: how many instructions one may be ahead of another. With fewer, times are
    /// finer (8 us at 1000) and take longer to get
    #[arg(long, value_name = "N", default_value_t = INTERLEAVE, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    interleave: u32,
    /// Run a command once and not a second time with the kernel's scheduling events. This takes
    /// half the time, and gives only its makespan and the numbers that it prints
    #[arg(long)]
    no_events: bool,
    /// What the members of an ensemble differ by, separated by commas: start, order, timers, stack,
    /// heap, data, span, interleave; a wrong name lists what each is [default: all]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = Kind::from_str)]
    nudge: Vec<Kind>,
    /// Run only the first member of each ensemble, and once: a third of the time, for numbers that a
    /// record is held against
    #[arg(long)]
    first_member: bool,
    /// Take exactly the inputs of this lock file, by their hashes: the kernel, QEMU, its plugin, the
    /// runner and schedulers; `-o DIR` writes DIR/inputs.lock
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    changes: ChangeArguments,
    #[arg(long, hide = true, num_args = 0, value_parser = needless, default_missing_value = "")]
    one_boot: Option<String>,
}

fn needless(_: &str) -> Result<String, String> {
    Err("leave it out: every class begins with the state of the same boot, and with nothing that \
         ran before"
        .to_string())
}

impl GuestArguments {
    /// The settings of a guest for each kernel, on `machine` if it is described, for `command`,
    /// whose relative paths begin in `directory`. What schedulers write is kept below `output`.
    ///
    /// # Errors
    /// If a kernel is neither a series nor a file, or no guest can have that machine.
    pub fn settings(
        &self,
        machine: Option<&MachineFile>,
        command: Option<&CommandArguments>,
        directory: Option<&Path>,
        output: Option<&Path>,
    ) -> Result<Vec<GuestSettings>, Error> {
        let shape = machine.map(|machine| Shape::of(machine, CPUS)).transpose()?;
        if shape.is_some() && self.numa_nodes > 1 {
            return Err(Error::Usage(
                "the described machine has nodes: leave --numa-nodes out".to_string(),
            ));
        }
        let kinds = if self.nudge.is_empty() { Kind::ALL.to_vec() } else { self.nudge.clone() };
        let nudges = Nudges::new(kinds);
        let changes = self.changes.changes()?;
        let lock = self.lock.as_deref().map(InputLock::read).transpose()?.map(Arc::new);
        let of = |kernel: &String| {
            let is_known = Kernel::is_series(kernel)
                || Path::new(kernel).is_file()
                || build_command(kernel).is_some()
                || Kernel::built(kernel)?.is_some();
            if !is_known {
                return Err(Error::Input(format!(
                    "there is no kernel `{kernel}`; give the number of a series, as in 6.18 \
                     (`schedlab list kernels`), or the path of a bzImage"
                )));
            }
            Ok(GuestSettings {
                kernel: kernel.clone(),
                settle: self.settle,
                memory: self.memory,
                nodes: self.numa_nodes,
                shape: shape.clone(),
                interleave: self.interleave,
                changes: changes.clone(),
                functions: self.functions.is_some(),
                witness: false,
                nudges: nudges.clone(),
                is_first_member: self.first_member,
                lock: lock.clone(),
                origin: command.map(|command| command.origin(directory)).unwrap_or_default(),
                kept: output.map(|output| output.join(SCHEDULERS)),
                has_events: !self.no_events,
                limit: command.map_or(Nanos::ZERO, CommandArguments::timeout),
                printed: command.map_or(Vec::new(), CommandArguments::printed),
            })
        };
        self.kernels()?.iter().map(of).collect()
    }

    /// Guests of one kernel, with the usual settings.
    ///
    /// # Errors
    /// If there is no such kernel.
    pub fn of_kernel(kernel: &str) -> Result<GuestSettings, Error> {
        #[derive(clap::Parser)]
        struct Usual {
            #[command(flatten)]
            guests: GuestArguments,
        }
        let usual = <Usual as clap::Parser>::try_parse_from(["schedlab", "--kernel", kernel]);
        let usual = usual.map_err(|error| Error::Usage(error.to_string()))?;
        let [settings] =
            <[GuestSettings; 1]>::try_from(usual.guests.settings(None, None, None, None)?)
                .map_err(|_| Error::Usage("give one kernel, as in \"6.18\"".to_string()))?;
        Ok(settings)
    }

    /// Whether only the first members of ensembles run.
    pub fn is_first_member(&self) -> bool {
        self.first_member
    }

    /// The names of the kernels.
    fn kernels(&self) -> Result<Vec<String>, Error> {
        let mut kernels = self.kernel.clone();
        kernels.extend(self.source.kernel()?);
        Ok(if kernels.is_empty() { vec![USUAL.to_string()] } else { kernels })
    }

    /// The number of functions to show, if yields are split by function.
    pub fn functions(&self) -> Option<usize> {
        self.functions
    }
}
