/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records what the scheduler does on all CPUs, and what the tasks of one program wait for.
 *
 * Programs of type tp_btf hang on raw tracepoints; no kprobe is used. A system call of a traced
 * task is resolved to its object when it begins, so that a switch and a waking inside it name the
 * object, and is written when it ends. An event has 40 bytes, as the crate schedlab-recording
 * documents. What does not fit into the buffer is counted by kind, CPU and task.
 */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

char _license[] SEC("license") = "GPL";

enum event_kind {
	EVENT_SWITCH = 1, EVENT_WAKING, EVENT_WAKEUP, EVENT_WAKEUP_NEW, EVENT_FORK, EVENT_EXEC,
	EVENT_EXIT, EVENT_MIGRATE, EVENT_TASK, EVENT_OBJECT, EVENT_CALL, EVENT_MEMBER, EVENT_TIMER,
	EVENT_SETTING, EVENT_KINDS = 16,
};

/* What a system call is, by its number: filled in by the loader. */
enum call_class {
	CALL_IGNORED, CALL_DESCRIPTOR, CALL_CREATES, CALL_CREATES_PAIR, CALL_ACCEPTS, CALL_FUTEX,
	CALL_EPOLL_CTL, CALL_EPOLL_WAIT, CALL_POLL, CALL_PPOLL, CALL_NANOSLEEP, CALL_CLOCK_NANOSLEEP,
	CALL_TIMERFD_SETTIME, CALL_AFFINITY, CALL_POLICY, CALL_NICE, CALL_PLAIN, CALL_SOCKETPAIR,
	CALL_CONNECTS, CALL_WAITS, CALL_SELECT, CALL_PSELECT, CALL_ATTRIBUTES,
};

enum object_class {
	CLASS_PIPE = 1, CLASS_UNIX_SOCKET, CLASS_INTERNET_SOCKET, CLASS_SOCKET, CLASS_FILE,
	CLASS_DEVICE, CLASS_EVENTFD, CLASS_EPOLL, CLASS_TIMERFD, CLASS_SIGNALFD, CLASS_PIDFD,
	CLASS_ANONYMOUS, CLASS_FUTEX,
};

enum unresolved {
	NO_DESCRIPTOR, COMPAT, TOO_MANY_TASKS, MEMBERS, FAULT, SHED_ENTRIES, SHED_CALLS, IO_URING,
	PROBLEMS,
};

/* Calls of a library of locks: the cookies of its probes, as the reader has them. */
enum library_call {
	LIBRARY_LOCK = 256, LIBRARY_UNLOCK, LIBRARY_WAIT, LIBRARY_ARRIVE = 261, LIBRARY_TAKE, LIBRARY_POST,
	/* These are not in the recording: they make a new object. */
	LIBRARY_NEW, LIBRARY_NEW_SEMAPHORE,
};

/* A call that may fail counts if it returns 0; a wait for a signal always does. */
#define MAY_FAIL (1 << 16)
/* Of a pthread_mutex_t: bits of its kind. */
#define RECURSIVE 1
#define KINDS 3
#define INHERITS 32

/* What is left out, with all that is before it. */
enum level { ALL_DETAIL, NO_ENTRIES, WAITING_CALLS, NO_CALLS, NO_WAKEUPS };

/* An argument of the call that begins: of pt_regs as the verifier knows them, or by a helper. */
#ifdef __TARGET_ARCH_x86
#define ARGUMENT(number) PT_REGS_PARM##number##_SYSCALL(regs)
#else
#define ARGUMENT(number) PT_REGS_PARM##number##_CORE_SYSCALL(regs)
#endif

#define CALLS 512
#define TASKS (1 << 17)
#define MEMBERS_READ 64
#define DESCRIPTORS_READ 1024
#define RESOLVED 512
#define ANON_INODE_MAGIC 0x09041934
#define PIDFS_MAGIC 0x50494446
#define SECOND 1000000000ULL
#define DISK (1ULL << 32)
#define NEVER (~0ULL)

