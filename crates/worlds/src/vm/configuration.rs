//! The build options of a kernel, and what of them matters to scheduling.

use schedsim::Nanos;
use std::fs;
use std::path::Path;

/// A build option that a kernel must have, and its purpose.
pub type Need = (&'static str, &'static str);

/// The lines of a kernel's `.config`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration(String);

/// Options that are shown by name if they are on.
const SHOWN: [(&str, &str); 11] = [
    ("CONFIG_SCHED_CLASS_EXT", "sched_ext"),
    ("CONFIG_DEBUG_INFO_BTF", "BTF"),
    ("CONFIG_CGROUP_SCHED", "cgroups"),
    ("CONFIG_CFS_BANDWIDTH", "quotas"),
    ("CONFIG_RT_GROUP_SCHED", "real-time groups"),
    ("CONFIG_SCHED_AUTOGROUP", "autogroup"),
    ("CONFIG_SCHED_CORE", "core scheduling"),
    ("CONFIG_SCHED_CACHE", "cache-aware"),
    ("CONFIG_UCLAMP_TASK", "uclamp"),
    ("CONFIG_NUMA_BALANCING", "NUMA balancing"),
    ("CONFIG_NO_HZ_FULL", "nohz_full"),
];

impl Configuration {
    /// Of these lines.
    pub fn new(text: impl Into<String>) -> Configuration {
        Configuration(text.into())
    }

    /// Its lines.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Of the kernel `release` whose image is `image`, from `config-RELEASE`, `config` or `.config`
    /// beside it.
    pub fn beside(image: &Path, release: &str) -> Option<Configuration> {
        let names = [format!("config-{release}"), "config".to_string(), ".config".to_string()];
        let mut files = names.iter().map(|name| image.with_file_name(name));
        files.find_map(|file| fs::read_to_string(file).ok()).map(Configuration)
    }

    /// The value of an option: `y`, `m`, a number or a text; none if it is not set.
    pub fn value(&self, option: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
    }

    /// Whether an option is built in.
    pub fn has(&self, option: &str) -> bool {
        self.value(option) == Some("y")
    }

    /// The first of `needs` that is not built in.
    pub fn lacks<'n>(&self, mut needs: impl Iterator<Item = &'n Need>) -> Option<&'n Need> {
        needs.find(|(option, _)| !self.has(option))
    }

    /// The time between two ticks.
    pub fn tick(&self) -> Option<Nanos> {
        let hz: u64 = self.value("CONFIG_HZ")?.parse().ok()?;
        1_000_000_000u64.checked_div(hz).map(Nanos)
    }

    /// When a task in the kernel gives way.
    pub fn preemption(&self) -> String {
        let models = [
            ("CONFIG_PREEMPT_RT", "rt"),
            ("CONFIG_PREEMPT", "full"),
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ];
        let model = models.iter().find(|(option, _)| self.has(option));
        let model = model.map_or("none", |(_, name)| name);
        match self.has("CONFIG_PREEMPT_DYNAMIC") {
            true => format!("{model}, preempt= changes it"),
            false => model.to_string(),
        }
    }

    /// What matters to scheduling, in words.
    pub fn scheduling(&self) -> String {
        let hz = self.value("CONFIG_HZ").unwrap_or("?");
        let shown = SHOWN.iter().filter(|(option, _)| self.has(option)).map(|(_, name)| *name);
        let shown: Vec<&str> = shown.collect();
        format!("HZ {hz}; preemption {}; {}", self.preemption(), shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_by_their_whole_names() {
        let text = "CONFIG_HZ=1000\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_RT=y\n\
                    CONFIG_PREEMPT_RCU=y\nCONFIG_DEBUG_INFO_BTF_MODULES=y\n\
                    CONFIG_SCHED_CLASS_EXT=y\nCONFIG_UCLAMP_TASK=m\n";
        let configuration = Configuration::new(text);
        assert_eq!(configuration.tick(), Some(Nanos(1_000_000)));
        assert_eq!(configuration.scheduling(), "HZ 1000; preemption rt; sched_ext");
        let lazy = "CONFIG_HZ=250\nCONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        let lazy = Configuration::new(lazy);
        assert_eq!(lazy.preemption(), "lazy, preempt= changes it");
        assert_eq!(Configuration::new("").preemption(), "none");
    }
}
