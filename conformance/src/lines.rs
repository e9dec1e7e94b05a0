//! Lines of bounded length.

use std::io::{BufRead, Read};

/// The longest line, in bytes.
pub(crate) const MAX_LINE: usize = 1 << 20;

/// Reads a line into `text`, without its end. False if there is none.
pub(crate) fn line(input: &mut impl BufRead, text: &mut String) -> Result<bool, String> {
    let mut bytes = std::mem::take(text).into_bytes();
    bytes.clear();
    let limit = MAX_LINE as u64 + 1;
    let read = input
        .by_ref()
        .take(limit)
        .read_until(b'\n', &mut bytes)
        .map_err(|why| format!("cannot read on: {why}; give a readable file"))?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() > MAX_LINE {
        return Err(format!("the line has more than {MAX_LINE} bytes; state fewer tasks in it"));
    }
    *text = String::from_utf8(bytes).map_err(|why| {
        format!("byte {} is not UTF-8; write UTF-8", why.utf8_error().valid_up_to())
    })?;
    Ok(read > 0)
}
