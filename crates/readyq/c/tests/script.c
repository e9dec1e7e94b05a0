/* Reads a script of operations, runs it on the queue QUEUE (rr, priority, ruler, wheel or rbtree), and answers.
 *
 * An operation is three bytes: verb, task, level. Each is answered with two: its result, and the task at the front. NONE is no task.
 * `tests/c_edition/truth.rs` writes the script and runs it on the Rust queue as well. MISTAKE makes the queue wrong on purpose: the test has to
 * notice. */
#ifdef CHECKED
extern void stopped(const char *why);
#define READYQ_CHECK(why) stopped(why)
#endif
#include "../rq.h"
#include "../rq_rbtree.h"
#include "../rq_wheel.h"
#include "mark.h"
#include "system.h"

enum { TASKS = 64, NONE = 255 };
enum { DO_RESET = 0, DO_INSERT = 1, DO_INSERT_FRONT = 2, DO_POP = 3, DO_REMOVE = 4, DO_NTH = 5, DO_WAITS = 6, DO_SWAP = 7, DO_WIPE = 8 };

struct task {
    uint8_t id;
    struct rq_link link;
    struct rq_spoke spoke;
    struct rq_branch branch;
};

static struct task tasks[TASKS];
static uint8_t script[1 << 24], answers[1 << 24];

#ifdef CHECKED
void stopped(const char *why)
{
    say(why);
    stop(4);
}
#endif

#if QUEUE == 4
typedef struct rq_spoke place;
#define OF(task) (&(task)->spoke)
#define NAME(place) number(RQ_TASK(place, struct task, spoke))
#elif QUEUE == 5
typedef struct rq_branch place;
#define OF(task) (&(task)->branch)
#define NAME(place) number(RQ_TASK(place, struct task, branch))
#else
typedef struct rq_link place;
#define OF(task) (&(task)->link)
#define NAME(place) number(RQ_TASK(place, struct task, link))
#endif

static uint8_t number(const struct task *task)
{
    return task == NULL ? NONE : task->id;
}

static inline bool nth(struct rq_link *at, void *count)
{
    (void)at;
    return (*(uint8_t *)count)-- == 0;
}

#if QUEUE == 1
static struct rq_rr queues[2], *queue = queues;
#define INIT(queue) rq_rr_init(queue)
#define PUT(at, level) ((void)(level), rq_rr_insert(queue, at))
#define FRONT(at, level) ((void)(level), rq_rr_insert_front(queue, at))
#define TAKE rq_rr_pop(queue)
#define LOOK rq_rr_peek(queue)
#define DROP(at) rq_rr_remove(queue, at)
#define FIND(count) rq_rr_find(queue, nth, count)
#define WAITING(at) rq_waits(at)
#elif QUEUE == 2
static struct rq_priority queues[2], *queue = queues;
#define INIT(queue) rq_priority_init(queue)
#define PUT(at, level) rq_priority_insert(queue, at, level)
#define FRONT(at, level) rq_priority_insert_front(queue, at, level)
#define TAKE rq_priority_pop(queue)
#define LOOK rq_priority_peek(queue)
#define DROP(at) rq_priority_remove(queue, at)
#define FIND(count) rq_priority_find(queue, nth, count)
#define WAITING(at) rq_waits(at)
#elif QUEUE == 3
static struct rq_ruler queues[2], *queue = queues;
#define INIT(queue) rq_ruler_init(queue)
#define PUT(at, level) rq_ruler_insert(queue, at, level)
#define FRONT(at, level) ((void)(level), rq_ruler_insert_front(queue, at))
#define TAKE rq_ruler_pop(queue)
#define LOOK rq_ruler_peek(queue)
#define DROP(at) rq_ruler_remove(queue, at)
#define FIND(count) rq_ruler_find(queue, nth, count)
#define WAITING(at) rq_waits(at)
#elif QUEUE == 4
static struct rq_wheel queues[2], *queue = queues;
#define INIT(queue) rq_wheel_init(queue)
#define PUT(at, level) rq_wheel_insert(queue, at, (RQ_KEY)((level) + 1U))
#define FRONT(at, level) ((void)(level), rq_wheel_insert_front(queue, at))
#define TAKE rq_wheel_pop(queue)
#define LOOK rq_wheel_peek(queue)
#define DROP(at) rq_wheel_remove(queue, at)
#define FIND(count) rq_wheel_find(queue, nth, count)
#define WAITING(at) rq_spoke_waits(at)
#else
static struct rq_rbtree queues[2], *queue = queues;
#define INIT(queue) rq_rbtree_init(queue)
#define PUT(at, level) rq_rbtree_insert(queue, at, (RQ_KEY)((level) + 1U))
#define FRONT(at, level) ((void)(level), rq_rbtree_insert_front(queue, at))
#define TAKE rq_rbtree_pop(queue)
#define LOOK rq_rbtree_peek(queue)
#define DROP(at) rq_rbtree_remove(queue, at)
#define FIND(count) find(count)
#define WAITING(at) rq_branch_waits(at)
static place *find(uint8_t *count)
{
    place *at = rq_rbtree_peek(queue);
    while (at != NULL && !nth(NULL, count)) {
        at = rq_rbtree_next(at);
    }
    return at;
}
#endif

static uint8_t step(uint8_t verb, struct task *task, uint8_t level)
{
    uint8_t count = level;
    place *at;
    switch (verb) {
    case DO_RESET:
        for (uint8_t id = 0; id <= task->id; id++) {
            tasks[id] = (struct task){.id = id};
        }
        queue = queues;
        INIT(&queues[0]);
        INIT(&queues[1]);
        return NONE;
    case DO_INSERT:
#ifdef MISTAKE
        if (level == 1 && task->id == 2) { /* One task of one level goes before the others. */
            FRONT(OF(task), level);
            return NONE;
        }
#endif
        MEASURE(INSERT, PUT(OF(task), level));
        return NONE;
    case DO_INSERT_FRONT:
        MEASURE(INSERT_FRONT, FRONT(OF(task), level));
        return NONE;
    case DO_POP:
        MEASURE(POP, at = TAKE);
        return NAME(at);
    case DO_REMOVE:
        MEASURE(REMOVE, DROP(OF(task)));
        return NONE;
    case DO_NTH:
        return NAME(FIND(&count));
    case DO_SWAP: /* The other of two queues. */
        queue = &queues[queue == queues];
        return NONE;
    case DO_WIPE: /* The task's memory is used for something else. */
        *task = (struct task){.id = task->id};
        return NONE;
    default:
        return WAITING(OF(task)) ? 1 : 0;
    }
}

static int program(void)
{
    size_t length = read_all(script, sizeof script), answered = 0;
    for (uint8_t id = 0; id < TASKS; id++) {
        tasks[id].id = id;
    }
    for (size_t at = 0; at + 3 <= length && script[at + 1] < TASKS; at += 3) {
        answers[answered++] = step(script[at], &tasks[script[at + 1]], script[at + 2]);
        answers[answered++] = NAME(LOOK);
    }
    write_all(answers, answered);
    return 0;
}
