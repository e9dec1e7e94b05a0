//! An object that has a scheduler, ready to be loaded again and again.

use super::callbacks::{OPS, Op, Places};
use super::constants::{
    ENUMS, HZ, OPS_BUILTIN_IDLE_PER_NODE, OPS_ENQ_LAST, OPS_FLAGS, OPS_KEEP_BUILTIN_IDLE,
};
use super::core::Traits;
use super::cost::Costs;
use super::functions;
use super::helpers;
use super::kernel::Known;
use bpf::{
    Global, KernelVariable, Machine, Object, Operation, ProgramId, Refused, Setting, Settings,
    StructOps,
};
use schedsim::Nanos;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of the table that a scheduler is.
const TABLE: &str = "sched_ext_ops";
/// The time between two ticks.
const TICK: Nanos = Nanos(1_000_000_000 / HZ);
/// Without `timeout_ms`, a task that is runnable may wait as long (`SCX_WATCHDOG_MAX_TIMEOUT`).
const TIMEOUT: Nanos = Nanos(30_000_000_000);
/// Without `dispatch_max_batch` (`SCX_DSP_DFL_MAX_BATCH`).
const BATCH: u64 = 32;
/// The longest batch: each CPU has a buffer of 32 bytes a task, of at most 32 KiB
/// (`PCPU_MIN_UNIT_SIZE`).
const MOST_BATCH: u64 = 1023;
/// What the names of members of the table begin with, among those of constants.
const OF_TABLE: &str = "ops.";
/// Its members that a loader may set.
const SETTABLE: [&str; 3] = ["flags", "timeout_ms", "dispatch_max_batch"];
/// As of Linux 6.18.
const VERSION: u64 = 6 << 16 | 18 << 8;

/// Why an object cannot be a policy.
#[derive(Debug)]
pub enum Unfit {
    /// It is no object, or a damaged one.
    Malformed(bpf::Malformed),
    /// It has no table `sched_ext_ops`, or several.
    Tables(usize),
    /// It needs something that the simulator does not have.
    Missing(Refused),
    /// Its table has a value that the kernel refuses.
    Member(String),
    /// It has no constant of that name, or one that cannot have that value.
    Constant(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Malformed(malformed) => malformed.fmt(f),
            Unfit::Tables(0) => f.write_str("it has no `struct sched_ext_ops`: it is no scheduler"),
            Unfit::Tables(count) => {
                write!(f, "it has {count} tables `struct sched_ext_ops`: give an object with one")
            }
            Unfit::Missing(refused) => refused.fmt(f),
            Unfit::Member(what) | Unfit::Constant(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Unfit {}

/// How much a scheduler may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instructions in one call of an operation, with all that it calls.
    pub instructions: u64,
    /// Bytes of memory.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        let Settings { budget, memory, .. } = Settings::default();
        Limits { instructions: budget, memory }
    }
}

/// An object with its constants set.
#[derive(Clone)]
pub struct Loaded {
    object: Arc<Object>,
    operations: Arc<[Option<ProgramId>]>,
    /// The kernel's functions, by their numbers in the object.
    functions: Arc<[Option<Known>]>,
    /// What these take.
    costs: Arc<Costs>,
    /// Constants of the object, as bytes by name.
    constants: Arc<[(String, Vec<u8>)]>,
    flags: u64,
    timeout: Nanos,
    batch: u64,
    limits: Limits,
}

impl Loaded {
    /// The scheduler in `bytes`, with these constants (`NAME`, `VALUE`). `ops.flags`,
    /// `ops.timeout_ms` and `ops.dispatch_max_batch` are those of its table.
    ///
    /// # Errors
    /// What it is instead, or what it needs that there is not.
    pub fn read(bytes: &[u8], constants: &[(String, String)]) -> Result<Loaded, Unfit> {
        Loaded::read_within(bytes, constants, Limits::default())
    }

