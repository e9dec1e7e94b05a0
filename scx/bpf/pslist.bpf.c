/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pslist, the partially sorted list: a fair scheduler that does not sort. It matches `pslist`.
 *
 * A waiting task is compared only with the middle of the list. If its virtual run time is smaller,
 * it goes in front of the middle, else to the tail. The head runs next, until its virtual run time
 * is greater than that of the new head. Right where a decision must cost the same for two tasks and
 * for ten thousand. Its latencies are bad, and it is fair only as long as tasks run until they have
 * passed the next one.
 *
 * The list is two queues, one after the other: the front half, and the back half, whose first task
 * is the middle. "In front of the middle" is then the tail of the front half. The back half is as
 * long as the front half, or one longer. The kernel allows moves between queues only when the next
 * task is taken. Until then new tasks stand in a third queue, and by then their last run is
 * accounted.
 *
 * Source: the post "Partial sorted list scheduler - pslist" (Linux 3.6). The Rust original, and
 * what the post leaves open: crates/schedsim/src/policy/pslist.rs. Deviations: one list for all
 * CPUs; no preemption.
 */
#include "scheduler.bpf.h"
#include "stays.bpf.h"

#define FRONT 0
#define BACK 1
#define COME 2
#define MOST_CPUS 64
#define NICE_0 1024
/* More than any task is ahead of the clock. */
#define AGE (1ULL << 40)

/* The virtual run time at the begin of the last run; it never decreases. */
static u64 clock;
/* The time until which the running task has been charged. */
static u64 charged[MOST_CPUS];
/* The task that has to stop, until the switch. */
static s32 stops[MOST_CPUS];
/* By task: the time from then until the switch, which has not been charged. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} ends SEC(".maps");
/*
 * The weights of nice -20 to 19: sched_prio_to_weight in the kernel, which passes rounded ones to
 * schedulers like this one.
 */
static const u32 weights[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
};

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

/* Adds this run to the virtual run time of `p`. */
static void ran(struct task_struct *p, u64 time)
{
	u32 nice = p->static_prio - 100;

	if (before(p->scx.dsq_vtime, clock - AGE / 2)) {
		p->scx.dsq_vtime = clock; /* of before begin_anew(): so is `time`, or a part of it */
		return;
	}
	p->scx.dsq_vtime += time * NICE_0 / weights[nice < 40 ? nice : 20];
}

/* Charges the time that `p` has run since it was last charged. */
static void charge(struct task_struct *p)
{
	u64 *since = &charged[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)];
	u64 now = bpf_ktime_get_ns();

	ran(p, now - *since);
	*since = now;
}

/* Charges the end of the last run of `p`, which waits. */
static void settle(struct task_struct *p)
{
	u64 *end = bpf_task_storage_get(&ends, p, NULL, 0);

	if (end) {
		ran(p, *end);
		*end = 0;
	}
}

/* Makes the halves equal again after one task was added or removed. */
static void balance(void)
{
	s32 by = scx_bpf_dsq_nr_queued(BACK) - scx_bpf_dsq_nr_queued(FRONT);
	struct task_struct *p;

	if (by > 1) {
		bpf_for_each(scx_dsq, p, BACK, 0) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, FRONT, 0);
			break;
		}
	} else if (by < 0) {
		bpf_for_each(scx_dsq, p, FRONT, SCX_DSQ_ITER_REV) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, BACK, AT_HEAD);
			break;
		}
	}
}

/* Moves the new tasks into the halves, one after another. */
static void take_in(void)
{
	struct task_struct *p;
	u64 middle;

	bpf_for_each(scx_dsq, p, COME, 0) {
		settle(p);
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, first(BACK, &middle) && before(p->scx.dsq_vtime, middle) ? FRONT : BACK, 0);
		balance();
	}
}

s32 BPF_STRUCT_OPS(pslist_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(pslist_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & WAKEUP) {
		settle(p);
		/* Sleep gives no credit. */
		if (before(p->scx.dsq_vtime, clock))
			p->scx.dsq_vtime = clock;
	}
	scx_bpf_dsq_insert(p, COME, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(pslist_dispatch, s32 cpu, struct task_struct *prev)
{
	take_in();
	if (scx_bpf_dsq_move_to_local(FRONT, 0) || scx_bpf_dsq_move_to_local(BACK, 0))
		balance();
	else if (goes_back(prev))
		go_on(prev, SCX_SLICE_INF); /* it is alone, and continues */
}

/* A run lasts from switch to switch, as in any trace and in the simulator. */
SEC("tp_btf/sched_switch")
int BPF_PROG(pslist_switched, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id() & (MOST_CPUS - 1);
	u64 now = bpf_ktime_get_ns();
	u64 *end;

	if (stops[cpu] == prev->pid && (end = bpf_task_storage_get(&ends, prev, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE)))
		*end = now - charged[cpu];
	stops[cpu] = 0;
	charged[cpu] = now;
	return 0;
}

void BPF_STRUCT_OPS(pslist_running, struct task_struct *p)
{
	if (before(clock, p->scx.dsq_vtime))
		clock = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(pslist_stopping, struct task_struct *p, bool runnable)
{
	charge(p);
	stops[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)] = p->pid;
}

/* The virtual run time of the next task, if there is one. */
static bool next_one(u64 *vruntime)
{
	struct task_struct *p;

	if (first(FRONT, vruntime))
		return true;
	bpf_for_each(scx_dsq, p, COME, 0) {
		/* The first new task goes in front of the middle, or behind it. */
		settle(p);
		if (!first(BACK, vruntime) || before(p->scx.dsq_vtime, *vruntime))
			*vruntime = p->scx.dsq_vtime;
		return true;
	}
	return first(BACK, vruntime);
}

/* The stop rule: a task that has passed the next one stops. */
void BPF_STRUCT_OPS(pslist_tick, struct task_struct *p)
{
	u64 next;

	charge(p);
	if (next_one(&next) && before(next, p->scx.dsq_vtime))
		p->scx.slice = 0;
}

void BPF_STRUCT_OPS(pslist_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = clock;
}

/* Forgets all run times: the clock is ahead of all tasks. */
BEGIN_ANEW()
{
	clock += AGE;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(pslist_init)
{
	s32 error = scx_bpf_create_dsq(FRONT, -1);

	error = error ?: scx_bpf_create_dsq(BACK, -1);
	return error ?: scx_bpf_create_dsq(COME, -1);
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
	STAYS,
	.name = "schedlab_pslist",
};
