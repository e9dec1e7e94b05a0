/* What the schedulers of these tests need to know of the kernel, written down by hand: structures
 * are laid out by the object's own types, so that any layout is right in the simulator. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define __arg(index, type) ((type)context[index])

#define SCX_DSQ_GLOBAL (1ULL << 63 | 1)
#define SCX_DSQ_LOCAL (1ULL << 63 | 2)
#define SCX_DSQ_LOCAL_ON (3ULL << 62)
#define SCX_SLICE_DFL 20000000ULL
#define SCX_SLICE_INF (~0ULL)
#define SCX_KICK_IDLE 1
#define SCX_KICK_PREEMPT 2

struct cpumask {
	u64 bits[16];
};

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
	u32 flags;
};

struct task_struct {
	int pid;
	u32 flags;
	void *mm;
	int nr_cpus_allowed;
	char comm[16];
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*enable)(struct task_struct *p);
	s32 (*init)(void);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

extern void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				     u64 enq_flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
extern s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				  bool *is_idle) __ksym;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern void scx_bpf_error_bstr(char *fmt, u64 *data, u32 size) __ksym;
extern s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus, u64 flags) __ksym;

static long (*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 u64 flags) = (void *)2;
static long (*const bpf_trace_printk)(const char *fmt, u32 fmt_size, ...) = (void *)6;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_timer_init)(void *timer, void *map, u64 flags) = (void *)169;
static long (*const bpf_timer_set_callback)(void *timer, void *callback) = (void *)170;
static long (*const bpf_timer_start)(void *timer, u64 ns, u64 flags) = (void *)171;

char _license[] SEC("license") = "Dual MIT/GPL";
