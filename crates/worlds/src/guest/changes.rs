//! What a user changes of a guest's kernel without building another: arguments, modules, features
//! of the scheduler, sysctls.

use crate::vm::{Guest, GuestFile, Transcript};
use program::Error;
use results::Point;
use schedlab_runner::event::Event;
use schedlab_runner::tuning::Tuning;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The changes; none by default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Further arguments of the kernel.
    pub arguments: Vec<String>,
    /// Modules on this machine's disk, in the order in which they are loaded.
    pub modules: Vec<PathBuf>,
    /// Features of the scheduler, off with `NO_` in front.
    pub features: Vec<String>,
    /// Values of sysctls and of files in `/sys`, by name.
    pub sysctls: BTreeMap<String, String>,
}

impl Changes {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Changes::default()
    }

    /// Has `guest` make them.
    ///
    /// # Errors
    /// If a module cannot be read.
    pub fn install(&self, guest: &mut Guest) -> Result<(), Error> {
        let mut modules = Vec::new();
        for (number, from) in self.modules.iter().enumerate() {
            let name = from.file_name().unwrap_or_default().to_string_lossy();
            // In a folder of its own: two may have the same name.
            let path = format!("/modules/{number}/{name}");
            guest.files.push(GuestFile::copy(from, &path)?);
            modules.push(path);
        }
        guest.session.tuning = Tuning {
            arguments: self.arguments.clone(),
            modules,
            features: self.features.clone(),
            sysctls: self.sysctls.clone(),
        };
        Ok(())
    }
}

/// As options: empty, or from a comma on.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.arguments.iter().try_for_each(|argument| write!(f, ", argument {argument}"))?;
        self.modules.iter().try_for_each(|module| write!(f, ", module {}", module.display()))?;
        self.features.iter().try_for_each(|feature| write!(f, ", feature {feature}"))?;
        self.sysctls.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))
    }
}

/// Sets the coordinates of results by what the guest has read back.
pub fn state(transcript: &Transcript, point: &mut Point) {
    let tuned = transcript.events.iter().find_map(|event| match event {
        Event::Tuned { arguments, modules, features, sysctls } => {
            let sysctls = sysctls.iter().map(|(name, value)| format!("{name}={value}"));
            let sysctls = sysctls.collect::<Vec<_>>().join(" ");
            Some([
                ("kernel_arguments", arguments.join(" ")),
                ("kernel_modules", modules.join(" ")),
                ("sched_features", features.join(" ")),
                ("sysctl", sysctls),
            ])
        }
        _ => None,
    });
    for (name, value) in tuned.into_iter().flatten().filter(|(_, value)| !value.is_empty()) {
        point.set(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_state_what_the_guest_read_back() {
        let tuned = Event::Tuned {
            arguments: vec!["preempt=full".to_string()],
            modules: Vec::new(),
            features: vec!["NO_RUN_TO_PARITY".to_string()],
            sysctls: [("kernel.a".to_string(), "1".to_string())].into(),
        };
        let transcript = Transcript { events: vec![tuned], ..Transcript::default() };
        let mut point = Point::new();
        state(&transcript, &mut point);
        let of = |name: &str| point.get(name).map(ToString::to_string);
        assert_eq!(of("kernel_arguments").as_deref(), Some("preempt=full"));
        assert_eq!(of("sched_features").as_deref(), Some("NO_RUN_TO_PARITY"));
        assert_eq!(of("sysctl").as_deref(), Some("kernel.a=1"));
        assert_eq!(of("kernel_modules"), None);
    }
}
