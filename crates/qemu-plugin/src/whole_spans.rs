//! A CPU's span of instructions ends where the guest's clock says, not when another thread of QEMU
//! frees memory.
//!
//! QEMU frees what several threads read once none of them reads it any more (RCU). If the thread
//! that runs the CPUs goes on reading, QEMU ends the span of the CPU that runs and takes the next
//! one: with several CPUs, who runs when then depends on this machine's clock, and two boots
//! differ. Here that thread gives up being asked. Memory is freed a little later: at the end of
//! each span the thread reads nothing.

use crate::exported::named;
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::Once;

/// QEMU's `Notifier`: whom it asks, in a list.
#[repr(C)]
struct Notifier {
    notify: extern "C" fn(*mut Notifier, *mut c_void),
    next: *mut Notifier,
    previous: *mut *mut Notifier,
}

type Change = extern "C" fn(*mut Notifier);

/// Adds to and takes from the list of the calling thread.
const ADD: &CStr = c"rcu_add_force_rcu_notifier";
const REMOVE: &CStr = c"rcu_remove_force_rcu_notifier";

fn changes() -> Option<[Change; 2]> {
    let [add, remove] = [ADD, REMOVE].map(named);
    // SAFETY: both are null, or these functions of QEMU's.
    let of = |address| unsafe { transmute::<*mut c_void, Option<Change>>(address) };
    Some([of(add)?, of(remove)?])
}

/// Whether this QEMU allows it.
#[cfg(feature = "api-7")]
pub fn is_possible() -> bool {
    changes().is_some()
}

extern "C" fn nothing(_: *mut Notifier, _: *mut c_void) {}

/// Called by the thread that runs the CPUs, before the first block.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some([add, remove]) = changes() else { return };
        // One of our own is the first of the list, and says which others there are.
        let own = Box::into_raw(Box::new(Notifier {
            notify: nothing,
            next: null_mut(),
            previous: null_mut(),
        }));
        add(own);
        loop {
            // SAFETY: QEMU has linked it, and changes it in this thread alone.
            let next = unsafe { (*own).next };
            if next.is_null() {
                break;
            }
            remove(next);
        }
        remove(own);
    });
}
