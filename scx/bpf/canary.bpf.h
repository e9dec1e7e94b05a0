/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the canaries that break a rule in their `canary_enqueue`; they include this after it.
 */
s32 BPF_STRUCT_OPS(canary_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

void BPF_STRUCT_OPS(canary_exit, struct scx_exit_info *ei)
{
	record_exit(ei);
}

SEC(".struct_ops.link")
struct sched_ext_ops ops = {
	.select_cpu = (void *)canary_select_cpu,
	.enqueue = (void *)canary_enqueue,
	.exit = (void *)canary_exit,
	.name = "schedlab_canary",
};
