//! What a recorded kernel kept of tasks is compared with what the core keeps, and decides from then
//! on.

#[path = "common/compiler.rs"]
mod compiler;

use compiler::compile;
use sched_ext::{Compiled, Loaded};
use schedsim::live::{Arrival, Decides, Judgement, Role, Shadow};
use schedsim::policy::InKernel;
use schedsim::trace::{Event, EventKind, PrevState};
use schedsim::{CpuId, Machine, TaskId, Time};

/// Tasks wait by virtual time, which counts their callbacks: 1,000 for each stop, 1 for each run.
const COUNTS: &str = r#"
#include "kernel.h"
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime, u64 flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(u64 dsq) __ksym;
SEC("struct_ops/enqueue") void trial_enqueue(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);
	scx_bpf_dsq_insert_vtime(p, 7, 20000000, p->scx.dsq_vtime, __arg(1, u64));
}
SEC("struct_ops/dispatch") void trial_dispatch(u64 *context) { scx_bpf_dsq_move_to_local(7); }
SEC("struct_ops/running") void trial_running(u64 *context) { __arg(0, struct task_struct *)->scx.dsq_vtime += 1; }
SEC("struct_ops/stopping") void trial_stopping(u64 *context) { __arg(0, struct task_struct *)->scx.dsq_vtime += 1000; }
SEC("struct_ops/init") s32 trial_init(u64 *context) { return scx_bpf_create_dsq(7, -1); }
SEC(".struct_ops.link") struct sched_ext_ops trial = {
	.enqueue = (void *)trial_enqueue, .dispatch = (void *)trial_dispatch, .running = (void *)trial_running,
	.stopping = (void *)trial_stopping, .init = (void *)trial_init, .name = "trial",
};
"#;

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);
const OTHER_CLASS: TaskId = TaskId(2);

/// What the kernel had of a task after an event: its slice and virtual time.
type Had = (TaskId, u64, u64);

/// Judges the scheduler on events, each at its time in microseconds, with what the kernel had.
fn judged(events: &[(u64, EventKind, &[Had])]) -> Judgement {
    let loaded = Loaded::read(&compile(COUNTS), &[]).expect("a scheduler");
    let scheduled = Role::Scheduled { arrival: Arrival::default(), yields: false };
    let roles = vec![scheduled, scheduled, Role::Interrupts];
    let policy = Compiled::new(loaded, 1);
    let mut shadow = Shadow::new(policy, Machine::ideal(1), 1, Decides::AtSwitch, roles);
    let time = |us: u64| Time(us * 1_000);
    let known = |had: &[Had]| {
        let of = |&(task, slice, vtime): &Had| (task, InKernel { slice, vtime, flags: 0 });
        [had.first().map(of), had.get(1).map(of)]
    };
    shadow.knows(events.iter().map(|(us, _, had)| (time(*us), known(had))).collect());
    let event =
        |&(us, kind, _): &(u64, EventKind, _)| Event { time: time(us), cpu: CpuId(0), kind };
    let events: Vec<Event> = events.iter().map(event).collect();
    shadow.judge(&events).expect("the scheduler is not ejected")
}

fn new(task: TaskId) -> EventKind {
    EventKind::SchedWakeupNew { task, target: CpuId(0) }
}

fn switch(prev: TaskId, next: TaskId, prev_state: PrevState) -> EventKind {
    EventKind::SchedSwitch { prev, next, prev_state }
}

#[test]
fn a_task_that_another_class_interrupts_has_stopped_and_runs_again() {
    use PrevState::{Blocked, Runnable};
    let with = |last: u64| {
        judged(&[
            (0, new(A), &[]),
            (10, switch(TaskId::NONE, A, Runnable), &[(A, 20_000_000, 0)]),
            (1_010, switch(A, OTHER_CLASS, Runnable), &[(A, 19_000_000, 1_000)]),
            (2_010, switch(OTHER_CLASS, A, Blocked), &[(A, 19_000_000, 1_001)]),
            (3_010, switch(A, TaskId::NONE, Blocked), &[(A, 18_000_000, last)]),
        ])
    };
    let judgement = with(2_001);
    assert_eq!((judgement.states, judgement.differences), (3, Vec::new()));
    // A kernel that had not called it would have this.
    let judgement = with(1_001);
    assert_eq!(judgement.kept_alike(999), Some(2.0 / 3.0));
    assert_eq!(judgement.kept_alike(1_000), Some(1.0));
    let [difference] = judgement.differences[..] else { panic!("{judgement:?}") };
    assert_eq!((difference.task, difference.policy.vtime, difference.size()), (A, 2_001, 1_000));
}

#[test]
fn the_kernels_virtual_time_decides_who_runs_next() {
    let with = |first: u64, second: u64| {
        let of = |task: TaskId, vtime: u64| [(task, 20_000_000, vtime)];
        judged(&[
            (0, new(A), &of(A, first)),
            (5, new(B), &of(B, second)),
            (10, switch(TaskId::NONE, B, PrevState::Runnable), &[]),
            (20, switch(B, A, PrevState::Blocked), &[]),
        ])
    };
    assert!(with(9, 7).divergences.is_empty());
    // Among equals the first comes first, so a kernel with these decides otherwise.
    assert_eq!(with(7, 7).by_class().values().sum::<usize>(), 1);
    assert_eq!(with(7, 9).by_class().values().sum::<usize>(), 1);
    // Virtual times wrap around.
    assert!(with(3, u64::MAX - 3).divergences.is_empty());
}

#[test]
fn a_virtual_time_of_a_light_task_counts_by_its_weight() {
    let kept = |vtime| InKernel { slice: 0, vtime, flags: 0 };
    let difference = |weight| schedsim::live::Difference {
        time: Time::ZERO,
        task: A,
        weight,
        kernel: kept(0),
        policy: kept(8_192),
    };
    assert_eq!(
        [15, 512, 1_024, 88_761].map(|weight| difference(weight).size()),
        [120, 4_096, 8_192, 8_192]
    );
}
