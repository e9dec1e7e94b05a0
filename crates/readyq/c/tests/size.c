/* The verbs of the queue QUEUE (1 rr, 2 priority, 3 ruler, 4 wheel, 5 rbtree) as functions, for the size of their code when nothing is inlined into a caller. */
#include "../rq.h"
#include "../rq_rbtree.h"
#include "../rq_wheel.h"

#define VERBS(NAME, LINK) \
    void NAME##_init(struct rq_##NAME *queue); \
    void NAME##_init(struct rq_##NAME *queue) \
    { \
        rq_##NAME##_init(queue); \
    } \
    LINK *NAME##_peek(struct rq_##NAME *queue); \
    LINK *NAME##_peek(struct rq_##NAME *queue) \
    { \
        return rq_##NAME##_peek(queue); \
    } \
    LINK *NAME##_pop(struct rq_##NAME *queue); \
    LINK *NAME##_pop(struct rq_##NAME *queue) \
    { \
        return rq_##NAME##_pop(queue); \
    } \
    void NAME##_remove(struct rq_##NAME *queue, LINK *link); \
    void NAME##_remove(struct rq_##NAME *queue, LINK *link) \
    { \
        rq_##NAME##_remove(queue, link); \
    }

#define INSERTS(NAME, VERB, LINK) \
    void NAME##_##VERB(struct rq_##NAME *queue, LINK *link); \
    void NAME##_##VERB(struct rq_##NAME *queue, LINK *link) \
    { \
        rq_##NAME##_##VERB(queue, link); \
    }

#define INSERTS_BY(NAME, VERB, LINK, BY) \
    void NAME##_##VERB(struct rq_##NAME *queue, LINK *link, BY by); \
    void NAME##_##VERB(struct rq_##NAME *queue, LINK *link, BY by) \
    { \
        rq_##NAME##_##VERB(queue, link, by); \
    }

#if QUEUE == 1
VERBS(rr, struct rq_link)
INSERTS(rr, insert, struct rq_link)
INSERTS(rr, insert_front, struct rq_link)
#elif QUEUE == 2
VERBS(priority, struct rq_link)
INSERTS_BY(priority, insert, struct rq_link, unsigned)
INSERTS_BY(priority, insert_front, struct rq_link, unsigned)
#elif QUEUE == 3
VERBS(ruler, struct rq_link)
INSERTS_BY(ruler, insert, struct rq_link, unsigned)
INSERTS(ruler, insert_front, struct rq_link)
#elif QUEUE == 4
VERBS(wheel, struct rq_spoke)
INSERTS_BY(wheel, insert, struct rq_spoke, RQ_KEY)
INSERTS(wheel, insert_front, struct rq_spoke)
#else
VERBS(rbtree, struct rq_branch)
INSERTS_BY(rbtree, insert, struct rq_branch, RQ_KEY)
INSERTS(rbtree, insert_front, struct rq_branch)
#endif
