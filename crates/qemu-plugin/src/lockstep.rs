//! Several CPUs in lockstep: none is ever more than a few blocks further than `interleave=`
//! instructions ahead of another.
//!
//! QEMU runs all CPUs in one thread, one after another, and by itself in long and unequal spans.
//! From the instruction `LOCKSTEP` on, this ends spans. A span ends as soon as the CPU has run
//! `interleave=` instructions more than the CPU that has run fewest. Where a span ends early, as a
//! timer is due, the CPU keeps what it has not used. A CPU that idles must continue as well, or its
//! share of the clock would go to the others. The kernel's `hlt` and `pause` are skipped, and its
//! loops around them run. So virtual time passes alike for all: with N of them each runs an
//! instruction in N times the nanoseconds of one.
//!
//! A span ends as QEMU itself ends one, by its function `cpu_exit`. (The interface could only set
//! the time for that, which wakes the main loop: 14 us a span.) Which CPU runs is read from QEMU's
//! variable `current_cpu`. The reason: what the interface hands over as its number is, with one
//! thread, the number of the CPU that translated the block.
//!
//! A `pause` in user space ends a span, too: its address is not known for certain, as blocks are
//! shared between programs. The CPU lags behind while others run a block at least in each span.
//! When the machine is switched off, the file that `lockstep=` names gets three numbers. These are
//! how many CPUs took part, how many instructions at most were between two of them, and a hash in
//! hexadecimal. The hash is of all spans but the last few: when the machine is off depends on
//! QEMU's main loop.
//!
//! A span that QEMU ended may have woken up its main loop. This kicks all CPUs where it handles a
//! timer, and so ends a span at a moment of this machine's time. The next span waits for it to be
//! asleep again (docs/adr/0020).

use crate::api::{Instruction, Registers, in_block, set_program_counter, symbol};
use crate::{grace, main_loop};
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// `nopw 0x5ced1ab2(%rax,%rax,1)`: from here on.
const LOCKSTEP: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb2, 0x1a, 0xed, 0x5c];
const HALT: [u8; 1] = [0xf4];
const PAUSE: [u8; 2] = [0xf3, 0x90];

/// Of the hash FNV-1a in 64 bits, here of numbers in place of bytes.
const FNV_PRIME: u64 = 0x100_0000_01b3;
/// In more spans than this, nothing is done by a machine that is being switched off.
const WHOLE: u64 = 1_000;

type Cpu = *mut c_void;

/// QEMU's `current_cpu` of the thread that runs the guest; null before `LOCKSTEP`.
static CURRENT: AtomicPtr<Cpu> = AtomicPtr::new(null_mut());
/// Whose span it is.
static RUNNING: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// How many instructions are left of it.
static LEFT: AtomicI64 = AtomicI64::new(0);
/// Whether it was ended.
static IS_ENDED: AtomicBool = AtomicBool::new(false);

static STEPS: Mutex<Steps> =
    Mutex::new(Steps { cpus: Vec::new(), most: 0, spans: 0, hash: 0, whole: 0 });
static SETTINGS: OnceLock<Settings> = OnceLock::new();

struct Settings {
    interleave: i64,
    out: Option<String>,
    end_span: extern "C" fn(Cpu),
}

/// How far the CPUs are.
struct Steps {
    cpus: Vec<Progress>,
    /// The most instructions that were between two of them.
    most: i64,
    spans: u64,
    /// Of who ran how far in each.
    hash: u64,
    /// The same, when a multiple of [`WHOLE`] spans had ended.
    whole: u64,
}

struct Progress {
    cpu: usize,
    ran: i64,
    /// Where its span ends.
    until: i64,
}

/// Reads what QEMU was given, and does nothing without `interleave=`. Called by QEMU's main thread.
pub fn prepare(arguments: &[String]) -> Result<(), String> {
    let value = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let Some(interleave) = value("interleave=") else { return Ok(()) };
    let interleave = interleave.parse().map_err(|error| format!("interleave: {error}"))?;
    if current_cpu().is_null() {
        return Err("this QEMU does not say which CPU runs".to_string());
    }
    let end_span = cpu_exit().ok_or("this QEMU does not let a CPU make way")?;
    if !grace::is_known() {
        return Err(
            "this QEMU ends spans as it frees memory, and cannot be kept from it".to_string()
        );
    }
    let out = value("lockstep=").map(str::to_string);
    SETTINGS.get_or_init(|| Settings { interleave, out, end_span });
    Ok(())
}

/// Whether CPUs run in lockstep, now or later.
pub fn is_wanted() -> bool {
    SETTINGS.get().is_some()
}

/// QEMU has translated a block.
pub fn translated(block: *mut c_void) {
    if !is_wanted() {
        return;
    }
    let mut count = 0;
    // SAFETY: it is QEMU's own, and nothing of it is kept.
    for instruction in unsafe { Instruction::all(block) } {
        count += 1;
        let (bytes, behind) = (instruction.bytes(), instruction.behind());
        match &*bytes {
            bytes if bytes == LOCKSTEP => instruction.calls(begin, Registers::Untouched, 0),
            bytes if bytes == HALT => instruction.calls(idles, Registers::SetsCounter, behind),
            bytes if bytes == PAUSE && is_of_kernel(behind) => {
                instruction.calls(pauses, Registers::SetsCounter, behind);
            }
            _ => {}
        }
    }
    // SAFETY: as above.
    unsafe { in_block(block, runs, count) };
}

