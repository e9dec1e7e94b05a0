/* SPDX-License-Identifier: GPL-2.0 */
/* Calls of a library of locks, and requests of io_uring. */

static __always_inline u32 user_word(u64 address)
{
	u32 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)address))
		problem(FAULT);
	return word;
}

/* Whether a mutex that its owner may lock again is locked more than once. */
static __always_inline bool is_locked_again(u64 mutex)
{
	return (user_word(mutex + 16) & KINDS) == RECURSIVE && user_word(mutex + 4) > 1;
}

static __always_inline u64 mutex(u64 address)
{
	return futex_with(address, user_word(address + 16) & INHERITS ? 2 : 0);
}

/*
 * A call of a library of locks: without a system call if nothing has to wait. The layouts are
 * glibc's: of a mutex the lock, the count at 4, the kind at 16; of a barrier the tasks at 8.
 */
SEC("uprobe")
int library_begins(struct pt_regs *regs)
{
	u32 tid = current_tid();
	struct call_state *state = state_of(tid);
	u64 address = PT_REGS_PARM1(regs);
	u16 op = bpf_get_attach_cookie(regs);

	if (!state || empty_calls || shed >= NO_CALLS)
		return 0;
	/* One that did not return was left by a jump or a cancellation. */
	state->library = 0;
	if (op == LIBRARY_UNLOCK && is_locked_again(address))
		return 0;
	if (op == LIBRARY_LOCK || op == LIBRARY_UNLOCK)
		state->library_object = mutex(address);
	else if (op == LIBRARY_ARRIVE)
		state->library_object = futex_with(address, user_word(address + 8));
	else
		state->library_object = futex(address);
	if (op == LIBRARY_WAIT)
		emit(EVENT_MEMBER, tid, state->library_object, mutex(PT_REGS_PARM2(regs)),
		     16ULL << 32);
	state->library_address = address;
	state->waited = 0;
	state->library_entered = bpf_ktime_get_ns();
	state->library = op;
	return 0;
}

SEC("uretprobe")
int library_ends(struct pt_regs *regs)
{
	u32 tid = current_tid();
	struct call_state *state = state_of(tid);
	u64 now, cookie = bpf_get_attach_cookie(regs), op = cookie & 0xffff;
	int result = PT_REGS_RC(regs);

	if (!state || state->library != op)
		return 0;
	state->library = 0;
	if (shed >= WAITING_CALLS && !state->waited)
		return problem(SHED_CALLS), 0;
	if (result && cookie & MAY_FAIL) {
		if (op != LIBRARY_WAIT)
			return 0;
		op = 9; /* FUTEX_WAIT_BITSET: it slept, and none woke it */
	}
	if (op == LIBRARY_LOCK && is_locked_again(state->library_address))
		return 0;
	now = bpf_ktime_get_ns();
	emit_at(here(), now, EVENT_CALL, tid, state->library_object, -(long)result,
		(futex_call & 0x3ff) | op << 10 | (now - state->library_entered) << 20);
	return 0;
}

/* Its requests are no calls: what they do is not recorded, and counted. */
SEC("tp_btf/io_uring_submit_req")
int io_uring_submit_req(void *arguments)
{
	if (state_of(current_tid()))
		problem(IO_URING);
	return 0;
}
