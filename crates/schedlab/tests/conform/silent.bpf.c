/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One queue for all CPUs, first in, first out. It says nothing of CPUs that go and come, so the
 * kernel ends it then. A loader may load it again; ours does not.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define QUEUE 7

void BPF_STRUCT_OPS(silent_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(silent_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(silent_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops silent_ops = {
	.enqueue = (void *)silent_enqueue,
	.dispatch = (void *)silent_dispatch,
	.init = (void *)silent_init,
	.name = "silent",
};
