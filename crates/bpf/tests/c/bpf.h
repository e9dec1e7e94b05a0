typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define __array(name, value) typeof(value) *name[]
#define __ksym __attribute__((section(".ksyms")))
#define __kconfig __attribute__((section(".kconfig")))
#define __weak __attribute__((weak))

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*bpf_map_peek_elem)(void *map, void *value) = (void *)89;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*bpf_ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
static void *(*bpf_ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void *(*bpf_per_cpu_ptr)(const void *variable, u32 cpu) = (void *)153;
static void *(*bpf_task_storage_get)(void *map, void *task, void *value, u64 flags) = (void *)156;
static long (*bpf_task_storage_delete)(void *map, void *task) = (void *)157;
static long (*bpf_for_each_map_elem)(void *map, void *callback, void *context, u64 flags) = (void *)164;
static long (*bpf_snprintf)(char *to, u32 size, const char *format, u64 *data, u32 length) = (void *)165;
static long (*bpf_trace_vprintk)(const char *format, u32 size, const void *data, u32 length) = (void *)177;
static long (*bpf_loop)(u32 rounds, void *callback, void *context, u64 flags) = (void *)181;
static long (*bpf_strncmp)(const char *first, u32 size, const char *second) = (void *)182;
static void *(*bpf_map_lookup_percpu_elem)(void *map, const void *key, u32 cpu) = (void *)195;
