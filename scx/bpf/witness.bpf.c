/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes into the kernel's trace what its sched_ext core keeps of a task: the rest of its slice and
 * its virtual time. `schedlab diff --decisions` compares them with the simulator's. It is no policy.
 *
 * A line comes before that of the kernel's own event, which has the same task in the same place:
 *
 *	schedlab: wakes PID SLICE VTIME
 *	schedlab: switches PREV SLICE VTIME NEXT SLICE VTIME
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* At sched_wakeup and sched_wakeup_new the task is in its queue. */
static void wakes(struct task_struct *p)
{
	bpf_printk("schedlab: wakes %d %llu %llu", p->pid, p->scx.slice, p->scx.dsq_vtime);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakeup, struct task_struct *p)
{
	wakes(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *p)
{
	wakes(p);
	return 0;
}

/* At sched_switch the scheduler has done all of it: prev is charged and in its queue again. */
SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	bpf_printk("schedlab: switches %d %llu %llu %d %llu %llu", prev->pid, prev->scx.slice,
		   prev->scx.dsq_vtime, next->pid, next->scx.slice, next->scx.dsq_vtime);
	return 0;
}
