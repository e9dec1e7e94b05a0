//! Nothing but the guest's own time ends a CPU's span.
//!
//! QEMU frees some of its memory when every thread has let go of it (RCU). A thread of its own
//! waits for that. When it has waited for long, or much is to be freed, it has the CPU that runs
//! leave its loop (`rr_force_rcu` in accel/tcg/tcg-accel-ops-rr.c). That is at a moment of this
//! machine's time. The next CPU then runs, and from there on a guest of several CPUs is another
//! one.
//!
//! So the request is taken back: memory is freed when the span ends by itself, at the guest's next
//! timer at the latest. Before it, boots of 16 CPUs never agreed, and one in about 40 of 4 did not.
//! `docs/adr/0020-turns.md` has the measurement.

use crate::api::symbol;
use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;

/// `struct Notifier` of include/qemu/notify.h: a link of a list.
#[repr(C)]
struct Notifier {
    notify: extern "C" fn(*mut Notifier, *mut c_void),
    next: *mut Notifier,
    /// Where the pointer to this is.
    previous: *mut *mut Notifier,
}

type Change = extern "C" fn(*mut Notifier);

/// Adds a link to the calling thread's list, in front, and removes one from its list.
fn changes() -> Option<[Change; 2]> {
    let names = [c"rcu_add_force_rcu_notifier", c"rcu_remove_force_rcu_notifier"];
    let found = names.map(symbol);
    // SAFETY: both are functions of QEMU's with this argument, and neither is null.
    (!found.contains(&null_mut())).then(|| found.map(|address| unsafe { transmute(address) }))
}

/// Whether spans can be kept whole.
#[cfg(feature = "api-7")]
pub fn is_known() -> bool {
    changes().is_some()
}

/// Empties the list of the thread that runs the CPUs, which is the one that calls this.
pub fn keep_spans() {
    let Some([add, remove]) = changes() else { return };
    // A link of ours finds the others, which QEMU does not name.
    let mut own = Notifier { notify: ignore, next: null_mut(), previous: null_mut() };
    add(&raw mut own);
    while !own.next.is_null() {
        remove(own.next);
    }
    remove(&raw mut own);
}

extern "C" fn ignore(_link: *mut Notifier, _data: *mut c_void) {}
