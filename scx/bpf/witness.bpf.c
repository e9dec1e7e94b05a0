/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes into the kernel's trace what its sched_ext core keeps of a task: the rest of its slice and
 * its virtual time, and the task's flags. `schedlab diff --decisions` compares them with the simulator's. It is no policy.
 *
 * A line comes before that of the kernel's own event, which has the same task in the same place:
 *
 *	schedlab: wakes PID SLICE VTIME FLAGS
 *	schedlab: switches PREV SLICE VTIME FLAGS NEXT SLICE VTIME FLAGS
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* At sched_wakeup and sched_wakeup_new the task is in its queue. */
static void wakes(struct task_struct *p)
{
	bpf_printk("schedlab: wakes %d %llu %llu %u", p->pid, p->scx.slice, p->scx.dsq_vtime,
		   p->flags);
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
	bpf_printk("schedlab: switches %d %llu %llu %u %d %llu %llu %u", prev->pid,
		   prev->scx.slice, prev->scx.dsq_vtime, prev->flags, next->pid, next->scx.slice,
		   next->scx.dsq_vtime, next->flags);
	return 0;
}
