//! A budget: the recorder leaves out detail, by name, to stay below a share of the CPU time.

use crate::error::Error;
use crate::machine;
use crate::probe::Probe;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is left out, in this order: the levels of the BPF program from 1.
const DETAILS: [&str; 4] = [
    "entries of polls",
    "calls that did not wait",
    "all calls and their objects",
    "wakeups and migrations (wakings and switches remain)",
];

/// How long the cost is measured before it is judged.
const WINDOW: Duration = Duration::from_millis(100);

/// The budget, and what was done to keep it.
pub struct Budget {
    /// The share of the time of all CPUs.
    limit: f64,
    cpus: f64,
    level: usize,
    latest: Cost,
    start: u64,
    /// What is left out, and since when: nanoseconds from the beginning.
    pub shed: BTreeMap<String, u64>,
    /// Windows in which nothing was left to leave out.
    pub exceeded: u64,
}

struct Cost {
    time: u64,
    cpu: u64,
}

impl Cost {
    /// So far: of the programs in the kernel and of this process.
    fn now(probe: &Probe) -> Cost {
        Cost { time: machine::now(), cpu: probe.run_time() + machine::process_time() }
    }
}

impl Budget {
    /// A budget in per cent.
    pub fn new(percent: f64, probe: &Probe, start: u64) -> Budget {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Budget {
            limit: percent / 100.0,
            cpus: cpus as f64,
            level: 0,
            latest: Cost::now(probe),
            start,
            shed: BTreeMap::new(),
            exceeded: 0,
        }
    }

    /// Leaves out more if recording cost too much since the last time.
    ///
    /// # Errors
    /// If the kernel does not take the order.
    pub fn keep(&mut self, probe: &Probe) -> Result<(), Error> {
        if u128::from(machine::now() - self.latest.time) < WINDOW.as_nanos() {
            return Ok(());
        }
        let now = Cost::now(probe);
        let elapsed = (now.time - self.latest.time) as f64 * self.cpus;
        let share = now.cpu.saturating_sub(self.latest.cpu) as f64 / elapsed;
        self.latest = now;
        if share <= self.limit {
            return Ok(());
        }
        let Some(detail) = DETAILS.get(self.level) else {
            self.exceeded += 1;
            return Ok(());
        };
        self.level += 1;
        probe.shed(self.level as u32)?;
        self.shed.insert((*detail).to_string(), self.latest.time - self.start);
        Ok(())
    }
}
