/* A scheduler whose constants choose what it does, and which fault it has. */
#include "kernel.h"

/* Tasks wait in order of arrival, or of virtual time. */
const volatile bool fair = 0;
const volatile u64 slice_ns = SCX_SLICE_DFL;
/* Faults: tasks are forgotten, null is read, an instruction runs for ever, a queue does not exist,
 * a task is inserted twice, a CPU is named that does not exist, the scheduler gives up. */
const volatile bool forgets = 0, reads_null = 0, spins = 0, no_queue = 0, twice = 0, no_cpu = 0,
		    gives_up = 0;
/* Tasks of negative nice are forgotten; after this many wakeups a task that wakes waits in a queue that
 * no CPU looks at. */
const volatile bool loses_important = 0;
const volatile u32 strays_after = 0;
/* A timer rings every millisecond; after so many rings the scheduler gives up. */
const volatile u32 rings = 0;
/* A task that wakes preempts the one that runs on its CPU. */
const volatile bool preempts = 0;

#define QUEUE 7
#define OTHER_QUEUE 8

static u64 now_at;
static u64 count;
static u32 rung;
static u32 wakeups;

struct timer {
	u64 opaque[2];
};

struct value {
	struct timer timer;
};

struct {
	__uint(type, 2);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct value);
} timers SEC(".maps");

static int ring(void *map, int *key, struct value *value)
{
	static char text[] = "ring %d of key %d at %llu";
	u64 data[] = { ++rung, *key, bpf_ktime_get_ns() };

	if (rung == rings)
		scx_bpf_error_bstr(text, data, sizeof(data));
	bpf_timer_start(&value->timer, 1000000, 0);
	return 0;
}

SEC("struct_ops/trial_init")
s32 trial_init(u64 *context)
{
	u32 key = 2;
	struct value *value = (void *)bpf_map_lookup_elem(&timers, &key);

	if (rings && value) {
		bpf_timer_init(&value->timer, &timers, 1);
		bpf_timer_set_callback(&value->timer, ring);
		bpf_timer_start(&value->timer, 1000000, 0);
	}
	if (strays_after)
		scx_bpf_create_dsq(OTHER_QUEUE, -1);
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC("struct_ops/trial_select_cpu")
s32 trial_select_cpu(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);
	bool is_idle = 0;
	s32 cpu;

	if (no_cpu)
		return 1000;
	cpu = scx_bpf_select_cpu_dfl(p, __arg(1, s32), __arg(2, u64), &is_idle);
	if (is_idle && !preempts)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

SEC("struct_ops/trial_enqueue")
void trial_enqueue(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);
	u64 flags = __arg(1, u64);

	count++;
	if (forgets && count > 3)
		return;
	if (loses_important && p->scx.weight > 100)
		return;
	if (strays_after && flags & 1 && ++wakeups > strays_after) {
		scx_bpf_dsq_insert(p, OTHER_QUEUE, slice_ns, flags);
		return;
	}
	if (reads_null) {
		volatile u64 *null = (void *)(count - count + 8);
		*null = 1;
	}
	if (spins) {
		volatile u64 forever = 1;
		while (forever)
			;
	}
	if (gives_up) {
		static char text[] = "task %d asks too much";
		u64 data[] = { p->pid };
		scx_bpf_error_bstr(text, data, sizeof(data));
	}
	if (preempts && flags & 1) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, flags | 1ULL << 32);
		return;
	}
	if (fair) {
		u64 time = p->scx.dsq_vtime;

		if ((long long)(time - (now_at - slice_ns)) < 0)
			time = now_at - slice_ns;
		scx_bpf_dsq_insert_vtime(p, QUEUE, slice_ns, time, flags);
	} else {
		scx_bpf_dsq_insert(p, no_queue ? 99 : QUEUE, slice_ns, flags);
	}
	if (twice)
		scx_bpf_dsq_insert(p, QUEUE, slice_ns, flags);
}

SEC("struct_ops/trial_dispatch")
void trial_dispatch(u64 *context)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

SEC("struct_ops/trial_running")
void trial_running(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);

	if ((long long)(p->scx.dsq_vtime - now_at) > 0)
		now_at = p->scx.dsq_vtime;
}

SEC("struct_ops/trial_stopping")
void trial_stopping(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);

	p->scx.dsq_vtime += (slice_ns - p->scx.slice) * 100 / p->scx.weight;
}

SEC("struct_ops/trial_enable")
void trial_enable(u64 *context)
{
	struct task_struct *p = __arg(0, struct task_struct *);

	p->scx.dsq_vtime = now_at;
}

SEC(".struct_ops.link")
struct sched_ext_ops trial = {
	.select_cpu = (void *)trial_select_cpu,
	.enqueue = (void *)trial_enqueue,
	.dispatch = (void *)trial_dispatch,
	.running = (void *)trial_running,
	.stopping = (void *)trial_stopping,
	.enable = (void *)trial_enable,
	.init = (void *)trial_init,
	.timeout_ms = 2000,
	.name = "trial",
};
