/* The example of README.md. `make run` builds and runs it. */
#include "rq.h"
#include <stdio.h>

struct task {
    const char *name;
    unsigned level;
    struct rq_link ready;
};

static struct task control = {.name = "control", .level = 0}, logger = {.name = "logger", .level = 1};
static struct rq_ruler queue;

int main(void)
{
    rq_ruler_init(&queue);
    rq_ruler_insert(&queue, &control.ready, control.level);
    rq_ruler_insert(&queue, &logger.ready, logger.level);
    for (int slice = 0; slice < 6; slice++) {
        struct task *next = RQ_TASK(rq_ruler_pop(&queue), struct task, ready);
        printf("%s ", next->name);
        rq_ruler_insert(&queue, &next->ready, next->level);
    }
    printf("\n");
    return 0;
}
