//! Walks over a JSON text as a stream: values are passed over, or taken up to a size.
//!
//! Memory is one buffer, whatever the text has: neither its depth nor a long text in it takes more.

use std::io::{self, Read};

use super::error::Problem;
use super::input::read_problem;

/// The number of bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// More than any trace nests; serde_json has the same limit.
const DEEPEST: usize = 128;

/// A JSON text, and the place in it.
pub(super) struct Json<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// The bytes before the buffer.
    before: u64,
}

impl<R: Read> Json<R> {
    pub fn new(reader: R) -> Self {
        Json { reader, buffer: vec![0; BUFFER], at: 0, end: 0, before: 0 }
    }

    /// The place of the next byte.
    pub fn place(&self) -> u64 {
        self.before.saturating_add(u64::try_from(self.at).unwrap_or(u64::MAX))
    }

    /// The next byte, without taking it; `None` at the end.
    #[inline]
    fn look(&mut self) -> Result<Option<u8>, Problem> {
        while self.at == self.end {
            self.before = self.before.saturating_add(u64::try_from(self.end).unwrap_or(u64::MAX));
            (self.at, self.end) = (0, 0);
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(read) => self.end = read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_problem(error)),
            }
        }
        Ok(Some(self.buffer[self.at]))
    }

    /// Takes the next byte.
    #[inline]
    fn byte(&mut self) -> Result<u8, Problem> {
        let byte = self.look()?.ok_or_else(cut)?;
        self.step();
        Ok(byte)
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// Passes over the mark of byte order that some write.
    pub fn skip_mark(&mut self) -> Result<(), Problem> {
        for byte in [0xef, 0xbb, 0xbf] {
            if self.look()? == Some(byte) {
                self.step();
            }
        }
        Ok(())
    }

    /// The first byte that is no space, without taking it; `None` at the end.
    pub fn next(&mut self) -> Result<Option<u8>, Problem> {
        while let Some(byte) = self.look()? {
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.step();
        }
        Ok(None)
    }

    /// Takes `byte`, with spaces before it, if it is the next one.
    pub fn takes(&mut self, byte: u8) -> Result<bool, Problem> {
        let is_it = self.next()?.ok_or_else(cut)? == byte;
        if is_it {
            self.step();
        }
        Ok(is_it)
    }

    /// Takes `byte`, which has to come.
    pub fn expect(&mut self, byte: u8) -> Result<(), Problem> {
        match self.takes(byte)? {
            true => Ok(()),
            false => Err(damaged(&format!("`{}` is missing", char::from(byte)))),
        }
    }

    /// Whether another member or element comes: after the `first`, behind a comma. Takes the
    /// `close` if not.
    pub fn another(&mut self, first: bool, close: u8) -> Result<bool, Problem> {
        if self.takes(close)? {
            return Ok(false);
        }
        if !first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    /// Passes over the next value, and keeps it in `into` as it stands, up to `most` bytes; whether
    /// it is whole there.
    pub fn value(&mut self, into: &mut Vec<u8>, most: usize) -> Result<bool, Problem> {
        let mut kept = Kept { into, most, whole: true };
        kept.into.clear();
        let mut open = [0u8; DEEPEST];
        let mut depth = 0usize;
        self.next()?.ok_or_else(cut)?;
        loop {
            if depth > 0 {
                self.run(&mut kept, |bytes| {
                    bytes.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))
                });
            }
            let byte = self.byte()?;
            kept.add(&[byte]);
            match byte {
                b'"' => loop {
                    self.run(&mut kept, |bytes| memchr::memchr2(b'"', b'\\', bytes));
                    let byte = self.byte()?;
                    kept.add(&[byte]);
                    match byte {
                        b'"' => break,
                        b'\\' => kept.add(&[self.byte()?]),
                        _ => {}
                    }
                },
                b'{' | b'[' => {
                    let place = open.get_mut(depth);
                    *place.ok_or_else(|| {
                        damaged(&format!("it nests more than {DEEPEST} values"))
                    })? = byte;
                    depth = depth.saturating_add(1);
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    let opened = if byte == b'}' { b'{' } else { b'[' };
                    if open.get(depth) != Some(&opened) {
                        return Err(damaged(&format!("`{}` closes nothing", char::from(byte))));
                    }
                    open[depth] = 0;
                }
                _ => {
                    // A number or a word ends before what follows it.
                    let more = self.look()?;
                    let ends = |byte: u8| b",:}]".contains(&byte) || byte.is_ascii_whitespace();
                    if depth > 0 || more.is_some_and(|byte| !ends(byte)) {
                        continue;
                    }
                }
            }
            if depth == 0 {
                return Ok(kept.whole);
            }
        }
    }

    /// What comes before the end of the line and a comma there, if all of it is at hand. A value that
    /// ends there may be [taken](Self::pass) at once, as no value has an end of line within.
    pub fn line(&self) -> Option<&[u8]> {
        let here = self.buffer.get(self.at..self.end)?;
        let line = here.get(..memchr::memchr(b'\n', here)?)?;
        Some(line.strip_suffix(b",").unwrap_or(line))
    }

    /// Passes over bytes that are at hand.
    pub fn pass(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.end);
    }

    /// Takes what the buffer has before the place that `stop` finds, or all of it.
    #[inline]
    fn run(&mut self, kept: &mut Kept<'_>, stop: impl Fn(&[u8]) -> Option<usize>) {
        let here = self.buffer.get(self.at..self.end).unwrap_or_default();
        let length = stop(here).unwrap_or(here.len());
        kept.add(here.get(..length).unwrap_or_default());
        self.at = self.at.saturating_add(length);
    }

    /// Begins to read a text, from its quote on.
    pub fn text(&mut self) -> Result<Text<'_, R>, Problem> {
        self.expect(b'"')?;
        Ok(Text { json: self, is_over: false, wide: None, pending: [0; 4], from: 4, failed: None })
    }
}

