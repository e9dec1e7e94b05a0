/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ruler: Multi-List-2's exact order by bit arithmetic, without its table. It matches
 * `central:ruler`.
 *
 * Tick t serves the levels 0 to ctz(t). So level l is served at every multiple of 2^l, with half
 * the rate of level l - 1. All tasks that wait at a level when its service begins run once: a pass.
 * Right for proportional rates, each half of the previous one, at a cost that depends neither on
 * the number of tasks nor on their mix. Bad at rates that are no powers of two and at strict
 * priorities.
 *
 * Each level has two queues. New tasks go to the collecting one. A pass takes that one over, and
 * the other one, which is empty by then, collects. So later tasks do not join a pass, and a task
 * that ends or sleeps while it waits takes nothing along.
 *
 * Source: the order is Porter 2021, "Increasing the Responsiveness"; the arithmetic is schedlab's.
 * The Rust original: crates/readyq/src/ruler.rs under crates/schedsim/src/policy/central.rs.
 * Deviations: the kernel requests the next task before it enqueues the last one again, so this
 * counts the last one as if it were in its queue; the kernel chooses the idle CPU of a woken task.
 * A pass is over when its remaining tasks may not run on the CPU that takes the next task; they
 * wait for the next pass of their level. A CPU may put a task into a queue while another CPU takes
 * that queue over. The task then runs in the pass, in the next pass of its level, or when a CPU
 * would idle otherwise.
 */
#include "scheduler.bpf.h"
#include "stays.bpf.h"

/*
 * Levels are named by their bits, 1 << level, because x86 shifts by a variable in five
 * instructions. The other queue of a level is queue ^ 1.
 */
#define BITS ((1 << LEVELS) - 1)
#define QUEUE_OF(bit) (2 * (bit))
#define BIT_OF(queue) ((queue) / 2)
/* The dsq_vtime of a task, which is free in a FIFO queue, holds its pass. */
#define NO_QUEUE 0

/*
 * Whether there is more than one CPU. It is known at load time, so that on one CPU the verifier
 * drops the code for more.
 */
SEC(".rodata.settings") const volatile struct {
	bool several;
} settings;

/* The position in the ruler sequence: the tick, and its levels that are still to be served. */
struct turn {
	u64 tick, due;
};

/* The tasks that wait for a level's next pass. */
struct level {
	u64 queue; /* the collecting one */
	u64 collected; /* an upper bound: tasks that the kernel takes away are counted */
};

/* By their bits: eight are used. */
static struct level levels[1 << LEVELS];
static struct turn turn;
/* The levels with collected tasks; the kernel may have taken them away. */
static u64 waiting;
/* The queue of the current pass, and an upper bound of its length: an empty queue is not read. */
static u64 pass = QUEUE_OF(1) ^ 1;
static u64 left;
/* Protects the above where more than one CPU dispatches. */
struct bpf_spin_lock lock SEC(".data.lock") __hidden __attribute__((aligned(8)));

static struct level *level_at(u64 bit)
{
	barrier_var(bit); /* for the verifier: the compiler would omit a bound that it knows */
	return &levels[bit & BITS];
}

/* The lowest bit of `word`; 0 for 0. */
static u64 lowest(u64 word)
{
	return word & -word;
}

/* Advances `at` to the next level to serve among those in `mask`, which is not 0. */
static u64 next_level(struct turn *at, u64 mask)
{
	u64 bit = lowest(at->due & mask);
	u64 served, before;

	if (bit) {
		at->due &= -bit << 1;
		return bit;
	}
	/*
	 * The level's bit and all below: what the next tick has served then. Half of it keeps
	 * `tick` from being a multiple of 2^level.
	 */
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
	u64 queue = p->scx.dsq_vtime;

	if (queue) {
		p->scx.dsq_vtime = NO_QUEUE;
		if (queue != pass || !left)
			queue = NO_QUEUE; /* another CPU has ended this pass */
	}
	if (!queue) {
		u64 bit = level_bit_of(p);
		struct level *level = level_at(bit);

		queue = level->queue;
		if (!__sync_fetch_and_add(&level->collected, 1))
			__sync_fetch_and_or(&waiting, bit);
	}
	scx_bpf_dsq_insert(p, queue, QUANTUM, enq_flags);
}

