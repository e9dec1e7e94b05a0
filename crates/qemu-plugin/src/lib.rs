//! Keeps a guest's clock exact where it idles. It counts the guest's instructions by their
//! addresses if it is asked to, without changing how many there are.
//!
//! To count, QEMU adds one to a counter of its instruction's address each time it runs. Two
//! no-operations with a number in them (`BEGIN` and `END`) open and close a window. When the guest
//! is switched off, the counts of each window are written to the file that `out=` names. Each line
//! has the window's number from 0, an address in hexadecimal, and a count. With `calls=` it counts
//! calls of functions, too: see `calls.rs`. With `probe=on` it says that it fits, and is not
//! installed.
//!
//! With `interleave=` several CPUs run in lockstep from the instruction `LOCKSTEP` on: see
//! `lockstep.rs`. With `marks=` any image says when something begins, ends or happens: see
//! `marks.rs`.
//!
//! All virtual CPUs are in one thread, and there is one of them where instructions are counted. The
//! counters need no locks but the one that keeps Rust's rules.

mod api;
mod calls;
mod grace;
mod guest_thread;
#[cfg(feature = "api-7")]
mod lockstep;
mod main_loop;
#[cfg(feature = "api-7")]
mod marks;

use api::{Callbacks, Counter, Counters, Id, Instruction, Registers};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::{Mutex, Once};

/// The API that QEMU is to offer.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = api::VERSION;

/// What it says to one who only wants to know whether this QEMU loads it.
const FITS: &str = "schedlab's plugin fits";

/// `nopw 0x5ced1ab0(%rax,%rax,1)`: the window begins behind it.
const BEGIN: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb0, 0x1a, 0xed, 0x5c];
/// The same with 1: the window ends before it.
const END: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb1, 0x1a, 0xed, 0x5c];
/// `hlt`: the CPU idles.
const HALT: [u8; 1] = [0xf4];

/// What the plugin knows.
struct Counts {
    /// Where QEMU counts, by the instruction's address, and how far that was when the window
    /// began.
    by_address: HashMap<u64, (Counter, u64)>,
    counters: Counters,
    /// What the windows that are closed came to: number, address, count.
    closed: Vec<(u32, u64, u64)>,
    windows: u32,
    open: bool,
    calls: calls::Calls,
    out: String,
}

static COUNTS: Mutex<Option<Counts>> = Mutex::new(None);
/// The first block is translated by the thread that runs the guest, as all others.
static FIRST: Once = Once::new();

fn with_counts(body: impl FnOnce(&mut Counts)) {
    if let Ok(mut counts) = COUNTS.lock()
        && let Some(counts) = counts.as_mut()
    {
        body(counts);
    }
}

/// Called by QEMU when it loads the plugin.
///
/// # Safety
/// As QEMU calls it: `arguments` are `count` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _info: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let argument =
        |index| unsafe { CStr::from_ptr(*arguments.add(index)) }.to_string_lossy().into_owned();
    let arguments: Vec<String> = (0..usize::try_from(count).unwrap_or(0)).map(argument).collect();
    if arguments.iter().any(|argument| argument == "probe=on") {
        eprintln!("{FITS}");
        return 1;
    }
    if let Err(error) = main_loop::find() {
        eprintln!("schedlab's plugin: cannot see whether QEMU's main loop is asleep: {error}");
        return 1;
    }
    let out =
        arguments.iter().find_map(|argument| argument.strip_prefix("out=").map(str::to_string));
    if let Ok(mut counts) = COUNTS.lock() {
        let mut counters = Counters::new();
        let calls = calls::Calls::new(&arguments, &mut counters);
        *counts = out.map(|out| Counts {
            by_address: HashMap::new(),
            counters,
            calls,
            closed: Vec::new(),
            windows: 0,
            open: false,
            out,
        });
    }
    #[cfg(feature = "api-7")]
    marks::prepare(&arguments);
    #[cfg(feature = "api-7")]
    if let Err(error) = lockstep::prepare(&arguments) {
        eprintln!("schedlab's plugin: CPUs cannot run in lockstep: {error}");
        return 1;
    }
    api::register(id, Callbacks { translated, at_exit });
    0
}

/// QEMU has translated a block.
fn translated(block: *mut c_void) {
    FIRST.call_once(|| {
        grace::keep_spans();
        guest_thread::be_nice();
    });
    #[cfg(feature = "api-7")]
    lockstep::translated(block);
    // SAFETY: it is QEMU's own, and nothing of it is kept.
    for instruction in unsafe { Instruction::all(block) } {
        let bytes = instruction.bytes();
        #[cfg(feature = "api-7")]
        marks::translated(instruction, &bytes);
        if *bytes == HALT && !idles_in_lockstep() {
            instruction.calls(halts, Registers::Untouched, 0);
        }
        with_counts(|counts| match &*bytes {
            bytes if bytes == BEGIN => instruction.calls(begin, Registers::Untouched, 0),
            bytes if bytes == END => instruction.calls(end, Registers::Untouched, 0),
            _ => {
                // Whatever is translated in a window has not run in it yet.
                let (counter, _) = counts
                    .by_address
                    .entry(instruction.address())
                    .or_insert_with(|| (counts.counters.another(), 0));
                instruction.counts(counter);
                counts.calls.translated(instruction, &bytes);
            }
        });
    }
}

/// Whether `hlt` is the business of `lockstep.rs`.
fn idles_in_lockstep() -> bool {
    #[cfg(feature = "api-7")]
    return lockstep::is_wanted();
    #[cfg(not(feature = "api-7"))]
    false
}

extern "C" fn halts(_cpu: c_uint, _data: *mut c_void) {
    main_loop::wait_until_asleep();
}

extern "C" fn begin(_cpu: c_uint, _data: *mut c_void) {
    with_counts(|counts| {
        counts.open = true;
        counts.by_address.values_mut().for_each(|(counter, before)| *before = counter.value());
    });
}

extern "C" fn end(_cpu: c_uint, _data: *mut c_void) {
    with_counts(|counts| {
        if !std::mem::take(&mut counts.open) {
            return;
        }
        for (&address, (counter, before)) in &counts.by_address {
            let now = counter.value();
            if now > *before {
                counts.closed.push((counts.windows, address, now - *before));
            }
        }
        counts.windows += 1;
        counts.calls.forget();
    });
}

fn at_exit() {
    #[cfg(feature = "api-7")]
    lockstep::report();
    #[cfg(feature = "api-7")]
    marks::report();
    with_counts(|counts| {
        counts.closed.sort_unstable();
        let write = || -> std::io::Result<()> {
            let mut file = std::io::BufWriter::new(std::fs::File::create(&counts.out)?);
            counts.closed.iter().try_for_each(|(window, address, count)| {
                writeln!(file, "{window} {address:x} {count}")
            })?;
            counts.calls.lines().try_for_each(|line| writeln!(file, "{line}"))?;
            file.flush()
        };
        if let Err(error) = write() {
            eprintln!("schedlab's plugin: {}: {error}", counts.out);
        }
    });
}
