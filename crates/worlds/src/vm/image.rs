//! What a file is that should be a kernel's image.
//!
//! Sources: linux/Documentation/arch/x86/boot.rst, arch/arm64/booting.rst, arch/riscv/boot-image-
//! header.rst; the ELF specification.

/// What a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Image {
    /// A bzImage for x86-64.
    Bootable {
        /// The kernel's release, as `uname -r` has it.
        release: String,
    },
    /// Something else, in words.
    Other(&'static str),
}

/// What `bytes` are.
pub fn of(bytes: &[u8]) -> Image {
    let at = |from: usize, to: &[u8]| bytes.get(from..).is_some_and(|rest| rest.starts_with(to));
    if at(0x202, b"HdrS") {
        // Version 2.12 of the boot protocol on: whether it has a 64-bit entry.
        let version = half(bytes, 0x206).unwrap_or(0);
        if version >= 0x20c && half(bytes, 0x236).is_some_and(|flags| flags & 1 == 0) {
            return Image::Other("a kernel for 32-bit x86, and guests are x86-64");
        }
        return release(bytes)
            .map_or(Image::Other("not a bzImage: it has no release"), |release| Image::Bootable {
                release,
            });
    }
    Image::Other(if at(0x38, b"ARM\x64") {
        "a kernel for arm64, and guests are x86-64"
    } else if at(0x38, b"RSC\x05") {
        "a kernel for RISC-V, and guests are x86-64"
    } else if at(0, b"\x7fELF") {
        match half(bytes, 0x12) {
            Some(0x3e) => "not a bzImage but an ELF file: its bzImage is arch/x86/boot/bzImage",
            _ => "an ELF file for another architecture, and guests are x86-64",
        }
    } else if at(0, b"\x1f\x8b") {
        "not a bzImage but packed with gzip, as kernels for arm64 are"
    } else {
        "not a bzImage"
    })
}

/// Whether a 64-bit ELF file has a section of this name that is not empty.
pub fn has_section(elf: &[u8], name: &[u8]) -> bool {
    sections(elf).unwrap_or_default().iter().any(|&(of, size)| of == name && size > 0)
}

/// The names and sizes of all sections.
fn sections(elf: &[u8]) -> Option<Vec<(&[u8], u64)>> {
    if !elf.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let headers = usize::try_from(long(elf, 0x28)?).ok()?;
    let (size, count, names) = (half(elf, 0x3a)?, half(elf, 0x3c)?, half(elf, 0x3e)?);
    let header =
        |index: u16| elf.get(headers.checked_add(usize::from(index) * usize::from(size))?..);
    let names = elf.get(usize::try_from(long(header(names)?, 0x18)?).ok()?..)?;
    let section = |index| {
        let header = header(index)?;
        let begin = u32::from_le_bytes(*header.first_chunk()?) as usize;
        let name = names.get(begin..)?.split(|&byte| byte == 0).next()?;
        Some((name, long(header, 0x20)?))
    };
    (0..count).map(section).collect()
}

/// The release in a bzImage's header.
fn release(image: &[u8]) -> Option<String> {
    let at = usize::from(half(image, 0x20e)?) + 0x200;
    let text = image.get(at..)?.split(|&byte| byte == b' ' || byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok().filter(|release| !release.is_empty())
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with these bytes at these places.
    fn file(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        for (at, part) in parts {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    #[test]
    fn a_bzimage_has_its_release_and_others_are_named() {
        let header: [(usize, &[u8]); 5] = [
            (0x202, b"HdrS"),
            (0x206, &[0x0f, 0x02]),
            (0x20e, &[0x00, 0x01]),
            (0x236, &[1, 0]),
            (0x300, b"6.18.9+deb13-rt-amd64 (builder) #1\0"),
        ];
        let release = "6.18.9+deb13-rt-amd64".to_string();
        assert_eq!(of(&file(&header)), Image::Bootable { release });
        let mut narrow = file(&header);
        narrow[0x236] = 0;
        let said = |bytes: &[u8]| match of(bytes) {
            Image::Other(what) => what,
            Image::Bootable { release } => panic!("{release}"),
        };
        for (bytes, word) in [
            (narrow, "32-bit"),
            (file(&[(0x38, b"ARM\x64")]), "arm64"),
            (file(&[(0x38, b"RSC\x05")]), "RISC-V"),
            (file(&[(0, b"\x7fELF\x02"), (0x12, &[0x3e])]), "arch/x86/boot/bzImage"),
            (file(&[(0, b"\x7fELF\x02"), (0x12, &[0xb7])]), "another architecture"),
            (file(&[(0, b"\x1f\x8b")]), "gzip"),
            (Vec::new(), "not a bzImage"),
        ] {
            assert!(said(&bytes).contains(word), "{word}");
        }
    }

    #[test]
    fn sections_are_found_by_name() {
        // Two headers at 0x100: the names, at 0x200, and .BTF of 7 bytes.
        let elf = |size: u8| {
            file(&[
                (0, b"\x7fELF\x02"),
                (0x28, &[0, 1]),
                (0x3a, &[64, 0, 2, 0, 0, 0]),
                (0x118, &[0, 2]),
                (0x140, &[1]),
                (0x160, &[size]),
                (0x200, b"\0.BTF\0"),
            ])
        };
        assert!(has_section(&elf(7), b".BTF"));
        assert!(!has_section(&elf(7), b".BT"));
        assert!(!has_section(&elf(0), b".BTF"), "it is empty");
        assert!(!has_section(b"\x7fELF\x02", b".BTF"));
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            of(&bytes);
            has_section(&[b"\x7fELF\x02".as_slice(), &bytes].concat(), b".BTF");
        }
    }
}
