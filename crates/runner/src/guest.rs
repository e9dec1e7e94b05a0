//! The init of a guest kernel: mounts, the report port, the watchdog and the end of the machine.
//!
//! Reports leave through QEMU's debug console, a port that takes one byte at a time and is never
//! busy. It needs no driver and no interrupt, and the kernel writes nothing to it. The watchdog (an
//! iBase IB700, two ports) is QEMU's as well and runs on the guest's clock. So it also ends a
//! kernel that hangs with interrupts off.

use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, LONGEST_SILENCE_S, ORDERS};
use std::ffi::{CStr, CString};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::Duration;

/// The debug console.
const REPORT_PORT: u16 = 0xe9;
/// A write arms the watchdog: 0 for 30 s, the longest, and each unit more for 2 s less.
const WATCHDOG_PORT: u16 = 0x443;
/// QEMU's `pvpanic` device: a 1 written here makes QEMU stop the machine at once.
const PAUSE_PORT: u16 = 0x505;
/// QEMU's `fw_cfg` device: select a file by a number of two bytes, then read it from the next port,
/// byte by byte.
const FILES_PORT: u16 = 0x510;
/// The number of the list of files.
const LIST_OF_FILES: u16 = 0x19;

static GUEST: AtomicBool = AtomicBool::new(false);
/// Whether this is a guest with more than one CPU.
static HAS_SEVERAL_CPUS: AtomicBool = AtomicBool::new(false);
/// The value that is written to the watchdog.
static WATCHDOG: AtomicU8 = AtomicU8::new(0);

/// Whether this is the init of a guest.
pub fn is_guest() -> bool {
    GUEST.load(Relaxed)
}

/// Whether this is the init of a guest that has one CPU.
pub fn has_one_cpu() -> bool {
    is_guest() && !HAS_SEVERAL_CPUS.load(Relaxed)
}

/// Mounts what an init needs.
pub fn set_up() -> Result<(), String> {
    GUEST.store(true, Relaxed);
    mount(c"proc", c"/proc")?;
    mount(c"sysfs", c"/sys")?;
    mount(c"devtmpfs", c"/dev")?;
    mount(c"tmpfs", c"/tmp")?;
    mount(c"tracefs", c"/sys/kernel/tracing")?;
    HAS_SEVERAL_CPUS.store(crate::machine::cpus() > 1, Relaxed);
    Ok(())
}

/// Sets the silence after which the watchdog ends the guest.
pub fn set_silence(silence: Duration) {
    let seconds = u8::try_from(silence.as_secs()).unwrap_or(LONGEST_SILENCE_S);
    WATCHDOG.store((LONGEST_SILENCE_S - seconds) / 2, Relaxed);
}

/// A wait that is longer than this must reset the watchdog.
pub fn patience() -> Duration {
    Duration::from_secs(u64::from(LONGEST_SILENCE_S - 2 * WATCHDOG.load(Relaxed))) * 2 / 3
}

/// Mounts a file system without a device.
pub fn mount(kind: &CStr, at: &CStr) -> Result<(), String> {
    mount_with(kind, at, "")
}

/// The same with options.
pub fn mount_with(kind: &CStr, at: &CStr, options: &str) -> Result<(), String> {
    let options = CString::new(options).map_err(|error| error.to_string())?;
    let options = options.as_ptr().cast();
    // SAFETY: terminated strings.
    match unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, options) } {
        0 => Ok(()),
        _ => Err(format!(
            "the guest cannot mount {}: {}",
            at.to_string_lossy(),
            io::Error::last_os_error()
        )),
    }
}

/// Switches the network on that a program has with itself, `lo`, if the kernel has it.
pub fn start_loopback() {
    // SAFETY: zeros are a value of the request, which the kernel only reads; the socket is closed
    // here.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l', b'o'].map(u8::cast_signed));
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request);
        libc::close(socket);
    }
}

