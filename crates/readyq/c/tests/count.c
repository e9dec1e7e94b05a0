/* What an operation costs: loops over one queue, with marks that `plugin.c` counts instructions between.
 *
 * Standard input has the cell, seven numbers: queue, tasks, levels (at random among them; 0: all at level 9), loop or mix, memory order, and the number
 * of slices in two parts. The loop is that of the Rust example `count`: pop a task, insert it again at its level; mark LOOP is around all slices. The
 * mix draws operations at random, and each has a mark of its own. Without input it writes the sizes in RAM. */
#include "../rq.h"
#include "../rq_rbtree.h"
#include "../rq_wheel.h"
#include "mark.h"
#include "peers.h"
#include "system.h"

enum { TASKS = 1000 };
struct task {
    struct rq_link link;
    struct rq_spoke spoke;
    struct rq_branch branch;
    struct list node;
    uint8_t level;
    bool waits;
};

static struct task memory[TASKS], *tasks[TASKS];
static unsigned count;

static uint64_t state;

static unsigned below(unsigned bound)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % bound;
}

#define LINK(task) (&(task)->link)
#define NODE(task) (&(task)->node)
#define OF_LINK(at) RQ_TASK(at, struct task, link)
#define OF_NODE(at) RQ_TASK(at, struct task, node)
#define OF_SPOKE(at) RQ_TASK(at, struct task, spoke)
#define OF_BRANCH(at) RQ_TASK(at, struct task, branch)

