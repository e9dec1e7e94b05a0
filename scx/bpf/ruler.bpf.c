/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ruler: Multi-List-2's exact order by bit arithmetic, without its table. The twin of `central:ruler`.
 *
 * Tick t serves the levels 0 to ctz(t), so level l has its turn at every multiple of 2^l and gets half the rate of level l - 1. All tasks
 * of a level that wait when its turn starts run once: a pass. Right for proportional rates, each half the one before, at a cost that
 * neither the number of tasks nor their mix changes. Bad at rates that are no powers of two and at strict priorities.
 *
 * Each level has two queues. New tasks go to the one that collects; a pass takes that one over, and the other one, which is empty by then,
 * collects. So a pass is cut off from what comes later, and a task that dies or sleeps while it waits takes nothing along.
 *
 * Source: the order is Porter 2021, "Increasing the Responsiveness"; the arithmetic is schedlab's. The Rust original:
 * crates/readyq/src/ruler.rs under crates/schedsim/src/policy/central.rs. Deviations: the kernel asks for the next task before the last one
 * is back in its queue, so that one is reckoned with as if it were; which idle CPU a woken task goes to is the kernel's choice. A pass of
 * which only tasks are left that may not run on the CPU that asks is over; they wait for their level's next turn. A CPU may put a task into
 * a queue just as another one takes that over; the task then runs in the pass, at its level's next turn, or when a CPU would idle otherwise.
 */
#include "scheduler.bpf.h"

/* The pass that a task belongs to is kept in its dsq_vtime, which is free in a FIFO queue: number of the queue, or 0. */
#define QUEUE(level, side) (1 + 2 * (level) + (side))
#define NO_QUEUE 0
#define QUEUES (2 * LEVELS)

/* Where in the ruler sequence the schedule stands: the tick, and the levels that it has still to serve. */
struct turn {
	u64 tick, due;
};

static struct turn turn;
/* Bit l: level l collects somebody, or did until the kernel took him away. */
static u64 waiting;
/* Bit l: which of its two queues collects at level l. */
static u64 sides;
/* The queue that the pass under way empties, and how many wait there at most: an empty queue is not looked into. */
static u64 pass = QUEUE(0, 1);
static u64 left;
/* How many each level collects, likewise at most: those that the kernel takes away are counted. Used on one CPU, where it is never too few. */
static u64 collected[LEVELS];
/* Whether there are several CPUs: queues are then looked into at the begin of a pass, not reckoned, as a pass may leave somebody behind. */
static bool several;
/* Holds the above together where several CPUs dispatch. */
struct bpf_spin_lock lock SEC(".data.lock") __hidden __attribute__((aligned(8)));

static u64 collecting(u32 level)
{
	return QUEUE(level, sides >> level & 1);
}

/* The lowest bit of `word`, which is not 0. */
static u32 lowest(u64 word)
{
	return __builtin_ctzll(word);
}

/* Moves `at` on to the next level to serve among those in `mask`, which is not 0. */
static u32 next_level(struct turn *at, u64 mask)
{
	u64 rest = at->due & mask;
	u64 served, before;
	u32 level;

	if (rest) {
		level = lowest(rest);
		at->due &= ~0ULL << level << 1;
		return level;
	}
	/* Bits 0 to `level`: what the next tick has served then, and half of it is what keeps `tick` from being a multiple of 2^level. */
	served = mask ^ (mask - 1);
	before = at->tick | served >> 1;
	at->tick = before + 1;
	at->due = before ^ at->tick ^ served;
	return lowest(mask);
}

