//! A machine: an object with memory, maps and counters, ready to run.

mod access;
mod build;
mod helpers;
pub(crate) mod look;
mod maps;
pub(crate) mod outside;
mod print;
mod run;
mod variables;

use crate::fault::{Fault, FaultKind};
use crate::instruction::Instruction;
use crate::machine::maps::Map;
use crate::machine::outside::{Outside, Placed};
use crate::machine::run::Saved;
use crate::memory::{Address, Memory};
use crate::object::{FunctionId, MapId, Object, ProgramId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most calls that may be open at a time, with those of callbacks.
const DEEPEST: usize = 64;
/// The bytes of a frame.
pub(crate) const FRAME: usize = 512;
/// The most arguments of a program.
const ARGUMENTS: usize = 12;

/// How often a program ran, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Runs that were begun.
    pub runs: u64,
    /// Instructions, with those of all that it called.
    pub instructions: u64,
}

/// A machine that runs the programs of an object.
#[derive(Clone)]
pub struct Machine {
    /// The CPU that programs run on: maps with values of each CPU show its values.
    pub cpu: u32,
    pub(crate) cpus: u32,
    pub(crate) object: Arc<Object>,
    pub(crate) code: Arc<[Instruction]>,
    pub(crate) memory: Memory,
    pub(crate) maps: Vec<Map>,
    /// The number of the map, plus one, by the slot of its address.
    pub(crate) map_of_slot: Vec<u32>,
    /// The sections of variables, by their place in the object.
    pub(crate) sections: Vec<u32>,
    /// The settings of the kernel, by their place in the object.
    pub(crate) configuration: Vec<Address>,
    pub(crate) placed: Vec<Placed>,
    /// The address of the first program as a value.
    pub(crate) program_tag: u32,
    /// The address of the first kernel function as a value.
    pub(crate) function_tag: u32,
    pub(crate) has_function: Vec<bool>,
    pub(crate) has_helper: BTreeMap<u32, bool>,
    pub(crate) frames: Vec<u32>,
    pub(crate) contexts: Vec<u32>,
    /// Calls and runs that are open.
    pub(crate) depth: usize,
    pub(crate) nesting: usize,
    pub(crate) saved: Vec<Saved>,
    pub(crate) budget: u64,
    pub(crate) left: u64,
    pub(crate) null_reads_are_zero: bool,
    pub(crate) counters: Vec<Counter>,
    pub(crate) executed: u64,
    /// What is freed when no program runs any more.
    pub(crate) deferred: Vec<u32>,
    /// Records that are reserved, and their map.
    pub(crate) reserved: BTreeMap<u32, MapId>,
    pub(crate) records: u64,
}

impl Machine {
    /// The object that it runs.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Instructions that were executed, in all.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// What a program that was run from outside did.
    pub fn counter(&self, program: ProgramId) -> Counter {
        self.counters.get(program.0 as usize).copied().unwrap_or_default()
    }

    /// Records that were handed to the outside.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The bytes of memory in use.
    pub fn used(&self) -> u64 {
        self.memory.used()
    }

    /// The address of a program as a value, for callbacks.
    pub fn program_address(&self, program: ProgramId) -> Address {
        Address::of(self.program_tag).plus(u64::from(program.0) * 8)
    }

    /// The program that a value is the address of.
    pub fn program_at(&self, address: u64) -> Option<ProgramId> {
        let number = (address as u32) / 8;
        let is_one = (address >> 32) as u32 == self.program_tag
            && address & 7 == 0
            && (number as usize) < self.object.programs().len();
        is_one.then_some(ProgramId(number))
    }

    /// The address of a kernel function as a value; null if it is not there.
    pub fn function_address(&self, function: FunctionId) -> Address {
        if self.has_function.get(function.0 as usize).copied().unwrap_or(false) {
            return Address::of(self.function_tag).plus(u64::from(function.0) * 8);
        }
        Address::NULL
    }

    /// Runs a program as the kernel runs those of `struct_ops`: its one argument is the address of
    /// an array with these arguments (at most 12).
    pub fn run<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        program: ProgramId,
        arguments: &[u64],
    ) -> Result<u64, Fault> {
        if arguments.len() > ARGUMENTS {
            let what = format!("is run with {} arguments: 12 are the most", arguments.len());
            return Err(Fault::of(FaultKind::Argument, what));
        }
        let context = self.context()?;
        let words = self.memory.region_mut(context).unwrap_or_default();
        for (word, argument) in words.as_chunks_mut::<8>().0.iter_mut().zip(arguments) {
            *word = argument.to_le_bytes();
        }
        self.start(outside, program, [Address::of(context).0, 0, 0, 0, 0])
    }

    /// Calls the function whose address a program has as a value, for timers for example.
    pub fn call<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        callback: u64,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let Some(program) = self.program_at(callback) else {
            let what = format!("has {callback:#x} called, which is no function of the object");
            return Err(Fault::of(FaultKind::Argument, what));
        };
        self.start(outside, program, arguments)
    }

    fn start<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        program: ProgramId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let Some(of) = self.object.programs().get(program.0 as usize) else {
            let what = format!("program {} is not one of the object", program.0);
            return Err(Fault::of(FaultKind::Argument, what));
        };
        let at = of.start as usize;
        if self.nesting == 0 {
            self.left = self.budget;
        }
        let before = self.left;
        self.nesting += 1;
        let result = self.execute(outside, at, arguments);
        self.nesting -= 1;
        let executed = before - self.left;
        let counter = &mut self.counters[program.0 as usize];
        counter.runs += 1;
        counter.instructions += executed;
        if self.nesting == 0 {
            self.executed += executed;
            for tag in std::mem::take(&mut self.deferred) {
                self.memory.free(tag);
            }
        }
        result
    }

    /// Where arguments stand, at this nesting.
    fn context(&mut self) -> Result<u32, Fault> {
        if let Some(&context) = self.contexts.get(self.nesting) {
            return Ok(context);
        }
        let name = self.memory.name("the arguments");
        let context = self.memory.allocate(name, ARGUMENTS * 8).ok_or_else(full)?;
        self.contexts.push(context);
        Ok(context)
    }

    /// A frame for a call: its number.
    pub(crate) fn frame(&mut self) -> Result<u32, Fault> {
        if let Some(&frame) = self.frames.get(self.depth) {
            return Ok(frame);
        }
        if self.depth >= DEEPEST {
            let what = format!("has more than {DEEPEST} calls open");
            return Err(Fault::of(FaultKind::Depth, what));
        }
        let name = self.memory.name("the stack");
        let frame = self.memory.allocate(name, FRAME).ok_or_else(full)?;
        self.frames.push(frame);
        Ok(frame)
    }

    /// Says of a fault where it happened.
    #[cold]
    pub(crate) fn locate(&self, fault: Fault, at: usize) -> Fault {
        let Some((program, instruction)) = self.object.place(at) else { return fault };
        let name = &self.object.programs()[program.0 as usize].name;
        fault.at(name, instruction, self.object.line(program, instruction))
    }
}

/// That memory is at its end.
pub(crate) fn full() -> Fault {
    Fault::of(FaultKind::Outside, "needs more memory than the machine may have")
}
