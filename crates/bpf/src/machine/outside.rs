//! What a machine knows of what is outside of it, and what it calls there.

use crate::fault::Fault;
use crate::lines::Place;
use crate::machine::Machine;
use crate::memory::Address;
use crate::names::helper_name;
use crate::object::{Function, FunctionId, MapId, MapKind};
use std::fmt;

/// What a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// A kernel function.
    Function(FunctionId),
    /// A helper.
    Helper(u32),
    /// A function of the object: where that begins.
    Own(Place),
}

/// What the machine calls outside of itself.
///
/// A call may run programs again (`machine.call`), for timers for example. The machine adds to a
/// fault where it happened. `step`, `calls`, `returns` and `stores` are for those who look on: where
/// they are left out, the machine has no code for them.
pub trait Outside {
    /// Calls a kernel function. `machine.object().functions()` has its name.
    fn function(
        &mut self,
        machine: &mut Machine,
        function: FunctionId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault>;

    /// Calls a helper that the machine does not do itself.
    fn helper(
        &mut self,
        machine: &mut Machine,
        helper: u32,
        arguments: [u64; 5],
    ) -> Result<u64, Fault>;

    /// Takes a record of a ring buffer or of a perf event array. By default it is dropped;
    /// [`Machine::records`] counts it in any case.
    fn record(&mut self, machine: &mut Machine, map: MapId, bytes: &[u8]) {
        let _ = (machine, map, bytes);
    }

    /// Takes a line that the program prints. By default it is dropped.
    fn print(&mut self, machine: &mut Machine, text: &str) {
        let _ = (machine, text);
    }

    /// Called before each instruction.
    #[inline(always)]
    fn step(&mut self, machine: &Machine, at: Place) {
        let _ = (machine, at);
    }

    /// Called before each call of a program.
    #[inline(always)]
    fn calls(&mut self, machine: &Machine, called: Called, arguments: [u64; 5]) {
        let _ = (machine, called, arguments);
    }

    /// Called with the result of the last call that is open, unless it is a fault.
    #[inline(always)]
    fn returns(&mut self, machine: &Machine, value: u64) {
        let _ = (machine, value);
    }

    /// Called after an instruction has written: where, and how many bytes.
    #[inline(always)]
    fn stores(&mut self, machine: &Machine, address: Address, size: usize) {
        let _ = (machine, address, size);
    }
}

/// What there is outside: asked once, when a machine is made.
pub trait Kernel {
    /// Whether it has a function, by [`Function::essential`] of its name.
    fn has_function(&self, function: &Function) -> bool;

    /// Whether it has a helper that the machine does not do itself.
    fn has_helper(&self, helper: u32) -> bool;

    /// A setting of its configuration, such as `CONFIG_HZ`, or `LINUX_KERNEL_VERSION`.
    fn setting(&self, name: &str) -> Option<Setting>;

    /// One of its variables.
    fn variable(&self, name: &str) -> Option<KernelVariable>;
}

/// A setting of the kernel's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A number; yes is 1.
    Number(u64),
    /// A text.
    Text(String),
}

/// A variable of the kernel, at an address that the machine chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelVariable {
    /// One, with these bytes at first.
    Bytes(Vec<u8>),
    /// One for each CPU, with these bytes at first.
    PerCpu(Vec<u8>),
}

/// How a machine is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of CPUs: each has its own values of some maps.
    pub cpus: u32,
    /// The most instructions of one run, with all that it calls.
    pub budget: u64,
    /// The most bytes of memory.
    pub memory: u64,
    /// The programs that will run. If none is named, those of [`crate::Object::entries`].
    pub entries: Vec<crate::ProgramId>,
    /// Whether a read through a null pointer gives 0, as where the kernel's verifier knows that the
    /// pointer is one of the kernel's own. It is a fault otherwise.
    pub null_reads_are_zero: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cpus: 1,
            budget: 100_000_000,
            memory: 1 << 30,
            entries: Vec::new(),
            null_reads_are_zero: false,
        }
    }
}

/// Something that a program needs, and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A kernel function.
    Function(String),
    /// A helper.
    Helper(u32),
    /// A kind of map.
    Map(String, MapKind),
    /// A setting of the kernel's configuration.
    Setting(String),
    /// A variable of the kernel.
    Variable(String),
    /// An instruction: where, and what it does.
    Instruction(String, String),
    /// Memory: for what.
    Memory(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Function(name) => write!(formatter, "the kernel function `{name}`"),
            Missing::Helper(number) => {
                let name = helper_name(*number).unwrap_or("of a name not known here");
                write!(formatter, "the helper {number} (`{name}`)")
            }
            Missing::Map(name, MapKind::Other(number)) => {
                write!(formatter, "maps of kind {number} (`{name}`)")
            }
            Missing::Map(name, kind) => write!(formatter, "maps such as `{name}` ({kind:?})"),
            Missing::Setting(name) => write!(formatter, "the setting `{name}` of the kernel"),
            Missing::Variable(name) => write!(formatter, "the variable `{name}` of the kernel"),
            Missing::Instruction(place, what) => {
                write!(formatter, "an instruction at {place}, which {what}")
            }
            Missing::Memory(what) => write!(formatter, "the memory for {what}"),
        }
    }
}

/// Why a machine cannot be made: all that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<Missing>);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the object needs what is not there: ")?;
        for (place, missing) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(formatter, "{comma}{missing}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// A variable of the kernel at its addresses.
#[derive(Clone)]
pub(crate) struct Placed {
    pub name: String,
    /// One, or one for each CPU.
    pub at: Vec<Address>,
    /// What a program has.
    pub handle: Address,
}
