/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The canary with a map that is pinned when it is loaded, and that its end leaves behind:
 * unloading.
 */
#include "canary.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} litter SEC(".maps");
