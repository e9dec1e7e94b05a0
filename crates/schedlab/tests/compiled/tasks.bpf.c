/* A scheduler that prints what it sees of each task that comes: the first letter of its name, whether the kernel says
 * that it is a thread of its own, and whether it has memory. */
#include "kernel.h"

#define PF_KTHREAD 0x00200000

SEC("struct_ops/tasks_enqueue")
void tasks_enqueue(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);
	static const char text[] = "letter %d kernel %d memory %d";

	bpf_trace_printk(text, sizeof(text), p->comm[0], !!(p->flags & PF_KTHREAD), !!p->mm);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, __arg(1, u64));
}

SEC(".struct_ops.link")
struct sched_ext_ops tasks = {
	.enqueue = (void *)tasks_enqueue,
	.name = "tasks",
};
