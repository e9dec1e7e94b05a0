//! `template`: one queue for all CPUs, first come, first served.
//!
//! Right where …; it does badly at ….

use schedsim::policy::{
    Context, Descriptor, Dispatch, Effect, Enqueue, Make, OptionSpec, Policy, Promises, Wake,
};
use schedsim::{CpuId, Nanos, TaskId};
use std::collections::VecDeque;

/// The description of this policy.
pub static POLICY: Descriptor = Descriptor {
    name: "template",
    summary: "one queue for all CPUs, first come, first served",
    source: "our own",
    options: &[OptionSpec::duration(
        "slice",
        "how long a task runs before it goes to the end of the queue",
    )
    .by_default("4ms")],
    // The ready queue of `schedlab queue --list` with the same costs, for `--mips`.
    structure: Some("rr"),
    scheduler: &Make(|given| Template { waiting: VecDeque::new(), slice: given.duration("slice") }),
};

/// The waiting tasks, in order of arrival.
#[derive(Clone, Debug)]
pub struct Template {
    waiting: VecDeque<TaskId>,
    slice: Nanos,
}

impl Policy for Template {
    /// `--check` verifies these in every run.
    fn promises(&self) -> Promises {
        Promises {
            work_conserving: true,
            locally_work_conserving: true,
            starvation_free: true,
            ..Promises::default()
        }
    }

    fn init_task(&mut self, _cx: &mut Context, _task: TaskId) {}

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        cx.idle_cpu_for(task).or_else(|| cx.pinned(task)).unwrap_or(cx.task(task).cpu)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, _cpu: CpuId, _why: Enqueue) -> Effect {
        self.waiting.push_back(task);
        cx.idle_cpu_for(task).map_or(Effect::Nothing, Effect::Kick)
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.waiting.retain(|&other| other != task);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let next = self.waiting.iter().position(|&task| cx.allowed(task, cpu))?;
        self.waiting.remove(next).map(|task| Dispatch { task, slice: self.slice })
    }

    /// A CPU that was kicked for one task may have taken another one. Then the remaining task needs
    /// the next idle CPU.
    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        let passed_over =
            self.waiting.iter().filter(|_| !idle).find_map(|&task| cx.idle_cpu_for(task));
        passed_over.map_or(Effect::Nothing, Effect::Kick)
    }
}

#[cfg(test)]
mod tests {
    use schedsim::policy::Catalog;
    use schedsim::swarm::Case;

    #[test]
    fn random_workloads_check_every_rule() {
        let catalog = Catalog::built_in().with(&[super::POLICY]).unwrap();
        for text in ["template", "template?slice=1ms"] {
            let policy = catalog.parse(text).unwrap();
            for seed in 0..50 {
                Case::draw(seed)
                    .verify(&policy)
                    .unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
            }
        }
    }
}
