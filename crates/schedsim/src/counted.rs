//! Counts in words.

/// A count with its noun: `1 CPU`, `2 CPUs`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
