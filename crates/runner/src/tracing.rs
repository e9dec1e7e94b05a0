//! Records the kernel's scheduling events, by tracefs.
//!
//! Recording takes instructions, so instructions are never counted in a traced job. Times are those
//! of the clock (`x86-tsc`).

use std::fs;
use std::path::Path;

const ROOT: &str = "/sys/kernel/tracing";
const EVENTS: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_migrate_task",
];
/// For each CPU: room for about 200,000 events.
const BUFFER_KB: &str = "16384";
/// The first event in a part of the buffer takes longer to record, so parts are as large as
/// possible: 128 pages.
const PART: (&str, &str) = ("buffer_subbuf_size_kb", "512");

/// A recording.
pub struct Tracing;

impl Tracing {
    /// Prepares the recording.
    pub fn prepare() -> Result<Tracing, String> {
        write("tracing_on", "0")?;
        write("trace_clock", "x86-tsc")?;
        if Path::new(ROOT).join(PART.0).exists() {
            write(PART.0, PART.1)?; // since Linux 6.8
        }
        write("buffer_size_kb", BUFFER_KB)?;
        write("trace", "")?;
        for event in EVENTS {
            write(&format!("events/sched/{event}/enable"), "1")?;
        }
        Ok(Tracing)
    }

    /// Starts recording.
    pub fn start(&self) -> Result<(), String> {
        write("tracing_on", "1")
    }

    /// Stops recording.
    pub fn stop(&self) -> Result<(), String> {
        write("tracing_on", "0")
    }

    /// How many events the buffer had no room for.
    pub fn lost(&self) -> Result<u64, String> {
        let directory = Path::new(ROOT).join("per_cpu");
        let cpus = fs::read_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut lost = 0;
        for cpu in cpus.flatten() {
            let stats = fs::read_to_string(cpu.path().join("stats")).unwrap_or_default();
            let counts = stats.lines().filter_map(|line| {
                line.strip_prefix("overrun: ").or_else(|| line.strip_prefix("dropped events: "))
            });
            lost += counts.filter_map(|count| count.trim().parse::<u64>().ok()).sum::<u64>();
        }
        Ok(lost)
    }

    /// Passes each event to `each`, as tracefs prints it, and clears the buffer.
    pub fn lines(&self, mut each: impl FnMut(&str)) -> Result<(), String> {
        let path = Path::new(ROOT).join("trace");
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        text.lines().filter(|line| !line.starts_with('#')).for_each(&mut each);
        for event in EVENTS {
            write(&format!("events/sched/{event}/enable"), "0")?;
        }
        write("trace", "")?;
        write("buffer_size_kb", "1")
    }
}

fn write(file: &str, text: &str) -> Result<(), String> {
    let path = Path::new(ROOT).join(file);
    fs::write(&path, text).map_err(|error| {
        format!("{}: {error}; tracefs must be mounted and root must run this", path.display())
    })
}
