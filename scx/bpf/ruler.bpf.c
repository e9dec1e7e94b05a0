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
 * that queue over. The task then runs in the pass, or in the next pass of its level.
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
	u64 collected; /* with one CPU; an upper bound: tasks that the kernel takes away are counted */
};

/* By their bits: eight are used. */
static struct level levels[1 << LEVELS];
static struct turn turn;
/* The levels with collected tasks; the kernel may have taken them away. */
static u64 waiting;
/*
 * The current pass: its queue, and an upper bound of the tasks left in it, as one word. An empty
 * queue is not read.
 */
#define PASS(queue, left) ((u64)(queue) << 32 | (left))
#define QUEUE(pass) ((pass) >> 32)
#define LEFT(pass) ((u32)(pass))
static u64 pass = PASS(QUEUE_OF(1) ^ 1, 0);
/* Protects the above where more than one CPU dispatches. */
struct bpf_spin_lock lock SEC(".data.lock") __hidden __attribute__((aligned(8)));
/*
 * With more than one CPU: the levels that each one enqueued at since its last dispatch. The kernel
 * inserts a task when `enqueue` is over, so another CPU may have found its queue empty, and
 * `waiting` may miss it.
 */
#define MAX_CPUS 8192
static u64 enqueued_at[MAX_CPUS];

static u64 *enqueued_here(void)
{
	return &enqueued_at[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
}

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
	u64 queue = p->scx.dsq_vtime, current = pass, bit;

	if (queue) {
		p->scx.dsq_vtime = NO_QUEUE;
		if (queue != QUEUE(current) || !LEFT(current))
			queue = NO_QUEUE; /* another CPU has ended this pass */
	}
	bit = queue ? BIT_OF(queue) : level_bit_of(p);
	if (settings.several)
		__sync_fetch_and_or(enqueued_here(), bit);
	if (!queue) {
		struct level *level = level_at(bit);

		queue = level->queue;
		if (settings.several)
			__sync_fetch_and_or(&waiting, bit);
		else if (!level->collected++)
			waiting |= bit;
	}
	scx_bpf_dsq_insert(p, queue, QUANTUM, enq_flags);
}

/* Runs the next task of the current pass. */
static bool serve_pass(void)
{
	u64 current = pass, then;
	bool moved;

	if (!LEFT(current))
		return false;
	moved = scx_bpf_dsq_move_to_local(QUEUE(current), 0);
	then = moved ? current - 1 : PASS(QUEUE(current), 0);
	if (settings.several)
		__sync_val_compare_and_swap(&pass, current, then);
	else
		pass = then;
	return moved;
}

/* `prev` continues, as it is alone at its level. */
static bool serve_alone(struct task_struct *prev)
{
	if (!prev)
		return false;
	prev->scx.dsq_vtime = NO_QUEUE;
	go_on(prev, QUANTUM);
	return true;
}

/* With one CPU: begins the next pass, and runs its first task. `prev` waits there behind the others. */
static void serve_next(struct task_struct *prev, u64 own)
{
	u32 i;

	for (i = 0; i < LEVELS; i++) {
		struct turn before = turn;
		u64 mask = waiting | own, bit;
		struct level *level;

		if (!mask)
			return;
		bit = next_level(&turn, mask);
		level = level_at(bit);
		pass = PASS(level->queue, level->collected);
		level->queue ^= 1;
		level->collected = 0;
		waiting &= ~bit;
		if (serve_pass()) {
			if (bit == own && prev) {
				prev->scx.dsq_vtime = QUEUE(pass);
				pass++;
			}
			return;
		}
		if (bit == own && serve_alone(prev))
			return;
		turn = before; /* the kernel has taken the tasks away: no pass */
	}
}

static u32 length_of(u64 queue)
{
	s32 length = scx_bpf_dsq_nr_queued(queue);

	return length > 0 ? length : 0;
}