/* Defines the loop and the mix of one queue by its four verbs. */
#define MEASURED(NAME, TYPE, INIT, POP_IT, INSERT_IT, REMOVE_IT, FRONT_IT) \
    static TYPE NAME##_queue; \
    static __attribute__((noinline)) void for_ever_##NAME(TYPE *queue, unsigned slices) \
    { \
        for (; slices > 0; slices--) { \
            struct task *task = POP_IT; \
            if (task == NULL) { \
                return; \
            } \
            INSERT_IT; \
        } \
    } \
    static __attribute__((noinline)) void mix_##NAME(TYPE *queue, unsigned slices) \
    { \
        for (; slices > 0; slices--) { \
            struct task *task = tasks[below(count)]; \
            if (!task->waits) { \
                MEASURE(INSERT, INSERT_IT); \
                task->waits = true; \
            } else if (below(4) == 0) { \
                MEASURE(REMOVE, REMOVE_IT); \
                task->waits = false; \
            } else { \
                MEASURE(POP, task = POP_IT); \
                task->waits = false; \
                if (below(8) == 0) { \
                    MEASURE(INSERT_FRONT, FRONT_IT); \
                    task->waits = true; \
                } \
            } \
        } \
    } \
    static void measure_##NAME(bool mix, unsigned slices) \
    { \
        TYPE *queue = &NAME##_queue; \
        __asm__("" : "+r"(queue)); /* Code for any queue, not for this one. */ \
        INIT; \
        for (unsigned id = 0; id < count; id++) { \
            struct task *task = tasks[id]; \
            INSERT_IT; \
            task->waits = true; \
        } \
        for (unsigned slice = 0; slice < 20 * count; slice++) { \
            struct task *task = POP_IT; \
            INSERT_IT; \
        } \
        if (mix) { \
            mix_##NAME(queue, slices); \
            return; \
        } \
        MEASURE(LOOP, for_ever_##NAME(queue, slices)); \
    }

/* No queue: the same task runs on. What remains is the loop, which reads the level and counts. */
static __attribute__((noinline)) void for_ever_loop(struct task *task, unsigned slices)
{
    for (; slices > 0; slices--) {
        unsigned level;
        __asm__("" : "+r"(task));
        level = task->level;
        __asm__ volatile("" : : "r"(level));
    }
}

static void measure_loop(bool mix, unsigned slices)
{
    (void)mix;
    MEASURE(LOOP, for_ever_loop(tasks[0], slices));
}

static inline struct list *list_pop(struct list *head, void (*removed)(struct list *))
{
    struct list *node = head->next;
    if (node == head) {
        return NULL;
    }
    removed(node);
    return node;
}

static inline struct task *multiq_pop(struct multiq *queue)
{
    struct task *task = OF_NODE(multiq_best(queue));
    if (task != NULL) {
        multiq_remove(queue, &task->node, task->level);
    }
    return task;
}

MEASURED(rr, struct rq_rr, rq_rr_init(queue), OF_LINK(rq_rr_pop(queue)), rq_rr_insert(queue, LINK(task)), rq_rr_remove(queue, LINK(task)),
         rq_rr_insert_front(queue, LINK(task)))
MEASURED(priority, struct rq_priority, rq_priority_init(queue), OF_LINK(rq_priority_pop(queue)), rq_priority_insert(queue, LINK(task), task->level),
         rq_priority_remove(queue, LINK(task)), rq_priority_insert_front(queue, LINK(task), task->level))
MEASURED(ruler, struct rq_ruler, rq_ruler_init(queue), OF_LINK(rq_ruler_pop(queue)), rq_ruler_insert(queue, LINK(task), task->level),
         rq_ruler_remove(queue, LINK(task)), rq_ruler_insert_front(queue, LINK(task)))
MEASURED(wheel, struct rq_wheel, rq_wheel_init(queue), OF_SPOKE(rq_wheel_pop(queue)),
         rq_wheel_insert(queue, &task->spoke, (RQ_KEY)(task->level + 1U)), rq_wheel_remove(queue, &task->spoke),
         rq_wheel_insert_front(queue, &task->spoke))
MEASURED(rbtree, struct rq_rbtree, rq_rbtree_init(queue), OF_BRANCH(rq_rbtree_pop(queue)),
         rq_rbtree_insert(queue, &task->branch, (RQ_KEY)(task->level + 1U)), rq_rbtree_remove(queue, &task->branch),
         rq_rbtree_insert_front(queue, &task->branch))
MEASURED(list_head, struct list, list_init(queue), OF_NODE(list_pop(queue, list_remove)), list_add_tail(queue, NODE(task)), list_remove(NODE(task)),
         list_add_tail(queue->next, NODE(task)))
MEASURED(list_head_init, struct list, list_init(queue), OF_NODE(list_pop(queue, list_remove_init)), list_add_tail(queue, NODE(task)),
         list_remove_init(NODE(task)), list_add_tail(queue->next, NODE(task)))
MEASURED(multiq, struct multiq, multiq_init(queue), multiq_pop(queue), multiq_add(queue, NODE(task), task->level),
         multiq_remove(queue, NODE(task), task->level), multiq_add(queue, NODE(task), task->level))

#ifdef RUST
/* The loops are those of the Rust queues, in the same order, from `loops.rs`. */
struct run {
    void *queue, *nodes;
    const uint16_t *levels;
    size_t tasks;
    uint32_t slices;
};

enum phase { FILL, RUN };

void rust_loop(uint32_t number, uint32_t phase, const struct run *run);

static uint64_t rust_queue[1024], rust_nodes[3 * TASKS];
static uint16_t rust_levels[TASKS];

static void measure_rust(unsigned number, unsigned slices)
{
    struct run run = {rust_queue, rust_nodes, rust_levels, count, slices};
    for (unsigned id = 0; id < count; id++) {
        rust_levels[id] = tasks[id]->level;
    }
    rust_loop(number, FILL, &run);
    MEASURE(LOOP, rust_loop(number, RUN, &run));
}
#endif

static void (*const measures[])(bool mix, unsigned slices) = {
    measure_loop, measure_rr, measure_priority, measure_ruler, measure_wheel, measure_rbtree, measure_list_head, measure_list_head_init,
    measure_multiq,
};

enum { QUEUES = sizeof measures / sizeof measures[0] };

static int program(void)
{
    /* Of a queue and of a task's place in it. */
    static const uint16_t sizes[] = {
        sizeof(struct rq_rr),    sizeof(struct rq_link),  sizeof(struct rq_priority), sizeof(struct rq_link),   sizeof(struct rq_ruler),
        sizeof(struct rq_link),  sizeof(struct rq_wheel), sizeof(struct rq_spoke),    sizeof(struct rq_rbtree), sizeof(struct rq_branch),
    };
    uint16_t cell[7];
    size_t length = read_all((uint8_t *)cell, sizeof cell);
    if (length == 0) {
        write_all((const uint8_t *)sizes, sizeof sizes);
        return 0;
    }
    count = cell[1];
    if (length != sizeof cell || cell[0] >= QUEUES || count == 0 || count > TASKS) {
        say("count: a cell is seven numbers of 16 bits: queue, tasks, levels, mix, shuffled, slices\n");
        return 2;
    }
    state = 12345;
    for (unsigned id = 0; id < count; id++) {
        tasks[id] = &memory[id];
    }
    for (unsigned id = count - 1; cell[4] != 0 && id > 0; id--) {
        unsigned other = below(id + 1);
        struct task *moved = tasks[id];
        tasks[id] = tasks[other];
        tasks[other] = moved;
    }
    state = 12345;
    for (unsigned id = 0; id < count; id++) {
        tasks[id]->level = cell[2] == 0 ? 9 : (uint8_t)below(cell[2]);
    }
    unsigned slices = (unsigned)cell[5] << 16 | cell[6];
#ifdef RUST
    if (cell[3] == 0) {
        measure_rust(cell[0], slices);
        return 0;
    }
#endif
    measures[cell[0]](cell[3] != 0, slices);
    return 0;
}