    /// As [`read`](Self::read), for a scheduler that may use less.
    ///
    /// # Errors
    /// As those of [`read`](Self::read).
    pub fn read_within(
        bytes: &[u8],
        constants: &[(String, String)],
        limits: Limits,
    ) -> Result<Loaded, Unfit> {
        let object = Object::read(bytes).map_err(Unfit::Malformed)?;
        let tables: Vec<&StructOps> =
            object.struct_ops().iter().filter(|table| table.kind == TABLE).collect();
        let [table] = tables[..] else { return Err(Unfit::Tables(tables.len())) };
        let program = |name: &str| match table.member(name) {
            Some(&Operation::Program(program)) => Some(program),
            _ => None,
        };
        let (of_table, constants): (Vec<_>, Vec<_>) =
            constants.iter().partition(|(name, _)| name.starts_with(OF_TABLE));
        let mut given = BTreeMap::new();
        for (name, value) in of_table {
            let member = &name[OF_TABLE.len()..];
            if !SETTABLE.contains(&member) {
                let known = SETTABLE.map(|name| format!("{OF_TABLE}{name}")).join(", ");
                return Err(Unfit::Constant(format!("there is no `{name}` to set: give {known}")));
            }
            let number = if member == "flags" { flags(value) } else { value.parse().ok() };
            given.insert(member, number.ok_or_else(|| wrong_member(name, value))?);
        }
        let number = |name: &str| match (given.get(name), table.member(name)) {
            (Some(&number), _) => number,
            (None, Some(Operation::Bytes(bytes))) => {
                bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
            }
            _ => 0,
        };
        let operations: Vec<_> = OPS.iter().map(|(_, name)| program(name)).collect();
        let known = |function: &bpf::Function| {
            let call = functions::named(&function.name)?;
            Some(Known { call, places: Places::of(&function.name) })
        };
        let functions: Vec<_> = object.functions().iter().map(known).collect();
        let costs = Costs::of(object.functions().iter().map(|function| &*function.name));
        let (timeout, batch) = (number("timeout_ms"), number("dispatch_max_batch"));
        let flags = number("flags");
        let most = |name: &str, value: u64, most: u64| match value <= most {
            true => Ok(()),
            false => {
                Err(Unfit::Member(format!("its `{name}` is {value}, at most {most} is taken")))
            }
        };
        most("timeout_ms", timeout, TIMEOUT.0 / 1_000_000)?;
        most("dispatch_max_batch", batch, MOST_BATCH)?;
        if OPS_FLAGS.iter().fold(flags, |left, (_, flag)| left & !flag) != 0 {
            return Err(Unfit::Member(format!("its `flags` are {flags:#x}: not all are known")));
        }
        if flags & OPS_ENQ_LAST != 0 && program("enqueue").is_none() {
            let what = "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented";
            return Err(Unfit::Member(what.to_string()));
        }
        let mut loaded = Loaded {
            operations: operations.into(),
            functions: functions.into(),
            costs: Arc::new(costs),
            constants: Arc::new([]),
            flags,
            timeout: if timeout == 0 { TIMEOUT } else { Nanos(timeout * 1_000_000) },
            batch: if batch == 0 { BATCH } else { batch },
            limits,
            object: Arc::new(object),
        };
        let machine = loaded.made(1).map_err(Unfit::Missing)?;
        loaded.constants = constants
            .into_iter()
            .map(|(name, value)| loaded.constant(&machine, name, value))
            .collect::<Result<_, _>>()?;
        Ok(loaded)
    }

    /// The names of the constants that have the object's own values here. The program that loads
    /// the object may set others.
    pub fn untouched(&self, machine: &Machine) -> Vec<&str> {
        let is_constant = |global: &&Global| {
            global.section.starts_with(".rodata")
                && !global.name.starts_with("__")
                && global.size <= 8
                && machine.number(&global.name).is_some()
                && !self.constants.iter().any(|(given, _)| *given == global.name)
        };
        let globals = self.object.globals().iter().filter(is_constant);
        globals.map(|global| global.name.as_str()).collect()
    }

    /// The bytes of the constant `name` with the value `value`: a number, a duration as in `5ms`, or
    /// `true` and `false`.
    fn constant(
        &self,
        machine: &Machine,
        name: &str,
        value: &str,
    ) -> Result<(String, Vec<u8>), Unfit> {
        let wrong = |what: String| Unfit::Constant(what);
        let globals = self.object.globals();
        let Some(global) = globals
            .iter()
            .find(|global| global.name == name && global.section.starts_with(".rodata"))
        else {
            let known = self.untouched(machine);
            let known = if known.is_empty() {
                "it has none".to_string()
            } else {
                format!("it has {}", known.join(", "))
            };
            return Err(wrong(format!("it has no constant `{name}`: {known}")));
        };
        let number = match value {
            "true" | "yes" => Some(1),
            "false" | "no" => Some(0),
            _ => value
                .parse::<u64>()
                .ok()
                .or_else(|| value.parse::<i64>().ok().map(i64::cast_unsigned))
                .or_else(|| value.parse::<Nanos>().ok().map(|time| time.0)),
        };
        let number = number.filter(|&number| {
            let bits = 8 * global.size.min(8);
            matches!(global.size, 1..=8)
                && (bits == 64 || number >> bits == 0 || number.cast_signed() >> (bits - 1) == -1)
        });
        let Some(number) = number else {
            return Err(wrong(format!(
                "`{name}={value}`: it is a constant of {} bytes: give a number, or a duration as \
                 in 5ms",
                global.size
            )));
        };
        Ok((name.to_string(), number.to_le_bytes()[..global.size as usize].to_vec()))
    }

