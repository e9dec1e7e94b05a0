//! How callbacks are registered up to version 6 of the interface.

use super::{Callbacks, Id};
use std::ffi::c_void;
use std::sync::OnceLock;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, *mut c_void));
    fn qemu_plugin_register_atexit_cb(
        id: Id,
        callback: extern "C" fn(Id, *mut c_void),
        data: *mut c_void,
    );
}

static CALLBACKS: OnceLock<Callbacks> = OnceLock::new();

/// QEMU calls them.
pub fn register(id: Id, callbacks: Callbacks) {
    CALLBACKS.get_or_init(|| callbacks);
    // SAFETY: the callbacks live as long as the library, which QEMU keeps.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, block);
        qemu_plugin_register_atexit_cb(id, exit, std::ptr::null_mut());
    }
}

extern "C" fn block(_id: Id, block: *mut c_void) {
    CALLBACKS.get().into_iter().for_each(|callbacks| (callbacks.translated)(block));
}

extern "C" fn exit(_id: Id, _data: *mut c_void) {
    CALLBACKS.get().into_iter().for_each(|callbacks| (callbacks.at_exit)());
}