fn is_of_kernel(address: u64) -> bool {
    address.cast_signed() < 0
}

extern "C" fn begin(_cpu: c_uint, _data: *mut c_void) {
    RUNNING.store(null_mut(), Relaxed);
    CURRENT.store(current_cpu(), Relaxed);
}

/// Where QEMU says which CPU the calling thread runs.
fn current_cpu() -> *mut Cpu {
    // The variable is each thread's own; `begin` is called by the thread that runs all CPUs and ends
    // with QEMU.
    symbol(c"current_cpu").cast()
}

/// QEMU's `void cpu_exit(CPUState *)`: that CPU leaves its loop behind the block that begins.
fn cpu_exit() -> Option<extern "C" fn(Cpu)> {
    // SAFETY: it is null, or that function.
    unsafe { std::mem::transmute::<Cpu, Option<extern "C" fn(Cpu)>>(symbol(c"cpu_exit")) }
}

extern "C" fn idles(_cpu: c_uint, behind: *mut c_void) {
    if CURRENT.load(Relaxed).is_null() {
        return main_loop::wait_until_asleep();
    }
    set_program_counter(behind as u64);
}

extern "C" fn pauses(_cpu: c_uint, behind: *mut c_void) {
    if !CURRENT.load(Relaxed).is_null() {
        set_program_counter(behind as u64);
    }
}

/// A block of this many instructions begins.
extern "C" fn runs(_cpu: c_uint, instructions: *mut c_void) {
    let current = CURRENT.load(Relaxed);
    if current.is_null() {
        return;
    }
    // SAFETY: see `begin`.
    let cpu = unsafe { *current };
    let left = LEFT.load(Relaxed) - instructions as i64;
    if cpu == RUNNING.load(Relaxed) && left > 0 {
        return LEFT.store(left, Relaxed);
    }
    changes(cpu, instructions as i64);
}

/// The span of `cpu` begins, or ends with the block that begins.
#[cold]
fn changes(cpu: Cpu, instructions: i64) {
    let (Some(settings), Ok(mut steps)) = (SETTINGS.get(), STEPS.lock()) else { return };
    let is_ended = IS_ENDED.load(Relaxed);
    if !is_ended && cpu != RUNNING.load(Relaxed) {
        main_loop::wait_until_asleep();
    }
    if is_ended || cpu != RUNNING.load(Relaxed) {
        steps.account(RUNNING.load(Relaxed), LEFT.load(Relaxed));
        RUNNING.store(cpu, Relaxed);
        LEFT.store(steps.begin(cpu, settings.interleave), Relaxed);
        IS_ENDED.store(false, Relaxed);
    }
    let left = LEFT.load(Relaxed) - instructions;
    LEFT.store(left, Relaxed);
    if left <= 0 {
        IS_ENDED.store(true, Relaxed);
        (settings.end_span)(cpu);
    }
}

impl Steps {
    /// The instructions of the span of `cpu`, of which `left` were not used.
    fn account(&mut self, cpu: Cpu, left: i64) {
        let Some(number) = self.cpus.iter().position(|progress| progress.cpu == cpu as usize)
        else {
            return;
        };
        let progress = &mut self.cpus[number];
        progress.ran = progress.until - left;
        for part in [number as u64, progress.ran.cast_unsigned()] {
            self.hash = (self.hash ^ part).wrapping_mul(FNV_PRIME);
        }
        if self.spans.is_multiple_of(WHOLE) {
            self.whole = self.hash;
        }
        let (first, last) = (self.first(), self.cpus.iter().map(|cpu| cpu.ran).max());
        self.most = self.most.max(last.unwrap_or(first) - first);
    }

    /// How many instructions `cpu` may run.
    fn begin(&mut self, cpu: Cpu, interleave: i64) -> i64 {
        self.spans += 1;
        let (cpu, first) = (cpu as usize, self.first());
        let number = self.cpus.iter().position(|progress| progress.cpu == cpu);
        let number = number.unwrap_or_else(|| {
            self.cpus.push(Progress { cpu, ran: first, until: first });
            self.cpus.len() - 1
        });
        let progress = &mut self.cpus[number];
        progress.until = first + interleave;
        progress.until - progress.ran
    }

    /// How far the CPU is that has run fewest.
    fn first(&self) -> i64 {
        self.cpus.iter().map(|cpu| cpu.ran).min().unwrap_or(0)
    }
}

/// The machine is switched off.
pub fn report() {
    let (Some(Settings { out: Some(out), .. }), Ok(steps)) = (SETTINGS.get(), STEPS.lock()) else {
        return;
    };
    let text = format!("{} {} {:x}\n", steps.cpus.len(), steps.most, steps.whole);
    if let Err(error) = std::fs::write(out, text) {
        eprintln!("schedlab's plugin: {out}: {error}");
    }
}
