//! Objects from instructions, without a compiler, and random numbers for them.
#![allow(dead_code)]

/// A random number of a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below another.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// One of a list.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// A number that is often a special one.
    pub fn odd(&mut self) -> u64 {
        match self.below(6) {
            0 => self.of(&[0, 1, u64::MAX, 1 << 31, 1 << 63, u64::from(u32::MAX), 31, 64]),
            1 => self.below(64),
            2 => u64::from(self.next() as u32),
            3 => self.next() as i32 as i64 as u64,
            _ => self.next(),
        }
    }
}

/// An instruction.
pub fn instruction(opcode: u8, target: u8, source: u8, offset: i16, immediate: i32) -> [u8; 8] {
    let mut bytes = [opcode, source << 4 | target, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_le_bytes());
    bytes[4..].copy_from_slice(&immediate.to_le_bytes());
    bytes
}

/// `target = value`.
pub fn long(target: u8, value: u64) -> [[u8; 8]; 2] {
    [instruction(0x18, target, 0, 0, value as i32), instruction(0, 0, 0, 0, (value >> 32) as i32)]
}

/// An object with one function, `f`.
pub fn object(code: &[[u8; 8]]) -> Vec<u8> {
    let code = code.concat();
    let names = b"\0struct_ops/f\0.BTF\0.symtab\0.strtab\0f\0".to_vec();
    let name = |of: &str| {
        names
            .windows(of.len() + 1)
            .position(|at| at[..of.len()] == *of.as_bytes() && at[of.len()] == 0)
    };
    let mut btf = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    btf.extend([0u32, 0, 0, 1].iter().flat_map(|word| word.to_le_bytes()));
    btf.push(0);
    let mut symbols = vec![0; 24];
    symbols.extend((name("f").unwrap() as u32).to_le_bytes());
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend(0u64.to_le_bytes());
    symbols.extend((code.len() as u64).to_le_bytes());
    let sections: [(&str, u32, u64, Vec<u8>, u32); 4] = [
        ("struct_ops/f", 1, 6, code, 0),
        (".BTF", 1, 0, btf, 0),
        (".symtab", 2, 0, symbols, 4),
        (".strtab", 3, 0, names.clone(), 0),
    ];
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    file[16..20].copy_from_slice(&[1, 0, 247, 0]);
    let mut headers = vec![0; 64];
    for (of, kind, flags, bytes, link) in &sections {
        while !file.len().is_multiple_of(8) {
            file.push(0);
        }
        headers.extend((name(of).unwrap() as u32).to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for word in [*flags, 0, file.len() as u64, bytes.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(link.to_le_bytes());
        headers.extend([0; 20]);
        file.extend(bytes);
    }
    let start = file.len() as u64;
    file.extend(headers);
    file[40..48].copy_from_slice(&start.to_le_bytes());
    file[58..64].copy_from_slice(&[64, 0, 5, 0, 4, 0]);
    file
}
