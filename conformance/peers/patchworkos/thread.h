/* The thread that PatchworkOS' sched.c schedules: of its members only those that it reads. */
#pragma once

#include <kernel/sched/sched.h>

typedef enum { THREAD_PARKED, THREAD_ACTIVE, THREAD_PRE_BLOCK, THREAD_BLOCKED, THREAD_UNBLOCKING, THREAD_DYING } thread_state_t;

struct thread {
    process_t *process;
    uint64_t id;
    _Atomic(thread_state_t) state;
    sched_client_t sched;
    struct { uint64_t top; } kernelStack;
    interrupt_frame_t frame;
};

thread_t *thread_new(process_t *process);
static inline void thread_free(thread_t *thread) { UNUSED(thread); }
static inline void thread_save(thread_t *thread, const interrupt_frame_t *frame) { UNUSED(thread), UNUSED(frame); }
static inline void thread_load(thread_t *thread, interrupt_frame_t *frame) { UNUSED(thread), UNUSED(frame); }
_Noreturn void thread_jump(thread_t *thread);
thread_t *thread_current(void);
bool wait_block_finalize(interrupt_frame_t *frame, thread_t *thread, clock_t uptime);
