/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A weighted virtual clock in a red-black tree: the task with the smallest key runs next. It
 * matches `central:rbtree`.
 *
 * The key of a task is the virtual time of its next run; each run advances it by the stride of its
 * level, 2^level. Right for proportional rates. An operation walks down the kernel's tree, so its
 * cost grows with the logarithm of the number of tasks: the baseline for the multi-list.
 *
 * At insert the key becomes clamp(last key + stride, clock, clock + stride), where the clock is the
 * key of the task that was taken last.
 *
 * Source: Porter 2021, "A Better Priority System" and "Red-Black Trees". The Rust original:
 * crates/readyq/src/rbtree.rs and clock.rs under crates/schedsim/src/policy/central.rs. Deviations:
 * the kernel requests the next task before it enqueues the last one again, so this counts the last
 * one as if it were in its queue; the kernel chooses the idle CPU of a woken task.
 */
#include "scheduler.bpf.h"
#include "stays.bpf.h"

#define QUEUE 0

/* The key of the task that was taken last. */
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

/* Whether a task of `key` would come before all waiting ones. */
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
			go_on(prev, QUANTUM); /* it is the first again, and continues */
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
	STAYS,
	.name = "schedlab_rbtree",
};
