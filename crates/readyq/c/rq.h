/** @file
 * Ready queues for C kernels: which ready task runs next, and nothing else.
 *
 * C99, no library, no allocation, no recursion. The links are in your task structure, the heads in your queue structure; what you do not call costs
 * nothing. The orders are those of the Rust crate readyq, held by a test: rr (FIFO), priority (strict), ruler (each level at half the rate of the one
 * before), in rq_wheel.h wheel (virtual clock, short strides), and in rq_rbtree.h rbtree (virtual clock, or earliest deadline).
 *
 *     struct task { struct rq_link ready; ... };            // zeroed before its first use
 *     static struct rq_rr queue;                            // rq_rr_init(&queue) once; it does not move afterwards
 *     rq_rr_insert(&queue, &task->ready);                   // a slice ends, or a task wakes
 *     struct task *next = RQ_TASK(rq_rr_pop(&queue), struct task, ready);    // NULL when none waits
 *
 * Contract: a link waits in at most one queue; a waiting task is neither freed nor moved; two calls on one queue do not overlap (hold a lock or mask
 * interrupts: between two queues nothing is shared). Misuse: to remove a task that does not wait does nothing. To insert one that waits, to remove one
 * from a queue that is not its own, a level out of range and a queue that was not initialised corrupt the queue, unless READYQ_CHECK is defined.
 *
 * Settings, the same in all files of a program, defined before the #include:
 *   READYQ_CHECK(why)    a call that breaks the contract calls this with a string that names it; it must not return. A link is a pointer larger.
 *   RQ_PRIORITY_LEVELS   levels of rq_priority, 1 to 256 (32)
 *   RQ_RULER_LEVELS      levels of rq_ruler, 1 to 64 (32)
 *   RQ_WHEEL_BUCKETS     one more than the longest stride of rq_wheel, 32 or 64 (32)
 *   RQ_KEY               the unsigned type of a virtual time or deadline in rq_wheel.h and rq_rbtree.h (uint32_t)
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef RQ_H
#define RQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef RQ_PRIORITY_LEVELS
#define RQ_PRIORITY_LEVELS 32
#endif
#ifndef RQ_RULER_LEVELS
#define RQ_RULER_LEVELS 32
#endif
#ifndef RQ_KEY
#define RQ_KEY uint32_t
#endif
#if RQ_PRIORITY_LEVELS < 1 || RQ_PRIORITY_LEVELS > 256
#error "RQ_PRIORITY_LEVELS is 1 to 256"
#endif
#if RQ_RULER_LEVELS < 1 || RQ_RULER_LEVELS > 64
#error "RQ_RULER_LEVELS is 1 to 64"
#endif

#ifdef READYQ_CHECK
#define RQ_REQUIRE(condition, why) ((condition) ? (void)0 : READYQ_CHECK(why))
#define RQ_OWN(link, queue) ((void)((link)->owner = (queue)))
#else
#define RQ_REQUIRE(condition, why) ((void)0)
#define RQ_OWN(link, queue) ((void)0)
#endif

/** The task whose member `member` is `link`; NULL for NULL. */
#define RQ_TASK(link, type, member) ((type *)rq_task((link), offsetof(type, member)))

static inline void *rq_task(void *link, size_t offset)
{
    return link == NULL ? NULL : (void *)((char *)link - offset);
}

/* ---- Words of bits ---- */

/** The lowest bit that is set in `word`, which is not 0: one or two instructions, or a multiplication and a table where a machine has none for it. */
static inline unsigned rq_lowest_32(uint32_t word)
{
#if defined(__GNUC__) && __SIZEOF_INT__ == 4 && (!defined(__riscv) || defined(__riscv_zbb)) && (!defined(__arm__) || defined(__ARM_FEATURE_CLZ))
    return (unsigned)__builtin_ctz(word);
#else
    static const uint8_t place[32] = {0,  1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
                                      31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9};
    return place[(uint32_t)((word & (0U - word)) * UINT32_C(0x077CB531)) >> 27];
#endif
}

static inline unsigned rq_lowest_64(uint64_t word)
{
#if defined(__GNUC__) && __SIZEOF_LONG__ == 8 && (!defined(__riscv) || defined(__riscv_zbb))
    return (unsigned)__builtin_ctzl(word);
#else
    return (uint32_t)word != 0 ? rq_lowest_32((uint32_t)word) : 32U + rq_lowest_32((uint32_t)(word >> 32));
#endif
}

/* ---- Virtual time: a key that wraps. Keys are right while all of them, sleepers' too, lie within half the range of RQ_KEY. ---- */

