//! What is wrong with an object file, and a reader that says so.

use std::fmt;

/// Bytes of an object that do not fit its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The section, or `ELF header` and the like for what is outside of sections.
    pub section: String,
    /// The byte in that section.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Malformed { section, offset, what } = self;
        write!(
            formatter,
            "{what} (offset {offset} of `{section}`): compile it again with `clang -target bpf -g \
             -O2 -c`"
        )
    }
}

impl std::error::Error for Malformed {}

/// Little-endian numbers and text in the bytes of a section.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// How the section is called in errors.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// An error at a byte.
    pub fn malformed(&self, offset: u64, what: impl Into<String>) -> Malformed {
        Malformed { section: self.name.to_string(), offset, what: what.into() }
    }

    /// `length` bytes at `offset`.
    pub fn slice(&self, offset: u64, length: u64) -> Result<&'a [u8], Malformed> {
        let end = offset.checked_add(length);
        let range = usize::try_from(offset).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
        range.and_then(|(from, to)| self.bytes.get(from..to)).ok_or_else(|| {
            let has = self.bytes.len();
            self.malformed(offset, format!("{length} bytes are expected, there are {has} in all"))
        })
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], Malformed> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.slice(offset, N as u64)?);
        Ok(bytes)
    }

    /// The byte at `offset`.
    pub fn u8(&self, offset: u64) -> Result<u8, Malformed> {
        Ok(self.array::<1>(offset)?[0])
    }

    /// The two bytes at `offset`.
    pub fn u16(&self, offset: u64) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array(offset)?))
    }

    /// The four bytes at `offset`.
    pub fn u32(&self, offset: u64) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array(offset)?))
    }

    /// The eight bytes at `offset`.
    pub fn u64(&self, offset: u64) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array(offset)?))
    }

    /// The text at `offset` up to its zero.
    pub fn text(&self, offset: u64) -> Result<&'a str, Malformed> {
        let rest = usize::try_from(offset).ok().and_then(|from| self.bytes.get(from..));
        let rest = rest.ok_or_else(|| self.malformed(offset, "a text is expected here"))?;
        let end = rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| self.malformed(offset, "a text has no end"))?;
        std::str::from_utf8(&rest[..end]).map_err(|_| self.malformed(offset, "a text is not UTF-8"))
    }
}