struct event {
	u64 time;
	u16 cpu;
	u8 kind;
	u8 context;
	u32 tid;
	u64 word[3];
};
_Static_assert(sizeof(struct event) == 40, "as the reader has it");

/* A traced task, and the system call in which it is. */
struct call_state {
	u32 tid; /* 0 is a free place */
	u32 waited; /* since the call began */
	u64 entered;
	u64 object;
	u64 argument[2];
	u16 number; /* plus one; 0 outside calls */
	u16 op;
	u16 library; /* the call of a library of locks; 0 outside */
	u64 library_object;
	u64 library_entered;
	u64 library_address;
	u64 library_caller;
	bool library_is_new;
};

struct object_key {
	u64 where;
	u32 device;
	u32 class;
};

/*
 * Of one CPU: what was counted, and how deep it is in interrupts. The kernel's own depth is a
 * variable whose address not every kernel gives, so entries and exits are counted. What is not
 * there is not loaded; a kernel's own vectors (timer, IPIs) have tracepoints on x86 only.
 */
struct here {
	u64 emitted[EVENT_KINDS];
	u64 lost[EVENT_KINDS];
	u64 problem[8];
	u32 hard;
	u32 soft;
};

/* An open file and its object. It holds while no object was created since, and for this inode. */
struct resolved {
	u64 file;
	u64 inode;
	u64 number;
	u64 generation;
	u64 object;
};

const volatile u8 calls[CALLS] SEC(".rodata.calls");
const volatile u8 trace_all SEC(".rodata.all") = 0;
const volatile struct {
	u64 id;
	u32 level;
} wanted_cgroup SEC(".rodata.cgroup") = {};
/* The level: the loader raises it. */
volatile u32 shed SEC(".data.shed") = 0;
/* Places for traced tasks, less one: all bits are set. */
const volatile u32 last_place SEC(".rodata.tasks") = TASKS - 1;
/* Only what it takes to come here and go: the floor of what a recorded call costs. */
const volatile u32 empty_calls SEC(".rodata.empty") = 0;
const volatile u32 futex_call SEC(".rodata.futex") = 0;
/* A canary for the tests: every such waking is dropped after it was counted. */
const volatile u32 drop_every SEC(".rodata.canary") = 0;

struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 25); } events SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct here);
} counters SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RESOLVED);
	__type(key, u32);
	__type(value, struct resolved);
} resolved_files SEC(".maps");
/*
 * By the last bits of a task's number. A place is found with two instructions, where a hash table
 * takes 30 ns. Numbers are given in order, so two traced tasks that live at the same time seldom
 * have the same place; then the calls of the second are not recorded, and it is counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, struct call_state);
} traced SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct object_key);
	__type(value, u64);
} objects SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u64);
} lost_tasks SEC(".maps");

u64 latest_object = 0;
/* How often an object was created. It is a new one even where another was before. */
u64 generation = 0;
u64 drawn = 0;

#include "events.bpf.h"
#include "objects.bpf.h"

static __always_inline u64 descriptor(u64 fd)
{
	u64 object = resolve(fd, 0);

	if (!object)
		problem(NO_DESCRIPTOR);
	return object;
}

static __always_inline u64 futex_with(u64 address, u64 peer)
{
	struct object_key key = { .where = address, .class = CLASS_FUTEX };

	key.device = bpf_get_current_pid_tgid() >> 32;
	return number_of(&key, 0, peer, false);
}

static __always_inline u64 futex(u64 address)
{
	return futex_with(address, 0);
}

/* One that processes share has no process. They have it at one address if they were forked. */
static __always_inline u64 futex_of(u64 address, bool private)
{
	struct object_key key = { .where = address, .class = CLASS_FUTEX };

	if (!private)
		return number_of(&key, 0, 0, false);
	return futex(address);
}

