//! Options that change the kernel of a guest.

use clap::Args;
use program::Error;
use std::collections::BTreeMap;
use std::path::PathBuf;
use worlds::guest::Changes;

/// What is changed of the kernel; each change is read back in the guest.
#[derive(Args, Debug)]
pub struct ChangeArguments {
    /// A further argument of the kernel, as in preempt=full; may be given several times
    #[arg(long = "kernel-arg", value_name = "ARGUMENT", value_parser = argument)]
    arguments: Vec<String>,
    /// A module to load before the measurement, as in some.ko; may be given several times
    #[arg(long = "kernel-module", value_name = "FILE")]
    modules: Vec<PathBuf>,
    /// Features of the kernel's scheduler, separated by commas, off with NO_ in front, as in
    /// NO_RUN_TO_PARITY
    #[arg(long = "sched-feature", value_name = "FEATURE", value_delimiter = ',',
          value_parser = feature)]
    features: Vec<String>,
    /// A sysctl, or a file in /sys, and its value, as in kernel.sched_autogroup_enabled=0 or
    /// /sys/kernel/debug/sched/base_slice_ns=1000000; may be given several times
    #[arg(long = "sysctl", value_name = "NAME=VALUE", value_parser = sysctl)]
    sysctls: Vec<(String, String)>,
}

impl ChangeArguments {
    /// The changes.
    ///
    /// # Errors
    /// If one is given twice, or a module is no file.
    pub fn changes(&self) -> Result<Changes, Error> {
        let mut sysctls = BTreeMap::new();
        for (name, value) in &self.sysctls {
            if sysctls.insert(name.clone(), value.clone()).is_some() {
                return Err(Error::Usage(format!("--sysctl {name} is given twice")));
            }
        }
        if let Some(module) = self.modules.iter().find(|module| !module.is_file()) {
            return Err(Error::Input(format!("there is no module {}", module.display())));
        }
        Ok(Changes {
            arguments: self.arguments.clone(),
            modules: self.modules.clone(),
            features: self.features.clone(),
            sysctls,
        })
    }
}

/// What guests need to report and to repeat themselves.
const KEPT: [&str; 12] = [
    "console",
    "init",
    "kaslr",
    "nokaslr",
    "norandmaps",
    "panic",
    "quiet",
    "rdinit",
    "root",
    "tsc",
    "tsc_early_khz",
    "unknown_nmi_panic",
];

fn argument(text: &str) -> Result<String, String> {
    let name = text.split('=').next().unwrap_or(text);
    if name.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("give one argument without spaces, as in preempt=full; several by several \
                    options"
            .to_string());
    }
    if let Some(model) = text.strip_prefix("preempt=")
        && !["none", "voluntary", "lazy", "full"].contains(&model)
    {
        return Err("preemption is none, voluntary, lazy or full".to_string());
    }
    match KEPT.contains(&name) {
        true => Err(format!("guests set {name} themselves, as they need it to repeat themselves")),
        false => Ok(text.to_string()),
    }
}

fn feature(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    match !text.is_empty() && text.chars().all(is_word) {
        true => Ok(text.to_string()),
        false => Err("give a feature in the kernel's words, as in NO_RUN_TO_PARITY".to_string()),
    }
}

fn sysctl(text: &str) -> Result<(String, String), String> {
    let given = text.split_once('=').filter(|(name, value)| {
        let is_file = name.starts_with("/sys/") || !name.contains('/');
        is_file && !name.is_empty() && !name.contains("..") && !value.is_empty()
    });
    given.map(|(name, value)| (name.to_string(), value.to_string())).ok_or_else(|| {
        "give a sysctl or a file in /sys with its value, as in kernel.sched_autogroup_enabled=0"
            .to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_change_is_refused_with_an_example() {
        assert_eq!(argument("isolcpus=1").as_deref(), Ok("isolcpus=1"));
        assert_eq!(argument("preempt=lazy").as_deref(), Ok("preempt=lazy"));
        for text in ["", "=1", "a b", "preempt=lazzy", "console=tty0", "nokaslr", "panic=0"] {
            assert!(argument(text).is_err(), "{text}");
        }
        assert_eq!(feature("NO_PLACE_LAG").as_deref(), Ok("NO_PLACE_LAG"));
        for text in ["", "no_place_lag", "A B"] {
            assert!(feature(text).is_err(), "{text}");
        }
        let pair = |name: &str, value: &str| Ok((name.to_string(), value.to_string()));
        assert_eq!(sysctl("kernel.a=1"), pair("kernel.a", "1"));
        assert_eq!(sysctl("/sys/a=b=c"), pair("/sys/a", "b=c"));
        for text in ["", "kernel.a", "kernel.a=", "=1", "/etc/passwd=1", "/sys/../etc=1"] {
            assert!(sysctl(text).is_err(), "{text}");
        }
    }
}
