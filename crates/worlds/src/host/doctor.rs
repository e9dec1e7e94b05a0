//! Examines what can be measured on this machine: what was found, what it limits, and the command
//! that changes it.
//!
//! Everything is read from files below a root, so that tests can examine other machines. Sources:
//! the kernel's Documentation/admin-guide (pm/cpufreq.rst, sysctl/kernel.rst, perf-security.rst),
//! Documentation/scheduler (`sched-rt-group.rst`, `sched-ext.rst`), proc(5).

mod machine;
mod permissions;
mod scheduler;

use std::path::{Path, PathBuf};

/// A property of the machine.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Finding {
    /// Its subject.
    pub topic: &'static str,
    /// Its state.
    pub found: String,
    /// What that limits; empty if all is well.
    pub limits: Option<String>,
    /// The command that changes it; none if no command can.
    pub fix: Option<String>,
}

impl Finding {
    fn good(topic: &'static str, found: impl Into<String>) -> Finding {
        Finding { topic, found: found.into(), limits: None, fix: None }
    }

    fn limited(self, limits: impl Into<String>) -> Finding {
        Finding { limits: Some(limits.into()), ..self }
    }

    fn fixed_by(self, command: impl Into<String>) -> Finding {
        Finding { fix: Some(command.into()), ..self }
    }
}

/// A machine, described by its files.
pub struct System {
    root: PathBuf,
}

impl System {
    /// This one.
    pub fn this() -> System {
        System::at(Path::new("/"))
    }

    /// The one whose files are below `root`.
    pub fn at(root: &Path) -> System {
        System { root: root.to_path_buf() }
    }

    /// Everything that matters to measurements.
    pub fn examine(&self) -> Vec<Finding> {
        let about = [machine::examine, scheduler::examine, permissions::examine];
        about.into_iter().flat_map(|examine| examine(self)).collect()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text, without space around it.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_string())
    }

    pub(super) fn number(&self, path: &str) -> Option<i64> {
        self.read(path)?.parse().ok()
    }

    fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The value of `key: value` in a file.
    fn field(&self, path: &str, key: &str) -> Option<String> {
        let text = self.read(path)?;
        let value = |line: &str| {
            Some(line.strip_prefix(key)?.trim_start().strip_prefix(':')?.trim().to_string())
        };
        text.lines().find_map(value)
    }

    /// The names in a directory, sorted.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// An option of the running kernel's configuration.
    fn config(&self, option: &str) -> Option<String> {
        let release = self.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let text = self.read(&format!("/boot/config-{release}")).or_else(|| {
            let unpacked = std::process::Command::new("zcat")
                .arg(self.path("/proc/config.gz"))
                .output()
                .ok()?;
            String::from_utf8(unpacked.stdout).ok()
        })?;
        text.lines()
            .find_map(|line| line.strip_prefix(option)?.strip_prefix('=').map(str::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these files only.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let dir = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        let system = System::at(dir.path());
        (dir, system)
    }

    fn find(system: &System, topic: &str) -> Finding {
        system
            .examine()
            .into_iter()
            .find(|finding| finding.topic == topic)
            .unwrap_or_else(|| panic!("nothing about {topic}"))
    }

    const CPU0: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    const CPU1: &str = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";

    #[test]
    fn a_governor_that_saves_power_is_named_with_the_command_against_it() {
        let (_dir, system) = machine(&[(CPU0, "performance\n"), (CPU1, "powersave\n")]);
        let finding = find(&system, "governor");
        assert_eq!(finding.found, "performance, powersave");
        assert!(finding.fix.is_some_and(|fix| fix.contains("performance")));
        let (_dir, system) = machine(&[(CPU0, "performance\n"), (CPU1, "performance\n")]);
        assert_eq!(find(&system, "governor").limits, None);
        let (_dir, system) = machine(&[]);
        assert!(find(&system, "governor").found.contains("none to be seen"));
    }

    #[test]
    fn siblings_throttling_and_memory_are_seen() {
        let (_dir, system) = machine(&[
            ("sys/devices/system/cpu/smt/active", "1\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n"),
            ("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 100000 kB\n"),
            ("proc/cpuinfo", "processor: 0\nmodel name: A CPU\nflags: fpu hypervisor\n"),
        ]);
        assert!(find(&system, "SMT").fix.is_some_and(|fix| fix.contains("smt/control")));
        assert!(find(&system, "throttling").found.contains('7'));
        assert!(find(&system, "memory").limits.is_some());
        assert!(find(&system, "CPU").limits.is_some_and(|limits| limits.contains("hypervisor")));
    }

    #[test]
    fn the_scheduler_is_that_of_the_release_and_real_time_has_its_limits() {
        let of = |release: &str| {
            let (_dir, system) = machine(&[
                ("proc/sys/kernel/osrelease", release),
                ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
                ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ]);
            (find(&system, "scheduler").found, find(&system, "real-time throttling").found)
        };
        assert!(
            of("6.1.0-50").0.contains("CFS")
                && of("6.18.1").0.contains("EEVDF")
                && of("5.4.0").0.contains("CFS")
        );
        assert!(of("6.1.0-50").1.contains("95.0%"));
    }

    #[test]
    fn all_of_this_machine_is_examined() {
        let findings = System::this().examine();
        for topic in [
            "CPU",
            "governor",
            "SMT",
            "throttling",
            "load",
            "memory",
            "kernel",
            "scheduler",
            "sched_ext",
            "real-time classes",
            "tracing",
            "cgroup",
        ] {
            assert!(findings.iter().any(|finding| finding.topic == topic), "{topic}");
        }
        assert!(
            findings.iter().all(|finding| finding.fix.is_none() || finding.limits.is_some()),
            "a command with nothing to change"
        );
    }
}
