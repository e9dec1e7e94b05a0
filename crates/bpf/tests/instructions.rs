//! Instructions against an interpreter of others (rbpf), and against plain Rust where that has none.

mod common;

use bpf::{FaultKind, Settings};
use common::Bench;
use common::assemble::{Random, instruction, long, object};

const ALU: [u8; 13] =
    [0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90, 0xa0, 0xb0, 0xc0];
const JUMPS: [u8; 11] = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0];
const SIZES: [u8; 4] = [0x00, 0x08, 0x10, 0x18];

fn run(code: &[[u8; 8]]) -> u64 {
    Bench::new(&object(code), Settings::default()).run("f", &[]).unwrap()
}

/// A calculation that both know and that both define alike.
fn calculation(random: &mut Random) -> [u8; 8] {
    let (target, source) = (random.below(10) as u8, random.below(10) as u8);
    let (class, operation) = (random.of(&[4, 7]), random.of(&ALU));
    let (by_register, wide) = (random.below(2) == 1, class == 7);
    if random.below(12) == 0 {
        let width = random.of(&[16, 32, 64]);
        return instruction(random.of(&[0xd4, 0xdc]), target, 0, 0, width);
    }
    match operation {
        // rbpf 0.4.1 panics when it negates the least number of 64 bits.
        0x80 => return instruction(0x84, target, 0, 0, 0),
        0x60 | 0x70 | 0xc0 if !by_register => {
            let shift = random.below(if wide { 64 } else { 32 }) as i32;
            return instruction(operation | class, target, 0, 0, shift);
        }
        _ => {}
    }
    if by_register {
        return instruction(operation | class | 8, target, source, 0, 0);
    }
    let mut immediate = random.odd() as i32;
    // A division by the number 0 is no valid instruction.
    if matches!(operation, 0x30 | 0x90) && immediate == 0 {
        immediate = 7;
    }
    instruction(operation | class, target, 0, 0, immediate)
}

/// A stream: registers and stack are filled, `length` instructions follow, and all is mixed.
fn stream(random: &mut Random, length: u64) -> Vec<[u8; 8]> {
    let mut code = Vec::new();
    for register in 0..10 {
        code.extend(long(register, random.odd()));
    }
    for slot in 1..=8 {
        code.push(instruction(0x7b, 10, slot as u8, -8 * slot, 0));
    }
    for left in (0..length).rev() {
        let (target, source) = (random.below(10) as u8, random.below(10) as u8);
        let offset = -8 - random.below(57) as i16;
        let size = random.of(&SIZES);
        code.push(match random.below(8) {
            0 => instruction(0x61 | size, target, 10, offset, 0),
            1 => instruction(0x63 | size, 10, source, offset, 0),
            2 => instruction(0x62 | size, 10, 0, offset, random.odd() as i32),
            3 => {
                let over = random.below(left.min(5) + 1) as i16;
                let class = random.of(&[5, 6]);
                let operation = random.of(&JUMPS);
                if random.below(2) == 0 {
                    instruction(operation | class | 8, target, source, over, 0)
                } else {
                    // rbpf 0.4.1 takes these without their sign: see `jumps_against_plain_rust`.
                    let immediate = random.odd() as i32 & i32::MAX;
                    instruction(operation | class, target, 0, over, immediate)
                }
            }
            4 if random.below(3) == 0 => {
                instruction(0x05, 0, 0, random.below(left.min(5) + 1) as i16, 0)
            }
            _ => calculation(random),
        });
    }
    for register in 1..10 {
        code.push(instruction(0x27, 0, 0, 0, 31));
        code.push(instruction(0xaf, 0, register, 0, 0));
    }
    for slot in 1..=8 {
        code.push(instruction(0x79, 1, 10, -8 * slot, 0));
        code.push(instruction(0x27, 0, 0, 0, 31));
        code.push(instruction(0xaf, 0, 1, 0, 0));
    }
    code.push(instruction(0x95, 0, 0, 0, 0));
    code
}

