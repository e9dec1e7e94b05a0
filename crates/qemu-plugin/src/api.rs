//! What QEMU offers to plugins: what is the same in all versions of that interface, and what is
//! not.
//!
//! Source: include/qemu/qemu-plugin.h of QEMU 7.2 (version 1 of the interface), of 10.0 (versions 3
//! and 4) and of 11.1 (version 7). Only what is used is declared.

#[cfg(not(feature = "api-7"))]
#[path = "api/registration_1.rs"]
mod registration;
#[cfg(feature = "api-7")]
#[path = "api/registration_7.rs"]
mod registration;
#[cfg(not(feature = "api-3"))]
#[path = "api/version_1.rs"]
mod version;
#[cfg(feature = "api-3")]
#[path = "api/version_3.rs"]
mod version;
#[cfg(feature = "api-7")]
#[path = "api/version_7.rs"]
mod version_7;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::Deref;
use std::ptr::null_mut;

pub use registration::register;
pub use version::{Counter, Counters};
#[cfg(feature = "api-7")]
pub use version_7::{Value, in_block, set_program_counter};

/// The interface that QEMU is to offer.
pub const VERSION: c_int = if cfg!(feature = "api-7") { 7 } else { version::VERSION };

/// Whom QEMU takes this for.
pub type Id = u64;
type Callback = extern "C" fn(c_uint, *mut c_void);

/// What QEMU calls.
pub struct Callbacks {
    /// With each block that it has translated.
    pub translated: fn(*mut c_void),
    /// When the machine is switched off.
    pub at_exit: fn(),
}

/// `enum qemu_plugin_cb_flags`: what a callback does with the CPU's registers.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Registers {
    /// Nothing.
    Untouched = 0,
    /// It reads them: from version 2 of the interface on.
    #[cfg_attr(not(feature = "api-7"), expect(dead_code, reason = "only marks read them"))]
    Read = 1,
    /// It sets the program counter: from version 6 of the interface on.
    #[cfg_attr(not(feature = "api-7"), expect(dead_code, reason = "only lockstep sets it"))]
    SetsCounter = 3,
}

/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut c_void,
        callback: Callback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(tb: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const c_void, index: usize) -> *mut c_void;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
    fn qemu_plugin_insn_size(insn: *const c_void) -> usize;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// What QEMU itself has by this name, beyond its interface; of a variable of each thread, that of
/// the calling one. Null if there is none.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a name with an end; QEMU is not unloaded.
    unsafe { dlsym(null_mut(), name.as_ptr()) }
}

/// An instruction of a block that is being translated.
#[derive(Clone, Copy)]
pub struct Instruction(*mut c_void);

impl Instruction {
    /// The instructions of `block`.
    ///
    /// # Safety
    /// It is what QEMU has handed over, and they are not kept for longer than that call lasts.
    pub unsafe fn all(block: *mut c_void) -> impl Iterator<Item = Instruction> {
        // SAFETY: the caller's promise.
        let count = unsafe { qemu_plugin_tb_n_insns(block) };
        // SAFETY: as above.
        (0..count).map(move |index| Instruction(unsafe { qemu_plugin_tb_get_insn(block, index) }))
    }

    pub fn address(self) -> u64 {
        // SAFETY: it is valid while it is translated.
        unsafe { qemu_plugin_insn_vaddr(self.0) }
    }

    /// The address behind it.
    #[cfg(feature = "api-7")]
    pub fn behind(self) -> u64 {
        self.address() + self.size() as u64
    }

    fn size(self) -> usize {
        // SAFETY: it is valid while it is translated.
        unsafe { qemu_plugin_insn_size(self.0) }
    }

    /// QEMU calls `callback` with `data` before each time that it runs this.
    pub fn calls(self, callback: Callback, registers: Registers, data: u64) {
        // SAFETY: it is valid while it is translated; the callback lives as long as the library.
        unsafe {
            qemu_plugin_register_vcpu_insn_exec_cb(
                self.0,
                callback,
                registers as c_int,
                data as *mut c_void,
            )
        };
    }
}

/// The bytes of an instruction of x86-64.
pub struct Bytes {
    bytes: [u8; 15],
    size: usize,
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}
