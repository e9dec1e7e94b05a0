/* What PatchworkOS' sched.c, sched.h and rbtree.h need of the kernel around them, for one CPU whose clock is that of the events. Only declarations, by us. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* The C library has a function of this name too. */
#define sched_yield patchworkos_sched_yield

typedef __int128_t int128_t;
#define clock_t uint64_t

/* A clock unit is 1/32 ns and a weight is Linux's, which is 32 times PatchworkOS' own (nice 0, 1024, is its weight 32, the priority of user programs). As both have
 * the same factor all virtual times are PatchworkOS' own, and weights between its whole ones can be expressed. */
#define PEER_SCALE 32
#define CLOCKS_PER_MS ((clock_t)1000000 * PEER_SCALE)
#define CLOCKS_NEVER UINT64_MAX
extern clock_t peer_slice;
#define CONFIG_TIME_SLICE peer_slice
#define CONFIG_CACHE_HOT_THRESHOLD (CLOCKS_PER_MS * 5)
#define CONFIG_MIN_TIMER_TIMEOUT (CLOCKS_PER_MS / 10)
#define PRIORITY_MAX 63

_Noreturn void peer_panic(const char *format, ...);
#define panic(frame, ...) peer_panic(__VA_ARGS__)
#define assert(condition) ((condition) ? (void)0 : peer_panic("assertion failed: %s", #condition))
#define LOG_WARN(...) ((void)0)
#define LOG_DEBUG(...) ((void)0)

#define _NORETURN _Noreturn
#define UNUSED(x) ((void)(x))
#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define CONTAINER_OF_SAFE(pointer, type, member) \
    ({ \
        void *peer_pointer = (pointer); \
        peer_pointer ? CONTAINER_OF(peer_pointer, type, member) : NULL; \
    })

/* One CPU. */
typedef struct cpu {
    struct cpu *self;
    int id;
    bool inInterrupt;
} cpu_t;
extern cpu_t peer_cpu;
#define SELF (&peer_cpu)
#define CPU_FOR_EACH(cpu) for (cpu = SELF; cpu != NULL; cpu = NULL)
#define PERCPU
#define PERCPU_DEFINE_CTOR(type, name) \
    type name; \
    static void name##_ctor(void)
#define SELF_PTR(name) (&name)
#define CPU_PTR(id, name) ((void)(id), &name)
#define IPI_SINGLE 0
void ipi_wake_up(cpu_t *cpu, int flags);
void ipi_invoke(void);
static inline void cli_push(void) {}
static inline void cli_pop(void) {}
#define CLI_SCOPE() ((void)0)
#define SYSCALL_DEFINE(number, result, ...) static __attribute__((unused)) result peer_##number(__VA_ARGS__)

typedef int lock_t;
static inline void lock_init(lock_t *lock) { *lock = 0; }
static inline void lock_acquire(lock_t *lock) { *lock = 1; }
static inline void lock_release(lock_t *lock) { *lock = 0; }
#define LOCK_SCOPE(lock) UNUSED(lock)
static inline void rcu_report_quiescent(void) {}

typedef struct process {
    _Atomic(uint32_t) priority; /* the weight is this and SCHED_WEIGHT_BASE */
    uint64_t id;
} process_t;
process_t *process_get_kernel(void);
static inline void process_kill(process_t *process, const char *status) { UNUSED(process), UNUSED(status); }

typedef struct { int unused; } wait_queue_t;
#define WAIT_QUEUE_CREATE(name) {0}
#define WAIT_BLOCK_TIMEOUT(queue, condition, timeout) peer_sleep(queue, timeout)
uint64_t peer_sleep(wait_queue_t *queue, clock_t timeout);

typedef struct { uint64_t rip, rsp, cs, ss, rflags; } interrupt_frame_t;
#define GDT_CS_RING0 0
#define GDT_SS_RING0 0
#define RFLAGS_INTERRUPT_ENABLE 0
#define RFLAGS_ALWAYS_SET 0

clock_t clock_uptime(void);
void timer_set(clock_t now, clock_t deadline);