/// Where rbpf 0.4.1 leaves the upper half of a register as it is, though the instruction is one of
/// 32 bits (a remainder by 0), streams are not compared: the machine's own answers are checked in
/// `what_rbpf_does_not_know`.
fn divides_by_register(code: &[[u8; 8]]) -> bool {
    code.iter().any(|of| of[0] == 0x9c)
}

#[test]
fn random_streams_end_as_in_rbpf() {
    let mut compared = 0;
    for seed in 0..4000 {
        let mut random = Random(seed);
        let length = 1 + random.below(60);
        let code = stream(&mut random, length);
        if divides_by_register(&code) {
            continue;
        }
        let bytes = code.concat();
        let theirs = rbpf::EbpfVmNoData::new(Some(&bytes)).unwrap().execute_program().unwrap();
        assert_eq!(run(&code), theirs, "seed {seed}");
        compared += 1;
    }
    assert!(compared > 2000, "{compared}");
}

/// `r1 = a; r2 = b; instruction; r0 = r1; exit`.
fn one(a: u64, b: u64, of: [u8; 8]) -> u64 {
    let mut code = Vec::new();
    code.extend(long(1, a));
    code.extend(long(2, b));
    code.extend([of, instruction(0xbf, 0, 1, 0, 0), instruction(0x95, 0, 0, 0, 0)]);
    run(&code)
}

#[test]
fn what_rbpf_does_not_know() {
    let mut random = Random(1);
    for _ in 0..300 {
        let (a, b) = (random.odd(), random.odd());
        let (low_a, low_b) = (a as u32, b as u32);
        let zero = |value: i64| if b == 0 { 0 } else { value as u64 };
        let divided = if b == 0 { 0 } else { (a as i64).wrapping_div(b as i64) };
        assert_eq!(one(a, b, instruction(0x3f, 1, 2, 1, 0)), zero(divided));
        let rest = if b == 0 { a as i64 } else { (a as i64).wrapping_rem(b as i64) };
        assert_eq!(one(a, b, instruction(0x9f, 1, 2, 1, 0)), rest as u64);
        let divided = if low_b == 0 { 0 } else { (a as i32).wrapping_div(b as i32) };
        assert_eq!(one(a, b, instruction(0x3c, 1, 2, 1, 0)), u64::from(divided as u32));
        let rest = if low_b == 0 { a as i32 } else { (a as i32).wrapping_rem(b as i32) };
        assert_eq!(one(a, b, instruction(0x9c, 1, 2, 1, 0)), u64::from(rest as u32));
        let rest = if low_b == 0 { low_a } else { low_a % low_b };
        assert_eq!(one(a, b, instruction(0x9c, 1, 2, 0, 0)), u64::from(rest));
        assert_eq!(one(a, b, instruction(0x87, 1, 0, 0, 0)), a.wrapping_neg());
        assert_eq!(one(a, b, instruction(0xbf, 1, 2, 8, 0)), b as i8 as u64);
        assert_eq!(one(a, b, instruction(0xbf, 1, 2, 16, 0)), b as i16 as u64);
        assert_eq!(one(a, b, instruction(0xbf, 1, 2, 32, 0)), b as i32 as u64);
        assert_eq!(one(a, b, instruction(0xbc, 1, 2, 8, 0)), u64::from(b as i8 as u32));
        assert_eq!(one(a, b, instruction(0xbc, 1, 2, 16, 0)), u64::from(b as i16 as u32));
        assert_eq!(one(a, b, instruction(0xd7, 1, 0, 0, 16)), u64::from((a as u16).swap_bytes()));
        assert_eq!(one(a, b, instruction(0xd7, 1, 0, 0, 32)), u64::from(low_a.swap_bytes()));
        assert_eq!(one(a, b, instruction(0xd7, 1, 0, 0, 64)), a.swap_bytes());
    }
}