/** Says whether key `a` comes before key `b`. */
static inline bool rq_before(RQ_KEY a, RQ_KEY b)
{
    return (RQ_KEY)(a - b) >> (8 * sizeof(RQ_KEY) - 1) != 0;
}

/** The key of a task whose last one was `last`: a stride later, but not before the clock `now`, which is the last popped key, and not more than a
 *  stride after it. So a sleeper does not save up. `stride` is at most a quarter of the range. */
static inline RQ_KEY rq_key(RQ_KEY now, RQ_KEY last, RQ_KEY stride)
{
    RQ_KEY key = (RQ_KEY)((rq_before(last, now) ? last : now) + stride);
    return rq_before(key, now) ? now : key;
}

/* ---- Lists ---- */

/** A task's place in rr, priority or ruler, and the head of a list: a circle through the head, so that no end is NULL. */
struct rq_link {
    struct rq_link *next;
    struct rq_link *prev; /**< Not NULL exactly while the task waits. */
#ifdef READYQ_CHECK
    const void *owner; /**< The queue where it waits. */
#endif
};

/** Says whether the task waits, in whichever queue. */
static inline bool rq_waits(const struct rq_link *link)
{
    return link->prev != NULL;
}

static inline void rq_list_init(struct rq_link *head)
{
    head->next = head;
    head->prev = head;
    RQ_OWN(head, NULL);
}

static inline void rq_list_insert(struct rq_link *head, struct rq_link *link)
{
    struct rq_link *last = head->prev;
    head->prev = link;
    link->next = head;
    link->prev = last;
    last->next = link;
}

static inline void rq_list_insert_front(struct rq_link *head, struct rq_link *link)
{
    struct rq_link *first = head->next;
    head->next = link;
    link->next = first;
    link->prev = head;
    first->prev = link;
}

/** Removes `link`, which follows `prev`. */
static inline void rq_list_unlink(struct rq_link *prev, struct rq_link *link)
{
    struct rq_link *next = link->next;
    prev->next = next;
    next->prev = prev;
    link->prev = NULL;
}

/** Is asked for a waiting task whether it is the one. */
typedef bool rq_accept(struct rq_link *link, void *context);

static inline struct rq_link *rq_list_find(struct rq_link *first, const struct rq_link *end, rq_accept *accept, void *context)
{
    while (first != end && !accept(first, context)) {
        first = first->next;
    }
    return first == end ? NULL : first;
}

/* ---- rr: tasks run in the order of their arrival. O(1). ---- */

struct rq_rr {
    struct rq_link head;
};

/** Makes `queue` empty. */
static inline void rq_rr_init(struct rq_rr *queue)
{
    rq_list_init(&queue->head);
}

/** Inserts a task at the end: its slice ended, or it wakes. */
static inline void rq_rr_insert(struct rq_rr *queue, struct rq_link *link)
{
    RQ_REQUIRE(queue->head.prev != NULL, "rq_rr_insert: the queue is not initialised");
    RQ_REQUIRE(!rq_waits(link), "rq_rr_insert: the task waits already");
    RQ_OWN(link, queue);
    rq_list_insert(&queue->head, link);
}

/** Inserts a task so that it is popped next: it was preempted within its slice. */
static inline void rq_rr_insert_front(struct rq_rr *queue, struct rq_link *link)
{
    RQ_REQUIRE(queue->head.prev != NULL, "rq_rr_insert_front: the queue is not initialised");
    RQ_REQUIRE(!rq_waits(link), "rq_rr_insert_front: the task waits already");
    RQ_OWN(link, queue);
    rq_list_insert_front(&queue->head, link);
}

/** The task that rq_rr_pop would remove, or NULL. */
static inline struct rq_link *rq_rr_peek(const struct rq_rr *queue)
{
    return queue->head.next == &queue->head ? NULL : queue->head.next;
}

/** Removes the task that runs next; NULL when none waits. */
static inline struct rq_link *rq_rr_pop(struct rq_rr *queue)
{
    struct rq_link *link = queue->head.next;
    if (link == &queue->head) {
        return NULL;
    }
    RQ_REQUIRE(link->owner == queue, "rq_rr_pop: a link was overwritten");
    rq_list_unlink(&queue->head, link);
    return link;
}

/** Removes a task from this queue, wherever it is in it; one that does not wait stays as it is. */
static inline void rq_rr_remove(struct rq_rr *queue, struct rq_link *link)
{
    RQ_REQUIRE(rq_waits(link), "rq_rr_remove: the task does not wait");
    RQ_REQUIRE(link->owner == queue, "rq_rr_remove: the task waits in another queue");
    (void)queue;
    if (rq_waits(link)) {
        rq_list_unlink(link->prev, link);
    }
}

