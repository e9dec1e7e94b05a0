/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Strict priorities: one queue per nice value, first in, first out; the best queue with a task
 * runs. It matches `central:priority`.
 *
 * Right where importance is known and the important tasks sleep. Below a task that never sleeps,
 * all tasks starve.
 *
 * Source: Curran & Stumm 1990, 5.3; Linux 2.6.22's bitmap. The Rust original:
 * crates/readyq/src/priority.rs under crates/schedsim/src/policy/central.rs. Forty levels, one per
 * nice value: real-time tasks are outside sched_ext. A woken task preempts the CPU with the worst
 * task, if that is worse than itself. Deviations: the kernel requests the next task before it
 * enqueues the last one again, so this counts the last one as if it were in its queue; the kernel
 * chooses the idle CPU of a woken task.
 */
#include "scheduler.bpf.h"
#include "stays.bpf.h"

#define NICE_VALUES 40
#define MOST_CPUS 64
/* Worse than any level: an idle CPU. */
#define NOBODY -1

/* Bit l: a task waits at level l, or did until the kernel took it away. */
static u64 waiting;
/* The level that each CPU runs. */
static s32 running_level[MOST_CPUS];

static u32 nice_level(const struct task_struct *p)
{
	u32 prio = p->static_prio;

	return prio < 100 ? 0 : prio > 139 ? NICE_VALUES - 1 : prio - 100;
}

s32 BPF_STRUCT_OPS(priority_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place(p, prev_cpu, wake_flags);
}

/* Preempts the task at the worst level, if that is worse than `level`. */
static void preempt_worse(const struct task_struct *p, s32 level)
{
	s32 cpu, worst = level, victim = -1;
	s32 cpus = scx_bpf_nr_cpu_ids();

	bpf_for(cpu, 0, cpus < MOST_CPUS ? cpus : MOST_CPUS) {
		s32 running = running_level[cpu & (MOST_CPUS - 1)];

		if (running > worst && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			worst = running;
			victim = cpu;
		}
	}
	if (victim >= 0)
		scx_bpf_kick_cpu(victim, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(priority_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 level = nice_level(p);

	scx_bpf_dsq_insert(p, level, QUANTUM, enq_flags);
	__sync_fetch_and_or(&waiting, 1ULL << level);
	if (enq_flags & WAKEUP)
		preempt_worse(p, level);
}

void BPF_STRUCT_OPS(priority_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 own = goes_back(prev) ? nice_level(prev) : NICE_VALUES;
	u32 i;

	bpf_for(i, 0, NICE_VALUES) {
		u64 mask = waiting | (own < NICE_VALUES ? 1ULL << own : 0);
		u32 level;

		if (!mask)
			break;
		level = __builtin_ctzll(mask);
		if (scx_bpf_dsq_move_to_local(level, 0))
			return;
		__sync_fetch_and_and(&waiting, ~(1ULL << level));
		if (level == own) {
			go_on(prev, QUANTUM); /* it is the best, alone at its level, and continues */
			return;
		}
	}
	/* Another CPU may have put a task in just as its level was found empty. */
	bpf_for(i, 0, NICE_VALUES)
		if (scx_bpf_dsq_move_to_local(i, 0))
			return;
}

void BPF_STRUCT_OPS(priority_running, struct task_struct *p)
{
	running_level[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)] = nice_level(p);
}

void BPF_STRUCT_OPS(priority_stopping, struct task_struct *p, bool runnable)
{
	running_level[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)] = NOBODY;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(priority_init)
{
	s32 error;
	u32 i;

	bpf_for(i, 0, MOST_CPUS)
		running_level[i & (MOST_CPUS - 1)] = NOBODY;
	bpf_for(i, 0, NICE_VALUES) {
		error = scx_bpf_create_dsq(i, -1);
		if (error)
			return error;
	}
	return 0;
}

void BPF_STRUCT_OPS(priority_exit, struct scx_exit_info *ei)
{
	record_exit(ei);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)priority_select_cpu,
	.enqueue = (void *)priority_enqueue,
	.dispatch = (void *)priority_dispatch,
	.running = (void *)priority_running,
	.stopping = (void *)priority_stopping,
	.init = (void *)priority_init,
	.exit = (void *)priority_exit,
	STAYS,
	.name = "schedlab_priority",
};
