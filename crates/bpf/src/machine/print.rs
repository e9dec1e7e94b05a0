//! Text that programs make: `bpf_trace_printk`, `bpf_trace_vprintk`, `bpf_snprintf`.

use crate::fault::Fault;
use crate::machine::Machine;
use crate::machine::outside::Outside;
use crate::memory::Address;

/// The longest text.
const LONGEST: usize = 1 << 12;

/// A part of a format: what stands between `%` and the letter.
#[derive(Default)]
struct Form {
    is_left: bool,
    zeros: bool,
    alternate: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    longs: u32,
    halves: u32,
}

impl Machine {
    /// The text of a format with its arguments, as the kernel prints it: `%d %u %x %s %c %p` with
    /// widths and lengths. `%s` takes the address of a text.
    pub fn format(&self, format: &str, arguments: &[u64]) -> Result<String, Fault> {
        let mut text = String::new();
        let mut arguments = arguments.iter().copied();
        let mut letters = format.chars().peekable();
        while let Some(letter) = letters.next() {
            if text.len() > LONGEST {
                break;
            }
            if letter != '%' {
                text.push(letter);
                continue;
            }
            let mut form = Form::default();
            while let Some(&flag) = letters.peek() {
                match flag {
                    '-' => form.is_left = true,
                    '0' => form.zeros = true,
                    '#' => form.alternate = true,
                    '+' => form.plus = true,
                    ' ' => {}
                    _ => break,
                }
                letters.next();
            }
            let mut number = |letters: &mut std::iter::Peekable<std::str::Chars>| {
                let mut number = 0usize;
                if letters.next_if_eq(&'*').is_some() {
                    return (arguments.next().unwrap_or(0) as usize).min(LONGEST);
                }
                while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                    number = (number * 10 + digit as usize).min(LONGEST);
                    letters.next();
                }
                number
            };
            form.width = number(&mut letters);
            if letters.next_if_eq(&'.').is_some() {
                form.precision = Some(number(&mut letters));
            }
            loop {
                match letters.peek() {
                    Some('l' | 'j' | 'z' | 't') => form.longs += 1,
                    Some('h') => form.halves += 1,
                    _ => break,
                }
                letters.next();
            }
            let Some(kind) = letters.next() else { break };
            if kind == '%' {
                text.push('%');
                continue;
            }
            if kind == 'p' {
                // What follows says how the kernel prints what is there (`%pK`, `%pB`).
                while letters.peek().is_some_and(|letter| letter.is_ascii_alphanumeric()) {
                    letters.next();
                }
            }
            let argument = arguments.next().unwrap_or(0);
            let piece = self.piece(kind, &form, argument)?;
            text.push_str(&form.padded(piece, kind));
        }
        Ok(text)
    }

    fn piece(&self, kind: char, form: &Form, argument: u64) -> Result<String, Fault> {
        let bits = match (form.longs, form.halves) {
            (0, 0) => 32,
            (0, 1) => 16,
            (0, _) => 8,
            _ => 64,
        };
        let narrow = argument & (u64::MAX >> (64 - bits));
        let signed = (argument << (64 - bits)).cast_signed() >> (64 - bits);
        Ok(match kind {
            'd' | 'i' if form.plus && signed >= 0 => format!("+{signed}"),
            'd' | 'i' => signed.to_string(),
            'u' => narrow.to_string(),
            'x' if form.alternate => format!("{narrow:#x}"),
            'x' => format!("{narrow:x}"),
            'X' => format!("{narrow:X}"),
            'o' => format!("{narrow:o}"),
            'c' => char::from(argument as u8).to_string(),
            'p' => format!("{argument:016x}"),
            's' if argument == 0 => "(null)".to_string(),
            's' => {
                let longest = form.precision.unwrap_or(LONGEST);
                self.text(Address(argument), longest)?
            }
            other => format!("%{other}"),
        })
    }

    /// The helpers that print.
    pub(crate) fn print<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        helper: u32,
        [first, second, third, fourth, fifth]: [u64; 5],
    ) -> Result<u64, Fault> {
        if helper == 165 {
            return self.print_to([first, second, third, fourth, fifth]);
        }
        let format = self.text(Address(first), (second as u32 as usize).min(LONGEST))?;
        let text = if helper == 6 {
            self.format(&format, &[third, fourth, fifth])?
        } else {
            self.format(&format, &self.words(third, fourth)?)?
        };
        outside.print(self, &text);
        Ok(text.len() as u64)
    }

    /// `bpf_snprintf(to, size, format, words, bytes of words)`.
    fn print_to(&mut self, [to, size, format, words, length]: [u64; 5]) -> Result<u64, Fault> {
        let format = self.text(Address(format), LONGEST)?;
        let text = self.format(&format, &self.words(words, length)?)?;
        let size = size as u32 as usize;
        if size > 0 {
            let mut bytes = text.as_bytes()[..text.len().min(size - 1)].to_vec();
            bytes.push(0);
            self.write(Address(to), &bytes)?;
        }
        Ok(text.len() as u64 + 1)
    }

    /// Arguments that stand in memory, as `bytes` bytes.
    pub fn words(&self, at: u64, bytes: u64) -> Result<Vec<u64>, Fault> {
        let bytes = self.bytes(Address(at), (bytes as u32 as usize).min(LONGEST) / 8 * 8)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

impl Form {
    fn padded(&self, piece: String, kind: char) -> String {
        let missing = self.width.saturating_sub(piece.chars().count());
        if missing == 0 {
            return piece;
        }
        if self.is_left {
            return piece + &" ".repeat(missing);
        }
        if self.zeros && !matches!(kind, 's' | 'c') {
            let at = usize::from(piece.starts_with(['-', '+']));
            let (sign, digits) = piece.split_at(at);
            return format!("{sign}{}{digits}", "0".repeat(missing));
        }
        " ".repeat(missing) + &piece
    }
}