/** The first waiting task that `accept` returns true for, in the order of pops; it stays. */
static inline struct rq_link *rq_rr_find(struct rq_rr *queue, rq_accept *accept, void *context)
{
    return rq_list_find(queue->head.next, &queue->head, accept, context);
}

/* ---- priority: the best level with a waiting task runs (0 is the best), FIFO within it. O(1), at most four operations on masks. ---- */

#if RQ_PRIORITY_LEVELS > 32 && UINTPTR_MAX > UINT32_MAX
typedef uint64_t rq_word;
#define RQ_LOWEST_IN_WORD rq_lowest_64
#else
typedef uint32_t rq_word;
#define RQ_LOWEST_IN_WORD rq_lowest_32
#endif
enum { RQ_WORD_BITS = 8 * sizeof(rq_word), RQ_PRIORITY_WORDS = (RQ_PRIORITY_LEVELS + RQ_WORD_BITS - 1) / RQ_WORD_BITS };

struct rq_priority {
    struct rq_link level[RQ_PRIORITY_LEVELS]; /**< First, so that a level's address is one sum. */
    rq_word waiting[RQ_PRIORITY_WORDS];       /**< A bit for each level with a waiting task. */
    rq_word words;                            /**< Bit w: waiting[w] is not 0. Unused when there is one word. */
};

/** Makes `queue` empty. */
static inline void rq_priority_init(struct rq_priority *queue)
{
    for (unsigned word = 0; word < RQ_PRIORITY_WORDS; word++) {
        queue->waiting[word] = 0;
    }
    queue->words = 0;
    for (unsigned level = 0; level < RQ_PRIORITY_LEVELS; level++) {
        rq_list_init(&queue->level[level]);
    }
}

/** Says whether no task waits. */
static inline bool rq_priority_is_empty(const struct rq_priority *queue)
{
    return (RQ_PRIORITY_WORDS == 1 ? queue->waiting[0] : queue->words) == 0;
}

/** The best level with a waiting task; there is one. */
static inline unsigned rq_priority_best(const struct rq_priority *queue)
{
    unsigned word = RQ_PRIORITY_WORDS == 1 ? 0 : RQ_LOWEST_IN_WORD(queue->words);
    return word * RQ_WORD_BITS + RQ_LOWEST_IN_WORD(queue->waiting[word]);
}

/** The word with the bit of `level`. */
static inline unsigned rq_priority_word(unsigned level)
{
    return RQ_PRIORITY_WORDS == 1 ? 0 : level / RQ_WORD_BITS;
}

static inline void rq_priority_mark(struct rq_priority *queue, unsigned level)
{
    unsigned word = rq_priority_word(level);
    queue->waiting[word] |= (rq_word)1 << level % RQ_WORD_BITS;
    if (RQ_PRIORITY_WORDS > 1) {
        queue->words |= (rq_word)1 << word;
    }
}

static inline void rq_priority_unmark(struct rq_priority *queue, unsigned level)
{
    unsigned word = rq_priority_word(level);
    queue->waiting[word] &= ~((rq_word)1 << level % RQ_WORD_BITS);
    if (RQ_PRIORITY_WORDS > 1 && queue->waiting[word] == 0) {
        queue->words &= ~((rq_word)1 << word);
    }
}

/** Inserts a task behind those of its level. */
static inline void rq_priority_insert(struct rq_priority *queue, struct rq_link *link, unsigned level)
{
    RQ_REQUIRE(level < RQ_PRIORITY_LEVELS, "rq_priority_insert: there is no such level");
    RQ_REQUIRE(queue->level[level].prev != NULL, "rq_priority_insert: the queue is not initialised");
    RQ_REQUIRE(!rq_waits(link), "rq_priority_insert: the task waits already");
    RQ_OWN(link, queue);
    rq_list_insert(&queue->level[level], link);
    rq_priority_mark(queue, level);
}

/** Inserts a task before those of its level: it was preempted within its slice. */
static inline void rq_priority_insert_front(struct rq_priority *queue, struct rq_link *link, unsigned level)
{
    RQ_REQUIRE(level < RQ_PRIORITY_LEVELS, "rq_priority_insert_front: there is no such level");
    RQ_REQUIRE(queue->level[level].prev != NULL, "rq_priority_insert_front: the queue is not initialised");
    RQ_REQUIRE(!rq_waits(link), "rq_priority_insert_front: the task waits already");
    RQ_OWN(link, queue);
    rq_list_insert_front(&queue->level[level], link);
    rq_priority_mark(queue, level);
}

