/* SPDX-License-Identifier: GPL-2.0 */
/* Where a CPU is, what tasks are traced, and how events reach the buffer. */

static __always_inline struct here *here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

static __always_inline u8 context_of(const struct here *cpu)
{
	return !cpu ? 0 : cpu->hard ? 2 : cpu->soft ? 1 : 0;
}

static __always_inline int leave_hard(void)
{
	struct here *cpu = here();

	if (cpu && cpu->hard)
		cpu->hard--;
	return 0;
}

static __always_inline int enter_hard(void)
{
	struct here *cpu = here();

	if (cpu)
		cpu->hard++;
	return 0;
}

static __always_inline int set_soft(u32 soft)
{
	struct here *cpu = here();

	if (cpu)
		cpu->soft = soft;
	return 0;
}

/* Exits stand first and are attached first, so that no entry is without its exit. */
#define EXIT_OF(name) SEC("tp_btf/" #name) int name(void *arguments) { return leave_hard(); }
#define ENTRY_OF(name) SEC("tp_btf/" #name) int name(void *arguments) { return enter_hard(); }

EXIT_OF(irq_handler_exit)
EXIT_OF(local_timer_exit)
EXIT_OF(reschedule_exit)
EXIT_OF(call_function_exit)
EXIT_OF(call_function_single_exit)
EXIT_OF(irq_work_exit)

SEC("tp_btf/softirq_exit")
int softirq_exit(void *arguments)
{
	return set_soft(0);
}

ENTRY_OF(irq_handler_entry)
ENTRY_OF(local_timer_entry)
ENTRY_OF(reschedule_entry)
ENTRY_OF(call_function_entry)
ENTRY_OF(call_function_single_entry)
ENTRY_OF(irq_work_entry)

SEC("tp_btf/softirq_entry")
int softirq_entry(void *arguments)
{
	return set_soft(1);
}

/* An interrupt may come between, so all additions to counters are atomic. */
static __always_inline void problem(enum unresolved which)
{
	struct here *cpu = here();

	if (cpu)
		__sync_fetch_and_add(&cpu->problem[which], 1);
}

static __always_inline struct call_state *place_of(u32 tid)
{
	u32 place = tid & last_place;

	return bpf_map_lookup_elem(&traced, &place);
}

/* The state of a task, if it is traced. */
static __always_inline struct call_state *state_of(u32 tid)
{
	struct call_state *state = place_of(tid);

	return tid && state && state->tid == tid ? state : NULL;
}

static __always_inline struct call_state *trace(u32 tid)
{
	struct call_state *state = place_of(tid);
	u32 before;

	if (!tid || !state)
		return NULL;
	before = __sync_val_compare_and_swap(&state->tid, 0, tid);
	if (before && before != tid) {
		problem(TOO_MANY_TASKS);
		return NULL;
	}
	state->number = 0;
	return state;
}

static __always_inline void forget(u32 tid)
{
	struct call_state *state = state_of(tid);

	if (state)
		state->tid = 0;
}

static __noinline void lost(u32 tid)
{
	u64 one = 1, *count = bpf_map_lookup_elem(&lost_tasks, &tid);

	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&lost_tasks, &tid, &one, BPF_ANY);
}

static __always_inline void emit_at(struct here *cpu, u64 now, u8 kind, u32 tid, u64 a, u64 b,
				    u64 c)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		if (cpu)
			__sync_fetch_and_add(&cpu->lost[kind & (EVENT_KINDS - 1)], 1);
		lost(tid);
		return;
	}
	if (cpu)
		__sync_fetch_and_add(&cpu->emitted[kind & (EVENT_KINDS - 1)], 1);
	event->time = now;
	event->cpu = bpf_get_smp_processor_id();
	event->kind = kind;
	event->context = context_of(cpu);
	event->tid = tid;
	event->word[0] = a;
	event->word[1] = b;
	event->word[2] = c;
	if (drop_every && kind == EVENT_WAKING && __sync_fetch_and_add(&drawn, 1) % drop_every == 0)
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline void emit(u8 kind, u32 tid, u64 a, u64 b, u64 c)
{
	emit_at(here(), bpf_ktime_get_ns(), kind, tid, a, b, c);
}

static __always_inline u32 current_tid(void)
{
	return (u32)bpf_get_current_pid_tgid();
}
