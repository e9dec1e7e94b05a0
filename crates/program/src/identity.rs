//! Which program runs, how it was called, and on which machine.

use std::ffi::OsString;
use std::fs;
use std::sync::{LazyLock, OnceLock};

/// The version of all crates of a release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of the program without a user's own policies.
const SCHEDLAB: &str = "schedlab";

struct Identity {
    name: String,
    build: String,
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();

fn this() -> &'static Identity {
    IDENTITY.get_or_init(|| Identity { name: SCHEDLAB.to_string(), build: VERSION.to_string() })
}

/// Sets which program runs, at its start. Until then it is `schedlab` of this version.
///
/// # Errors
/// If it was set before.
pub fn set_identity(name: Option<String>, build: String) -> Result<(), String> {
    let identity = Identity { name: name.unwrap_or_else(|| SCHEDLAB.to_string()), build };
    IDENTITY.set(identity).map_err(|_| "schedlab::main was called twice".to_string())
}

/// The name of the program.
pub fn name() -> &'static str {
    &this().name
}

/// The build of the program. Programs of the same build give the same numbers.
pub fn build() -> &'static str {
    &this().build
}

/// Quotes a command line for a shell.
pub fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let words = words.map(|word| shell_word(&word.to_string_lossy()));
    std::iter::once(name().to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell.
pub fn shell_word(word: &str) -> String {
    let plain = !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:,=%+@".contains(c));
    if plain { word.to_string() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The words of a command line that [`command_line`] has written. The error says what is wrong.
pub fn shell_words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err(format!("a quote does not end: {line}")),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The running kernel's release.
pub fn kernel() -> &'static str {
    static KERNEL: LazyLock<String> = LazyLock::new(|| {
        fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| "unknown".to_string(), |text| text.trim().to_string())
    });
    &KERNEL
}

/// The CPU's name for itself.
pub fn cpu_model() -> &'static str {
    static CPU_MODEL: LazyLock<String> = LazyLock::new(|| {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info
            .lines()
            .find(|line| line.starts_with("model name"))
            .and_then(|line| line.split_once(": "));
        model.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, model)| model.to_string())
    });
    &CPU_MODEL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_it_was_written() {
        let all = ["compare", "a b", "", "it's", "'", "\\", "x?y=1&z='2'", "${HOME}", "ä"];
        let line = command_line(all.iter().map(OsString::from));
        assert_eq!(shell_words(&line).unwrap()[1..], all);
        assert!(shell_words("schedlab 'compare").is_err());
    }
}
