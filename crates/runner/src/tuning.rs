//! What a session changes of its guest's kernel, before its services and jobs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The changes; none by default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// Further arguments of the kernel. The emulator passes them; the runner only checks that the
    /// kernel has them.
    pub arguments: Vec<String>,
    /// Files of modules in the guest, in the order in which they are loaded.
    pub modules: Vec<String>,
    /// Features of the scheduler that are switched on, or off with `NO_` in front, in the kernel's
    /// words (`/sys/kernel/debug/sched/features`).
    pub features: Vec<String>,
    /// Values by name: of sysctls, as in `kernel.sched_rt_runtime_us`, or of files in `/sys`.
    pub sysctls: BTreeMap<String, String>,
}

impl Tuning {
    /// Whether nothing is changed.
    pub fn is_none(&self) -> bool {
        *self == Tuning::default()
    }

    /// The file of a sysctl, or of a setting in `/sys`.
    pub fn file(name: &str) -> String {
        if name.starts_with('/') {
            name.to_string()
        } else {
            format!("/proc/sys/{}", name.replace('.', "/"))
        }
    }
}

/// Whether `text`, read from the kernel, says that a setting has `value`. That is the same words,
/// the same number, or the one of several words that is in brackets.
pub fn says(text: &str, value: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |text: &str| text.trim().parse::<i128>().ok();
    words == value.split_whitespace().collect::<Vec<&str>>()
        || (number(text).is_some() && number(text) == number(value))
        || words.iter().any(|word| {
            let chosen = word.strip_prefix('(').and_then(|word| word.strip_suffix(')'));
            let chosen = chosen.or_else(|| word.strip_prefix('[')?.strip_suffix(']'));
            chosen == Some(value)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_held_against_what_was_asked_for() {
        for (text, value) in [
            ("950000\n", "950000"),
            ("0\t3\n", "0 3"),
            ("007\n", "7"),
            ("none voluntary (full) lazy\n", "full"),
            ("always [madvise] never\n", "madvise"),
        ] {
            assert!(says(text, value), "{text:?} {value}");
        }
        for (text, value) in [
            ("950000\n", "95000"),
            ("none voluntary (full) lazy\n", "lazy"),
            ("none voluntary (full) lazy\n", "none"),
            ("", "0"),
        ] {
            assert!(!says(text, value), "{text:?} {value}");
        }
    }

    #[test]
    fn a_name_is_a_sysctl_or_a_file() {
        assert_eq!(Tuning::file("kernel.sched_x"), "/proc/sys/kernel/sched_x");
        assert_eq!(Tuning::file("/sys/kernel/mm/x"), "/sys/kernel/mm/x");
    }
}