static __always_inline u64 read_time(u64 address, bool *there)
{
	struct __kernel_timespec time = {};

	*there = address && !bpf_probe_read_user(&time, sizeof(time), (void *)address);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static __always_inline void sleeps_until(u32 tid, u64 object, u64 address, bool absolute)
{
	bool there;
	u64 time = read_time(address, &there);

	if (there)
		emit(EVENT_TIMER, tid, object, absolute ? time : bpf_ktime_get_ns() + time, 0);
}

static __always_inline void sleeps_for_ms(u32 tid, u64 object, int ms)
{
	if (ms > 0)
		emit(EVENT_TIMER, tid, object, bpf_ktime_get_ns() + ms * 1000000ULL, 0);
}

static __always_inline void arms(u32 tid, u64 object, u64 flags, u64 address)
{
	bool there;
	u64 interval = read_time(address, &there), expiry = read_time(address + 16, &there);

	if (!there)
		return problem(FAULT);
	if (!expiry)
		expiry = NEVER;
	else if (!(flags & 1))
		expiry += bpf_ktime_get_ns();
	emit(EVENT_TIMER, tid, object, expiry, interval);
}

struct polling {
	u64 address;
	u32 tid;
};

static long poll_member(u32 index, struct polling *polling)
{
	struct pollfd entry;

	const void *at = (void *)(polling->address + index * sizeof(entry));

	if (bpf_probe_read_user(&entry, sizeof(entry), at)) {
		problem(FAULT);
		return 1;
	}
	if (entry.fd >= 0)
		emit(EVENT_MEMBER, polling->tid, 0, descriptor(entry.fd), (u16)entry.events);
	return 0;
}

static __always_inline void polls(u32 tid, u64 address, u64 count)
{
	struct polling polling = { .address = address, .tid = tid };

	if (shed >= NO_ENTRIES)
		return problem(SHED_ENTRIES);
	if (count > MEMBERS_READ) {
		problem(MEMBERS);
		count = MEMBERS_READ;
	}
	bpf_loop(count, poll_member, &polling, 0);
}

struct selecting {
	u64 sets[2];
	u64 words[2];
	u32 tid;
	u32 members;
};

/* Descriptors to read and to write are in two sets of bits. */
static long select_member(u32 fd, struct selecting *selecting)
{
	u64 events = 0, place = fd & 63;

	for (int set = 0; set < 2; set++) {
		const void *at = (void *)(selecting->sets[set] + fd / 64 * sizeof(u64));

		if (!place && selecting->sets[set] &&
		    bpf_probe_read_user(&selecting->words[set], sizeof(u64), at)) {
			problem(FAULT);
			return 1;
		}
		if (selecting->words[set] >> place & 1)
			events |= set ? 4 : 1;
	}
	if (!events)
		return 0;
	if (selecting->members++ >= MEMBERS_READ) {
		problem(MEMBERS);
		return 1;
	}
	emit(EVENT_MEMBER, selecting->tid, 0, descriptor(fd), events);
	return 0;
}

static __always_inline void selects(u32 tid, struct pt_regs *regs, bool in_microseconds)
{
	struct selecting selecting = { .sets = { ARGUMENT(2), ARGUMENT(3) }, .tid = tid };
	u64 count = ARGUMENT(1), time[2];

	if (!ARGUMENT(5) || bpf_probe_read_user(time, sizeof(time), (void *)ARGUMENT(5)))
		time[0] = time[1] = 0;
	time[0] = time[0] * SECOND + time[1] * (in_microseconds ? 1000 : 1);
	if (time[0])
		emit(EVENT_TIMER, tid, 0, bpf_ktime_get_ns() + time[0], 0);
	if (shed >= NO_ENTRIES)
		return problem(SHED_ENTRIES);
	bpf_loop(count < DESCRIPTORS_READ ? count : DESCRIPTORS_READ, select_member, &selecting, 0);
}

/* The policy and the flag that it is not inherited, as sched_setscheduler has them. */
static __always_inline u64 policy_of(u64 address)
{
	struct { u32 size, policy; u64 flags; } attributes = {};

	if (bpf_probe_read_user(&attributes, sizeof(attributes), (void *)address))
		problem(FAULT);
	return attributes.policy | (attributes.flags & 1) << 30;
}

static __always_inline void futex_begins(struct call_state *state, u32 tid, struct pt_regs *regs)
{
	u32 op = ARGUMENT(2) & 0x7f;
	bool private = ARGUMENT(2) & 0x80;

	state->op = op;
	state->object = futex_of(ARGUMENT(1), private);
	/* FUTEX_REQUEUE, CMP_REQUEUE, WAKE_OP and the two with priority inheritance */
	if (op == 3 || op == 4 || op == 5 || op == 11 || op == 12)
		emit(EVENT_MEMBER, tid, state->object, futex_of(ARGUMENT(5), private),
		     16ULL << 32);
	if (op == 0)
		sleeps_until(tid, state->object, ARGUMENT(4), false);
	else if (op == 9 || op == 6 || op == 11 || op == 13)
		sleeps_until(tid, state->object, ARGUMENT(4), true);
}

static __always_inline void epoll_changes(struct call_state *state, u32 tid, struct pt_regs *regs)
{
	struct epoll_event event = {};
	u64 op = ARGUMENT(2);

	state->op = op;
	state->object = descriptor(ARGUMENT(1));
	bpf_probe_read_user(&event, sizeof(event), (void *)ARGUMENT(4));
	emit(EVENT_MEMBER, tid, state->object, descriptor(ARGUMENT(3)),
	     (u64)event.events | (op & 0xff) << 32);
}

static __always_inline bool is_compat(struct task_struct *task)
{
#ifdef __TARGET_ARCH_x86
	return task->thread_info.status & 2;
#else
	return task->thread_info.flags & (1 << 22);
#endif
}

/* Whether the calls of this task are recorded, though no traced task started it. */
static __always_inline bool is_wanted(void)
{
	return trace_all ||
	       (wanted_cgroup.id &&
		bpf_get_current_ancestor_cgroup_id(wanted_cgroup.level) == wanted_cgroup.id);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs *regs, long number)
{
	u32 tid = current_tid();
	struct call_state *state;
	u64 first;
	u8 call;

	if (empty_calls || shed >= NO_CALLS)
		return 0;
	state = state_of(tid);
	if (!state && is_wanted())
		state = trace(tid);
	if (!state)
		return 0;
	state->number = 0;
	/* Its numbers are others. */
	if (is_compat(bpf_get_current_task_btf())) {
		problem(COMPAT);
		return 0;
	}
	if ((u64)number >= CALLS)
		return 0;
	call = calls[number & (CALLS - 1)];
	if (call == CALL_IGNORED)
		return 0;
	first = ARGUMENT(1);
	state->object = 0;
	state->op = 0;
	state->waited = 0;
	state->argument[0] = first;
	state->argument[1] = ARGUMENT(2);
	state->entered = bpf_ktime_get_ns();
	state->number = number + 1;
	switch (call) {
	case CALL_DESCRIPTOR:
	case CALL_ACCEPTS:
	case CALL_CONNECTS:
		state->object = descriptor(first);
		break;
	case CALL_FUTEX:
		futex_begins(state, tid, regs);
		break;
	case CALL_EPOLL_CTL:
		epoll_changes(state, tid, regs);
		break;
	case CALL_EPOLL_WAIT:
		state->object = descriptor(first);
		state->op = ARGUMENT(3) < 0x3ff ? ARGUMENT(3) : 0x3ff;
		sleeps_for_ms(tid, state->object, (int)ARGUMENT(4));
		break;
	case CALL_POLL:
		polls(tid, first, state->argument[1]);
		sleeps_for_ms(tid, 0, (int)ARGUMENT(3));
		break;
	case CALL_PPOLL:
		polls(tid, first, state->argument[1]);
		sleeps_until(tid, 0, ARGUMENT(3), false);
		break;
	case CALL_SELECT:
	case CALL_PSELECT:
		selects(tid, regs, call == CALL_SELECT);
		break;
	case CALL_ATTRIBUTES:
		state->argument[1] = policy_of(state->argument[1]);
		break;
	case CALL_NANOSLEEP:
		sleeps_until(tid, 0, first, false);
		break;
	case CALL_CLOCK_NANOSLEEP:
		state->op = state->argument[1] & 1;
		sleeps_until(tid, 0, ARGUMENT(3), state->argument[1] & 1);
		break;
	case CALL_TIMERFD_SETTIME:
		state->object = descriptor(first);
		arms(tid, state->object, state->argument[1], ARGUMENT(3));
		break;
	case CALL_AFFINITY:
		state->argument[1] = 0;
		bpf_probe_read_user(&state->argument[1], 8, (void *)ARGUMENT(3));
		break;
	case CALL_SOCKETPAIR:
		state->argument[0] = ARGUMENT(4);
		break;
	case CALL_WAITS:
		/* For any child. */
		state->op = (int)first == -1;
		break;
	case CALL_NICE:
		state->argument[0] = state->argument[1];
		state->argument[1] = ARGUMENT(3);
		break;
	}
	return 0;
}

static __always_inline void setting(u32 tid, u64 task, u64 which, u64 value)
{
	emit(EVENT_SETTING, tid, (u32)(task ? task : tid) | which << 32, value, 0);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs *regs, long result)
{
	u32 tid = current_tid();
	struct call_state *state;
	u64 now, duration, number;
	int pair[2] = {};
	bool alone = false;

	if (empty_calls)
		return 0;
	state = state_of(tid);
	if (!state || !state->number)
		return 0;
	number = state->number - 1;
	state->number = 0;
	if (shed >= NO_CALLS)
		return 0;
	now = bpf_ktime_get_ns();
	duration = now - state->entered;
	switch (calls[number & (CALLS - 1)]) {
	case CALL_CREATES:
		if (result >= 0)
			state->object = resolve(result, 1);
		break;
	case CALL_ACCEPTS:
		if (result >= 0)
			emit(EVENT_MEMBER, tid, state->object, resolve(result, 1), 17ULL << 32);
		if (result >= 0)
			connected_at(result, 1);
		break;
	case CALL_CONNECTS:
		/* Or continues in the background (EINPROGRESS). */
		if (!result || result == -115)
			connects(state->argument[0], state->object);
		if (!result)
			connected_at(state->argument[0], 0);
		break;
	case CALL_CREATES_PAIR:
	case CALL_SOCKETPAIR:
		if (!result && !bpf_probe_read_user(pair, sizeof(pair), (void *)state->argument[0])) {
			state->object = resolve(pair[0], 1);
			resolve(pair[1], 0);
		}
		break;
	case CALL_AFFINITY:
		if (result >= 0)
			setting(tid, state->argument[0], 0, state->argument[1]);
		break;
	case CALL_ATTRIBUTES:
	case CALL_POLICY:
		if (result >= 0)
			setting(tid, state->argument[0], 1, state->argument[1]);
		break;
	case CALL_NICE:
		if (result >= 0)
			setting(tid, state->argument[0], 2, state->argument[1]);
		break;
	case CALL_FUTEX:
		/* A part of the library's call. */
		if (state->library) {
			state->object = 0;
			return 0;
		}
		/* fall through */
	default:
		if (shed >= WAITING_CALLS && !state->waited) {
			state->object = 0;
			return problem(SHED_CALLS), 0;
		}
		alone = true;
	}
	/* What a call made comes before it. */
	if (!alone)
		now = bpf_ktime_get_ns();
	emit_at(here(), now, EVENT_CALL, tid, state->object, result,
		(number & 0x3ff) | (u64)(state->op & 0x3ff) << 10 | duration << 20);
	state->object = 0;
	return 0;
}

#include "scheduling.bpf.h"
#include "locks.bpf.h"
