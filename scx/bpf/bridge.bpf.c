/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bridge: passes the events of tasks to a program in user space, in order and with times, and
 * executes its decisions. It is no policy.
 *
 * Events and decisions lie in two rings of memory that both sides map: no system call, no copy. One
 * atomic addition takes the place of an event, so the order of the ring is the order of the events.
 * All tasks except the program itself go this way, kernel threads too: no task runs without a
 * decision.
 *
 * The program is a task like others, and must never wait for its own decisions. It runs first
 * whenever there are events, and gives up the CPU with sched_yield when it has read all. Where a
 * decision is due at once (a wakeup, a tick), the running task is stopped for it. The event records
 * that, and the task continues unless the program decides otherwise.
 *
 * Source: the kernel's Documentation/scheduler/sched-ext.rst and kernel/sched/ext.c of Linux 6.18.
 * The program is kept running as in the scx project's scx_rustland_core, which forwards only
 * enqueue and the choice of a CPU.
 */
#include "scheduler.bpf.h"
#include "bridge.h"

#define MOST_CPUS 64
#define TASK_DEAD 0x80 /* include/linux/sched.h */
#define HEARTBEAT (1000 * 1000 * 1000ULL)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared);
} shared_memory SEC(".maps");

struct heartbeat {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct heartbeat);
} heartbeats SEC(".maps");

/*
 * The program in user space, and the period of its policy's ticks in ticks of a busy CPU; 0: none.
 */
SEC(".rodata.settings") const volatile struct {
	u32 program_pid;
	u32 each_tick;
} settings;

/* Whether the program waits for a CPU; whether it gets one although there are no events. */
static bool program_waits;
static bool program_due;
/* Whether it has run since the last heartbeat. */
static bool program_ran;
/* Per CPU: the task that called sched_yield, and the task that stops only for the program. */
static u32 yielded[MOST_CPUS];
static bool excursion[MOST_CPUS];
/* Per CPU: ticks since the last reported one. */
static u32 ticks[MOST_CPUS];
static u32 drains;
/* Per CPU: the events of the current switch, by their numbers from 1 on: stop and run. */
static u64 stops_at[MOST_CPUS];
static u64 runs_at[MOST_CPUS];

static struct shared *memory(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&shared_memory, &zero);
}

static bool is_program(const struct task_struct *p)
{
	return (u32)p->pid == settings.program_pid;
}

/* Writes an event, and returns its number from 1 on. If the ring is full, the kernel ends this. */
static u64 write_event(u32 kind, u32 pid, u32 cpu, u32 flags, u64 value)
{
	struct shared *shared = memory();
	struct event *event;
	u64 at;

	if (!shared)
		return 0;
	at = __sync_fetch_and_add(&shared->event_head, 1);
	if (at - shared->event_tail >= EVENTS) {
		scx_bpf_error("the event ring is full: the program in user space does not read it");
		return 0;
	}
	event = &shared->events[at & (EVENTS - 1)];
	event->ns = bpf_ktime_get_ns();
	event->value = value;
	event->pid = pid;
	event->kind = kind;
	event->cpu = cpu;
	event->flags = flags;
	__sync_lock_test_and_set(&event->sequence, at + 1); /* a full barrier */
	return at + 1;
}

static u64 tell(u32 kind, const struct task_struct *p, u32 flags, u64 value)
{
	return write_event(kind, p->pid, scx_bpf_task_cpu(p), flags, value);
}

/* Sets the time of this event to now, unless it has been read. */
static void happens_now(struct shared *shared, u64 number, u64 now)
{
	if (number > shared->event_tail)
		shared->events[(number - 1) & (EVENTS - 1)].ns = now;
}

/* Whether there are unread events. */
static bool has_news(struct shared *shared)
{
	return shared->event_head != shared->event_tail;
}