/* With more than one CPU: a level waits if it has tasks that the current pass does not serve. */
static void see_to(u64 bit)
{
	u64 current = pass, queue = QUEUE_OF(bit);
	bool waits;

	if (LEFT(current) && BIT_OF(QUEUE(current)) == bit)
		waits = length_of(QUEUE(current) ^ 1);
	else
		waits = length_of(queue) || length_of(queue ^ 1);
	if (waits)
		__sync_fetch_and_or(&waiting, bit);
}

/* Sees to all levels that this CPU has enqueued at. */
static void see_to_enqueued(void)
{
	u64 bits = __sync_lock_test_and_set(enqueued_here(), 0);
	u32 i;

	bpf_for(i, 0, LEVELS) {
		if (!bits)
			break;
		if (!(waiting & lowest(bits)))
			see_to(lowest(bits));
		bits &= bits - 1;
	}
}

/*
 * Begins a pass of `left` tasks in `queue` of a level, unless another CPU has changed the position
 * or the pass meanwhile. `queue` collects no longer.
 */
static bool begin(const struct turn *before, const struct turn *after, u64 ended, u64 queue, u32 left)
{
	u64 bit = BIT_OF(queue);
	bool begun;

	bpf_spin_lock(&lock);
	begun = turn.tick == before->tick && turn.due == before->due &&
		__sync_val_compare_and_swap(&pass, ended, PASS(queue, left)) == ended;
	if (begun) {
		turn = *after;
		level_at(bit)->queue = queue ^ 1;
		__sync_fetch_and_and(&waiting, ~bit);
	}
	bpf_spin_unlock(&lock);
	return begun;
}

/* No task of the pass that began with `after` may run here. */
static void take_back(const struct turn *before, const struct turn *after)
{
	bpf_spin_lock(&lock);
	if (turn.tick == after->tick && turn.due == after->due)
		turn = *before;
	bpf_spin_unlock(&lock);
}

/* As serve_next() where other CPUs do the same. A queue is left alone that turns out to be empty. */
static bool serve_next_among_others(struct task_struct *prev, u64 own)
{
	u64 tried = 0;
	u32 i;

	bpf_for(i, 0, 2 * LEVELS) {
		u64 ended = pass, mask = (waiting | own) & ~tried, bit, queue;
		struct turn before = turn, after = before;
		u32 left;

		if (LEFT(ended)) { /* another CPU has begun it */
			if (serve_pass())
				return true;
			continue;
		}
		if (!mask)
			return false;
		bit = next_level(&after, mask);
		queue = level_at(bit)->queue;
		left = length_of(queue);
		if (!left) {
			left = length_of(queue ^ 1);
			if (left)
				queue ^= 1; /* left behind by an earlier pass */
		}
		if (!left && bit != own) {
			__sync_fetch_and_and(&waiting, ~bit);
			tried |= bit;
			continue;
		}
		if (!begin(&before, &after, ended, queue, left))
			continue;
		see_to(BIT_OF(QUEUE(ended)));
		see_to(bit);
		if (serve_pass()) {
			if (bit == own && prev) {
				prev->scx.dsq_vtime = queue;
				__sync_fetch_and_add(&pass, 1);
			}
			return true;
		}
		if (bit == own && serve_alone(prev))
			return true;
		take_back(&before, &after);
		see_to(bit);
		tried |= bit;
	}
	return false;
}

/* With more than one CPU: a task whose level no CPU knows to wait, rather than none. */
static void find_straggler(void)
{
	u32 level;

	bpf_for(level, 0, LEVELS) {
		u64 queue = QUEUE_OF(1ULL << level);

		if (scx_bpf_dsq_move_to_local(queue, 0) || scx_bpf_dsq_move_to_local(queue ^ 1, 0))
			return;
	}
}

void BPF_STRUCT_OPS(ruler_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 own;

	if (settings.several)
		see_to_enqueued();
	if (serve_pass())
		return;
	own = goes_back(prev) ? level_bit_of(prev) : 0;
	if (!settings.several)
		serve_next(prev, own);
	else if (!serve_next_among_others(prev, own))
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

	next_level(&first, BIT_OF(QUEUE(pass)));
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
