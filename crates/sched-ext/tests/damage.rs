//! Damaged schedulers: refused, ejected or simulated, but never a panic, a hang or much memory.

mod common;
#[path = "common/compiler.rs"]
mod compiler;

use common::{Went, simulate};
use compiler::compile;

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % bound as u64) as usize
    }
}

#[test]
fn damaged_schedulers_are_refused_ejected_or_simulated() {
    const FEW: u64 = 3000;
    let good = compile(include_str!("../../schedlab/tests/compiled/trial.bpf.c"));
    assert_eq!(simulate(&good, FEW), Went::Well);
    let headers = u64::from_le_bytes(good[40..48].try_into().expect("eight bytes")) as usize;
    let mut random = Random(5);
    let mut went = [0u32; 3];
    let mut try_one = |bytes: &[u8]| went[simulate(bytes, FEW) as usize] += 1;
    for at in (0..64).chain(headers..good.len()) {
        for value in [0xff, good[at] ^ 1 << random.below(8)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            try_one(&bytes);
        }
    }
    // Code, data and types: a few bytes at a time.
    for _ in 0..1000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            bytes[64 + random.below(headers - 64)] = random.below(256) as u8;
        }
        try_one(&bytes);
    }
    // Code alone, which most of the file is not.
    let code = code(&good);
    for _ in 0..1000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let (start, length) = code[random.below(code.len())];
            bytes[start + random.below(length)] = random.below(256) as u8;
        }
        try_one(&bytes);
    }
    let [refused, ejected, well] = went;
    assert!(refused > 500 && ejected > 100 && well > 500, "{went:?}");
}

/// The sections with instructions: where each begins, and its length.
fn code(object: &[u8]) -> Vec<(usize, usize)> {
    let word = |at: usize| {
        u64::from_le_bytes(object[at..at + 8].try_into().expect("eight bytes")) as usize
    };
    let count = usize::from(u16::from_le_bytes([object[60], object[61]]));
    let headers = (0..count).map(|section| word(40) + 64 * section);
    let sections = headers.filter(|&at| word(at + 8) & 4 != 0 && word(at + 32) > 0);
    sections.map(|at| (word(at + 24), word(at + 32))).collect()
}
