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
	CALL_CONNECTS, CALL_WAITS,
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
enum library_call { LIBRARY_LOCK = 256, LIBRARY_UNLOCK, LIBRARY_WAIT, LIBRARY_ARRIVE = 261 };

/* A lock that may fail, or a wait that may end by its time, counts if it returns 0. */
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

/* The number of an object. A new one is announced; `renew` forgets what was at its place. */
static __always_inline u64 number_of(struct object_key *key, u64 inode, u64 peer, bool renew)
{
	u64 id, *known = renew ? NULL : bpf_map_lookup_elem(&objects, key);

	if (known)
		return *known;
	id = __sync_fetch_and_add(&latest_object, 1) + 1;
	bpf_map_update_elem(&objects, key, &id, BPF_ANY);
	emit(EVENT_OBJECT, current_tid(), id, key->class | inode << 8, peer);
	return id;
}

static __always_inline u32 anonymous_class(struct file *file)
{
	char name[8] = {};
	const unsigned char *at = BPF_CORE_READ(file, f_path.dentry, d_name.name);

	bpf_probe_read_kernel_str(name, sizeof(name), at);
	if (name[0] != '[')
		return CLASS_ANONYMOUS;
	if (name[1] == 'e' && name[6] == 'f')
		return CLASS_EVENTFD;
	if (name[1] == 'e' && name[6] == 'p')
		return CLASS_EPOLL;
	if (name[1] == 't')
		return CLASS_TIMERFD;
	if (name[1] == 's')
		return CLASS_SIGNALFD;
	return name[1] == 'p' && name[2] == 'i' ? CLASS_PIDFD : CLASS_ANONYMOUS;
}

/* The type of a socket, where its object's peer has it. */
static __always_inline u64 type_of(struct socket *socket)
{
	return (u64)(u8)BPF_CORE_READ(socket, type) << 56;
}

static __always_inline u64 unix_peer(struct sock *sk)
{
	struct unix_sock *from = (struct unix_sock *)sk;
	struct sock *to = BPF_CORE_READ(from, peer);
	struct socket *socket = to ? BPF_CORE_READ(to, sk_socket) : NULL;
	struct file *file = socket ? BPF_CORE_READ(socket, file) : NULL;
	struct object_key key = { .class = CLASS_UNIX_SOCKET };

	if (!file)
		return 0;
	key.where = BPF_CORE_READ(file, f_inode, i_ino);
	key.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	return number_of(&key, key.where, type_of(socket), false);
}

static __always_inline void socket_key(struct file *file, struct object_key *key, u64 *peer,
				       bool renew)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family = sk ? BPF_CORE_READ(sk, __sk_common.skc_family) : 0;

	key->class = CLASS_SOCKET;
	if (family == 1) {
		key->class = CLASS_UNIX_SOCKET;
		if (renew || !bpf_map_lookup_elem(&objects, key))
			*peer = unix_peer(sk) | type_of(socket);
	} else if (family == 2 || family == 10) {
		key->class = CLASS_INTERNET_SOCKET;
		*peer = (u64)BPF_CORE_READ(sk, __sk_common.skc_num) << 16 |
			bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport)) | type_of(socket);
	}
}

/* Not every header of types has it. */
struct eventfd_ctx___here {
	u64 count;
	unsigned int flags;
} __attribute__((preserve_access_index));

/* Whether an event counter is a semaphore, and twice its count. */
static __always_inline u64 counter_of(struct file *file)
{
	struct eventfd_ctx___here *counter = BPF_CORE_READ(file, private_data);

	return (BPF_CORE_READ(counter, flags) & 1) | BPF_CORE_READ(counter, count) << 1;
}

