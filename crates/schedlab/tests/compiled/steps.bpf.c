/* A scheduler of which the test of traces knows every step. */
#include "kernel.h"

#define QUEUE 7

struct task_seen {
	u32 times;
	bool woke;
};

struct {
	__uint(type, 1);
	__uint(max_entries, 8);
	__type(key, s32);
	__type(value, struct task_seen);
} seen SEC(".maps");

struct {
	__uint(type, 6);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} dispatches SEC(".maps");

u64 last_vtime;

/* Counts how often a task was enqueued. */
static __attribute__((noinline)) void note(struct task_struct *p, u64 flags)
{
	struct task_seen fresh = { .times = 1, .woke = flags & 1 };
	s32 pid = p->pid;
	struct task_seen *known = (void *)bpf_map_lookup_elem(&seen, &pid);

	if (known)
		known->times++;
	else
		bpf_map_update_elem(&seen, &pid, &fresh, 0);
}

SEC("struct_ops/steps_init")
s32 steps_init(u64 *context)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC("struct_ops/steps_enqueue")
void steps_enqueue(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);
	static const char text[] = "task %d comes";

	note(p, __arg(1, u64));
	bpf_trace_printk(text, sizeof(text), p->pid);
	last_vtime += 10;
	p->scx.dsq_vtime = last_vtime;
	scx_bpf_dsq_insert_vtime(p, QUEUE, 3000000, p->scx.dsq_vtime, __arg(1, u64));
}

SEC("struct_ops/steps_dispatch")
void steps_dispatch(u64 *context)
{
	u32 zero = 0;
	u64 *count = (void *)bpf_map_lookup_elem(&dispatches, &zero);

	if (count)
		*count += 1;
	scx_bpf_dsq_move_to_local(QUEUE);
}

SEC(".struct_ops.link")
struct sched_ext_ops steps = {
	.enqueue = (void *)steps_enqueue,
	.dispatch = (void *)steps_dispatch,
	.init = (void *)steps_init,
	.name = "steps",
};
