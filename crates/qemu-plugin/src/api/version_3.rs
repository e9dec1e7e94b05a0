//! QEMU 9.1 to 10.0, and later ones as far as they keep it up.

use super::{ADD, Bytes, Instruction};
use std::ffi::{c_int, c_uint, c_void};

/// The interface that QEMU is to offer.
pub const VERSION: c_int = 3;

/// `qemu_plugin_u64`: the place of a number for each virtual CPU, `offset` bytes into what a
/// scoreboard has for that.
#[repr(C)]
#[derive(Clone, Copy)]
struct Place {
    scoreboard: *mut c_void,
    offset: usize,
}

unsafe extern "C" {
    fn qemu_plugin_scoreboard_new(element_size: usize) -> *mut c_void;
    fn qemu_plugin_u64_get(place: Place, cpu: c_uint) -> u64;
    fn qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
        insn: *mut c_void,
        op: c_int,
        place: Place,
        add: u64,
    );
    fn qemu_plugin_insn_data(insn: *const c_void, bytes: *mut c_void, size: usize) -> usize;
}

impl Instruction {
    pub fn bytes(self) -> Bytes {
        let mut bytes = Bytes { bytes: [0; 15], size: self.size().min(15) };
        // SAFETY: it is valid while it is translated; no more is written than there is room for.
        bytes.size =
            unsafe { qemu_plugin_insn_data(self.0, bytes.bytes.as_mut_ptr().cast(), bytes.size) };
        bytes
    }

    /// QEMU adds one to `counter` each time that it runs this.
    pub fn counts(self, counter: &mut Counter) {
        // SAFETY: it is valid while it is translated; scoreboards are never given back.
        unsafe { qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(self.0, ADD, counter.0, 1) };
    }
}

/// Where QEMU counts.
pub struct Counter(Place);

// SAFETY: what it points to is QEMU's, and used by QEMU's functions only.
unsafe impl Send for Counter {}

impl Counter {
    pub fn value(&self) -> u64 {
        // SAFETY: the place was made by QEMU, and machines whose instructions are counted have one
        // CPU.
        unsafe { qemu_plugin_u64_get(self.0, 0) }
    }
}

/// Makes counters, many of them from one scoreboard: QEMU goes through all of those.
pub struct Counters {
    /// The next of the last scoreboard.
    next: Option<Counter>,
}

const PER_SCOREBOARD: usize = 1024;

impl Counters {
    pub fn new() -> Counters {
        Counters { next: None }
    }

    pub fn another(&mut self) -> Counter {
        const EACH: usize = size_of::<u64>();
        let Counter(place) = self.next.take().unwrap_or_else(|| {
            // SAFETY: it takes a size only.
            Counter(Place {
                scoreboard: unsafe { qemu_plugin_scoreboard_new(PER_SCOREBOARD * EACH) },
                offset: 0,
            })
        });
        let offset = place.offset + EACH;
        self.next = (offset < PER_SCOREBOARD * EACH).then_some(Counter(Place { offset, ..place }));
        Counter(place)
    }
}
