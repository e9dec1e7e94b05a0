/* What skyloft's eevdf.c and cfs.c need of the library around them, for one CPU whose clock is that of the events. Only declarations, by us. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t __nsec;
#define NSEC_PER_SEC 1000000000ULL
__nsec now_ns(void);
/* A variable here: the events say how long a tick is. */
extern uint64_t peer_timer_hz;
#define TIMER_HZ peer_timer_hz

#define USED_CPUS 1
#define DEFINE_PERCPU(type, name) typeof(type) peer_percpu_##name
#define DECLARE_PERCPU(type, name) extern DEFINE_PERCPU(type, name)
#define percpu_get(name) peer_percpu_##name
#define percpu_get_remote(name, cpu) (*((void)(cpu), &peer_percpu_##name))

struct task {
    bool allow_preempt;
    uint8_t policy_task_data[128] __attribute__((aligned(64)));
};
struct task *task_self(void);
#define assert_local_irq_disabled() ((void)0)
