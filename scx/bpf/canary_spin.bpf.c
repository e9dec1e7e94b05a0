/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A canary: after it has queued two thousand tasks it loops with the kernel's lock held and
 * interrupts off, longer than any time limit. Nothing in the kernel can eject it; it exists to be
 * found by a watchdog from outside.
 */
#include "scheduler.bpf.h"

#define PATIENCE 2000
/* The most passes that the verifier allows for one loop, and a loop of such loops. */
#define LONG (1 << 23)

u32 queued;

static int nothing(u32 i, void *unused)
{
	return 0;
}

static int circle(u32 i, void *unused)
{
	bpf_loop(LONG, nothing, NULL, 0);
	return 0;
}

void BPF_STRUCT_OPS(canary_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (++queued > PATIENCE)
		bpf_loop(LONG, circle, NULL, 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, QUANTUM, enq_flags);
}

#include "canary.bpf.h"
