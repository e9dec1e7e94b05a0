/** @file
 * The ready queue wheel for C kernels: shares at any rates in constant time. See rq.h for how to use it and for the contract.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef RQ_WHEEL_H
#define RQ_WHEEL_H

#include "rq.h"

#ifndef RQ_WHEEL_BUCKETS
#define RQ_WHEEL_BUCKETS 32
#endif
#if RQ_WHEEL_BUCKETS == 64
typedef uint64_t rq_buckets;
#define RQ_LOWEST_BUCKET rq_lowest_64
#elif RQ_WHEEL_BUCKETS == 32
typedef uint32_t rq_buckets;
#define RQ_LOWEST_BUCKET rq_lowest_32
#else
#error "RQ_WHEEL_BUCKETS is 32 or 64"
#endif

/* ---- wheel: the task with the least key runs, FIFO among equals, as in rbtree; strides are less than RQ_WHEEL_BUCKETS. O(1). ----
 *
 * The keys of waiting tasks lie within the longest stride of the clock. There are more buckets than that, so each has one key, and a FIFO list in it
 * is the exact order. */

/** A task's place in the wheel. */
struct rq_spoke {
    struct rq_link link;
    RQ_KEY key;
};

struct rq_wheel {
    struct rq_link bucket[RQ_WHEEL_BUCKETS];
    rq_buckets waiting; /**< A bit for each bucket with a waiting task. */
    RQ_KEY now;         /**< The key of the last popped task. */
};

/** Makes `queue` empty, its clock at 0. */
static inline void rq_wheel_init(struct rq_wheel *queue)
{
    for (unsigned bucket = 0; bucket < RQ_WHEEL_BUCKETS; bucket++) {
        rq_list_init(&queue->bucket[bucket]);
    }
    queue->waiting = 0;
    queue->now = 0;
}

/** Says whether the task waits, in whichever wheel. */
static inline bool rq_spoke_waits(const struct rq_spoke *spoke)
{
    return rq_waits(&spoke->link);
}

/** How far the least key is after the clock; a task waits. */
static inline unsigned rq_wheel_ahead(rq_buckets waiting, RQ_KEY now)
{
    unsigned from = (unsigned)(now % RQ_WHEEL_BUCKETS);
    return RQ_LOWEST_BUCKET(waiting >> from | waiting << (0U - from) % RQ_WHEEL_BUCKETS);
}

/** Inserts a task by the virtual clock, see rq_key: its slice ended, or it wakes. */
static inline void rq_wheel_insert(struct rq_wheel *queue, struct rq_spoke *spoke, RQ_KEY stride)
{
    RQ_REQUIRE(stride < RQ_WHEEL_BUCKETS, "rq_wheel_insert: the stride is too long");
    RQ_REQUIRE(queue->bucket[0].prev != NULL, "rq_wheel_insert: the queue is not initialised");
    RQ_REQUIRE(!rq_spoke_waits(spoke), "rq_wheel_insert: the task waits already");
    RQ_OWN(&spoke->link, queue);
    spoke->key = rq_key(queue->now, spoke->key, stride);
    unsigned bucket = (unsigned)(spoke->key % RQ_WHEEL_BUCKETS);
    rq_list_insert(&queue->bucket[bucket], &spoke->link);
    queue->waiting |= (rq_buckets)1 << bucket;
}

/** Inserts a task with the key that it had, before its equals: it was popped last, and preempted within its slice. */
static inline void rq_wheel_insert_front(struct rq_wheel *queue, struct rq_spoke *spoke)
{
    unsigned bucket = (unsigned)(spoke->key % RQ_WHEEL_BUCKETS);
    RQ_REQUIRE(queue->bucket[0].prev != NULL, "rq_wheel_insert_front: the queue is not initialised");
    RQ_REQUIRE(!rq_spoke_waits(spoke), "rq_wheel_insert_front: the task waits already");
    RQ_OWN(&spoke->link, queue);
    rq_list_insert_front(&queue->bucket[bucket], &spoke->link);
    queue->waiting |= (rq_buckets)1 << bucket;
}

/** The task that rq_wheel_pop would remove, or NULL. */
static inline struct rq_spoke *rq_wheel_peek(const struct rq_wheel *queue)
{
    if (queue->waiting == 0) {
        return NULL;
    }
    unsigned bucket = (unsigned)((queue->now + rq_wheel_ahead(queue->waiting, queue->now)) % RQ_WHEEL_BUCKETS);
    return RQ_TASK(queue->bucket[bucket].next, struct rq_spoke, link);
}

/** Removes the task that runs next; NULL when none waits. */
static inline struct rq_spoke *rq_wheel_pop(struct rq_wheel *queue)
{
    if (queue->waiting == 0) {
        return NULL;
    }
    queue->now = (RQ_KEY)(queue->now + rq_wheel_ahead(queue->waiting, queue->now));
    unsigned bucket = (unsigned)(queue->now % RQ_WHEEL_BUCKETS);
    struct rq_link *head = &queue->bucket[bucket], *link = head->next;
    RQ_REQUIRE(link->owner == queue, "rq_wheel_pop: a link was overwritten");
    rq_list_unlink(head, link);
    if (head->next == head) {
        queue->waiting &= ~((rq_buckets)1 << bucket);
    }
    return RQ_TASK(link, struct rq_spoke, link);
}

/** Removes a task from this queue, wherever it is in it; one that does not wait stays as it is. */
static inline void rq_wheel_remove(struct rq_wheel *queue, struct rq_spoke *spoke)
{
    struct rq_link *prev = spoke->link.prev;
    RQ_REQUIRE(prev != NULL, "rq_wheel_remove: the task does not wait");
    RQ_REQUIRE(spoke->link.owner == queue, "rq_wheel_remove: the task waits in another queue");
    if (prev != NULL) {
        rq_list_unlink(prev, &spoke->link);
        if (prev->next == prev) { /* Only the head is left in the circle, and says which bucket it is. */
            queue->waiting &= ~((rq_buckets)1 << (prev - queue->bucket));
        }
    }
}

/** The first waiting task that `accept` returns true for, in the order of pops; it stays. */
static inline struct rq_spoke *rq_wheel_find(struct rq_wheel *queue, rq_accept *accept, void *context)
{
    struct rq_link *found = NULL;
    for (unsigned ahead = 0; ahead < RQ_WHEEL_BUCKETS && found == NULL; ahead++) {
        struct rq_link *head = &queue->bucket[(queue->now + ahead) % RQ_WHEEL_BUCKETS];
        found = rq_list_find(head->next, head, accept, context);
    }
    return RQ_TASK(found, struct rq_spoke, link);
}

#endif
