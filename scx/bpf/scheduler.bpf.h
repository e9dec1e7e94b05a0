/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by all schedulers here: the kernel's types, the reason of an end, and levels from nice
 * values.
 *
 * Headers: the scx project's, by the crate scx_cargo. User space fills in their enums when it loads
 * a program, so that one program suits kernels with other numbers. sched_ext's own numbers are used
 * as in vmlinux.h. Those of the scheduler's core do differ, and are the running kernel's by
 * relocation.
 */
#ifndef SCHEDLAB_SCHEDULER_BPF_H
#define SCHEDLAB_SCHEDULER_BPF_H

#define __SCX_ENUMS_BPF_H
#include <scx/common.bpf.h>

#define WAKEUP bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP)
#define AT_HEAD bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_HEAD)
#define SLEEP bpf_core_enum_value(enum scx_deq_flags, SCX_DEQ_SLEEP)

char _license[] SEC("license") = "GPL";

/* The quantum: 4 ms, the default of schedsim's policies. */
#define QUANTUM (4 * 1000 * 1000ULL)
/* The number of levels for nice values, as in schedsim's `Levels`. */
#define LEVELS 8

/* Why the kernel ended this scheduler. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct user_exit_info);
} exit_info SEC(".maps");

static void record_exit(const struct scx_exit_info *ei)
{
	u32 zero = 0;
	struct user_exit_info *info = bpf_map_lookup_elem(&exit_info, &zero);

	if (!info)
		return;
	bpf_probe_read_kernel_str(info->reason, sizeof(info->reason), ei->reason);
	bpf_probe_read_kernel_str(info->msg, sizeof(info->msg), ei->msg);
	info->exit_code = ei->exit_code;
	__sync_val_compare_and_swap(&info->kind, info->kind, ei->kind);
}

/*
 * For a scheduler with a history: makes it forget, as if the running task were the first of all.
 * The loader runs this program when a job is announced (SIGUSR1).
 */
#define BEGIN_ANEW() SEC("syscall") int begin_anew(void *unused)

/*
 * The level of a task's nice value, 0 the best, as 1 << level: forty nice values spread evenly,
 * nice 0 in the middle. From a table, because x86 divides in ten instructions, and shifts by a
 * variable in five.
 */
static u64 level_bit_of(const struct task_struct *p)
{
	static const u8 bits[40] = {
		[0 ... 4] = 1, [5 ... 9] = 2, [10 ... 14] = 4, [15 ... 19] = 8, [20 ... 24] = 16, [25 ... 29] = 32, [30 ... 34] = 64, [35 ... 39] = 128,
	};
	u32 prio = p->static_prio;

	_Static_assert(LEVELS == 8, "the table is of eight levels");
	return prio < 100 ? 1 : prio > 139 ? 1 << (LEVELS - 1) : bits[prio - 100];
}

/*
 * Whether `prev`, an argument of `dispatch`, returns to its queue right after it: the kernel calls
 * `enqueue` for it when the next task is known.
 */
static bool goes_back(const struct task_struct *prev)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED);
}

/*
 * Lets `prev` continue, because no task comes before it. The verifier does not see that goes_back()
 * excludes a null `prev`.
 */
static void go_on(struct task_struct *prev, u64 slice)
{
	if (prev)
		prev->scx.slice = slice;
}

/*
 * The CPU on which a task wakes: the kernel's choice, an idle one if there is any. The kernel would
 * also run the task there ahead of all queues; this does not.
 */
static s32 place(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;

	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
}

#endif
