//! Writes Protobuf's wire format, as far as a trace needs it.

/// A message that is being written.
#[derive(Clone, Default, Debug)]
pub struct Message(Vec<u8>);

const VARINT: u32 = 0;
const BYTES: u32 = 2;

/// Bytes reserved for the length of a nested message, which is known only at its end. A varint may
/// be longer than necessary.
const LENGTH_BYTES: usize = 4;

impl Message {
    /// The written bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number of written bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends fields that were written before.
    pub fn append(&mut self, fields: &Message) {
        self.0.extend_from_slice(&fields.0);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Writes a number.
    #[inline]
    pub fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3 | VARINT));
        self.varint(value);
    }

    /// Writes a text.
    #[inline]
    pub fn text(&mut self, field: u32, text: &str) {
        self.raw(field, text.as_bytes());
    }

    /// Writes bytes, or packed numbers.
    #[inline]
    pub fn raw(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | BYTES));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a message; `fill` writes its fields.
    #[inline]
    pub fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        self.varint(u64::from(field << 3 | BYTES));
        let at = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - at - 1;
        if length < 0x80 {
            self.0[at] = length as u8;
            return;
        }
        self.set_long_length(at, length);
    }

    /// Makes room for a length of several bytes.
    #[cold]
    fn set_long_length(&mut self, at: usize, length: usize) {
        assert!(length < 1 << (7 * LENGTH_BYTES), "a message of {length} bytes is too long");
        let end = self.0.len();
        self.0.extend_from_slice(&[0; LENGTH_BYTES - 1]);
        self.0.copy_within(at + 1..end, at + LENGTH_BYTES);
        for byte in 0..LENGTH_BYTES {
            let more = if byte + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            self.0[at + byte] = (length >> (7 * byte)) as u8 & 0x7f | more;
        }
    }

    /// Writes a bare number, as in packed fields.
    #[inline]
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_match_the_examples_of_the_specification() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        assert_eq!(
            message.bytes(),
            [0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g']
        );
    }

    #[test]
    fn a_long_nested_message_has_a_padded_length() {
        let mut message = Message::default();
        message.nested(3, |inner| inner.raw(1, &[7; 200]));
        assert_eq!(&message.bytes()[..5], [0x1a, 0xcb, 0x81, 0x80, 0x00]);
        assert_eq!(message.len(), 5 + 203);
        let mut short = Message::default();
        short.nested(3, |inner| inner.number(1, 1));
        assert_eq!(short.bytes(), [0x1a, 0x02, 0x08, 0x01]);
    }
}