/** The task that rq_priority_pop would remove, or NULL. */
static inline struct rq_link *rq_priority_peek(const struct rq_priority *queue)
{
    return rq_priority_is_empty(queue) ? NULL : queue->level[rq_priority_best(queue)].next;
}

/** Removes the task that runs next; NULL when none waits. */
static inline struct rq_link *rq_priority_pop(struct rq_priority *queue)
{
    if (rq_priority_is_empty(queue)) {
        return NULL;
    }
    unsigned level = rq_priority_best(queue);
    struct rq_link *head = &queue->level[level], *link = head->next;
    RQ_REQUIRE(link->owner == queue, "rq_priority_pop: a link was overwritten");
    rq_list_unlink(head, link);
    if (head->next == head) {
        rq_priority_unmark(queue, level);
    }
    return link;
}

/** Removes a task from this queue, wherever it is in it; one that does not wait stays as it is. */
static inline void rq_priority_remove(struct rq_priority *queue, struct rq_link *link)
{
    RQ_REQUIRE(rq_waits(link), "rq_priority_remove: the task does not wait");
    RQ_REQUIRE(link->owner == queue, "rq_priority_remove: the task waits in another queue");
    if (rq_waits(link)) {
        struct rq_link *prev = link->prev;
        rq_list_unlink(prev, link);
        if (prev->next == prev) { /* Only the head is left in the circle, and says which level it is. */
            rq_priority_unmark(queue, (unsigned)(prev - queue->level));
        }
    }
}

/** The first waiting task that `accept` returns true for, in the order of pops; it stays. */
static inline struct rq_link *rq_priority_find(struct rq_priority *queue, rq_accept *accept, void *context)
{
    struct rq_link *found = NULL;
    for (unsigned level = 0; level < RQ_PRIORITY_LEVELS && found == NULL; level++) {
        found = rq_list_find(queue->level[level].next, &queue->level[level], accept, context);
    }
    return found;
}

/* ---- ruler: level l gets half the rate of level l - 1; tasks of a level take turns. O(1). ----
 *
 * Tick t serves the levels 0 to ctz(t), so level l comes at every multiple of 2^l. The next tick that serves a level with waiting tasks is a matter
 * of bit arithmetic. All tasks of a level that wait when its service starts run once: a pass, which is cut off the level's circle. Its last link still
 * points to the circle's head, and that is how the pass ends. */

#if RQ_RULER_LEVELS > 32
typedef uint64_t rq_mask;
#define RQ_LOWEST_IN_MASK rq_lowest_64
#else
typedef uint32_t rq_mask;
#define RQ_LOWEST_IN_MASK rq_lowest_32
#endif

/** The position in the ruler's sequence. */
struct rq_position {
    rq_mask tick; /**< Wraps: its range is a multiple of every level's period. */
    rq_mask due;  /**< Bit l: this tick has not served level l yet. */
};

struct rq_ruler {
    struct rq_link level[RQ_RULER_LEVELS]; /**< First, so that a level's address is one sum. */
    struct rq_link *pass;                  /**< The next task of the pass, or `end`. */
    struct rq_link *end;                   /**< The head of the level whose pass it is. */
    struct rq_position position;
    rq_mask waiting; /**< A bit for each level that has waiting tasks outside the pass. */
};

/** Makes `queue` empty. */
static inline void rq_ruler_init(struct rq_ruler *queue)
{
    queue->pass = queue->end = &queue->level[0];
    queue->position.tick = queue->position.due = queue->waiting = 0;
    for (unsigned level = 0; level < RQ_RULER_LEVELS; level++) {
        rq_list_init(&queue->level[level]);
    }
}

/** Advances to the next level to serve among those in `waiting`, which is not 0. */
static inline unsigned rq_position_next(struct rq_position *position, rq_mask waiting)
{
    rq_mask due = position->due & waiting;
    if (due != 0) {
        position->due &= due ^ (0 - due); /* The bits above the lowest one. */
        return RQ_LOWEST_IN_MASK(due);
    }
    /* Bits 0 to that of the level will be served in the next tick; half of them keep the tick from being a multiple of the level's period. */
    rq_mask served = waiting ^ (waiting - 1);
    rq_mask before = position->tick | served >> 1;
    position->tick = before + 1;
    position->due = before ^ position->tick ^ served;
    return RQ_LOWEST_IN_MASK(waiting);
}

