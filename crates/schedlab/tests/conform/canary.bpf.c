/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A scheduler that gives what a general-purpose scheduler owes, and that a constant makes fail one
 * check of `schedlab conform`: a canary for each.
 *
 * Without a fault: one queue for all CPUs in the order of virtual times, by which a task of twice
 * the weight runs twice as long; who slept gets at most one slice of credit. Threads of the kernel
 * that are bound to a CPU go to the front of that CPU.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* Each fault: what it does, and the check that finds it. */
const volatile bool starve;	 /* tasks that wake are held back: starvation */
const volatile bool one_cpu;	 /* CPU 1 gets pinned tasks only: conservation */
const volatile bool flat;	 /* all weights are the same: weights */
const volatile bool deaf;	 /* who changes its CPUs is held back: affinity */
const volatile bool kernel_last; /* threads of the kernel are held back: kernel-threads */
const volatile bool small;	 /* no more than 20 tasks beside those it finds: storms */
const volatile bool forgets;	 /* who was stopped is held back: suspension */
const volatile bool rejects;	 /* who was real-time is held back: inheritance */
const volatile bool fragile;	 /* gives up when a CPU goes: hotplug */
const volatile bool quits;	 /* leaves after 200 enqueues: all checks */

const volatile bool spins;	 /* hangs after 200 enqueues, interrupts off: all checks */

/* How long a task is held back. */
#define HELD (1500 * 1000 * 1000ULL)
#define TASKS 20
#define ENQUEUES 200
#define LONG (1 << 23) /* the most passes that the verifier allows for one loop */
#define STOPPED 4 /* __TASK_STOPPED */
#define KTHREAD 0x00200000 /* PF_KTHREAD */

enum { QUEUE, LIMBO };

struct note {
	u64 held_from; /* when it was put into limbo */
	bool stopped, moved, returned;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct note);
} notes SEC(".maps");

static u64 vtime_now;
u64 enqueued;
s64 tasks;

static struct note *note_of(struct task_struct *p)
{
	return bpf_task_storage_get(&notes, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static bool is_bound(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1;
}

s32 BPF_STRUCT_OPS(canary_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
}

static bool is_held(struct task_struct *p, u64 enq_flags)
{
	struct note *note = note_of(p);
	bool is_kernels = p->flags & KTHREAD, held;

	if (!note)
		return false;
	if (is_kernels)
		return kernel_last && is_bound(p) && (enq_flags & SCX_ENQ_WAKEUP);
	held = (starve && (enq_flags & SCX_ENQ_WAKEUP)) || note->stopped || note->moved ||
	       note->returned;
	note->stopped = note->moved = note->returned = false;
	return held;
}

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
	u64 vtime = p->scx.dsq_vtime;

	if ((quits || spins) && ++enqueued > ENQUEUES) {
		if (quits)
			scx_bpf_error("it has had enough");
		else
			bpf_loop(LONG, circle, NULL, 0);
	}
	if (is_held(p, enq_flags)) {
		scx_bpf_dsq_insert_vtime(p, LIMBO, SCX_SLICE_DFL, scx_bpf_now() + HELD, enq_flags);
		return;
	}
	if ((p->flags & KTHREAD) && is_bound(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	if (before(vtime, vtime_now - SCX_SLICE_DFL))
		vtime = vtime_now - SCX_SLICE_DFL;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SCX_SLICE_DFL, vtime, enq_flags);
}

/* Lets go who was held back for long enough. */
static void release(void)
{
	u64 now = scx_bpf_now();
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, LIMBO, 0) {
		if (before(now, p->scx.dsq_vtime))
			break;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, vtime_now);
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, QUEUE, 0);
	}
}

static u64 ran_until_now(const struct task_struct *p)
{
	u64 ran = SCX_SLICE_DFL - p->scx.slice;

	return p->scx.dsq_vtime + (flat ? ran : ran * 100 / p->scx.weight);
}

/*
 * Whether `prev` comes before all that wait: it is back in the queue only after this. Without the
 * question tasks of little weight get more than their share where few wait.
 */
static bool goes_on(struct task_struct *prev)
{
	struct task_struct *p;
	u64 vtime;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	vtime = ran_until_now(prev);
	bpf_for_each(scx_dsq, p, QUEUE, 0) {
		if (!before(vtime, p->scx.dsq_vtime))
			return false;
		break;
	}
	prev->scx.dsq_vtime = vtime;
	prev->scx.slice = SCX_SLICE_DFL;
	return true;
}

void BPF_STRUCT_OPS(canary_dispatch, s32 cpu, struct task_struct *prev)
{
	release();
	if (one_cpu && cpu == 1) {
		struct task_struct *p;

		bpf_for_each(scx_dsq, p, QUEUE, 0) {
			if (is_bound(p) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
			    scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
				break;
		}
		return;
	}
	if (!goes_on(prev))
		scx_bpf_dsq_move_to_local(QUEUE, 0);
}

void BPF_STRUCT_OPS(canary_running, struct task_struct *p)
{
	if (before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(canary_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime = ran_until_now(p);
}

void BPF_STRUCT_OPS(canary_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct note *note = forgets && (p->__state & STOPPED) ? note_of(p) : NULL;

	if (note)
		note->stopped = true;
}

void BPF_STRUCT_OPS(canary_set_cpumask, struct task_struct *p, const struct cpumask *cpus)
{
	struct note *note = deaf ? note_of(p) : NULL;

	if (note)
		note->moved = true;
}

s32 BPF_STRUCT_OPS(canary_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (args->fork && __sync_add_and_fetch(&tasks, 1) > TASKS && small)
		return -12; /* ENOMEM */
	return 0;
}

void BPF_STRUCT_OPS(canary_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	__sync_fetch_and_sub(&tasks, 1);
}

void BPF_STRUCT_OPS(canary_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

void BPF_STRUCT_OPS(canary_disable, struct task_struct *p)
{
	struct note *note = rejects ? note_of(p) : NULL;

	if (note)
		note->returned = true;
}

void BPF_STRUCT_OPS(canary_cpu_online, s32 cpu)
{
}

void BPF_STRUCT_OPS(canary_cpu_offline, s32 cpu)
{
	if (fragile)
		scx_bpf_error("it cannot do without CPU %d", cpu);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(canary_init)
{
	s32 error = scx_bpf_create_dsq(LIMBO, -1);

	return error ?: scx_bpf_create_dsq(QUEUE, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops canary = {
	.select_cpu = (void *)canary_select_cpu,
	.enqueue = (void *)canary_enqueue,
	.dispatch = (void *)canary_dispatch,
	.running = (void *)canary_running,
	.stopping = (void *)canary_stopping,
	.quiescent = (void *)canary_quiescent,
	.set_cpumask = (void *)canary_set_cpumask,
	.init_task = (void *)canary_init_task,
	.exit_task = (void *)canary_exit_task,
	.enable = (void *)canary_enable,
	.disable = (void *)canary_disable,
	.cpu_online = (void *)canary_cpu_online,
	.cpu_offline = (void *)canary_cpu_offline,
	.init = (void *)canary_init,
	.timeout_ms = 10000,
	.name = "canary",
};
