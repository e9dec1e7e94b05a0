//! The runner as the init of a guest kernel: what an init must do, the port it reports by, and the watchdog.
//!
//! Reports leave through QEMU's debug console, a port that takes one byte each and never says no: no driver, no interrupt, and nothing of the kernel's between
//! the lines. The watchdog (an iBase IB700, two ports) is QEMU's as well and runs on the guest's clock, so it also ends a kernel that hangs with interrupts off.

use schedlab_runner::event::Event;
use schedlab_runner::session::LONGEST_SILENCE_S;
use std::ffi::CStr;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::Duration;

/// The debug console.
const REPORT_PORT: u16 = 0xe9;
/// Writing arms the watchdog: 0 for 30 s, the longest, and each more for 2 s less.
const WATCHDOG_PORT: u16 = 0x443;

static GUEST: AtomicBool = AtomicBool::new(false);
/// Whether this is a guest of several CPUs.
static HAS_SEVERAL_CPUS: AtomicBool = AtomicBool::new(false);
/// What is written to the watchdog.
static WATCHDOG: AtomicU8 = AtomicU8::new(0);

/// Whether this is the init of a guest.
pub fn is_guest() -> bool {
    GUEST.load(Relaxed)
}

/// Whether this is the init of a guest that has one CPU.
pub fn has_one_cpu() -> bool {
    is_guest() && !HAS_SEVERAL_CPUS.load(Relaxed)
}

/// Lets the next of a guest's CPUs go on. QEMU runs them one after another, each until it waits, until a timer, or until it says that it pauses: where tasks do so often,
/// the CPUs go on side by side as far as tasks can tell.
pub fn next_cpu() {
    if HAS_SEVERAL_CPUS.load(Relaxed) {
        std::hint::spin_loop();
    }
}

/// Makes this process the init that it is.
pub fn set_up() -> Result<(), String> {
    GUEST.store(true, Relaxed);
    mount(c"proc", c"/proc")?;
    mount(c"sysfs", c"/sys")?;
    mount(c"devtmpfs", c"/dev")?;
    mount(c"tmpfs", c"/tmp")?;
    mount(c"tracefs", c"/sys/kernel/tracing")?;
    HAS_SEVERAL_CPUS.store(crate::cpus() > 1, Relaxed);
    Ok(())
}

/// Lets the watchdog bite after so long a silence.
pub fn set_silence(silence: Duration) {
    let seconds = u8::try_from(silence.as_secs()).unwrap_or(LONGEST_SILENCE_S);
    WATCHDOG.store((LONGEST_SILENCE_S - seconds) / 2, Relaxed);
}

/// Who waits for longer than this while all is well sets the watchdog back.
pub fn patience() -> Duration {
    Duration::from_secs(u64::from(LONGEST_SILENCE_S - 2 * WATCHDOG.load(Relaxed))) * 2 / 3
}

/// Mounts a file system that needs no device.
pub fn mount(kind: &CStr, at: &CStr) -> Result<(), String> {
    // SAFETY: strings with an end, no data.
    match unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(format!("the guest cannot mount {}: {}", at.to_string_lossy(), io::Error::last_os_error())),
    }
}

/// Writes a line to the debug console and sets the watchdog back.
pub fn report(event: &Event) {
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    with_ports(|| {
        // SAFETY: the port is QEMU's, and `with_ports` has asked the kernel for it; the bytes are read only.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("rep outsb", in("dx") REPORT_PORT, inout("rsi") line.as_ptr() => _, inout("rcx") line.len() => _);
        }
        arm_watchdog();
    });
}

/// Sets the watchdog back without a word.
pub fn reassure() {
    with_ports(arm_watchdog);
}

/// Called with the ports open.
fn arm_watchdog() {
    // SAFETY: the port is QEMU's, and `with_ports` has asked the kernel for it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("out dx, al", in("dx") WATCHDOG_PORT, in("al") WATCHDOG.load(Relaxed));
    }
}

/// Runs `body` while the two ports are open to this thread. Between reports they are closed: open ports would cost each switch to this thread something.
fn with_ports(body: impl FnOnce()) {
    let ports = [REPORT_PORT, WATCHDOG_PORT];
    // SAFETY: it asks for two ports that nothing but QEMU listens to.
    let open = |on| ports.iter().all(|&port| unsafe { libc::ioperm(port.into(), 1, on) } == 0);
    if !open(1) {
        let _ =
            writeln!(io::stderr(), "schedlab-runner: the kernel does not open the debug console's port: {}", io::Error::last_os_error());
        return;
    }
    body();
    open(0);
}

/// Switches the machine off.
pub fn power_off() -> ! {
    // SAFETY: it does not return where this is the init.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    std::process::exit(1)
}

/// Lets sleeps of this process end when they should, and not up to 50 us later, as the kernel likes to gather them.
pub fn wake_in_time() {
    // SAFETY: numbers only. Tasks inherit it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