/* The object of an open file, in full. */
static __always_inline u64 object_of(struct file *file, struct inode *inode, u64 number, u32 renew)
{
	struct object_key key = { .where = number };
	u32 type = BPF_CORE_READ(inode, i_mode) & 0170000;
	u32 magic = BPF_CORE_READ(inode, i_sb, s_magic);
	u64 peer = 0;

	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (magic == ANON_INODE_MAGIC) {
		/* One inode serves them all: the open file is the object. */
		key.where = (u64)file;
		key.class = anonymous_class(file);
		if (key.class == CLASS_EVENTFD)
			peer = counter_of(file);
	} else if (magic == PIDFS_MAGIC) {
		key.class = CLASS_PIDFD;
	} else if (type == 0140000) {
		socket_key(file, &key, &peer, renew);
	} else if (type == 0010000) {
		key.class = CLASS_PIPE;
	} else {
		key.class = type == 0020000 || type == 0060000 ? CLASS_DEVICE : CLASS_FILE;
		if (key.class == CLASS_FILE)
			peer = key.device;
		else if (type == 0060000)
			peer = DISK | BPF_CORE_READ(inode, i_rdev);
		renew = 0;
	}
	if (renew)
		__sync_fetch_and_add(&generation, 1);
	return number_of(&key, number, peer, renew);
}

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/*
 * The file of a descriptor, its inode and that one's number. Since Linux 6.2 a load from an address
 * is an instruction; before, it is a call of a helper.
 */
static __always_inline struct file *open_file(struct fdtable *table, u32 fd, struct inode **inode,
					      u64 *number)
{
	const void *at = (const void *)((u64)table->fd + fd * 8ULL);
	struct file *file = NULL;

	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		/* A structure of one pointer. */
		struct hlist_head *slot =
			bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct hlist_head));

		file = bpf_rdonly_cast(slot->first, bpf_core_type_id_kernel(struct file));
		if (!file)
			return NULL;
		*inode = file->f_inode;
		*number = (*inode)->i_ino;
		return file;
	}
	bpf_probe_read_kernel(&file, sizeof(file), at);
	if (!file)
		return NULL;
	*inode = BPF_CORE_READ(file, f_inode);
	*number = BPF_CORE_READ(*inode, i_ino);
	return file;
}

static __noinline u64 resolve(u32 fd, u32 renew)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = task->files->fdt;
	struct file *file = NULL;
	struct resolved *known;
	struct inode *inode;
	u64 object, number, now = generation;
	u32 place;

	if (fd >= table->max_fds)
		return 0;
	file = open_file(table, fd, &inode, &number);
	if (!file)
		return 0;
	/* Slabs align files to 64 bytes and more. */
	place = ((u64)file >> 6 ^ (u64)file >> 15) & (RESOLVED - 1);
	known = bpf_map_lookup_elem(&resolved_files, &place);
	if (!known)
		return object_of(file, inode, number, renew);
	if (!renew && known->file == (u64)file && known->inode == (u64)inode &&
	    known->number == number && known->generation == now)
		return known->object;
	object = object_of(file, inode, number, renew);
	known->file = (u64)file;
	known->inode = (u64)inode;
	known->number = number;
	known->generation = now;
	known->object = object;
	return object;
}

/* A socket has got its ports: it is announced again, with the same number. */
static __noinline int connects(u32 fd, u64 object)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = task->files->fdt;
	struct object_key key = {};
	struct file *file = NULL;
	u64 peer = 0;

	if (!object || fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), (const void *)((u64)table->fd + fd * 8ULL));
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & 0170000) != 0140000)
		return 0;
	socket_key(file, &key, &peer, false);
	if (key.class == CLASS_INTERNET_SOCKET)
		emit(EVENT_OBJECT, current_tid(), object,
		     key.class | (u64)BPF_CORE_READ(file, f_inode, i_ino) << 8, peer);
	return 0;
}

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
		break;
	case CALL_CONNECTS:
		/* Or continues in the background (EINPROGRESS). */
		if (!result || result == -115)
			connects(state->argument[0], state->object);
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

static __always_inline void name(struct task_struct *task, const char *comm)
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

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->pid, to = child->pid;

	/* A place may still have the number's last task, if its end was missed. */
	forget(to);
	if (state_of(from))
		trace(to);
	emit(EVENT_FORK, current_tid(), from | (u64)to << 32, (u32)child->tgid, 0);
	name(child, (const char *)child->comm);
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
	name(task, comm);
	return 0;
}

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
