//! What QEMU exports beside its interface for plugins, found by name.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

/// The function or variable of this name; null if there is none. A variable of each thread is that
/// of the calling one.
pub fn named(name: &CStr) -> *mut c_void {
    // SAFETY: a name with an end.
    unsafe { dlsym(null_mut(), name.as_ptr()) }
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}
