//! The limits of a program in a guest: a control group that ends it before it takes what the guest
//! itself needs.
//!
//! The group has no CPU controller, so it changes nothing in who runs.
//!
//! Source: Linux 6.18, `Documentation/admin-guide/cgroup-v2.rst`, "Memory", "PID" and "Core
//! Interface Files".

use crate::guest;
use schedlab_runner::event::Limit;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// For each MiB of the guest's memory: half for the program, and two tasks, as each takes some
/// 100 KiB.
const TASKS_PER_MIB: u64 = 2;
const MIB: u64 = 1 << 20;

/// The group of a program, and where the kernel says that a limit was reached.
pub struct Limits {
    group: PathBuf,
    tasks: Watched,
    memory: Watched,
}

/// A limit and the file that counts its events.
struct Watched {
    limit: Limit,
    most: u64,
    counts: File,
    /// The name of the count that must stay zero.
    name: &'static str,
}

impl Limits {
    /// Makes the group of job `number`.
    pub fn new(number: usize) -> Result<Limits, String> {
        let root = Path::new(ROOT);
        if !root.join("cgroup.procs").exists() {
            guest::mount(c"cgroup2", c"/sys/fs/cgroup")?;
        }
        write(&root.join("cgroup.subtree_control"), "+pids +memory")?;
        let group = root.join(format!("program-{number}"));
        fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
        let memory = memory()? / 2;
        let tasks = memory / MIB * 2 * TASKS_PER_MIB;
        write(&group.join("memory.max"), &memory.to_string())?;
        // Without one of its processes a program is another one: all end together.
        write(&group.join("memory.oom.group"), "1")?;
        write(&group.join("pids.max"), &tasks.to_string())?;
        let watched = |limit, most, file: &str, name| {
            let path = group.join(file);
            let counts =
                File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<Watched, String>(Watched { limit, most, counts, name })
        };
        Ok(Limits {
            tasks: watched(Limit::Tasks, tasks, "pids.events", "max")?,
            memory: watched(Limit::Memory, memory, "memory.events", "oom_kill")?,
            group,
        })
    }

    /// Moves the calling process into the group.
    pub fn enter(&self) -> Result<(), String> {
        write(&self.group.join("cgroup.procs"), "0")
    }

    /// The limit that was reached, if one was, and the most that it allows.
    pub fn reached(&self) -> Option<(Limit, u64)> {
        // A program that is out of memory cannot fork either: that comes second.
        [&self.memory, &self.tasks]
            .into_iter()
            .find(|watched| watched.count() > 0)
            .map(|watched| (watched.limit, watched.most))
    }

    /// The files that `poll` reports once something was counted, after [`Limits::reached`].
    pub fn handles(&self) -> [RawFd; 2] {
        [self.tasks.counts.as_raw_fd(), self.memory.counts.as_raw_fd()]
    }

    /// Kills what is in the group.
    pub fn kill(&self) -> Result<(), String> {
        write(&self.group.join("cgroup.kill"), "1")
    }

    /// Whether no process of the group is alive.
    pub fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.group.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 0")
    }
}

impl Watched {
    fn count(&self) -> u64 {
        let mut bytes = [0; 512];
        let length = self.counts.read_at(&mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        text.lines()
            .find_map(|line| line.strip_prefix(self.name)?.strip_prefix(' ')?.parse().ok())
            .unwrap_or(0)
    }
}

/// The memory of the guest in bytes.
fn memory() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.map(|kib| kib << 10).ok_or_else(|| "the kernel does not say its memory".to_string())
}

fn write(file: &Path, value: &str) -> Result<(), String> {
    fs::write(file, value).map_err(|error| {
        format!(
            "{} does not take `{value}`: {error}; limits of programs need CONFIG_MEMCG and \
             CONFIG_CGROUP_PIDS",
            file.display()
        )
    })
}