/* A decision is due at once: stops the task on the CPU of `p` for the program. */
static void summon(const struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (!program_waits)
		return; /* it runs somewhere, and checks before it yields */
	excursion[cpu & (MOST_CPUS - 1)] = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

s32 BPF_STRUCT_OPS(bridge_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu; /* the policy decides later where it runs */
}

void BPF_STRUCT_OPS(bridge_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool woken = enq_flags & WAKEUP;

	if (is_program(p)) {
		program_waits = true;
		return;
	}
	p->scx.dsq_vtime++; /* the number of its wait: a decision about an earlier one is void */
	tell(EVENT_ENQUEUE, p, woken ? FLAG_WOKEN : 0, p->scx.dsq_vtime);
	if (bpf_get_current_task_btf() != p)
		summon(p);
}

void BPF_STRUCT_OPS(bridge_dequeue, struct task_struct *p, u64 deq_flags)
{
	if (is_program(p))
		program_waits = false;
	else
		tell(EVENT_DEQUEUE, p, 0, 0);
}

/*
 * Where a task that waits can be put now, if `cpu` is wanted; negative: nowhere yet.
 *
 * A task that is taken off its CPU is still the current one there until the switch, and BPF programs
 * run in its name: they disable its migration for as long as they run. The kernel ends a scheduler
 * that moves it just then. One whose migration is disabled after the switch was preempted so, and
 * must go on where it was.
 */
static s32 cpu_for(const struct task_struct *p, s32 cpu)
{
	s32 here = scx_bpf_task_cpu(p);
	u32 is_current = 0; /* a byte or four, by the kernel */
	u16 by_this;

	if (cpu == here)
		return cpu;
	/* This program runs in the name of the current task, too. */
	by_this = bpf_get_current_task_btf() == p;
	bpf_core_read(&is_current, bpf_core_field_size(p->on_cpu), &p->on_cpu);
	if (is_current && !by_this)
		return -1;
	return p->migration_disabled > by_this ? here : cpu;
}

/* Executes one decision; false if that is not possible yet. */
static bool decide(struct shared *shared, u64 at)
{
	struct decision *decision = &shared->decisions[at & (DECISIONS - 1)];
	struct task_struct *p;
	s32 cpu = decision->cpu;

	if (decision->kind == DECISION_STOP) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return true;
	}
	p = bpf_task_from_pid(decision->pid);
	if (!p)
		return true; /* it has ended: there is an event for that */
	if (p->scx.dsq_vtime == decision->wait && (cpu = cpu_for(p, cpu)) >= 0) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, decision->slice ?: 1, 0);
		if (cpu != bpf_get_smp_processor_id())
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	bpf_task_release(p);
	return cpu >= 0;
}

/* Executes the program's decisions; true if there were any. One CPU at a time. */
static bool drain(struct shared *shared, s32 cpu)
{
	u64 head, tail = shared->decision_tail;
	u32 i;

	if (READ_ONCE(shared->decision_head) == tail || __sync_lock_test_and_set(&drains, 1))
		return false;
	head = READ_ONCE(shared->decision_head);
	tail = shared->decision_tail;
	bpf_for(i, 0, DRAINED_AT_ONCE) {
		if (tail == head || !scx_bpf_dispatch_nr_slots())
			break;
		if (!decide(shared, tail)) {
			excursion[cpu & (MOST_CPUS - 1)] = true;
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT); /* and tries again */
			break;
		}
		tail++;
	}
	shared->decision_tail = tail;
	__sync_lock_test_and_set(&drains, 0);
	return true;
}

void BPF_STRUCT_OPS(bridge_dispatch, s32 cpu, struct task_struct *prev)
{
	struct shared *shared = memory();
	struct task_struct *program;
	s32 at;

	if (!shared)
		return;
	drain(shared, cpu);
	if (prev && is_program(prev) && has_news(shared)) {
		go_on(prev, SCX_SLICE_INF); /* the event came after its last check */
		return;
	}
	if (!program_waits || !(has_news(shared) || program_due || goes_back(prev)))
		return;
	program = bpf_task_from_pid(settings.program_pid);
	if (!program)
		return;
	program_waits = false;
	program_due = false;
	at = cpu_for(program, cpu);
	if (at < 0)
		at = scx_bpf_task_cpu(program);
	scx_bpf_dsq_insert(program, SCX_DSQ_LOCAL_ON | at, SCX_SLICE_INF, 0);
	if (at != cpu) {
		excursion[at & (MOST_CPUS - 1)] = true;
		scx_bpf_kick_cpu(at, SCX_KICK_PREEMPT);
	}
	bpf_task_release(program);
}

