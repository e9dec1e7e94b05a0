//! The wire format of protobuf.

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    pub fn number(self) -> Option<u64> {
        if let Field::Number(number) = self { Some(number) } else { None }
    }

    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Field::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// The fields of a message: number and value, or an error, which ends them.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    #[inline]
    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = varint(&mut self.rest)?;
        let value = match key & 7 {
            0 => Field::Number(varint(&mut self.rest)?),
            1 => Field::Number(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Field::Bytes(bytes)
            }
            5 => Field::Number(u32::from_le_bytes(self.fixed()?).into()),
            _ => return None,
        };
        (key >> 3 > 0).then_some((key >> 3, value))
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), ()>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(()))
    }
}

/// Whether a file that begins with `sample` is one of Perfetto's. That is packets, one behind the
/// other, of known fields. It is no text that begins with an empty line.
pub(in crate::import) fn is_perfetto(sample: &[u8]) -> bool {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match Fields::new(sample).next() {
        _ if sample.iter().all(is_text) => false,
        Some(Ok((1, Field::Bytes(packet)))) => Fields::new(packet).all(|field| field.is_ok()),
        // A packet that is longer than the sample.
        Some(Err(())) => sample.first() == Some(&0x0a),
        _ => false,
    }
}

/// Splits off a number of at most ten bytes.
#[inline]
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    if let [byte @ ..0x80, rest @ ..] = bytes {
        *bytes = rest;
        return Some((*byte).into());
    }
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        let shift = u32::try_from(index.checked_mul(7)?).ok()?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            *bytes = &bytes[index.checked_add(1)?..];
            return Some(value);
        }
    }
    None
}

/// The numbers of a field that is packed, or of one that is repeated.
pub(super) fn numbers(field: Field<'_>, into: &mut Vec<u64>) -> Option<()> {
    match field {
        Field::Number(number) => into.push(number),
        Field::Bytes(mut bytes) => {
            while !bytes.is_empty() {
                into.push(varint(&mut bytes)?);
            }
        }
    }
    Some(())
}
