//! Bytes with a known byte order.

/// Bytes with a known byte order.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        Bytes { bytes, big_endian }
    }

    pub fn get(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// `size` bytes from `offset` on.
    #[inline]
    pub fn part(&self, offset: usize, size: usize) -> Option<Bytes<'a>> {
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        Some(Bytes { bytes, big_endian: self.big_endian })
    }

    /// A number of at most eight bytes.
    #[inline]
    pub fn unsigned(&self, offset: usize, size: usize) -> Option<u64> {
        let bytes = self.bytes.get(offset..)?;
        Some(match (size, self.big_endian) {
            (1, _) => (*bytes.first()?).into(),
            (2, false) => u16::from_le_bytes(*bytes.first_chunk()?).into(),
            (4, false) => u32::from_le_bytes(*bytes.first_chunk()?).into(),
            (8, false) => u64::from_le_bytes(*bytes.first_chunk()?),
            (2, true) => u16::from_be_bytes(*bytes.first_chunk()?).into(),
            (4, true) => u32::from_be_bytes(*bytes.first_chunk()?).into(),
            (8, true) => u64::from_be_bytes(*bytes.first_chunk()?),
            // No tracepoint field has another size, but a damaged format may state one.
            (0 | 3 | 5..8, big_endian) => {
                let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
                let part = bytes.get(..size)?;
                if big_endian { part.iter().fold(0, add) } else { part.iter().rev().fold(0, add) }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_are_read_in_both_byte_orders_within_bounds() {
        let bytes: Vec<u8> = (1..=9).collect();
        for size in 0..=8 {
            let little = bytes[1..=size]
                .iter()
                .rev()
                .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
            let big =
                bytes[1..=size].iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
            assert_eq!(Bytes::new(&bytes, false).unsigned(1, size), Some(little), "{size}");
            assert_eq!(Bytes::new(&bytes, true).unsigned(1, size), Some(big), "{size}");
            assert_eq!(
                Bytes::new(&bytes, false).unsigned(10 - size, size).is_some(),
                size == 0 && bytes.get(10..).is_some(),
                "{size}"
            );
        }
        assert_eq!(Bytes::new(&bytes, false).unsigned(0, 9), None);
        assert!(Bytes::new(&bytes, false).unsigned(usize::MAX, 8).is_none());
    }
}
