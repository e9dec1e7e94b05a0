/* PatchworkOS' EEVDF as a subject: its sched.c, unmodified, on one CPU.
 *
 * Its whole decision is sched_do, which every interrupt ends with: so `pick` is an interrupt. A wakeup sends the CPU an interrupt (`resched` is whether it did), and
 * a tick is one if the time is over for which sched_do set the timer. A task that blocks or ends leaves the queue in sched_do, so at the `pick` that follows.
 * Weights are 32 to 2048, its priorities 0 to 63. */
#include "../protocol.h"
#include "shim.h"

#include <stdarg.h>

#include PEER_SCHED_C

clock_t peer_slice;
cpu_t peer_cpu = {.self = &peer_cpu};

static thread_t threads[PEER_TASKS + 1]; /* threads[0] is the idle one */
static process_t processes[PEER_TASKS + 1];
static bool known[PEER_TASKS + 1];
static clock_t uptime, timer;
static bool interrupted;

void peer_panic(const char *format, ...)
{
    char what[256] = "PatchworkOS panics: ";
    size_t length = strlen(what);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what + length, sizeof what - length, format, arguments);
    va_end(arguments);
    for (char *at = what; *at; at++)
        if (*at == '"' || *at == '\\')
            *at = '\'';
    peer_stop(what);
}

void sched_idle_loop(void) { peer_panic("the idle loop is not run"); }
void thread_jump(thread_t *thread) { peer_panic("the boot thread %llu is not run", (unsigned long long)thread->id); }
thread_t *thread_new(process_t *process) { threads[0].process = process; return &threads[0]; }
thread_t *thread_current(void) { return _pcpu_sched.runThread; }
process_t *process_get_kernel(void) { return &processes[0]; }
clock_t clock_uptime(void) { return uptime; }
void ipi_wake_up(cpu_t *cpu, int flags) { UNUSED(cpu), UNUSED(flags), interrupted = true; }
void ipi_invoke(void) { interrupted = true; }
uint64_t peer_sleep(wait_queue_t *queue, clock_t timeout) { UNUSED(queue), UNUSED(timeout), peer_panic("nothing sleeps by itself"); }

/* As its timer.c: the earliest time that was asked for since the last interrupt. */
void timer_set(clock_t now, clock_t deadline)
{
    if (deadline < now + CONFIG_MIN_TIMER_TIMEOUT)
        deadline = now + CONFIG_MIN_TIMER_TIMEOUT;
    if (deadline < timer)
        timer = deadline;
}

bool wait_block_finalize(interrupt_frame_t *frame, thread_t *thread, clock_t now)
{
    UNUSED(frame), UNUSED(now);
    atomic_store(&thread->state, THREAD_BLOCKED);
    return true;
}

static const char *set_weight(int64_t task, int64_t weight)
{
    if (weight < PEER_SCALE || weight > SCHED_WEIGHT_MAX * PEER_SCALE)
        return "PatchworkOS has weights from 1 to 64 and nice 0 stands for 32, so a weight is between 32 and 2048";
    atomic_store(&processes[task].priority, weight - SCHED_WEIGHT_BASE);
    return NULL;
}

static const char *peer_do(const struct peer_event *event, struct peer_answer *answer)
{
    sched_t *sched = &_pcpu_sched;
    thread_t *thread = &threads[event->task];
    bool is = event->task > 0 && known[event->task];
#define OP(name) (strcmp(event->op, name) == 0)
    uptime = (clock_t)event->at * PEER_SCALE;
    if (OP("reset")) {
        if (event->slice <= 0 || event->slice > INT64_MAX / 64)
            return "a request is between 1 ns and 2^57 ns";
        memset(threads, 0, sizeof threads);
        memset(known, 0, sizeof known);
        memset(sched, 0, sizeof *sched);
        peer_slice = (clock_t)event->slice * PEER_SCALE;
        timer = CLOCKS_NEVER;
        _pcpu_sched_ctor();
    } else if (OP("task")) {
        if (event->task == 0 || is)
            return "a task has a number of its own, from 1";
        if (event->slice != 0 && (clock_t)event->slice * PEER_SCALE != peer_slice)
            return "PatchworkOS has one request for all tasks, CONFIG_TIME_SLICE";
        known[event->task] = true;
        thread->id = event->task;
        thread->process = &processes[event->task];
        thread->process->id = event->task;
        sched_client_init(&thread->sched);
        atomic_store(&thread->state, THREAD_BLOCKED);
        return set_weight(event->task, event->weight);
    } else if (OP("wake") || OP("new")) {
        if (!is || atomic_load(&thread->state) != THREAD_BLOCKED)
            return "a task that wakes exists and sleeps";
        interrupted = false;
        atomic_store(&thread->state, THREAD_UNBLOCKING);
        sched_submit(thread);
        answer->resched = interrupted;
        answer->states = sched->runThread == sched->idleThread || atomic_load(&sched->runThread->state) == THREAD_ACTIVE;
    } else if (OP("tick")) {
        answer->resched = uptime >= timer;
    } else if (OP("block") || OP("exit")) {
        if (sched->runThread == sched->idleThread)
            return "no task runs";
        atomic_store(&sched->runThread->state, OP("block") ? THREAD_PRE_BLOCK : THREAD_DYING);
    } else if (OP("pick")) {
        interrupt_frame_t frame = {0};
        if (uptime >= timer)
            timer = CLOCKS_NEVER;
        sched_do(&frame);
        answer->runs = (int64_t)sched->runThread->id;
        answer->states = true;
    } else if (OP("weight")) {
        if (!is)
            return "the task does not exist";
        answer->resched = false; /* as /proc/PID/prio: nothing but the priority is written */
        return set_weight(event->task, event->weight);
    } else if (OP("yield")) {
        return "a yield in PatchworkOS is a sleep of 1 ms";
    } else if (OP("slice")) {
        return "PatchworkOS has one request for all tasks, CONFIG_TIME_SLICE";
    } else {
        return "this event is unknown";
    }
    return NULL;
}

/* A virtual time of PatchworkOS, which counts clock units by weight, in ns of nice 0. */
static int64_t nanoseconds(int128_t virtual)
{
    return (int64_t)((virtual * (1024 / PEER_SCALE)) >> SCHED_FIXED_POINT);
}

static bool peer_state(int64_t task, struct peer_state *state)
{
    const sched_client_t *client = &threads[task].sched;
    if (!known[task] || (client->node.parent == NULL && _pcpu_sched.runqueue.root != &client->node))
        return false;
    *state = (struct peer_state){.vruntime = nanoseconds(client->veligible),
        .deadline = nanoseconds(client->vdeadline),
        .has_deadline = true,
        .lag = nanoseconds(_pcpu_sched.vtime - client->veligible),
        .has_lag = true,
        .eligible = sched_fixed_cmp(client->veligible, _pcpu_sched.vtime) <= 0};
    return true;
}
