//! What the head of a reproducer says: what the program is, and what is only an approximation of it.

use schedsim::workload::Closed;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The approximations of a reproducer, counted.
#[derive(Default)]
pub struct Head(BTreeMap<&'static str, u64>);

impl Head {
    /// Counts an approximation.
    pub fn count(&mut self, what: &'static str) {
        let count = self.0.entry(what).or_default();
        *count = count.saturating_add(1);
    }

    /// The lines of the head, for a comment of C; `how` says what to do with the file.
    pub fn text(&self, closed: &Closed, how: &str) -> String {
        let mut text = String::from("Written by schedlab export.\n");
        for line in [&closed.name, &closed.description].into_iter().flatten() {
            let _ = writeln!(text, "{}", label(line));
        }
        let _ = writeln!(text, "{how}");
        for (what, count) in &self.0 {
            let _ = writeln!(text, "Approximated, {count} times: {what}.");
        }
        text
    }
}

/// A name that can stand in a comment of C.
pub fn label(name: &str) -> String {
    let clean: String = name.chars().map(|of| if of.is_control() { '?' } else { of }).collect();
    clean.replace("*/", "* /").replace("/*", "/ *")
}
