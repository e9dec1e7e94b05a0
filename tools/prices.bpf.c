/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What functions of the kernel take of a scheduler that calls them: `running` calls one of them, the
 * one that `which` says, ten times. `tools/compiled --prices` counts in a guest.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define QUEUE 0
#define SLICE (4 * 1000 * 1000ULL)
#define TEN(what) do { what; what; what; what; what; what; what; what; what; what; } while (0)

const volatile u32 which;
volatile u64 sink;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} storage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} each SEC(".maps");

void BPF_STRUCT_OPS(prices_running, struct task_struct *p)
{
	struct task_struct *q;
	u64 key = 1, value = 1;
	u32 zero = 0;

	if (which == 1)
		TEN(sink = scx_bpf_now());
	if (which == 2)
		TEN(sink = bpf_ktime_get_ns());
	if (which == 3)
		TEN(sink = (u64)bpf_task_storage_get(&storage, p, NULL, 0));
	if (which == 4)
		TEN(sink = (u64)bpf_map_lookup_elem(&hash, &key));
	if (which == 5)
		TEN(sink = (u64)bpf_map_lookup_percpu_elem(&each, &zero, 0));
	if (which == 6)
		TEN(sink = scx_bpf_dsq_nr_queued(QUEUE));
	if (which == 7)
		TEN(sink = scx_bpf_task_cpu(p));
	if (which == 8)
		TEN(sink = __COMPAT_scx_bpf_cpu_node(0));
	if (which == 9)
		TEN(scx_bpf_kick_cpu(0, SCX_KICK_IDLE));
	if (which == 10)
		TEN(scx_bpf_kick_cpu(0, 0));
	if (which == 11)
		TEN(sink = scx_bpf_test_and_clear_cpu_idle(0));
	if (which == 12)
		TEN(sink = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0));
	if (which == 13)
		TEN(bpf_for_each(scx_dsq, q, QUEUE, 0) { sink = q->pid; break; });
	if (which == 14)
		TEN(sink = bpf_cpumask_test_cpu(0, p->cpus_ptr));
	if (which == 15)
		TEN(sink = bpf_get_prandom_u32());
	if (which == 16)
		TEN(bpf_rcu_read_lock(); bpf_rcu_read_unlock());
	if (which == 17)
		TEN(q = bpf_task_from_pid(p->pid); if (q) bpf_task_release(q));
	if (which == 18)
		TEN(sink = scx_bpf_task_running(p));
	if (which == 19)
		TEN(bpf_map_update_elem(&hash, &key, &value, 0));
	if (which == 20)
		TEN(sink = (u64)bpf_map_lookup_elem(&each, &zero));
	if (which == 21)
		TEN(sink = bpf_get_smp_processor_id());
	if (which == 22)
		TEN(scx_bpf_cpuperf_set(0, 1024));
}

void BPF_STRUCT_OPS(prices_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (which & 1)
		scx_bpf_dsq_insert(p, QUEUE, SLICE, enq_flags);
	else
		scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE, p->scx.dsq_vtime, enq_flags);
}

void BPF_STRUCT_OPS(prices_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(prices_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.enqueue = (void *)prices_enqueue,
	.dispatch = (void *)prices_dispatch,
	.running = (void *)prices_running,
	.init = (void *)prices_init,
	.name = "schedlab_prices",
};
