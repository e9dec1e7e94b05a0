/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For schedulers whose queues belong to no CPU: one that goes or comes concerns none of them. The
 * kernel would end a scheduler that does not say so.
 */
void BPF_STRUCT_OPS(stays_online, s32 cpu)
{
}

void BPF_STRUCT_OPS(stays_offline, s32 cpu)
{
}

#define STAYS .cpu_online = (void *)stays_online, .cpu_offline = (void *)stays_offline
