//! QEMU 7.2 to 8.2.

use super::{ADD, Bytes, Instruction};
use std::ffi::{c_int, c_void};

/// The interface that QEMU is to offer.
pub const VERSION: c_int = 1;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_insn_exec_inline(
        insn: *mut c_void,
        op: c_int,
        counter: *mut c_void,
        add: u64,
    );
    fn qemu_plugin_insn_data(insn: *const c_void) -> *const u8;
}

impl Instruction {
    pub fn bytes(self) -> Bytes {
        let mut bytes = Bytes { bytes: [0; 15], size: self.size().min(15) };
        let size = bytes.size;
        // SAFETY: it is valid while it is translated, and has so many bytes.
        bytes.bytes[..size].copy_from_slice(unsafe {
            std::slice::from_raw_parts(qemu_plugin_insn_data(self.0), size)
        });
        bytes
    }

    /// QEMU adds one to `counter` each time that it runs this.
    pub fn counts(self, counter: &mut Counter) {
        // SAFETY: it is valid while it is translated; a counter's memory is never given back.
        unsafe {
            qemu_plugin_register_vcpu_insn_exec_inline(
                self.0,
                ADD,
                std::ptr::from_mut(counter.0.as_mut()).cast(),
                1,
            )
        };
    }
}

/// Where QEMU counts; it stays where it is.
pub struct Counter(Box<u64>);

impl Counter {
    pub fn value(&self) -> u64 {
        // SAFETY: QEMU's thread, which is the one that counts, is in this call.
        unsafe { std::ptr::read_volatile(self.0.as_ref()) }
    }
}

/// Makes counters.
pub struct Counters;

impl Counters {
    pub fn new() -> Counters {
        Counters
    }

    pub fn another(&mut self) -> Counter {
        Counter(Box::default())
    }
}
