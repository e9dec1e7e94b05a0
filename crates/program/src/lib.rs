//! The running program: its name and build, its errors and exit codes, the files that it writes,
//! its temporary folders. Also its end by a signal, the progress of its work, and its terminal.

#![forbid(unsafe_code)]

pub mod ending;
mod error;
mod files;
mod identity;
pub mod progress;
mod scratch;
pub mod terminal;
mod whole;

pub use error::{Error, no_such};
pub use files::{
    complain, note, plain, prepare_directory, print, print_data, say, say_notes, visible,
    write_whole,
};
pub use identity::{
    VERSION, build, command_line, cpu_model, kernel, name, set_identity, shell_word, shell_words,
};
pub use scratch::Scratch;
pub use whole::Whole;