/* With more than one CPU: tasks that the current pass leaves behind wait for the next one. */
static void leave_nobody_behind(void)
{
	if (scx_bpf_dsq_nr_queued(pass) > 0)
		__sync_fetch_and_or(&waiting, BIT_OF(pass));
}

/*
 * With more than one CPU: counts the tasks of the pass that has just begun. Those left behind are
 * in the collecting queue.
 */
static void recount(u64 bit)
{
	struct level *level = level_at(bit);
	u64 behind = level->queue, here = scx_bpf_dsq_nr_queued(pass), there = scx_bpf_dsq_nr_queued(behind);

	bpf_spin_lock(&lock);
	if (!here && there) {
		level->queue = behind ^ 1;
		pass = behind;
	} else if (there) {
		__sync_fetch_and_or(&waiting, bit);
	}
	left = here ?: there;
	bpf_spin_unlock(&lock);
}

/* One CPU at a time reads and changes the position. */
static void begin_change(void)
{
	if (settings.several)
		bpf_spin_lock(&lock);
}

static void end_change(void)
{
	if (settings.several)
		bpf_spin_unlock(&lock);
}

/*
 * Begins the next pass at a level of `waiting` or `own`, but none of `tried`. Returns the level; 0
 * if there is none.
 */
static u64 begin_pass(u64 own, u64 tried, struct turn *before)
{
	struct level *level;
	u64 mask, bit = 0;

	if (settings.several)
		leave_nobody_behind();
	begin_change();
	mask = waiting | own;
	if (settings.several)
		mask &= ~tried;
	if (mask) {
		*before = turn;
		bit = next_level(&turn, mask);
		level = level_at(bit);
		pass = level->queue;
		level->queue = pass ^ 1;
		left = __sync_lock_test_and_set(&level->collected, 0);
		__sync_fetch_and_and(&waiting, ~bit);
	}
	end_change();
	if (settings.several && bit)
		recount(bit);
	return bit;
}

/* No task waited at the level: undoes the begin of the pass. */
static void take_back(const struct turn *before)
{
	begin_change();
	turn = *before;
	end_change();
}

/* Tasks that other CPUs put into a queue while a pass began to empty it. */
static bool find_straggler(void)
{
	u32 level;

	bpf_for(level, 0, LEVELS) {
		u64 queue = QUEUE_OF(1ULL << level);

		if (scx_bpf_dsq_move_to_local(queue, 0) || scx_bpf_dsq_move_to_local(queue ^ 1, 0))
			return true;
	}
	return false;
}

/* Runs the next task of the current pass. */
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

/*
 * Runs the first task of a new pass; false if none waits there. `prev`, if any, waits there behind
 * the others.
 */
static bool serve_first(struct task_struct *prev)
{
	if (prev)
		prev->scx.dsq_vtime = pass;
	if (serve_pass()) {
		left += !!prev;
		return true;
	}
	if (!prev)
		return false;
	prev->scx.dsq_vtime = NO_QUEUE; /* it is alone there, and continues */
	go_on(prev, QUANTUM);
	return true;
}

void BPF_STRUCT_OPS(ruler_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 own, bit, tried = 0;
	struct turn before;
	u32 i;

	if (serve_pass())
		return;
	own = goes_back(prev) ? level_bit_of(prev) : 0;
	for (i = 0; i < LEVELS; i++) {
		bit = begin_pass(own, tried, &before);
		if (!bit)
			break;
		if (serve_first(bit == own ? prev : NULL))
			return;
		take_back(&before);
		tried |= bit;
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
	u32 level;
	s32 error;

	bpf_for(level, 0, LEVELS) {
		u64 bit = 1ULL << level;

		level_at(bit)->queue = QUEUE_OF(bit);
		error = scx_bpf_create_dsq(QUEUE_OF(bit), -1) ?: scx_bpf_create_dsq(QUEUE_OF(bit) ^ 1, -1);
		if (error)
			return error;
	}
	return 0;
}

/* As if the current pass, which has the running task, were the first one. */
BEGIN_ANEW()
{
	struct turn first = {};

	next_level(&first, BIT_OF(pass));
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
	STAYS,
	.name = "schedlab_ruler",
};
