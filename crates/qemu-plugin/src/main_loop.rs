//! QEMU's main loop, beside the thread that runs the guest.
//!
//! When all CPUs are halted, the main loop adds to the clock what is missing until the next timer
//! (`icount_start_warp_timer` in QEMU's accel/tcg). A CPU is marked as halted before the
//! instructions that it ran last are counted (`do_hlt`, then `icount_process_data`). A main loop
//! may look in between, as it was woken by something earlier and comes late. It then finds a clock
//! that is behind, and adds these instructions a second time. So a CPU may only halt while the main
//! loop is asleep. Until it learns that the CPU idles, after the instructions were counted, nothing
//! wakes it up.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What the kernel says of the main thread: the system call in which it is blocked, first the
/// call's number; `running` if it is not.
static MAIN_THREAD: OnceLock<File> = OnceLock::new();

/// How a blocked main loop begins there: with `ppoll`, as the kernel numbers it on x86-64.
const ASLEEP: [u8; 4] = *b"271 ";

/// A main loop that ends waits for the CPUs to stop, and not for events.
const PATIENCE: Duration = Duration::from_millis(200);

/// Finds the main thread, which is the one that calls this.
pub fn find() -> io::Result<()> {
    let file = File::open("/proc/thread-self/syscall")?;
    file.read_at(&mut [0; ASLEEP.len()], 0)?;
    MAIN_THREAD.get_or_init(|| file);
    Ok(())
}

/// Waits for the main loop to have nothing more to do.
pub fn wait_until_asleep() {
    let Some(file) = MAIN_THREAD.get() else { return };
    if is_asleep(file) {
        return;
    }
    let begin = Instant::now();
    while !is_asleep(file) && begin.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
}

fn is_asleep(thread: &File) -> bool {
    let mut call = [0; ASLEEP.len()];
    thread.read_at(&mut call, 0).is_ok() && call == ASLEEP
}