/// Writes a line to the debug console and resets the watchdog.
pub fn report(event: &Event) {
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    with_ports(&[REPORT_PORT, WATCHDOG_PORT], || {
        // SAFETY: the port is QEMU's, and `with_ports` has opened it; the bytes are only read.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                "rep outsb",
                in("dx") REPORT_PORT,
                inout("rsi") line.as_ptr() => _,
                inout("rcx") line.len() => _
            );
        }
        arm_watchdog();
    });
}

/// Resets the watchdog without a report.
pub fn reassure() {
    with_ports(&[REPORT_PORT, WATCHDOG_PORT], arm_watchdog);
}

/// Makes QEMU stop the machine here, to continue later, perhaps in another QEMU.
pub fn pause() {
    with_ports(&[PAUSE_PORT], || {
        // SAFETY: the port is QEMU's, and `with_ports` has opened it.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("out dx, al", in("dx") PAUSE_PORT, in("al") 1u8);
        }
    });
}

/// Reads the jobs that QEMU provides.
///
/// # Errors
/// If it hands over none, or something else.
pub fn orders() -> Result<Vec<Job>, String> {
    /// Size, number, two reserved bytes, and a name.
    const ENTRY: usize = 64;
    let mut bytes = Vec::new();
    with_ports(&[FILES_PORT, FILES_PORT + 1], || {
        let number =
            |bytes: &[u8]| bytes.iter().fold(0u32, |number, byte| (number << 8) | u32::from(*byte));
        let count = number(&read_file(LIST_OF_FILES, 4)) as usize;
        let list = read_file(LIST_OF_FILES, 4 + count * ENTRY);
        let entries = list[4..].chunks_exact(ENTRY);
        let entry = entries
            .into_iter()
            .find(|entry| entry[8..].split(|byte| *byte == 0).next() == Some(ORDERS.as_bytes()));
        bytes = entry.map_or(Vec::new(), |entry| {
            read_file(number(&entry[4..6]) as u16, number(&entry[..4]) as usize)
        });
    });
    serde_json::from_slice(&bytes)
        .map_err(|error| format!("QEMU hands over {ORDERS}, which is no list of jobs: {error}"))
}

/// The first `length` bytes of a file of QEMU's. Called with the ports open.
fn read_file(number: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // SAFETY: the ports are QEMU's, and `with_ports` has opened them; `bytes` has room for all that
    // is written.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("out dx, ax", in("dx") FILES_PORT, in("ax") number);
        std::arch::asm!(
            "rep insb",
            in("dx") FILES_PORT + 1,
            inout("rdi") bytes.as_mut_ptr() => _,
            inout("rcx") length => _
        );
    }
    bytes
}

/// Called with the ports open.
fn arm_watchdog() {
    // SAFETY: the port is QEMU's, and `with_ports` has opened it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("out dx, al", in("dx") WATCHDOG_PORT, in("al") WATCHDOG.load(Relaxed));
    }
}

/// Runs `body` while `ports` are open to this thread. They are closed between reports, because open
/// ports make each switch to this thread slower.
fn with_ports(ports: &[u16], body: impl FnOnce()) {
    // SAFETY: it opens only ports that belong to QEMU.
    let open = |on| ports.iter().all(|&port| unsafe { libc::ioperm(port.into(), 1, on) } == 0);
    if !open(1) {
        let _ = writeln!(
            io::stderr(),
            "schedlab-runner: the kernel does not open QEMU's ports: {}",
            io::Error::last_os_error()
        );
        return;
    }
    body();
    open(0);
}

/// Loads the module in `file`, packed or not.
pub fn load_module(file: &str) -> io::Result<()> {
    /// `MODULE_INIT_COMPRESSED_FILE`.
    const PACKED: libc::c_long = 4;
    let module = std::fs::File::open(file)?;
    let flags = if file.ends_with(".ko") { 0 } else { PACKED };
    // SAFETY: a descriptor that is open, and an empty text that ends.
    let done =
        unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), c"".as_ptr(), flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Switches the machine off.
pub fn power_off() -> ! {
    // SAFETY: for the init it does not return.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    std::process::exit(1)
}

/// Makes sleeps of this process end on time, and not up to 50 us later, as the kernel does by
/// default to save wakeups.
pub fn wake_in_time() {
    // SAFETY: numbers only. Tasks inherit it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
