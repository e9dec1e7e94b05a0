//! Unpacks a kernel before the boot: under emulation, a kernel packed with zstd spends a third of
//! its boot on unpacking.
//!
//! An unpacked kernel is entered at its PVH note, without the code that would have unpacked it.
//! Images that are packed in another way, or have no such note, boot as they are. Sources:
//! linux/Documentation/arch/x86/boot.rst; xen/include/public/elfnote.h.

/// The kernel in a bzImage as an ELF file, if it is packed with zstd and has a PVH note.
pub fn unpacked(image: &[u8]) -> Option<Vec<u8>> {
    const SECTOR: usize = 512;
    const ZSTD: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
    let setup_sectors = match image.get(0x1f1)? {
        0 => 4,
        &sectors => usize::from(sectors),
    };
    let begin = (setup_sectors + 1) * SECTOR + number(image, 0x248)?;
    // The unpacked size follows the packed data.
    let (payload, size) = image.get(begin..)?.get(..number(image, 0x24c)?)?.split_last_chunk()?;
    if !payload.starts_with(&ZSTD) {
        return None;
    }
    let kernel = zstd::bulk::decompress(payload, u32::from_le_bytes(*size) as usize).ok()?;
    has_pvh_entry(&kernel).then_some(kernel)
}

/// Whether a 64-bit ELF file has Xen's note of a 32-bit entry.
fn has_pvh_entry(elf: &[u8]) -> bool {
    const PHYS32_ENTRY: usize = 18;
    let notes = notes(elf).unwrap_or_default();
    notes.iter().any(|&(name, kind)| name == b"Xen\0" && kind == PHYS32_ENTRY)
}

/// The names and kinds of all notes.
fn notes(elf: &[u8]) -> Option<Vec<(&[u8], usize)>> {
    const NOTE: usize = 4;
    if !elf.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let (headers, size, count) = (number(elf, 0x20)?, half(elf, 0x36)?, half(elf, 0x38)?);
    let mut found = Vec::new();
    for header in (0..count)
        .map(|index| headers + index * size)
        .filter(|&header| number(elf, header) == Some(NOTE))
    {
        let mut rest =
            elf.get(number(elf, header + 0x08)?..)?.get(..number(elf, header + 0x20)?)?;
        while let (Some(name), Some(description), Some(kind)) =
            (number(rest, 0), number(rest, 4), number(rest, 8))
        {
            found.push((rest.get(12..)?.get(..name)?, kind));
            rest = rest.get(12 + name.next_multiple_of(4) + description.next_multiple_of(4)..)?;
        }
    }
    Some(found)
}

/// 32 bits at an offset: the 64-bit numbers in a kernel's headers are small.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize)
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A kernel that consists of a note.
    fn kernel(owner: &[u8; 4], kind: u8) -> Vec<u8> {
        let mut elf = vec![0; 0x78];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        (elf[0x20], elf[0x36], elf[0x38]) = (0x40, 0x38, 1);
        (elf[0x40], elf[0x48], elf[0x60]) = (4, 0x78, 20);
        elf.extend([4, 0, 0, 0, 4, 0, 0, 0, kind, 0, 0, 0]);
        elf.extend(owner.iter().chain(&[1, 2, 3, 4]));
        elf
    }

    fn image(payload: &[u8], size: usize) -> Vec<u8> {
        let mut image = vec![0; 0x600];
        image[0x1f1] = 1;
        image[0x249] = 2;
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend(payload.iter().chain(&(size as u32).to_le_bytes()));
        image
    }

    #[test]
    fn a_kernel_packed_with_zstd_is_unpacked_if_it_can_be_entered() {
        let packed = |kernel: &[u8]| image(&zstd::bulk::compress(kernel, 0).unwrap(), kernel.len());
        let good = kernel(b"Xen\0", 18);
        assert_eq!(unpacked(&packed(&good)), Some(good.clone()));
        assert_eq!(unpacked(&packed(&kernel(b"Xen\0", 17))), None);
        assert_eq!(unpacked(&packed(&kernel(b"GNU\0", 18))), None);
        assert_eq!(unpacked(&image(&good, good.len())), None, "packed in another way");
        let harmed = [&packed(&good)[..0x610], &[0; 64]].concat();
        assert_eq!(unpacked(&harmed), None);
    }

    proptest! {
        #[test]
        fn no_image_is_too_strange(at in 0usize..0x90, byte: u8, cut in 0usize..0x100) {
            let mut strange = kernel(b"Xen\0", 18);
            if let Some(place) = strange.get_mut(at) {
                *place = byte;
            }
            let packed = image(&zstd::bulk::compress(&strange, 0).unwrap(), strange.len());
            unpacked(&packed[..packed.len() - cut.min(packed.len())]);
        }
    }
}