#[test]
fn jumps_against_plain_rust() {
    let mut random = Random(4);
    let taken = |operation: u8, a: u64, b: u64, signed: (i64, i64)| match operation {
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => signed.0 > signed.1,
        0x70 => signed.0 >= signed.1,
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => signed.0 < signed.1,
        _ => signed.0 <= signed.1,
    };
    let ends = |a: u64, b: u64, of: [u8; 8]| {
        let mut code = Vec::new();
        code.extend(long(1, a));
        code.extend(long(2, b));
        code.extend([instruction(0xb7, 0, 0, 0, 1), of, instruction(0xb7, 0, 0, 0, 0)]);
        code.push(instruction(0x95, 0, 0, 0, 0));
        run(&code) == 1
    };
    for _ in 0..40 {
        let a = random.odd();
        let b = if random.below(4) == 0 { a } else { random.odd() };
        let immediate = if random.below(4) == 0 { a as i32 } else { random.odd() as i32 };
        let extended = immediate as i64 as u64;
        for operation in JUMPS {
            let wide = |b: u64| taken(operation, a, b, (a as i64, b as i64));
            let narrow = |b: u64| {
                let signed = (i64::from(a as i32), i64::from(b as i32));
                taken(operation, u64::from(a as u32), u64::from(b as u32), signed)
            };
            assert_eq!(ends(a, b, instruction(operation | 0x0d, 1, 2, 1, 0)), wide(b));
            assert_eq!(ends(a, b, instruction(operation | 0x0e, 1, 2, 1, 0)), narrow(b));
            let with = |class: u8| instruction(operation | class, 1, 0, 1, immediate);
            assert_eq!(ends(a, b, with(5)), wide(extended), "{operation:#x} {a:#x} {immediate}");
            assert_eq!(ends(a, b, with(6)), narrow(extended), "{operation:#x} {a:#x} {immediate}");
        }
    }
}

/// Fills the word below the frame with `memory`, r0 with `expected`, r2 with `b`, runs an
/// instruction on the word, and gives word, r0 and r2.
fn on_memory(memory: u64, expected: u64, b: u64, of: [u8; 8]) -> [u64; 3] {
    [0, 1, 2].map(|which| {
        let mut code = Vec::new();
        code.extend(long(1, memory));
        code.push(instruction(0x7b, 10, 1, -8, 0));
        code.extend(long(0, expected));
        code.extend(long(2, b));
        code.push(of);
        code.extend(match which {
            0 => vec![instruction(0x79, 0, 10, -8, 0)],
            1 => vec![],
            _ => vec![instruction(0xbf, 0, 2, 0, 0)],
        });
        code.push(instruction(0x95, 0, 0, 0, 0));
        run(&code)
    })
}

#[test]
fn atomics_and_signed_loads_against_plain_rust() {
    let mut random = Random(2);
    let apply = |kind: i32, a: u64, b: u64| match kind & !1 {
        0x00 => a.wrapping_add(b),
        0x40 => a | b,
        0x50 => a & b,
        0xa0 => a ^ b,
        _ => b,
    };
    for _ in 0..60 {
        let (memory, b) = (random.odd(), random.odd());
        let expected = if random.below(2) == 0 { memory } else { random.odd() };
        let high = memory & !0xffff_ffff;
        for kind in [0x00, 0x01, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1] {
            let fetched = |before: u64| if kind & 1 != 0 { before } else { b };
            let after = apply(kind, memory, b);
            let wide = on_memory(memory, expected, b, instruction(0xdb, 10, 2, -8, kind));
            assert_eq!(wide, [after, expected, fetched(memory)], "{kind:#x}");
            let narrow = on_memory(memory, expected, b, instruction(0xc3, 10, 2, -8, kind));
            let before = u64::from(memory as u32);
            let after = high | u64::from(apply(kind, memory, b) as u32);
            assert_eq!(narrow, [after, expected, fetched(before)], "{kind:#x}");
        }
        let wide = on_memory(memory, expected, b, instruction(0xdb, 10, 2, -8, 0xf1));
        let after = if memory == expected { b } else { memory };
        assert_eq!(wide, [after, memory, b]);
        let narrow = on_memory(memory, expected, b, instruction(0xc3, 10, 2, -8, 0xf1));
        let is_equal = memory as u32 == expected as u32;
        let after = if is_equal { high | u64::from(b as u32) } else { memory };
        assert_eq!(narrow, [after, u64::from(memory as u32), b]);
        // Load with acquire, store with release, of all sizes.
        for (size, mask) in [(0x10, 0xff), (0x08, 0xffff), (0x00, 0xffff_ffff), (0x18, u64::MAX)] {
            let loaded = on_memory(memory, 9, b, instruction(0xc3 | size, 2, 10, -8, 0x100));
            assert_eq!(loaded, [memory, 9, memory & mask]);
            let stored = on_memory(memory, 9, b, instruction(0xc3 | size, 10, 2, -8, 0x110));
            assert_eq!(stored, [memory & !mask | b & mask, 9, b]);
        }
        let signed = |size: u8| on_memory(memory, 9, b, instruction(0x81 | size, 2, 10, -8, 0))[2];
        assert_eq!(signed(0x10), memory as i8 as u64);
        assert_eq!(signed(0x08), memory as i16 as u64);
        assert_eq!(signed(0x00), memory as i32 as u64);
    }
}

