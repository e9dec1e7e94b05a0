//! The kernel's scheduling classes: `other`, `batch`, `idle`, `fifo:PRIORITY`, `rr:PRIORITY`,
//! `deadline:RUNTIME/DEADLINE/PERIOD`.
//!
//! Source: sched(7), sched_setattr(2).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A scheduling class with its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Class {
    /// `SCHED_OTHER`: CFS or EEVDF.
    #[default]
    Other,
    /// `SCHED_BATCH`: the same, but it never preempts on wakeup.
    Batch,
    /// `SCHED_IDLE`: the same with the smallest weight.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u32),
    /// `SCHED_RR` with a priority from 1 to 99.
    Rr(u32),
    /// `SCHED_DEADLINE`, in nanoseconds.
    Deadline {
        /// CPU time in each period.
        runtime: u64,
        /// The deadline, from the begin of the period.
        deadline: u64,
        /// The length of a period.
        period: u64,
    },
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Other => f.write_str("other"),
            Class::Batch => f.write_str("batch"),
            Class::Idle => f.write_str("idle"),
            Class::Fifo(priority) => write!(f, "fifo:{priority}"),
            Class::Rr(priority) => write!(f, "rr:{priority}"),
            Class::Deadline { runtime, deadline, period } => {
                write!(f, "deadline:{runtime}ns/{deadline}ns/{period}ns")
            }
        }
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Class, String> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let priority = || match argument.parse() {
            Ok(priority @ 1..=99) => Ok(priority),
            _ => Err(format!("give a priority from 1 to 99, as in {name}:10")),
        };
        match (name, argument) {
            ("other", "") => Ok(Class::Other),
            ("batch", "") => Ok(Class::Batch),
            ("idle", "") => Ok(Class::Idle),
            ("fifo", _) => priority().map(Class::Fifo),
            ("rr", _) => priority().map(Class::Rr),
            ("deadline", _) => deadline(argument).ok_or_else(|| {
                "give runtime, deadline and period, rising, as in deadline:2ms/10ms/10ms"
                    .to_string()
            }),
            _ => Err(format!(
                "there is no class `{text}`; there are other, batch, idle, fifo:PRIORITY, \
                 rr:PRIORITY, deadline:RUNTIME/DEADLINE/PERIOD"
            )),
        }
    }
}

impl TryFrom<String> for Class {
    type Error = String;

    fn try_from(text: String) -> Result<Class, String> {
        text.parse()
    }
}

impl From<Class> for String {
    fn from(class: Class) -> String {
        class.to_string()
    }
}

fn deadline(text: &str) -> Option<Class> {
    let mut times = text.split('/').map(nanoseconds);
    let (runtime, deadline, period) = (times.next()??, times.next()??, times.next()??);
    (times.next().is_none() && 1024 <= runtime && runtime <= deadline && deadline <= period)
        .then_some(Class::Deadline { runtime, deadline, period })
}

/// Parses a whole number with a unit: `2ms`, `1500ns`.
fn nanoseconds(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_as_they_are_written_and_wrong_ones_refused() {
        for text in [
            "other",
            "batch",
            "idle",
            "fifo:1",
            "rr:99",
            "deadline:2000000ns/10000000ns/10000000ns",
        ] {
            assert_eq!(text.parse::<Class>().map(|class| class.to_string()), Ok(text.to_string()));
        }
        assert_eq!(
            "deadline:2ms/10ms/10ms".parse::<Class>().unwrap().to_string(),
            "deadline:2000000ns/10000000ns/10000000ns"
        );
        for text in [
            "",
            "fifo",
            "fifo:0",
            "rr:100",
            "other:1",
            "deadline:5ms/2ms/10ms",
            "deadline:1ms/2ms",
            "cfs",
        ] {
            assert!(text.parse::<Class>().is_err(), "{text}");
        }
    }
}