    /// A fresh machine.
    ///
    /// # Errors
    /// If there is too little memory for all CPUs.
    pub fn machine(&self, cpus: u16) -> Result<Machine, Refused> {
        let mut machine = self.made(cpus)?;
        for (name, value) in ENUMS {
            _ = machine.set_number(&format!("__{name}"), *value);
        }
        for (name, bytes) in &*self.constants {
            _ = machine.set_variable(name, bytes);
        }
        Ok(machine)
    }

    fn made(&self, cpus: u16) -> Result<Machine, Refused> {
        let settings = Settings {
            cpus: cpus.into(),
            budget: self.limits.instructions,
            memory: self.limits.memory,
            null_reads_are_zero: true,
            ..Settings::default()
        };
        Machine::new(Arc::clone(&self.object), &settings, &Supplied { cpus })
    }

    /// The object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// What runs for an operation, if it has that.
    pub fn program(&self, op: Op) -> Option<ProgramId> {
        self.operations[op as usize]
    }

    /// The operations that it has.
    pub fn operations(&self) -> impl Iterator<Item = Op> {
        Op::all().filter(|&op| self.program(op).is_some())
    }

    /// The names of its maps and of its variables.
    pub fn holders(&self) -> Vec<String> {
        let maps = self.object.maps().iter().map(|map| map.name.clone());
        maps.chain(self.object.globals().iter().map(|global| global.name.clone())).collect()
    }

    /// All of them, by number.
    pub fn functions(&self) -> &Arc<[Option<Known>]> {
        &self.functions
    }

    /// What the kernel's functions take.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// `ops.flags`.
    pub fn flags(&self) -> u64 {
        self.flags
    }

    /// How long a runnable task may wait.
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// What the core must know of it.
    pub fn traits(&self) -> Traits {
        let functions = self.object.functions();
        Traits {
            tracks_idle: self.program(Op::UpdateIdle).is_none()
                || self.flags & OPS_KEEP_BUILTIN_IDLE != 0,
            shows_idle: functions.iter().any(|of| of.name.contains("_get_idle_")),
            by_node: self.flags & OPS_BUILTIN_IDLE_PER_NODE != 0,
            most_decided: self.batch as usize,
        }
    }

    /// The time between two ticks.
    pub fn tick(&self) -> Nanos {
        TICK
    }
}

/// The number of flags, which are names joined by `|`, or a number.
fn flags(text: &str) -> Option<u64> {
    let named = |name: &str| OPS_FLAGS.iter().find(|(of, _)| *of == name).map(|(_, flag)| *flag);
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    text.split('|').try_fold(0, |all, flag| Some(all | named(flag).or_else(|| number(flag))?))
}

fn wrong_member(name: &str, value: &str) -> Unfit {
    Unfit::Constant(if name.ends_with(".flags") {
        let names = OPS_FLAGS.map(|(name, _)| name).join(", ");
        format!("`{name}={value}`: give a number, or names joined by `|`: {names}")
    } else {
        format!("`{name}={value}`: give a whole number")
    })
}

/// What the simulator has of a kernel.
struct Supplied {
    cpus: u16,
}

impl bpf::Kernel for Supplied {
    fn has_function(&self, function: &bpf::Function) -> bool {
        functions::named(&function.name).is_some()
    }

    fn has_helper(&self, helper: u32) -> bool {
        helpers::ALL.contains(&helper)
    }

    fn setting(&self, name: &str) -> Option<Setting> {
        match name {
            "CONFIG_HZ" => Some(Setting::Number(HZ)),
            "CONFIG_NR_CPUS" => Some(Setting::Number(self.cpus.into())),
            "LINUX_KERNEL_VERSION" => Some(Setting::Number(VERSION)),
            _ => None,
        }
    }

    fn variable(&self, name: &str) -> Option<KernelVariable> {
        match name {
            "nr_cpu_ids" => {
                Some(KernelVariable::Bytes(u32::from(self.cpus).to_le_bytes().to_vec()))
            }
            "bpf_prog_active" => Some(KernelVariable::PerCpu(vec![0; 4])),
            _ => None,
        }
    }
}
