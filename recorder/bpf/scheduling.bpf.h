/* SPDX-License-Identifier: GPL-2.0 */
/* What the scheduler does: switches, wakings, births and ends. */

/* What the task that runs is about: the lock before the word on which the lock waits. */
static __always_inline u64 about(const struct call_state *state)
{
	return !state ? 0 : state->library ? state->library_object :
	       state->number ? state->object : 0;
}

static __always_inline u64 named(struct task_struct *task, u64 cpu)
{
	return (u32)task->pid | cpu << 32 | (u64)(u16)task->prio << 48;
}

/* A waking names its target CPU: where the task is now. */
static __always_inline u64 task_cpu(struct task_struct *task)
{
	return task->thread_info.cpu;
}

static __always_inline void emit_name(struct task_struct *task, const char *comm)
{
	u64 word[2] = {};

	bpf_probe_read_kernel_str(word, sizeof(word), comm);
	emit(EVENT_TASK, task->pid, word[0], word[1], (u32)task->tgid);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 tid = prev->pid, ends = prev->exit_state;
	struct call_state *state = state_of(tid);
	u64 left = preempt || !prev_state ? 0 : (prev_state | ends) & 0xb0 ? 2 : 1;
	u64 prev_prio = (u16)prev->prio, next_prio = (u16)next->prio;

	if (state && left)
		state->waited = 1;
	emit(EVENT_SWITCH, tid, left | prev_prio << 32 | next_prio << 48,
	     (u32)next->pid | (u64)prev->tgid << 32,
	     about(state));
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	u32 tid = current_tid();
	struct here *cpu = here();
	struct call_state *state = context_of(cpu) ? NULL : state_of(tid);
	u16 number = !state ? 0 : state->library ? futex_call + 1 : state->number;

	emit_at(cpu, bpf_ktime_get_ns(), EVENT_WAKING, tid, named(task, task_cpu(task)),
		number, about(state));
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakeup, struct task_struct *task)
{
	if (shed >= NO_WAKEUPS)
		return 0;
	emit(EVENT_WAKEUP, current_tid(), named(task, task_cpu(task)), 0, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *task)
{
	emit(EVENT_WAKEUP_NEW, current_tid(), named(task, task_cpu(task)), 0, 0);
	return 0;
}

/* The number of a task on a level of namespaces of pids, and that namespace. */
static __always_inline u32 number_on(struct pid *pid, u32 level, struct pid_namespace **space)
{
	struct upid number = {};

	bpf_probe_read_kernel(&number, sizeof(number),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			      level * sizeof(number));
	*space = number.ns;
	return number.nr;
}

/*
 * Of a task in a namespace of pids of its own: its number as its parent sees it, and which
 * namespace that is. The first namespace has no number: there it is the task's own.
 */
static __always_inline u64 in_namespace(struct task_struct *parent, struct task_struct *child)
{
	struct pid *pid = BPF_CORE_READ(child, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), above = BPF_CORE_READ(parent, thread_pid, level);
	struct pid_namespace *space = NULL, *other = NULL;
	u32 number;

	if (!level || level > 32 || above > level ||
	    !bpf_core_field_exists(struct pid_namespace, ns.inum))
		return 0;
	number = number_on(pid, above, &other);
	number_on(pid, level, &space);
	return number | (u64)BPF_CORE_READ(space, ns.inum) << 32;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->pid, to = child->pid;

	/* A place may still have the number's last task, if its end was missed. */
	forget(to);
	if (state_of(from))
		trace(to);
	emit(EVENT_FORK, current_tid(), from | (u64)to << 32, (u32)child->tgid,
	     in_namespace(parent, child));
	emit_name(child, (const char *)child->comm);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task, int old)
{
	u32 tid = task->pid, before = old;

	if (tid != before && state_of(before)) {
		trace(tid);
		forget(before);
	}
	emit(EVENT_EXEC, current_tid(), tid | (u64)before << 32, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *task)
{
	forget(task->pid);
	emit(EVENT_EXIT, current_tid(), named(task, 0), 0, 0);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(migrated, struct task_struct *task, int to)
{
	if (shed >= NO_WAKEUPS)
		return 0;
	emit(EVENT_MIGRATE, current_tid(), named(task, 0), task_cpu(task) | (u64)(u32)to << 32, 0);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(renamed, struct task_struct *task, const char *comm)
{
	emit_name(task, comm);
	return 0;
}