#[test]
fn long_jumps_and_loops_that_end() {
    let exit = instruction(0x95, 0, 0, 0, 0);
    let gotol = [
        instruction(0xb7, 0, 0, 0, 1),
        instruction(0x06, 0, 0, 0, 1),
        exit,
        instruction(0xb7, 0, 0, 0, 2),
        exit,
    ];
    assert_eq!(run(&gotol), 2);
    // r0 += 1 until `may_goto` has had enough.
    let rounds = [
        instruction(0xb7, 0, 0, 0, 0),
        instruction(0xe5, 0, 0, 2, 0),
        instruction(0x07, 0, 0, 0, 1),
        instruction(0x05, 0, 0, -3, 0),
        exit,
    ];
    assert_eq!(run(&rounds), 8 << 20);
}

/// Every possible opcode either runs, or is refused by name, or faults: it never panics.
#[test]
fn all_opcodes_are_decided() {
    let mut random = Random(3);
    let mut refused = 0;
    for opcode in 0..=255 {
        for _ in 0..20 {
            let bytes = random.next().to_le_bytes();
            let offset = random.of(&[0, 1, 8, 16, 32, -8]);
            let registers =
                if random.below(2) == 0 { (bytes[0] & 15, bytes[0] >> 4) } else { (1, 2) };
            let immediate = random.of(&[0, 1, 16, 64, 0xe1, 0xf1, 0x100, -1]);
            let of = instruction(opcode, registers.0, registers.1, offset, immediate);
            let code = [of, instruction(0, 0, 0, 0, 0), instruction(0x95, 0, 0, 0, 0)];
            let object = std::sync::Arc::new(bpf::Object::read(&object(&code)).unwrap());
            let settings = Settings { budget: 1000, ..Settings::default() };
            let mut world = common::World::default();
            match bpf::Machine::new(object, &settings, &world) {
                Err(_) => refused += 1,
                Ok(mut machine) => {
                    let _ = machine.run(&mut world, bpf::ProgramId(0), &[]);
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn what_a_function_may_not_do_is_refused() {
    let exit = instruction(0x95, 0, 0, 0, 0);
    let cases: [(&str, Vec<[u8; 8]>); 5] = [
        ("jumps out of its function", vec![instruction(0x05, 0, 0, 7, 0), exit]),
        ("writes the frame pointer", vec![instruction(0xb7, 10, 0, 0, 7), exit]),
        ("its second half is missing", vec![instruction(0x18, 0, 0, 0, 7)]),
        ("arenas are not there", vec![instruction(0xbf, 1, 2, 1, 1), exit]),
        ("calls into the middle", vec![instruction(0x85, 0, 1, 0, 7), exit]),
    ];
    for (what, code) in cases {
        let object = std::sync::Arc::new(bpf::Object::read(&object(&code)).unwrap());
        let world = common::World::default();
        let refused = bpf::Machine::new(object, &Settings::default(), &world).err().unwrap();
        assert!(refused.to_string().contains(what), "{refused}");
    }
    let over = [instruction(0xb7, 0, 0, 0, 7)];
    let fault = Bench::new(&object(&over), Settings::default()).run("f", &[]).unwrap_err();
    assert_eq!((fault.kind(), fault.what()), (FaultKind::Missing, "runs over the end of `f`"));
}
