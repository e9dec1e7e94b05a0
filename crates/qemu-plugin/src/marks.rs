//! Marks: what any image says by no-operations, with how many instructions had run.
//!
//! `docs/marks.md` is the contract with images. A mark is a no-operation of nine bytes. What it
//! says is in registers: a number in `rdi`, and a time in `edx:eax`, as `rdtsc` leaves it. When the
//! machine is switched off, the file that `marks=` names gets a line for each mark. It has `begin`,
//! `end` or `event`, the number, the instructions that ran before it, and the time. It has one CPU.

use crate::api::{Counter, Counters, Instruction, Registers, Value};
use crate::{BEGIN, END};
use std::ffi::{c_uint, c_void};
use std::io::Write;
use std::sync::Mutex;

/// `nopw 0x5ced1ab3(%rax,%rax,1)`: something happened.
const EVENT: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb3, 0x1a, 0xed, 0x5c];
/// What is said by each of the three.
const KINDS: [([u8; 9], &str); 3] = [(BEGIN, "begin"), (END, "end"), (EVENT, "event")];
/// An image that makes more loses them, and the file says how many.
const MOST: usize = 1_000_000;

static MARKS: Mutex<Option<Marks>> = Mutex::new(None);

struct Marks {
    /// All instructions.
    ran: Counter,
    /// `rdi`, `rax` and `rdx`; found with the first mark.
    registers: Option<[Value; 3]>,
    made: Vec<Mark>,
    lost: u64,
    out: String,
}

struct Mark {
    kind: &'static str,
    number: u64,
    instructions: u64,
    time: u64,
}

/// Reads what QEMU was given, and does nothing without `marks=`.
pub fn prepare(arguments: &[String]) {
    let out = arguments.iter().find_map(|argument| argument.strip_prefix("marks="));
    let (Some(out), Ok(mut marks)) = (out, MARKS.lock()) else { return };
    *marks = Some(Marks {
        ran: Counters::new().another(),
        registers: None,
        made: Vec::new(),
        lost: 0,
        out: out.to_string(),
    });
}

/// QEMU has translated an instruction.
pub fn translated(instruction: Instruction, bytes: &[u8]) {
    let Ok(mut marks) = MARKS.lock() else { return };
    let Some(marks) = marks.as_mut() else { return };
    if let Some(kind) = KINDS.iter().position(|(of, _)| of == bytes) {
        if marks.registers.is_none() {
            marks.registers = Value::named(["rdi", "rax", "rdx"]);
        }
        instruction.calls(mark, Registers::Read, kind as u64);
    }
    instruction.counts(&mut marks.ran);
}

extern "C" fn mark(_cpu: c_uint, kind: *mut c_void) {
    let Ok(mut marks) = MARKS.lock() else { return };
    let Some(marks) = marks.as_mut() else { return };
    let Some([number, low, high]) = marks.registers.as_ref() else {
        marks.lost += 1;
        return;
    };
    if marks.made.len() == MOST {
        marks.lost += 1;
        return;
    }
    const HALF: u64 = u32::MAX as u64;
    let time = (high.read() & HALF) << 32 | low.read() & HALF;
    let (kind, number) = (KINDS[kind as usize].1, number.read());
    let instructions = marks.ran.value();
    marks.made.push(Mark { kind, number, instructions, time });
}

/// The machine is switched off.
pub fn report() {
    let Ok(mut marks) = MARKS.lock() else { return };
    let Some(marks) = marks.take() else { return };
    let write = || -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&marks.out)?);
        for Mark { kind, number, instructions, time } in &marks.made {
            writeln!(file, "{kind} {number} {instructions} {time}")?;
        }
        writeln!(file, "lost {}", marks.lost)?;
        file.flush()
    };
    if let Err(error) = write() {
        eprintln!("schedlab's plugin: {}: {error}", marks.out);
    }
}
