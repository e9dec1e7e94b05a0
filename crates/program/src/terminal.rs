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