void BPF_STRUCT_OPS(bridge_runnable, struct task_struct *p, u64 enq_flags)
{
	if (!is_program(p))
		tell(EVENT_RUNNABLE, p, enq_flags & WAKEUP ? FLAG_WOKEN : 0, bpf_get_smp_processor_id());
}

void BPF_STRUCT_OPS(bridge_running, struct task_struct *p)
{
	if (is_program(p))
		program_ran = true;
	else
		runs_at[scx_bpf_task_cpu(p) & (MOST_CPUS - 1)] = tell(EVENT_RUNNING, p, 0, p->scx.slice);
}

void BPF_STRUCT_OPS(bridge_stopping, struct task_struct *p, bool runnable)
{
	u32 cpu = scx_bpf_task_cpu(p) & (MOST_CPUS - 1);
	u32 flags = runnable ? FLAG_RUNNABLE : 0;
	u64 number;

	runs_at[cpu] = 0;
	if (is_program(p)) {
		if (p->flags & PF_EXITING)
			scx_bpf_exit(0, "the program in user space has ended");
		return;
	}
	if (runnable && yielded[cpu] == (u32)p->pid)
		flags |= FLAG_YIELDED;
	if (excursion[cpu])
		flags |= FLAG_EXCURSION;
	if (runnable && p->scx.slice)
		flags |= FLAG_KEPT;
	if (p->__state & TASK_DEAD)
		flags |= FLAG_DEAD;
	yielded[cpu] = 0;
	excursion[cpu] = false;
	number = tell(EVENT_STOPPING, p, flags, 0);
	stops_at[cpu] = flags & FLAG_KEPT ? 0 : number;
}

/*
 * The kernel reports stop and run before the switch. A task has the CPU from switch to switch, as
 * in any trace and in the simulator. So both events get the time of the switch. The program does
 * not run on this CPU, so it cannot read them before that.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(bridge_switched, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id() & (MOST_CPUS - 1);
	struct shared *shared = memory();
	u64 now = bpf_ktime_get_ns();

	if (!shared)
		return 0;
	happens_now(shared, stops_at[cpu], now);
	happens_now(shared, runs_at[cpu], now);
	stops_at[cpu] = 0;
	runs_at[cpu] = 0;
	return 0;
}

void BPF_STRUCT_OPS(bridge_quiescent, struct task_struct *p, u64 deq_flags)
{
	if (!is_program(p))
		tell(EVENT_QUIESCENT, p, deq_flags & SLEEP ? FLAG_SLEEPS : 0, 0);
}

bool BPF_STRUCT_OPS(bridge_yield, struct task_struct *from, struct task_struct *to)
{
	yielded[scx_bpf_task_cpu(from) & (MOST_CPUS - 1)] = from->pid;
	from->scx.slice = 0;
	return false;
}

void BPF_STRUCT_OPS(bridge_tick, struct task_struct *p)
{
	u32 cpu = scx_bpf_task_cpu(p) & (MOST_CPUS - 1);

	if (!settings.each_tick || is_program(p) || ++ticks[cpu] < settings.each_tick)
		return;
	ticks[cpu] = 0;
	tell(EVENT_TICK, p, 0, 0);
	excursion[cpu] = true;
	p->scx.slice = 0;
}

/* Counts ticks from the begin of a job. */
BEGIN_ANEW()
{
	u32 cpu;

	bpf_for(cpu, 0, MOST_CPUS)
		ticks[cpu & (MOST_CPUS - 1)] = 0;
	return 0;
}

static u64 first_cpus(const struct cpumask *mask)
{
	return BPF_CORE_READ(mask, bits[0]);
}

