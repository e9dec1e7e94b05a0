//! What QEMU 11.1 offers beyond that.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::slice;

/// `GArray` and `GByteArray` of GLib, with which QEMU hands over lists and values.
#[repr(C)]
struct Array<T> {
    data: *mut T,
    length: c_uint,
}

/// The begin of a `qemu_plugin_reg_descriptor`, which is longer in some versions.
#[repr(C)]
struct Described {
    handle: *mut c_void,
    name: *const c_char,
}

unsafe extern "C" {
    fn qemu_plugin_get_registers() -> *mut Array<Described>;
    fn qemu_plugin_read_register(handle: *mut c_void, into: *mut Array<u8>) -> bool;
    fn g_array_get_element_size(array: *mut Array<Described>) -> c_uint;
    fn g_byte_array_new() -> *mut Array<u8>;
    fn g_byte_array_set_size(array: *mut Array<u8>, length: c_uint) -> *mut Array<u8>;
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

/// The CPU continues at `address`. It does not return: QEMU jumps back into its loop.
pub fn set_program_counter(address: u64) {
    // SAFETY: it is called in callbacks that are registered for it, and leaves nothing to drop.
    unsafe { qemu_plugin_set_pc(address) }
}

/// A register of the CPU, and room for its value.
pub struct Value {
    handle: *mut c_void,
    room: *mut Array<u8>,
}

// SAFETY: both are QEMU's and GLib's own, and the thread that runs the CPUs alone uses them.
unsafe impl Send for Value {}

impl Value {
    /// Those with these names. Called where QEMU translates, as the CPU must be there.
    pub fn named<const N: usize>(names: [&str; N]) -> Option<[Value; N]> {
        // SAFETY: it makes a list, which is never given back.
        let list = unsafe { qemu_plugin_get_registers() };
        if list.is_null() {
            return None;
        }
        // SAFETY: as GLib describes its lists.
        let (data, length, each) =
            unsafe { ((*list).data, (*list).length as usize, g_array_get_element_size(list)) };
        // SAFETY: all these are in the list.
        let described = |index: usize| unsafe { &*data.byte_add(index * each as usize) };
        let handle = |name: &str| {
            // SAFETY: names are QEMU's own and end.
            let is_it =
                |of: &&Described| unsafe { CStr::from_ptr(of.name) }.to_bytes() == name.as_bytes();
            (0..length).map(described).find(is_it).map(|of| of.handle)
        };
        let handles = names.map(handle);
        if handles.iter().any(Option::is_none) {
            return None;
        }
        // SAFETY: it makes an empty array, which is never given back.
        Some(handles.map(|handle| Value {
            handle: handle.unwrap_or(null_mut()),
            room: unsafe { g_byte_array_new() },
        }))
    }

    /// Its value. Called where a callback asked for it.
    pub fn read(&self) -> u64 {
        // SAFETY: QEMU appends the bytes of the register to the array, least significant first.
        unsafe {
            g_byte_array_set_size(self.room, 0);
            if !qemu_plugin_read_register(self.handle, self.room) {
                return 0;
            }
            let bytes = slice::from_raw_parts((*self.room).data, (*self.room).length as usize);
            bytes.iter().take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
        }
    }
}
