//! Calls of functions in a window: how many instructions each takes, from its first to its return.
//! This includes all that it calls and all interrupts that come meanwhile.
//!
//! `calls=` names the functions by their addresses, with colons between them. They are the
//! trampolines by which a kernel calls a scheduler in BPF. They are short, without a jump but to
//! what they call, and left by one return.

use crate::api::{Counter, Counters, Instruction, Registers};
use crate::with_counts;
use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};

/// No trampoline is longer.
const LONGEST: u64 = 512;
const RETURN: u8 = 0xc3;
/// `jmp` to where it returns in the place of this, where the processor needs that.
const FAR: u8 = 0xe9;

/// What the plugin knows of them.
pub struct Calls {
    functions: Vec<u64>,
    /// All instructions.
    ran: Counter,
    /// Those that have not returned: the function, and how many instructions had run.
    open: Vec<(u64, u64)>,
    /// How often a call took each number of instructions: window, function, instructions.
    ended: BTreeMap<(u32, u64, u64), u64>,
}

impl Calls {
    /// As QEMU's arguments say.
    pub fn new(arguments: &[String], counters: &mut Counters) -> Calls {
        let named = arguments.iter().find_map(|argument| argument.strip_prefix("calls="));
        let functions = named.unwrap_or_default().split(':');
        let mut functions: Vec<u64> =
            functions.filter_map(|address| u64::from_str_radix(address, 16).ok()).collect();
        functions.sort_unstable();
        Calls { functions, ran: counters.another(), open: Vec::new(), ended: BTreeMap::new() }
    }

    /// QEMU has translated an instruction.
    pub fn translated(&mut self, instruction: Instruction, bytes: &[u8]) {
        if self.functions.is_empty() {
            return;
        }
        let address = instruction.address();
        let before = self.functions.partition_point(|&function| function <= address);
        if let Some(&function) = before.checked_sub(1).map(|at| &self.functions[at]) {
            if function == address {
                instruction.calls(begins, Registers::Untouched, function);
            } else if address - function < LONGEST && matches!(bytes[0], RETURN | FAR) {
                instruction.calls(returns, Registers::Untouched, function);
            }
        }
        instruction.counts(&mut self.ran);
    }

    fn begins(&mut self, function: u64) {
        self.open.push((function, self.ran.value()));
    }

    fn returns(&mut self, window: u32, function: u64) {
        let Some(at) = self.open.iter().rposition(|&(open, _)| open == function) else { return };
        let (_, before) = self.open.remove(at);
        // This one has not been counted yet.
        *self.ended.entry((window, function, self.ran.value() - before + 1)).or_default() += 1;
    }

    /// No call that has begun belongs to the next window.
    pub fn forget(&mut self) {
        self.open.clear();
    }

    /// Lines of `call`, the window's number, the function's address in hexadecimal, a number of
    /// instructions, and how often it took these.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.ended.iter().map(|((window, function, instructions), times)| {
            format!("call {window} {function:x} {instructions} {times}")
        })
    }
}

extern "C" fn begins(_cpu: c_uint, function: *mut c_void) {
    with_counts(|counts| {
        if counts.open {
            counts.calls.begins(function as u64);
        }
    });
}

extern "C" fn returns(_cpu: c_uint, function: *mut c_void) {
    with_counts(|counts| {
        if counts.open {
            counts.calls.returns(counts.windows, function as u64);
        }
    });
}
