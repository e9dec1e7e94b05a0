//! The terminal on which results are shown.

use std::io::IsTerminal;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The length of a line.
    pub columns: usize,
    /// The number of lines.
    pub lines: usize,
}

/// The size of the terminal that standard output is; `None` for a file or a pipe, which get
/// everything. A terminal that does not know its size has 80 columns and 24 lines.
pub fn size() -> Option<Size> {
    let output = std::io::stdout();
    if !output.is_terminal() {
        return None;
    }
    let known = rustix::termios::tcgetwinsize(output).ok().filter(|size| size.ws_col > 0);
    let (columns, lines) = known.map_or((80, 24), |size| (size.ws_col, size.ws_row));
    Some(Size { columns: columns.into(), lines: lines.into() })
}

/// The words of a text in lines of at most `width` characters, if no word is longer.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_end_between_words_and_a_long_word_has_its_own() {
        assert_eq!(wrapped(" ab  cd\nef ", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("größer ist", 10), ["größer ist"]);
        assert_eq!(wrapped("a longword b", 4), ["a", "longword", "b"]);
        assert!(wrapped("  ", 4).is_empty());
    }
}
