//! What QEMU 11.1 offers beyond that.

use std::ffi::{c_int, c_uint, c_void};

unsafe extern "C" {
    fn qemu_plugin_request_time_control() -> *const c_void;
    fn qemu_plugin_update_ns(handle: *const c_void, ns: i64);
    fn qemu_plugin_set_pc(address: u64);
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut c_void,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_int,
        data: *mut c_void,
    );
}

/// QEMU calls `callback` with `data` each time that the block begins.
///
/// # Safety
/// The block is what QEMU has handed over, in that call.
pub unsafe fn in_block(
    block: *mut c_void,
    callback: extern "C" fn(c_uint, *mut c_void),
    data: usize,
) {
    // SAFETY: the caller's promise; the callback lives as long as the library.
    unsafe {
        qemu_plugin_register_vcpu_tb_exec_cb(block, callback, 0, data as *mut c_void);
    }
}

/// The CPU goes on at `address`. It does not return: QEMU jumps back into its loop.
pub fn set_program_counter(address: u64) {
    // SAFETY: it is called in callbacks that are registered for it, and leaves nothing to drop.
    unsafe { qemu_plugin_set_pc(address) }
}

/// The right to set the time.
pub struct Control(*const c_void);

// SAFETY: it is a token.
unsafe impl Send for Control {}
// SAFETY: as above.
unsafe impl Sync for Control {}

impl Control {
    /// One plugin may have it. Called by QEMU's main thread. Its state can be kept no more.
    pub fn request() -> Option<Control> {
        // SAFETY: it has no arguments.
        let handle = unsafe { qemu_plugin_request_time_control() };
        (!handle.is_null()).then_some(Control(handle))
    }

    /// The CPU that runs makes way for the next one behind the block that begins.
    pub fn end_span(&self) {
        // SAFETY: the handle is QEMU's. The clock is ahead of this time and stays as it is; to
        // look, QEMU leaves the CPU.
        unsafe { qemu_plugin_update_ns(self.0, 0) }
    }
}
