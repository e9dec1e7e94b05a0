//! What QEMU offers to plugins: what is the same in all versions of that interface, and what is not.
//!
//! Source: include/qemu/qemu-plugin.h of QEMU 7.2 (version 1 of the interface) and of 10.0 (versions 3 and 4); only what is used is declared.

#[cfg(not(feature = "api-3"))]
#[path = "api/version_1.rs"]
mod version;
#[cfg(feature = "api-3")]
#[path = "api/version_3.rs"]
mod version;

use std::ffi::{c_int, c_uint, c_void};
use std::ops::Deref;

pub use version::{Counter, Counters, VERSION};

/// Whom QEMU takes this for.
pub type Id = u64;
type Callback = extern "C" fn(c_uint, *mut c_void);

/// What QEMU may hand over in registers: nothing.
const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, *mut c_void));
    fn qemu_plugin_register_atexit_cb(id: Id, callback: extern "C" fn(Id, *mut c_void), data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(insn: *mut c_void, callback: Callback, flags: c_int, data: *mut c_void);
    fn qemu_plugin_tb_n_insns(tb: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const c_void, index: usize) -> *mut c_void;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
    fn qemu_plugin_insn_size(insn: *const c_void) -> usize;
}

/// QEMU calls `translated` with each block that it has translated, and `at_exit` when the machine is switched off.
pub fn register(id: Id, translated: extern "C" fn(Id, *mut c_void), at_exit: extern "C" fn(Id, *mut c_void)) {
    // SAFETY: the callbacks live as long as the library, which QEMU keeps.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
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

    fn size(self) -> usize {
        // SAFETY: it is valid while it is translated.
        unsafe { qemu_plugin_insn_size(self.0) }
    }

    /// QEMU calls `callback` before each time that it runs this.
    pub fn calls(self, callback: Callback) {
        // SAFETY: it is valid while it is translated; the callback lives as long as the library.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(self.0, callback, NO_REGISTERS, std::ptr::null_mut()) };
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
