/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Round robin: one queue for all CPUs, first in, first out. It matches `central:rr`.
 *
 * Right where tasks are alike and nothing is known about them. It knows no priorities, and a task
 * that sleeps often waits as long as one that never does.
 *
 * Source: Porter 2021, "Round Robin Scheduling"; Curran & Stumm 1990, 3.4 (CQ). The Rust original:
 * crates/readyq/src/rr.rs under crates/schedsim/src/policy/central.rs. Deviation: the kernel
 * chooses the idle CPU of a woken task.
 */
#include "scheduler.bpf.h"
#include "stays.bpf.h"

#define QUEUE 0

s32 BPF_STRUCT_OPS(rr_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(rr_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, QUANTUM, enq_flags);
}

void BPF_STRUCT_OPS(rr_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(QUEUE, 0) && goes_back(prev))
		go_on(prev, QUANTUM); /* it is alone, and continues */
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rr_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(rr_exit, struct scx_exit_info *ei)
{
	record_exit(ei);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)rr_select_cpu,
	.enqueue = (void *)rr_enqueue,
	.dispatch = (void *)rr_dispatch,
	.init = (void *)rr_init,
	.exit = (void *)rr_exit,
	STAYS,
	.name = "schedlab_rr",
};
