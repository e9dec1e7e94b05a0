/* skyloft's EEVDF (-DPEER_EEVDF) or CFS (-DPEER_CFS) as a subject: its eevdf.c or cfs.c, unmodified, on one CPU.
 *
 * A task that is preempted leaves the CPU as in skyloft's interrupt handler, which calls task_yield: so a `pick` while a task runs is `sched_yield` and then
 * `sched_pick_next`. `resched` at a tick is what `sched_preempt` says; wakeups and new tasks ask for nothing. All tasks have the weight 1024: no call sets another. */
#include "../protocol.h"
#include "shim.h"

#include PEER_POLICY_C

#ifdef PEER_EEVDF
#define CALL(name) eevdf_sched_##name
#define ENTITY(task) eevdf_task_of(task)
static struct eevdf_rq queue;
static struct eevdf_task *current(void) { return queue.curr; }
#else
#define CALL(name) cfs_sched_##name
#define ENTITY(task) cfs_task_of(task)
static struct cfs_rq queue;
static struct cfs_task *current(void) { return queue.curr; }
#endif

uint64_t peer_timer_hz;
__thread int g_logic_cpu_id;
static struct task tasks[PEER_TASKS + 1];
static bool known[PEER_TASKS + 1];
static int64_t now;

__nsec now_ns(void) { return (__nsec)now; }
struct task *task_self(void)
{
    void *task = current(); /* task_of needs this name */
    return task == NULL ? NULL : task_of(task);
}
void logk(int level, const char *format, ...) { (void)level, (void)format; }
void logk_bug(bool fatal, const char *condition, const char *file, int line, const char *function)
{
    static char what[256];
    (void)file, (void)fatal;
    snprintf(what, sizeof what, "skyloft stops: %s, line %d: %s", function, line, condition);
    for (char *at = what; *at; at++)
        if (*at == '"' || *at == '\\')
            *at = '\'';
    peer_stop(what);
}

static int64_t number(const struct task *task) { return task == NULL ? 0 : task - tasks; }

static const char *peer_do(const struct peer_event *event, struct peer_answer *answer)
{
    struct task *task = &tasks[event->task];
    bool is = event->task > 0 && known[event->task];
#define OP(name) (strcmp(event->op, name) == 0)
    now = event->at;
    if (OP("reset")) {
        if (event->tick <= 0 || event->tick > 1000000000)
            return "skyloft counts ticks by the second, so a tick is between 1 ns and 1 s";
        if (event->slice <= 0 || event->slice > INT64_MAX / 64)
            return "a request is between 1 ns and 2^57 ns";
        peer_timer_hz = NSEC_PER_SEC / (uint64_t)event->tick;
#ifdef PEER_EEVDF
        sysctl_sched_base_slice = (__nsec)event->slice;
#else
        /* The slice is CFS's granularity; cfs.c says that the latency is kept at sched_nr_latency times it. */
        sysctl_sched_min_granularity = (__nsec)event->slice;
        sysctl_sched_latency = (__nsec)event->slice * sched_nr_latency;
#endif
        memset(&queue, 0, sizeof queue);
        memset(known, 0, sizeof known);
        CALL(init_percpu)(&queue);
    } else if (OP("task")) {
        if (event->task == 0 || is)
            return "a task has a number of its own, from 1";
        if (event->weight != NICE_0_LOAD)
            return "skyloft has no call that sets a task's weight: all have 1024";
        if (CALL(init_task)(task) != 0)
            return "skyloft does not make the task";
        known[event->task] = true;
#ifdef PEER_EEVDF
        if (event->slice != 0 && (__nsec)event->slice != sysctl_sched_base_slice)
            return "skyloft has one request for all tasks, sysctl_sched_base_slice";
#else
        ENTITY(task)->vruntime = queue.min_vruntime + (uint64_t)event->vruntime;
#endif
    } else if (OP("wake") || OP("new")) {
        if (!is || ENTITY(task)->on_rq)
            return "a task that wakes exists and sleeps";
        if (OP("wake"))
            CALL(wakeup)(task);
        else if (CALL(spawn)(task, 0) != 0)
            return "skyloft does not spawn the task";
        answer->resched = false;
        answer->states = true;
    } else if (OP("tick")) {
        answer->resched = CALL(preempt)();
        answer->states = true;
    } else if (OP("block") || OP("exit") || OP("yield")) {
        if (current() == NULL)
            return "no task runs";
        if (OP("block"))
            CALL(block)();
        else if (OP("exit"))
            CALL(finish_task)(task_self());
        else
            CALL(yield)();
        answer->states = true;
    } else if (OP("pick")) {
        if (current() != NULL)
            CALL(yield)();
        CALL(percpu_lock)(0);
        answer->runs = number(CALL(pick_next)());
        CALL(percpu_unlock)(0);
        answer->states = true;
    } else if (OP("weight")) {
        return "skyloft has no call that sets a task's weight: all have 1024";
    } else if (OP("slice")) {
        return "skyloft has no call that sets a task's request";
    } else {
        return "this event is unknown";
    }
    return NULL;
}

static bool peer_state(int64_t task, struct peer_state *state)
{
    if (!known[task] || !ENTITY((&tasks[task]))->on_rq)
        return false;
    *state = (struct peer_state){.vruntime = (int64_t)ENTITY((&tasks[task]))->vruntime};
#ifdef PEER_EEVDF
    state->deadline = (int64_t)ENTITY((&tasks[task]))->deadline;
    state->has_deadline = state->has_lag = true;
    state->lag = (int64_t)avg_vruntime(&queue) - state->vruntime;
    state->eligible = task_eligible(&queue, ENTITY((&tasks[task])));
#endif
    return true;
}
