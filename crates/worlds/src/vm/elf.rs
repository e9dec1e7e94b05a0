//! What an executable file needs to start: its interpreter.
//!
//! Sources: the ELF specification; execve(2), "Interpreter scripts".

/// What starts a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// The kernel alone: a static program.
    Kernel,
    /// The dynamic loader at this path.
    Loader(String),
    /// A script: the interpreter's path, and what follows it in the first line.
    Interpreter(String, String),
    /// Nothing in a guest: a program for another architecture.
    Foreign,
    /// Nothing: it is no program.
    Nothing,
}

/// What starts a file with these `bytes`.
pub fn start(bytes: &[u8]) -> Start {
    if let Some(script) = bytes.strip_prefix(b"#!") {
        let line = script.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (path, rest) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
        return match path.is_empty() {
            true => Start::Nothing,
            false => Start::Interpreter(path.to_string(), rest.trim().to_string()),
        };
    }
    if !bytes.starts_with(b"\x7fELF") {
        return Start::Nothing;
    }
    const X86_64: u16 = 0x3e;
    // 64 bits, the least significant byte first.
    let is_ours = bytes.get(4..6) == Some(&[2, 1]) && half(bytes, 0x12) == Some(X86_64);
    if !is_ours {
        return Start::Foreign;
    }
    interpreter(bytes).map_or(Start::Kernel, Start::Loader)
}

/// Whether these `bytes` are an object in BPF.
pub fn is_bpf(bytes: &[u8]) -> bool {
    expect_bpf(bytes).is_ok()
}

/// The objects in BPF within `bytes`, a program that loads them.
pub fn embedded_bpf(bytes: &[u8]) -> Vec<&[u8]> {
    const HEADER: usize = 64;
    let starts = bytes.windows(HEADER).enumerate().filter(|(at, header)| *at > 0 && is_bpf(header));
    let number = |header: &[u8], at: usize, size: usize| {
        header[at..at + size]
            .iter()
            .rev()
            .fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
    };
    let object = |(at, header): (usize, &[u8])| {
        // An object ends with its table of sections, or with a section.
        let sections = number(header, 40, 8);
        let table = sections.checked_add(number(header, 58, 2) * number(header, 60, 2))?;
        let listed = bytes.get(at..at.checked_add(usize::try_from(table).ok()?)?)?;
        let each = listed.get(usize::try_from(sections).ok()?..)?;
        let ends = each.chunks_exact(HEADER).map(|section| {
            const HAS_NO_BYTES: u64 = 8;
            let length =
                if number(section, 4, 4) == HAS_NO_BYTES { 0 } else { number(section, 32, 8) };
            number(section, 24, 8).saturating_add(length)
        });
        let end = ends.fold(table, u64::max);
        bytes.get(at..at.checked_add(usize::try_from(end).ok()?)?)
    };
    starts.filter_map(object).collect()
}

/// Checks that these `bytes` are an object in BPF for machines of this byte order.
///
/// # Errors
/// What they are instead, and what to do.
pub fn expect_bpf(bytes: &[u8]) -> Result<(), String> {
    const BPF: u16 = 0xf7;
    const RELOCATABLE: u16 = 1;
    if !bytes.starts_with(b"\x7fELF") {
        return Err("not an ELF file, and so no object in BPF".to_string());
    }
    if bytes.get(5) == Some(&2) && half(bytes, 0x12) == Some(BPF.swap_bytes()) {
        return Err(
            "an object in BPF for big-endian machines: compile it with -target bpfel".to_string()
        );
    }
    match (half(bytes, 0x12), half(bytes, 0x10)) {
        (Some(BPF), Some(RELOCATABLE)) => Ok(()),
        (Some(BPF), _) => Err("damaged: BPF, and not an object".to_string()),
        (Some(machine), _) => Err(format!(
            "an object for another machine (number {machine:#x} in ELF): compile it with clang \
             -target bpf"
        )),
        (None, _) => Err("damaged: it ends within its ELF header".to_string()),
    }
}

/// The path in the segment `PT_INTERP`.
fn interpreter(elf: &[u8]) -> Option<String> {
    const PT_INTERP: u32 = 3;
    let (begin, size, count) = (long(elf, 0x20)?, half(elf, 0x36)?, half(elf, 0x38)?);
    let header = |index: u16| {
        elf.get(begin.checked_add(usize::from(index) * usize::from(size))?..)
            .filter(|header| header.len() >= 0x38)
    };
    let is_it = |header: &&[u8]| header.starts_with(&PT_INTERP.to_le_bytes());
    let header = (0..count).map_while(header).find(is_it)?;
    let text = elf.get(long(header, 0x8)?..)?.get(..long(header, 0x20)?)?;
    let text = text.split(|&byte| byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn programs_of_this_machine_have_their_loader_and_scripts_their_interpreter() {
        let shell = std::fs::read("/bin/sh").unwrap();
        let Start::Loader(loader) = start(&shell) else { panic!("{:?}", start(&shell)) };
        assert!(std::path::Path::new(&loader).is_file(), "{loader}");
        let script = |text: &str| start(text.as_bytes());
        let of = |path: &str, rest: &str| Start::Interpreter(path.to_string(), rest.to_string());
        assert_eq!(script("#!/bin/sh\necho"), of("/bin/sh", ""));
        assert_eq!(script("#! /usr/bin/env -S awk -f\n"), of("/usr/bin/env", "-S awk -f"));
        assert_eq!(script("#!\n"), Start::Nothing);
        assert_eq!(script("hello"), Start::Nothing);
        assert_eq!(start(b"\x7fELF\x01\x01"), Start::Foreign);
        let mut arm = shell.clone();
        arm[0x12] = 0xb7;
        assert_eq!(start(&arm), Start::Foreign);
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            start(&bytes);
            start(&[b"\x7fELF\x02\x01".as_slice(), &bytes].concat());
            let header = [b"\x7fELF\x02\x01".as_slice(), &[0; 12], &[0x3e, 0]].concat();
            start(&[header.as_slice(), &bytes].concat());
        }
    }
}