void BPF_STRUCT_OPS(bridge_enable, struct task_struct *p)
{
	if (is_program(p))
		return;
	tell(EVENT_ENABLE, p, p->policy, (u64)p->static_prio);
	tell(EVENT_CPUMASK, p, 0, first_cpus(p->cpus_ptr));
}

void BPF_STRUCT_OPS(bridge_disable, struct task_struct *p)
{
	if (!is_program(p))
		tell(EVENT_DISABLE, p, 0, 0);
}

/* After `disable`, if this scheduler ever had the task. */
void BPF_STRUCT_OPS(bridge_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	if (!is_program(p) && !args->cancelled)
		tell(EVENT_EXIT, p, 0, 0);
}

void BPF_STRUCT_OPS(bridge_cpu_online, s32 cpu)
{
	write_event(EVENT_CPU_ONLINE, 0, cpu, 0, 0);
}

void BPF_STRUCT_OPS(bridge_cpu_offline, s32 cpu)
{
	write_event(EVENT_CPU_OFFLINE, 0, cpu, 0, 0);
}

void BPF_STRUCT_OPS(bridge_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	write_event(EVENT_CPU_ACQUIRE, 0, cpu, 0, 0);
}

void BPF_STRUCT_OPS(bridge_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	write_event(EVENT_CPU_RELEASE, 0, cpu, 0, 0);
}

void BPF_STRUCT_OPS(bridge_set_weight, struct task_struct *p, u32 weight)
{
	if (!is_program(p))
		tell(EVENT_WEIGHT, p, p->policy, (u64)p->static_prio);
}

void BPF_STRUCT_OPS(bridge_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	if (!is_program(p))
		tell(EVENT_CPUMASK, p, 0, first_cpus(mask));
}

/* Without this the kernel's watchdog would eject an idle program as a starving one. */
static int beat(void *map, u32 *key, struct heartbeat *heartbeat)
{
	if (!program_ran) {
		program_due = true;
		scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
		excursion[bpf_get_smp_processor_id() & (MOST_CPUS - 1)] = true;
	}
	program_ran = false;
	bpf_timer_start(&heartbeat->timer, HEARTBEAT, 0);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(bridge_init)
{
	u32 zero = 0;
	struct heartbeat *heartbeat = bpf_map_lookup_elem(&heartbeats, &zero);

	if (!heartbeat)
		return -ENOENT;
	bpf_timer_init(&heartbeat->timer, &heartbeats, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&heartbeat->timer, beat);
	return bpf_timer_start(&heartbeat->timer, HEARTBEAT, 0);
}

void BPF_STRUCT_OPS(bridge_exit, struct scx_exit_info *ei)
{
	struct shared *shared = memory();

	record_exit(ei);
	if (shared)
		shared->exited = 1;
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)bridge_select_cpu,
	.enqueue = (void *)bridge_enqueue,
	.dequeue = (void *)bridge_dequeue,
	.dispatch = (void *)bridge_dispatch,
	.runnable = (void *)bridge_runnable,
	.running = (void *)bridge_running,
	.stopping = (void *)bridge_stopping,
	.quiescent = (void *)bridge_quiescent,
	.yield = (void *)bridge_yield,
	.tick = (void *)bridge_tick,
	.enable = (void *)bridge_enable,
	.disable = (void *)bridge_disable,
	.exit_task = (void *)bridge_exit_task,
	.cpu_online = (void *)bridge_cpu_online,
	.cpu_offline = (void *)bridge_cpu_offline,
	.cpu_acquire = (void *)bridge_cpu_acquire,
	.cpu_release = (void *)bridge_cpu_release,
	.set_weight = (void *)bridge_set_weight,
	.set_cpumask = (void *)bridge_set_cpumask,
	.init = (void *)bridge_init,
	.exit = (void *)bridge_exit,
	/*
	 * A task that is alone goes through the program as well, and the program itself yields
	 * also when it is alone.
	 */
	.flags = SCX_OPS_ENQ_LAST,
	.dispatch_max_batch = 64,
	.timeout_ms = 5000,
	.name = "schedlab_bridge",
};
