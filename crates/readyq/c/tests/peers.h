/* What kernels have today, written anew: a circular list (Linux's list_head) and a list for each priority with a bitmap (as Zephyr documents its
 * multi-queue). Neither says whether a task waits. */
#ifndef PEERS_H
#define PEERS_H

#include <stddef.h>
#include <stdint.h>

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
    struct list *last = head->prev;
    node->next = head;
    node->prev = last;
    last->next = node;
    head->prev = node;
}

static inline void list_remove(struct list *node)
{
    struct list *next = node->next, *prev = node->prev;
    next->prev = prev;
    prev->next = next;
}

/* As above; the node says afterwards that it is alone, so that a second removal is harmless. */
static inline void list_remove_init(struct list *node)
{
    list_remove(node);
    list_init(node);
}

enum { MULTIQ_LEVELS = 32 };

struct multiq {
    struct list level[MULTIQ_LEVELS];
    uint32_t bits[MULTIQ_LEVELS / 32];
};

static inline void multiq_init(struct multiq *queue)
{
    for (unsigned level = 0; level < MULTIQ_LEVELS; level++) {
        list_init(&queue->level[level]);
    }
    for (unsigned word = 0; word < MULTIQ_LEVELS / 32; word++) {
        queue->bits[word] = 0;
    }
}

static inline void multiq_add(struct multiq *queue, struct list *node, unsigned level)
{
    list_add_tail(&queue->level[level], node);
    queue->bits[level / 32] |= UINT32_C(1) << level % 32;
}

/* The caller knows the level of `node`, which must not have changed. */
static inline void multiq_remove(struct multiq *queue, struct list *node, unsigned level)
{
    struct list *head = &queue->level[level];
    list_remove(node);
    if (head->next == head) {
        queue->bits[level / 32] &= ~(UINT32_C(1) << level % 32);
    }
}

static inline struct list *multiq_best(struct multiq *queue)
{
    for (unsigned word = 0; word < MULTIQ_LEVELS / 32; word++) {
        if (queue->bits[word] != 0) {
            return queue->level[32 * word + (unsigned)__builtin_ctz(queue->bits[word])].next;
        }
    }
    return NULL;
}

#endif
