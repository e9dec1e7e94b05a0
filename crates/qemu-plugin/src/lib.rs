//! Keeps a guest's clock exact where it idles, and counts its instructions by their addresses if it is asked to, without changing how many there are.
//!
//! Source: QEMU 7.2, include/qemu/qemu-plugin.h (API version 1); only what is used is declared here. To count, QEMU adds one to a counter of its instruction's
//! address each time it runs; two no-operations with a number in them (`BEGIN` and `END`) open and close a window, and when the guest is switched off the counts
//! of each window are written to the file that `out=` names: lines of the window's number from 0, an address in hexadecimal, and a count.
//!
//! All virtual CPUs are in one thread: the counters need no locks but the one that keeps Rust's rules.

mod main_loop;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::Mutex;

/// The API that QEMU is to offer.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = 1;

/// `nopw 0x5ced1ab0(%rax,%rax,1)`: the window begins behind it.
const BEGIN: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb0, 0x1a, 0xed, 0x5c];
/// The same with 1: the window ends before it.
const END: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb1, 0x1a, 0xed, 0x5c];
/// `hlt`: the CPU idles.
const HALT: [u8; 1] = [0xf4];

type Id = u64;
type VcpuCallback = extern "C" fn(c_uint, *mut c_void);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, *mut c_void));
    fn qemu_plugin_register_atexit_cb(id: Id, callback: extern "C" fn(Id, *mut c_void), data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(insn: *mut c_void, callback: VcpuCallback, flags: c_int, data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_inline(insn: *mut c_void, op: c_int, counter: *mut c_void, add: u64);
    fn qemu_plugin_tb_n_insns(tb: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const c_void, index: usize) -> *mut c_void;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
    fn qemu_plugin_insn_size(insn: *const c_void) -> usize;
    fn qemu_plugin_insn_data(insn: *const c_void) -> *const u8;
}

/// What the plugin knows.
struct Counts {
    /// Where QEMU counts, by the instruction's address, and how far that was when the window began. The counters stay where they are.
    counters: HashMap<u64, (Box<u64>, u64)>,
    /// What the windows that are closed came to: number, address, count.
    closed: Vec<(u32, u64, u64)>,
    windows: u32,
    open: bool,
    out: String,
}

static COUNTS: Mutex<Option<Counts>> = Mutex::new(None);

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
pub unsafe extern "C" fn qemu_plugin_install(id: Id, _info: *const c_void, count: c_int, arguments: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let argument = |index| unsafe { CStr::from_ptr(*arguments.add(index)) }.to_string_lossy().into_owned();
    let out = (0..usize::try_from(count).unwrap_or(0)).map(argument).find_map(|text| text.strip_prefix("out=").map(str::to_string));
    if let Err(error) = main_loop::find() {
        eprintln!("schedlab's plugin: cannot see whether QEMU's main loop is asleep: {error}");
        return 1;
    }
    if let Ok(mut counts) = COUNTS.lock() {
        *counts = out.map(|out| Counts { counters: HashMap::new(), closed: Vec::new(), windows: 0, open: false, out });
    }
    // SAFETY: the callbacks live as long as the library, which QEMU keeps.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
    0
}

/// QEMU has translated a block.
extern "C" fn translated(_id: Id, block: *mut c_void) {
    // SAFETY: block and instructions are QEMU's own and valid during this call.
    let instructions = unsafe { (0..qemu_plugin_tb_n_insns(block)).map(|index| qemu_plugin_tb_get_insn(block, index)) };
    for insn in instructions {
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn)) };
        if bytes == HALT {
            calls(insn, halts);
        }
        with_counts(|counts| match bytes {
            _ if bytes == BEGIN => calls(insn, begin),
            _ if bytes == END => calls(insn, end),
            _ => counts.count(insn),
        });
    }
}

/// QEMU calls `callback` before each time that it runs the instruction.
fn calls(insn: *mut c_void, callback: VcpuCallback) {
    const NO_REGISTERS: c_int = 0;
    // SAFETY: the instruction is QEMU's own, and valid while it is translated.
    unsafe { qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, NO_REGISTERS, std::ptr::null_mut()) };
}

impl Counts {
    /// An instruction gets the counter of its address. Whatever is translated in a window has not run in it yet.
    fn count(&mut self, insn: *mut c_void) {
        const ADD: c_int = 0;
        // SAFETY: the instruction is QEMU's own, and valid while it is translated; a counter's memory is never given back.
        unsafe {
            let (counter, _) = self.counters.entry(qemu_plugin_insn_vaddr(insn)).or_default();
            qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD, std::ptr::from_mut(counter.as_mut()).cast(), 1);
        }
    }
}

extern "C" fn halts(_cpu: c_uint, _data: *mut c_void) {
    main_loop::wait_until_asleep();
}

extern "C" fn begin(_cpu: c_uint, _data: *mut c_void) {
    with_counts(|counts| {
        counts.open = true;
        for (counter, before) in counts.counters.values_mut() {
            // SAFETY: QEMU's thread, which is the one that counts, is in this call.
            *before = unsafe { std::ptr::read_volatile(counter.as_ref()) };
        }
    });
}

extern "C" fn end(_cpu: c_uint, _data: *mut c_void) {
    with_counts(|counts| {
        if !std::mem::take(&mut counts.open) {
            return;
        }
        for (&address, (counter, before)) in &counts.counters {
            // SAFETY: as in `begin`.
            let now = unsafe { std::ptr::read_volatile(counter.as_ref()) };
            if now > *before {
                counts.closed.push((counts.windows, address, now - *before));
            }
        }
        counts.windows += 1;
    });
}

extern "C" fn at_exit(_id: Id, _data: *mut c_void) {
    with_counts(|counts| {
        counts.closed.sort_unstable();
        let write = || -> std::io::Result<()> {
            let mut file = std::io::BufWriter::new(std::fs::File::create(&counts.out)?);
            counts.closed.iter().try_for_each(|(window, address, count)| writeln!(file, "{window} {address:x} {count}"))?;
            file.flush()
        };
        if let Err(error) = write() {
            eprintln!("schedlab's plugin: {}: {error}", counts.out);
        }
    });
}
