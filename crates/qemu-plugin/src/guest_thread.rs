//! The thread that runs the guest.

use std::ffi::{c_int, c_uint};

/// Makes the thread that runs the guest, which calls this, as nice as this program was started. A
/// main loop of real-time priority passes on neither that nor how nice it was.
pub fn be_nice() {
    const PROCESS: c_int = 0;
    // SAFETY: two system calls on numbers; 0 is the calling thread.
    unsafe { setpriority(PROCESS, 0, getpriority(PROCESS, std::process::id())) };
}

unsafe extern "C" {
    fn getpriority(which: c_int, who: c_uint) -> c_int;
    fn setpriority(which: c_int, who: c_uint, nice: c_int) -> c_int;
}
