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

/* Where the call returns to: it tells critical sections apart. */
static __always_inline u64 caller(struct pt_regs *regs)
{
	u64 address = 0;

#ifdef __TARGET_ARCH_x86
	bpf_probe_read_user(&address, sizeof(address), (void *)PT_REGS_SP(regs));
#else
	address = PT_REGS_RET(regs);
#endif
	return address;
}

/* Processes that share a semaphore have it at one address. Its memory may not be there yet. */
static __always_inline u64 semaphore(u64 address)
{
	struct object_key key = { .where = address, .class = CLASS_FUTEX };
	u32 is_shared = 0;

	if (!bpf_probe_read_user(&is_shared, sizeof(is_shared), (void *)(address + 8)) && !is_shared)
		key.device = bpf_get_current_pid_tgid() >> 32;
	return number_of(&key, 0, 0, false);
}

/* What a semaphore had before its first call, which has ended. */
static __always_inline void counted(u32 tid, struct call_state *state, u16 op)
{
	u32 count = user_word(state->library_address);

	if (state->waited)
		count = 0;
	else if (op == LIBRARY_TAKE)
		count++;
	else if (count)
		count--;
	emit(EVENT_OBJECT, tid, state->library_object, CLASS_FUTEX, count);
}

/* What was at this address before is another object. */
static __always_inline void is_new(u64 address, u16 op, struct pt_regs *regs)
{
	struct object_key key = { .where = address, .class = CLASS_FUTEX };

	if (op == LIBRARY_NEW || !(u32)PT_REGS_PARM2(regs))
		key.device = bpf_get_current_pid_tgid() >> 32;
	if (op == LIBRARY_NEW_SEMAPHORE)
		number_of(&key, 0, (u32)PT_REGS_PARM3(regs), true);
	else
		bpf_map_delete_elem(&objects, &key);
}

/*
 * A call of a library of locks: without a system call if nothing has to wait. The layouts are
 * glibc's: of a mutex the lock, the count at 4, the kind at 16; of a barrier the tasks at 8; of a
 * semaphore the count, and at 8 whether processes share it.
 */
SEC("uprobe")
int library_begins(struct pt_regs *regs)
{
	u32 tid = current_tid();
	struct call_state *state = state_of(tid);
	u64 address = PT_REGS_PARM1(regs);
	u64 latest = latest_object;
	u16 op = bpf_get_attach_cookie(regs);

	if (!state || empty_calls || shed >= NO_CALLS)
		return 0;
	/* One that did not return was left by a jump or a cancellation. */
	state->library = 0;
	if (op >= LIBRARY_NEW)
		return is_new(address, op, regs), 0;
	if (op == LIBRARY_UNLOCK && is_locked_again(address))
		return 0;
	if (op == LIBRARY_LOCK || op == LIBRARY_UNLOCK)
		state->library_object = mutex(address);
	else if (op == LIBRARY_ARRIVE)
		state->library_object = futex_with(address, user_word(address + 8));
	else if (op == LIBRARY_TAKE || op == LIBRARY_POST)
		state->library_object = semaphore(address);
	else
		state->library_object = futex(address);
	if (op == LIBRARY_WAIT)
		emit(EVENT_MEMBER, tid, state->library_object, mutex(PT_REGS_PARM2(regs)),
		     16ULL << 32);
	state->library_address = address;
	state->library_caller = op == LIBRARY_LOCK ? caller(regs) : 0;
	state->waited = 0;
	state->library_entered = bpf_ktime_get_ns();
	state->library_is_new = state->library_object > latest;
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
	if (result && cookie & MAY_FAIL && op != LIBRARY_WAIT)
		return 0;
	if (op == LIBRARY_LOCK && is_locked_again(state->library_address))
		return 0;
	if (state->library_is_new && (op == LIBRARY_TAKE || op == LIBRARY_POST))
		counted(tid, state, op);
	now = bpf_ktime_get_ns();
	emit_at(here(), now, EVENT_CALL, tid, state->library_object,
		op == LIBRARY_LOCK ? state->library_caller : -(long)result,
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
