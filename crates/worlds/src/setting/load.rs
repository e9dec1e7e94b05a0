//! Sums up each program of a workload, to decide which settings are worth a try.

use schedsim::workload::{Workload, is_kernel_thread_name};
use schedsim::{Nanos, TaskId};

/// The tasks of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramLoad {
    /// The name.
    pub name: String,
    /// Their CPU time in all.
    pub demand: Nanos,
    /// The number of their bursts.
    pub bursts: u64,
    /// Whether all of them are fair tasks, as the policies of Linux's fair class are.
    pub is_fair: bool,
}

impl ProgramLoad {
    /// The programs of `workload`, that with the most CPU time first. Kernel threads are no
    /// programs, and tasks `beside` them (a recorder) are of none.
    pub fn all(workload: &Workload, beside: &[TaskId]) -> Vec<ProgramLoad> {
        let mut all: Vec<ProgramLoad> = Vec::new();
        let is_of_program = |id: &TaskId| {
            !beside.contains(id) && !is_kernel_thread_name(&workload.tasks[id.index()].info.name)
        };
        for task in workload.ids().filter(is_of_program).map(|id| &workload.tasks[id.index()]) {
            let bursts = task.script.steps().filter(|step| step.then.ends_burst()).count() as u64;
            let own = ProgramLoad {
                name: task.info.name.clone(),
                demand: task.script.demand(),
                bursts,
                is_fair: task.info.prio >= 100,
            };
            match all.iter_mut().find(|known| known.name == own.name) {
                Some(known) => {
                    known.demand += own.demand;
                    known.bursts += own.bursts;
                    known.is_fair &= own.is_fair;
                }
                None => all.push(own),
            }
        }
        all.sort_by(|one, other| {
            other.demand.cmp(&one.demand).then_with(|| one.name.cmp(&other.name))
        });
        all
    }

    /// Its mean burst.
    pub fn mean_burst(&self) -> Nanos {
        Nanos(self.demand.0 / self.bursts.max(1))
    }
}
