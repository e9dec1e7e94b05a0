/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A canary: dispatches to a CPU that does not exist. It exists to be ejected.
 */
#include "scheduler.bpf.h"

void BPF_STRUCT_OPS(canary_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 999, QUANTUM, enq_flags);
}

#include "canary.bpf.h"