s32 BPF_STRUCT_OPS(ruler_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(ruler_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 level = level_of(p);
	u64 queue = p->scx.dsq_vtime;

	if (queue) {
		p->scx.dsq_vtime = NO_QUEUE;
		if (queue != pass || !left)
			queue = NO_QUEUE; /* another CPU has ended that pass */
	}
	if (!queue) {
		queue = collecting(level);
		__sync_fetch_and_add(&collected[level & (LEVELS - 1)], 1);
		if (!(waiting >> level & 1))
			__sync_fetch_and_or(&waiting, 1ULL << level);
	}
	scx_bpf_dsq_insert(p, queue, QUANTUM, enq_flags);
}

/* Of several CPUs: who is left behind by the pass under way waits for his level's next turn. */
static void leave_nobody_behind(void)
{
	if (scx_bpf_dsq_nr_queued(pass) > 0)
		__sync_fetch_and_or(&waiting, 1ULL << ((pass - 1) >> 1));
}

/* Of several CPUs: counts who waits for the pass that has just begun. Those who were left behind are in the queue that collects now. */
static void recount(u32 level)
{
	u64 behind = collecting(level), here = scx_bpf_dsq_nr_queued(pass), there = scx_bpf_dsq_nr_queued(behind);

	bpf_spin_lock(&lock);
	if (!here && there) {
		sides ^= 1ULL << level;
		pass = behind;
	} else if (there) {
		__sync_fetch_and_or(&waiting, 1ULL << level);
	}
	left = here ?: there;
	bpf_spin_unlock(&lock);
}

/* Begins the next pass at a level of `waiting` or `own`, but none of `tried`, and says which; LEVELS if there is none. */
static u32 begin_pass(u64 own, u64 tried, struct turn *before)
{
	u32 level = LEVELS;
	u64 mask;

	if (several)
		leave_nobody_behind();
	bpf_spin_lock(&lock);
	mask = (waiting | own) & ~tried;
	if (mask) {
		*before = turn;
		level = next_level(&turn, mask);
		pass = collecting(level);
		left = __sync_lock_test_and_set(&collected[level & (LEVELS - 1)], 0);
		sides ^= 1ULL << level;
		__sync_fetch_and_and(&waiting, ~(1ULL << level));
	}
	bpf_spin_unlock(&lock);
	if (several && level < LEVELS)
		recount(level);
	return level;
}

/* Nobody waited at the level whose turn it was: the turn did not take place. */
static void take_back(const struct turn *before)
{
	bpf_spin_lock(&lock);
	turn = *before;
	bpf_spin_unlock(&lock);
}

/* What other CPUs put into a queue just when a pass had begun to empty it. */
static bool find_straggler(void)
{
	u32 queue;

	bpf_for(queue, 1, 1 + QUEUES)
		if (scx_bpf_dsq_move_to_local(queue, 0))
			return true;
	return false;
}

/* Runs the next task of the pass under way. */
static bool serve_pass(void)
{
	if (!left)
		return false;
	if (scx_bpf_dsq_move_to_local(pass, 0)) {
		left--;
		return true;
	}
	left = 0;
	return false;
}

/* Begins a pass and runs its first task; false if nobody waited there. `own` is the level of `prev`, which goes back to it, or LEVELS. */
static bool serve_next_pass(struct task_struct *prev, u32 own, u64 *tried)
{
	struct turn before;
	u32 level = begin_pass(own < LEVELS ? 1ULL << own : 0, *tried, &before);

	if (level == LEVELS)
		return false;
	*tried |= several ? 1ULL << level : 0;
	if (prev && level == own)
		prev->scx.dsq_vtime = pass; /* it waits at this level like the others, and behind them */
	if (serve_pass()) {
		left += level == own;
		return true;
	}
	if (prev && level == own) {
		prev->scx.dsq_vtime = NO_QUEUE; /* it is alone there, and goes on */
		go_on(prev, QUANTUM);
		return true;
	}
	take_back(&before);
	return false;
}

void BPF_STRUCT_OPS(ruler_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 tried = 0;
	u32 i, own;

	if (serve_pass())
		return;
	own = goes_back(prev) ? level_of(prev) : LEVELS;
	/* Nearly always somebody waits at the first level whose turn it is, and a loop takes instructions. */
	if (serve_next_pass(prev, own, &tried))
		return;
	bpf_for(i, 1, LEVELS) {
		if (!waiting && own == LEVELS)
			break;
		if (serve_next_pass(prev, own, &tried))
			return;
	}
	find_straggler();
}

s32 BPF_STRUCT_OPS(ruler_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	p->scx.dsq_vtime = NO_QUEUE;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(ruler_init)
{
	u32 queue;
	s32 error;

	several = scx_bpf_nr_cpu_ids() > 1;
	bpf_for(queue, 1, 1 + QUEUES) {
		error = scx_bpf_create_dsq(queue, -1);
		if (error)
			return error;
	}
	return 0;
}

/* As if the pass under way, which has the task that runs, were the first one. */
BEGIN_ANEW()
{
	struct turn first = {};

	next_level(&first, 1ULL << ((pass - 1) >> 1));
	bpf_spin_lock(&lock);
	turn = first;
	bpf_spin_unlock(&lock);
	return 0;
}

void BPF_STRUCT_OPS(ruler_exit, struct scx_exit_info *ei)
{
	record_exit(ei);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)ruler_select_cpu,
	.enqueue = (void *)ruler_enqueue,
	.dispatch = (void *)ruler_dispatch,
	.init_task = (void *)ruler_init_task,
	.init = (void *)ruler_init,
	.exit = (void *)ruler_exit,
	.name = "schedlab_ruler",
};
