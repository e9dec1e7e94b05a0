/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pslist, the partially sorted list: a fair scheduler that does not sort. The twin of `pslist`.
 *
 * Waiting tasks stand in a list of which only the middle is compared with: a task whose virtual run time is less than that of the middle
 * one goes in front of the middle, any other to the tail. The head runs next, and runs until its virtual run time is greater than that of
 * the new head. Right where a decision shall cost the same for two tasks and for ten thousand. It does badly at latencies, and is fair only
 * as long as tasks run until they have passed the next one.
 *
 * The list is two queues, one behind the other: the front half, and the back half, whose first is the middle. "In front of the middle" is
 * then the tail of the front half. The back half is as long as the front half or one longer.
 *
 * Source: the post "Partial sorted list scheduler - pslist" (Linux 3.6). The Rust original, and what the post leaves open:
 * crates/schedsim/src/policy/pslist.rs. Deviations: one list for all CPUs; a wait is not put back in order at once when it was woken, but
 * when the next task is taken, as the kernel lets queues be moved only then; nobody preempts.
 */
#include "scheduler.bpf.h"

#define FRONT 0
#define BACK 1
#define MOST_CPUS 64
#define NICE_0 100

/* The virtual run time at which the last turn began; it never goes back. */
static u64 clock;
/* A running task's CPU time when it was last charged. */
static u64 charged[MOST_CPUS];

static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* The virtual run time of the first task of a half, if it has one. */
static bool first(u64 half, u64 *vruntime)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, half, 0) {
		*vruntime = p->scx.dsq_vtime;
		return true;
	}
	return false;
}

/* Adds to the virtual run time what `p` has run since it was last charged. scx.weight is 100 for nice 0. */
static void charge(struct task_struct *p)
{
	u64 *since = &charged[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)];
	u64 ran = p->se.sum_exec_runtime - *since;

	p->scx.dsq_vtime += ran * NICE_0 / p->scx.weight;
	*since = p->se.sum_exec_runtime;
}

/* Makes the halves equal again. */
static void balance(void)
{
	s32 excess = scx_bpf_dsq_nr_queued(BACK) - scx_bpf_dsq_nr_queued(FRONT);
	struct task_struct *p;

	if (excess > 1) {
		excess /= 2;
		bpf_for_each(scx_dsq, p, BACK, 0) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, FRONT, 0);
			if (--excess == 0)
				break;
		}
	} else if (excess < 0) {
		excess = (1 - excess) / 2;
		bpf_for_each(scx_dsq, p, FRONT, SCX_DSQ_ITER_REV) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, BACK, SCX_ENQ_HEAD);
			if (--excess == 0)
				break;
		}
	}
}

s32 BPF_STRUCT_OPS(pslist_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(pslist_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 middle;

	/* Nothing is credited for sleep. */
	if ((enq_flags & SCX_ENQ_WAKEUP) && before(p->scx.dsq_vtime, clock))
		p->scx.dsq_vtime = clock;
	if (first(BACK, &middle) && before(p->scx.dsq_vtime, middle))
		scx_bpf_dsq_insert(p, FRONT, SCX_SLICE_INF, enq_flags);
	else
		scx_bpf_dsq_insert(p, BACK, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(pslist_dispatch, s32 cpu, struct task_struct *prev)
{
	balance();
	if (scx_bpf_dsq_move_to_local(FRONT, 0) || scx_bpf_dsq_move_to_local(BACK, 0))
		balance();
	else if (goes_back(prev))
		go_on(prev, SCX_SLICE_INF); /* it is alone, and goes on */
}

void BPF_STRUCT_OPS(pslist_running, struct task_struct *p)
{
	charged[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)] = p->se.sum_exec_runtime;
	if (before(clock, p->scx.dsq_vtime))
		clock = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(pslist_stopping, struct task_struct *p, bool runnable)
{
	charge(p);
}

/* The stop rule: whoever has passed the next one stops. */
void BPF_STRUCT_OPS(pslist_tick, struct task_struct *p)
{
	u64 next;

	charge(p);
	if ((first(FRONT, &next) || first(BACK, &next)) && before(next, p->scx.dsq_vtime))
		p->scx.slice = 0;
}

void BPF_STRUCT_OPS(pslist_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = clock;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(pslist_init)
{
	s32 error = scx_bpf_create_dsq(FRONT, -1);

	return error ?: scx_bpf_create_dsq(BACK, -1);
}

void BPF_STRUCT_OPS(pslist_exit, struct scx_exit_info *ei)
{
	record_exit(ei);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)pslist_select_cpu,
	.enqueue = (void *)pslist_enqueue,
	.dispatch = (void *)pslist_dispatch,
	.running = (void *)pslist_running,
	.stopping = (void *)pslist_stopping,
	.tick = (void *)pslist_tick,
	.enable = (void *)pslist_enable,
	.init = (void *)pslist_init,
	.exit = (void *)pslist_exit,
	.name = "schedlab_pslist",
};