/// What is kept of a value.
struct Kept<'a> {
    into: &'a mut Vec<u8>,
    most: usize,
    whole: bool,
}

impl Kept<'_> {
    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.whole &= self.into.len().saturating_add(bytes.len()) <= self.most;
        if self.whole {
            self.into.extend_from_slice(bytes);
        }
    }
}

/// The content of a text, which is read as a stream.
pub(super) struct Text<'a, R> {
    json: &'a mut Json<R>,
    is_over: bool,
    /// The first half of a character that is spelled as two.
    wide: Option<u16>,
    /// The bytes of a spelled character that are not yet read.
    pending: [u8; 4],
    from: usize,
    /// Why reading failed.
    pub failed: Option<Problem>,
}

impl<R: Read> Text<'_, R> {
    /// Passes over the rest of it.
    pub fn finish(mut self) -> Result<(), Problem> {
        let passed = io::copy(&mut self, &mut io::sink());
        match (self.failed, passed) {
            (Some(problem), _) => Err(problem),
            (None, Err(error)) => Err(read_problem(error)),
            (None, Ok(_)) => Ok(()),
        }
    }

    /// The next byte; `None` at the end of the text.
    #[inline]
    fn next(&mut self) -> Result<Option<u8>, Problem> {
        loop {
            if let Some(byte) = self.pending.get(self.from) {
                self.from = self.from.saturating_add(1);
                return Ok(Some(*byte));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.json.byte()? {
                b'"' => self.is_over = true,
                b'\\' => match self.json.byte()? {
                    b'n' => return Ok(Some(b'\n')),
                    b't' => return Ok(Some(b'\t')),
                    b'r' => return Ok(Some(b'\r')),
                    b'b' => return Ok(Some(8)),
                    b'f' => return Ok(Some(12)),
                    byte @ (b'"' | b'\\' | b'/') => return Ok(Some(byte)),
                    b'u' => self.spelled()?,
                    _ => return Err(damaged("a text has an unknown escape")),
                },
                byte => return Ok(Some(byte)),
            }
        }
    }

    /// Takes what stands for itself and is at hand; how many bytes that are.
    #[inline]
    fn plain(&mut self, into: &mut [u8]) -> usize {
        if self.is_over || self.from < self.pending.len() {
            return 0;
        }
        let here = self.json.buffer.get(self.json.at..self.json.end).unwrap_or_default();
        let here = &here[..here.len().min(into.len())];
        let length = memchr::memchr2(b'"', b'\\', here).unwrap_or(here.len());
        into[..length].copy_from_slice(&here[..length]);
        self.json.at = self.json.at.saturating_add(length);
        length
    }

    /// A character spelled by its number.
    #[cold]
    fn spelled(&mut self) -> Result<(), Problem> {
        let mut number = 0u16;
        for _ in 0..4 {
            let digit = char::from(self.json.byte()?).to_digit(16);
            let digit = digit.and_then(|digit| u16::try_from(digit).ok());
            let digit = digit.ok_or_else(|| damaged("a text has an unknown escape"))?;
            number = number << 4 | digit;
        }
        if (0xd800..0xdc00).contains(&number) {
            self.wide = Some(number);
            return Ok(());
        }
        let halves = self.wide.take().into_iter().chain([number]);
        let character = char::decode_utf16(halves).last();
        let character = character.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER);
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        self.from = 4usize.saturating_sub(length);
        self.pending[self.from..].copy_from_slice(&bytes[..length]);
        Ok(())
    }
}

