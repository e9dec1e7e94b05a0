//! What the core of sched_ext keeps of tasks. The witness of `schedlab-scx` writes it into a guest's
//! trace, in a line before each wakeup and switch, of the same tasks.

use schedsim::live::Known;
use schedsim::policy::InKernel;
use schedsim::trace::{Event, EventKind, TaskInfo};
use schedsim::{TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// What precedes the witness's text in a line of the trace.
const MARK: &str = "bpf_trace_printk: schedlab: ";

/// The tasks of one event, by their thread ids.
type Said = [Option<(u32, InKernel)>; 2];

/// What a witness wrote, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Witness {
    wakes: VecDeque<Said>,
    switches: VecDeque<Said>,
}

impl Witness {
    /// Reads it out of the lines of a trace; other lines are passed over.
    pub fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Witness {
        let mut witness = Witness::default();
        for (_, text) in lines.filter_map(|line| line.split_once(MARK)) {
            let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
            let numbers: Option<Vec<u64>> =
                rest.split_whitespace().map(|word| word.parse().ok()).collect();
            let state = |of: &[u64]| {
                Some((
                    u32::try_from(of[0]).ok()?,
                    InKernel { slice: of[1], vtime: of[2], flags: of[3] },
                ))
            };
            match (kind, numbers.as_deref()) {
                ("wakes", Some(of @ [_, _, _, _])) => witness.wakes.push_back([state(of), None]),
                ("switches", Some(of @ [_, _, _, _, _, _, _, _])) => {
                    witness.switches.push_back([state(&of[..4]), state(&of[4..])]);
                }
                _ => {}
            }
        }
        witness
    }

    /// What the kernel had of tasks after each event. Lines before the first event are passed over.
    /// An event without a line of the same tasks is left out.
    pub fn known(mut self, events: &[Event], tasks: &[TaskInfo]) -> BTreeMap<Time, Known> {
        let tid = |task: TaskId| tasks.get(task.index()).map_or(0, |of| of.pid);
        let mut known = BTreeMap::new();
        for event in events {
            let (lines, tasks) = match event.kind {
                EventKind::SchedSwitch { prev, next, .. } => {
                    (&mut self.switches, [Some(prev), Some(next)])
                }
                EventKind::SchedWakeup { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                    (&mut self.wakes, [Some(task), None])
                }
                _ => continue,
            };
            let is_of = |said: &Said| {
                said.iter().zip(tasks).all(|(said, task)| said.map(|(id, _)| id) == task.map(tid))
            };
            let Some(at) = lines.iter().position(is_of) else { continue };
            let said = lines.drain(..=at).next_back().unwrap_or_default();
            let of = |at: usize| {
                let (task, (_, kept)) = tasks[at].zip(said[at])?;
                (task != TaskId::NONE).then_some((task, kept))
            };
            known.insert(event.time, [of(0), of(1)]);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_witness_are_read_and_others_are_not() {
        let text = [
            "  <idle>-0 [000] d.h2. 7: bpf_trace_printk: schedlab: wakes 80 20000000 5 64",
            "  <idle>-0 [000] d.h2. 8: sched_wakeup: comm=a pid=80 prio=120 target_cpu=000",
            "  <idle>-0 [000] d..2. 9: bpf_trace_printk: schedlab: switches 0 1 2 2 80 3 4 64",
            "  a-80 [000] d..2. 9: bpf_trace_printk: schedlab: switches 80 1 2 64",
            "  a-80 [000] d..2. 9: bpf_trace_printk: somebody else's",
        ];
        let witness = Witness::of(text.into_iter());
        let kept = |slice, vtime, flags| InKernel { slice, vtime, flags };
        assert_eq!(witness.wakes, [[Some((80, kept(20_000_000, 5, 64))), None]]);
        assert_eq!(witness.switches, [[Some((0, kept(1, 2, 2))), Some((80, kept(3, 4, 64)))]]);
    }
}