/** Says whether no task waits. */
static inline bool rq_ruler_is_empty(const struct rq_ruler *queue)
{
    return queue->pass == queue->end && queue->waiting == 0;
}

/** Inserts a task at a level: it runs in the next pass of that level. */
static inline void rq_ruler_insert(struct rq_ruler *queue, struct rq_link *link, unsigned level)
{
    RQ_REQUIRE(level < RQ_RULER_LEVELS, "rq_ruler_insert: there is no such level");
    RQ_REQUIRE(queue->level[level].prev != NULL, "rq_ruler_insert: the queue is not initialised");
    RQ_REQUIRE(!rq_waits(link), "rq_ruler_insert: the task waits already");
    RQ_OWN(link, queue);
    rq_list_insert(&queue->level[level], link);
    if (link->prev == &queue->level[level]) {
        queue->waiting |= (rq_mask)1 << level;
    }
}

/** Inserts a task so that it is popped next, whatever its level: it was preempted within its slice. */
static inline void rq_ruler_insert_front(struct rq_ruler *queue, struct rq_link *link)
{
    RQ_REQUIRE(queue->end != NULL, "rq_ruler_insert_front: the queue is not initialised");
    RQ_REQUIRE(!rq_waits(link), "rq_ruler_insert_front: the task waits already");
    RQ_OWN(link, queue);
    link->next = queue->pass;
    link->prev = queue->end;
    if (queue->pass != queue->end) {
        queue->pass->prev = link;
    }
    queue->pass = link;
}

/** The task that rq_ruler_pop would remove, or NULL. */
static inline struct rq_link *rq_ruler_peek(const struct rq_ruler *queue)
{
    rq_mask due = queue->position.due & queue->waiting;
    if (queue->pass != queue->end) {
        return queue->pass;
    }
    return queue->waiting == 0 ? NULL : queue->level[RQ_LOWEST_IN_MASK(due != 0 ? due : queue->waiting)].next;
}

/** Cuts the tasks of the level that is served next off its circle. Returns the first. */
static inline struct rq_link *rq_ruler_begin_pass(struct rq_ruler *queue)
{
    unsigned level = rq_position_next(&queue->position, queue->waiting);
    struct rq_link *head = &queue->level[level], *first = head->next;
    queue->waiting &= ~((rq_mask)1 << level);
    queue->end = head;
    head->prev = head; /* The next insertion sets head->next. */
    return first;
}

/** Removes the task that runs next; NULL when none waits. */
static inline struct rq_link *rq_ruler_pop(struct rq_ruler *queue)
{
    struct rq_link *link = queue->pass;
    if (link == queue->end) {
        if (queue->waiting == 0) {
            return NULL;
        }
        link = rq_ruler_begin_pass(queue);
    }
    RQ_REQUIRE(link->owner == queue, "rq_ruler_pop: a link was overwritten");
    queue->pass = link->next;
    link->prev = NULL;
    return link;
}

/** Removes a task from this queue, wherever it is in it; one that does not wait stays as it is. */
static inline void rq_ruler_remove(struct rq_ruler *queue, struct rq_link *link)
{
    struct rq_link *next = link->next, *prev = link->prev;
    RQ_REQUIRE(rq_waits(link), "rq_ruler_remove: the task does not wait");
    RQ_REQUIRE(link->owner == queue, "rq_ruler_remove: the task waits in another queue");
    if (prev == NULL) {
        return;
    }
    link->prev = NULL;
    if (queue->pass == link) { /* What is before it has gone. */
        queue->pass = next;
        return;
    }
    prev->next = next;
    if (next->prev == link) { /* Not so for the last of a pass: its level's circle goes on without it. */
        next->prev = prev;
    }
    if (next == prev) { /* Only the head is left in the circle, and says which level it is. */
        queue->waiting &= ~((rq_mask)1 << (next - queue->level));
    }
}

/** The first waiting task that `accept` returns true for, in the order of passes; it stays. */
static inline struct rq_link *rq_ruler_find(struct rq_ruler *queue, rq_accept *accept, void *context)
{
    struct rq_position position = queue->position;
    struct rq_link *found = rq_list_find(queue->pass, queue->end, accept, context);
    for (rq_mask waiting = queue->waiting; waiting != 0 && found == NULL;) {
        unsigned level = rq_position_next(&position, waiting);
        waiting &= ~((rq_mask)1 << level);
        found = rq_list_find(queue->level[level].next, &queue->level[level], accept, context);
    }
    return found;
}

#endif