impl<R: Read> Read for Text<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0usize;
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let taken = self.plain(rest);
            read = read.saturating_add(taken);
            if taken > 0 {
                continue;
            }
            match self.next() {
                Ok(Some(byte)) => rest[0] = byte,
                Ok(None) => break,
                Err(problem) => {
                    self.failed = Some(problem);
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            read = read.saturating_add(1);
        }
        Ok(read)
    }
}

pub(super) fn damaged(what: &str) -> Problem {
    Problem::Damaged(format!("this JSON is damaged: {what}; write or copy it again"))
}

fn cut() -> Problem {
    Problem::Truncated("its JSON has no end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_with_its_escapes() {
        let spelled = r#""a\n\t\"\\\/\u0041\u00e9\ud83d\ude00\ud83dé" ,"#;
        let mut json = Json::new(spelled.as_bytes());
        let mut text = json.text().unwrap();
        let mut read = String::new();
        text.read_to_string(&mut read).unwrap();
        assert_eq!(read, "a\n\t\"\\/Aé😀é");
        text.finish().unwrap();
        assert!(json.takes(b',').unwrap());
    }

    #[test]
    fn a_text_is_the_same_in_pieces_of_any_size() {
        /// Gives as many bytes at a time.
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let length = self.1.min(into.len());
                self.0.read(&mut into[..length])
            }
        }
        let spelled = r#""plain text\n\ud83d\ude00 more, \"quoted\"""#;
        for (size, buffer) in [(1, 1), (1, 64), (3, 2), (5, 7), (64, 1), (64, 64)] {
            let mut json = Json::new(Pieces(spelled.as_bytes(), size));
            let (mut text, mut all, mut piece) =
                (json.text().unwrap(), Vec::new(), vec![0; buffer]);
            loop {
                match text.read(&mut piece).unwrap() {
                    0 => break,
                    read => all.extend_from_slice(&piece[..read]),
                }
            }
            assert_eq!(String::from_utf8(all).unwrap(), "plain text\n😀 more, \"quoted\"");
        }
    }

    #[test]
    fn values_are_taken_as_they_stand() {
        let text = r#" [1, {"a]":"\"}"}, -2.5e3,true,[[]] ,"x"]"#;
        let mut json = Json::new(text.as_bytes());
        json.expect(b'[').unwrap();
        let (mut values, mut first, mut into) = (Vec::new(), true, Vec::new());
        while json.another(first, b']').unwrap() {
            assert!(json.value(&mut into, 100).unwrap());
            values.push(String::from_utf8(into.clone()).unwrap());
            first = false;
        }
        assert_eq!(values, ["1", r#"{"a]":"\"}"}"#, "-2.5e3", "true", "[[]]", "\"x\""]);
        assert_eq!(json.next().unwrap(), None);
    }

    #[test]
    fn depth_and_length_take_no_memory() {
        let deep = "[".repeat(1 << 20);
        let mut into = Vec::new();
        let refused = Json::new(deep.as_bytes()).value(&mut into, 64).unwrap_err().to_string();
        assert!(refused.contains("nests more than 128"), "{refused}");
        // A text of 64 MiB, of which 64 bytes are kept.
        let long = (&b"\""[..]).chain(io::repeat(b'x').take(64 << 20)).chain(&b"\","[..]);
        let mut json = Json::new(long);
        assert!(!json.value(&mut into, 64).unwrap());
        assert!(into.capacity() <= 128 && json.takes(b',').unwrap());
    }
}
