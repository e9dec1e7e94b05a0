/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A weighted virtual clock in a red-black tree: the task whose key is least runs next. The twin of `central:rbtree`.
 *
 * A task's key is the virtual time of its next turn; at each turn it moves on by the stride of its level, 2^level. Right for proportional
 * rates. It costs a walk down the kernel's tree, and grows with the logarithm of the number of tasks: what the multi-list is held against.
 *
 * At insert the key becomes clamp(last key + stride, clock, clock + stride), where the clock is the key of the task that was taken out
 * last.
 *
 * Source: Porter 2021, "A Better Priority System" and "Red-Black Trees". The Rust original: crates/readyq/src/rbtree.rs and clock.rs under
 * crates/schedsim/src/policy/central.rs. Deviations: the kernel asks for the next task before the last one is back in its queue, so that
 * one is reckoned with as if it were; which idle CPU a woken task goes to is the kernel's choice.
 */
#include "scheduler.bpf.h"

#define QUEUE 0

/* The key of the task that was taken out last. */
static u64 clock;

/* The key at which `p` waits now. */
static u64 next_key(const struct task_struct *p)
{
	s64 behind = clock - p->scx.dsq_vtime;
	u64 stride = level_bit_of(p);

	return behind <= 0 ? clock + stride : (u64)behind >= stride ? clock : clock + stride - behind;
}

s32 BPF_STRUCT_OPS(rbtree_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(rbtree_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, QUEUE, QUANTUM, next_key(p), enq_flags);
}

/* Whether a task of `key` would come before everybody who waits. */
static bool precedes_all(u64 key)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, QUEUE, 0)
		return (s64)(key - p->scx.dsq_vtime) < 0;
	return true;
}

void BPF_STRUCT_OPS(rbtree_dispatch, s32 cpu, struct task_struct *prev)
{
	if (goes_back(prev)) {
		u64 key = next_key(prev);

		if (precedes_all(key)) {
			prev->scx.dsq_vtime = key;
			go_on(prev, QUANTUM); /* it is the first again, and goes on */
			clock = key;
			return;
		}
	}
	scx_bpf_dsq_move_to_local(QUEUE, 0);
}

void BPF_STRUCT_OPS(rbtree_running, struct task_struct *p)
{
	clock = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(rbtree_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = clock;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rbtree_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(rbtree_exit, struct scx_exit_info *ei)
{
	record_exit(ei);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)rbtree_select_cpu,
	.enqueue = (void *)rbtree_enqueue,
	.dispatch = (void *)rbtree_dispatch,
	.running = (void *)rbtree_running,
	.enable = (void *)rbtree_enable,
	.init = (void *)rbtree_init,
	.exit = (void *)rbtree_exit,
	.name = "schedlab_rbtree",
};
