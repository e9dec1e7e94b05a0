/** @file
 * The ready queue rbtree for C kernels: the task with the least key runs. See rq.h for how to use it and for the contract.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef RQ_RBTREE_H
#define RQ_RBTREE_H

#include "rq.h"

/* ---- rbtree: the task with the least key runs, FIFO among equals. Insert and remove O(log n), peek O(1). ----
 *
 * As a virtual clock (rq_rbtree_insert), a task with twice the stride gets half the rate; see rq_key. By deadline (rq_rbtree_insert_at), the key is
 * what you say. */

enum { RQ_ABSENT = 0, RQ_RED = 1, RQ_BLACK = 2 };

/** A task's place in rbtree. */
struct rq_branch {
    struct rq_branch *child[2]; /**< Before it, after it. */
    struct rq_branch *parent;
    RQ_KEY key;
    uint8_t colour; /**< RQ_ABSENT exactly while the task does not wait. */
#ifdef READYQ_CHECK
    const void *owner; /**< The queue where it waits. */
#endif
};

struct rq_rbtree {
    struct rq_branch *root;
    struct rq_branch *first;
    RQ_KEY now; /**< The key of the last popped task. */
};

/** Makes `queue` empty, its clock at 0. The same as zeroing it. */
static inline void rq_rbtree_init(struct rq_rbtree *queue)
{
    queue->root = queue->first = NULL;
    queue->now = 0;
}

/** Says whether the task waits, in whichever tree. */
static inline bool rq_branch_waits(const struct rq_branch *branch)
{
    return branch->colour != RQ_ABSENT;
}

static inline bool rq_is_red(const struct rq_branch *branch)
{
    return branch != NULL && branch->colour == RQ_RED;
}

/** Puts `heir`, which may be NULL, in the place of `branch` below its parent. */
static inline void rq_rbtree_replace(struct rq_rbtree *queue, const struct rq_branch *branch, struct rq_branch *heir)
{
    struct rq_branch *parent = branch->parent;
    if (heir != NULL) {
        heir->parent = parent;
    }
    if (parent == NULL) {
        queue->root = heir;
    } else {
        parent->child[parent->child[1] == branch] = heir;
    }
}

/** Rotates `branch` down to the side `side`; its child on the other side replaces it. */
static inline void rq_rbtree_rotate(struct rq_rbtree *queue, struct rq_branch *branch, int side)
{
    struct rq_branch *up = branch->child[!side], *inner = up->child[side];
    rq_rbtree_replace(queue, branch, up);
    branch->child[!side] = inner;
    if (inner != NULL) {
        inner->parent = branch;
    }
    up->child[side] = branch;
    branch->parent = up;
}

/** Restores "no red task below a red one" after the red `branch` came in below the red `parent`. */
static inline void rq_rbtree_repair_red(struct rq_rbtree *queue, struct rq_branch *branch, struct rq_branch *parent)
{
    do {
        struct rq_branch *grand = parent->parent; /* A red parent is not the root. */
        int side = parent == grand->child[1];
        struct rq_branch *uncle = grand->child[!side];
        if (!rq_is_red(uncle)) {
            if (branch == parent->child[!side]) {
                rq_rbtree_rotate(queue, parent, side);
                parent = branch;
            }
            parent->colour = RQ_BLACK;
            grand->colour = RQ_RED;
            rq_rbtree_rotate(queue, grand, !side);
            return;
        }
        parent->colour = uncle->colour = RQ_BLACK;
        branch = grand;
        parent = grand->parent;
        if (parent == NULL) {
            return; /* The root stays black. */
        }
        grand->colour = RQ_RED;
    } while (parent->colour == RQ_RED);
}

/** Repairs a tree in which every path through the side `side` of `hole` is one black task short. */
static inline void rq_rbtree_repair_black(struct rq_rbtree *queue, struct rq_branch *hole, int side)
{
    for (;;) {
        struct rq_branch *sibling = hole->child[!side];
        if (sibling->colour == RQ_RED) {
            sibling->colour = RQ_BLACK;
            hole->colour = RQ_RED;
            rq_rbtree_rotate(queue, hole, side);
            sibling = hole->child[!side];
        }
        struct rq_branch *inner = sibling->child[side], *outer = sibling->child[!side];
        if (!rq_is_red(outer) && rq_is_red(inner)) {
            rq_rbtree_rotate(queue, sibling, !side);
            outer = sibling;
            sibling = inner;
            outer->colour = RQ_RED;
        }
        if (rq_is_red(outer)) {
            sibling->colour = hole->colour;
            hole->colour = outer->colour = RQ_BLACK;
            rq_rbtree_rotate(queue, hole, side);
            return;
        }
        sibling->colour = RQ_RED;
        struct rq_branch *parent = hole->parent;
        if (hole->colour == RQ_RED || parent == NULL) {
            hole->colour = RQ_BLACK;
            return;
        }
        side = parent->child[1] == hole;
        hole = parent;
    }
}

/** Makes `branch` a leaf: before its equals if `front`, otherwise after them. */
static inline void rq_rbtree_plant(struct rq_rbtree *queue, struct rq_branch *branch, bool front)
{
    struct rq_branch *parent = NULL, *below = queue->root;
    RQ_KEY limit = (RQ_KEY)(branch->key + !front); /* It comes after everything before this. */
    int side = 0;
    RQ_OWN(branch, queue);
    while (below != NULL) {
        parent = below;
        side = rq_before(below->key, limit);
        below = below->child[side];
    }
    branch->child[0] = branch->child[1] = NULL;
    branch->parent = parent;
    if (parent == NULL) {
        branch->colour = RQ_BLACK;
        queue->root = queue->first = branch;
        return;
    }
    branch->colour = RQ_RED;
    parent->child[side] = branch;
    if (queue->first->child[0] != NULL) {
        queue->first = branch;
    }
    if (parent->colour == RQ_RED) {
        rq_rbtree_repair_red(queue, branch, parent);
    }
}

/** Inserts a task by the virtual clock: its slice ended, or it wakes. `stride` is at most a quarter of the range of RQ_KEY. */
static inline void rq_rbtree_insert(struct rq_rbtree *queue, struct rq_branch *branch, RQ_KEY stride)
{
    RQ_REQUIRE(!rq_branch_waits(branch), "rq_rbtree_insert: the task waits already");
    branch->key = rq_key(queue->now, branch->key, stride);
    rq_rbtree_plant(queue, branch, false);
}

/** Inserts a task with the key `key`: a deadline. */
static inline void rq_rbtree_insert_at(struct rq_rbtree *queue, struct rq_branch *branch, RQ_KEY key)
{
    RQ_REQUIRE(!rq_branch_waits(branch), "rq_rbtree_insert_at: the task waits already");
    branch->key = key;
    rq_rbtree_plant(queue, branch, false);
}

/** Inserts a task with the key that it had, before its equals: it was popped last, and preempted within its slice. */
static inline void rq_rbtree_insert_front(struct rq_rbtree *queue, struct rq_branch *branch)
{
    RQ_REQUIRE(!rq_branch_waits(branch), "rq_rbtree_insert_front: the task waits already");
    rq_rbtree_plant(queue, branch, true);
}

/** The task that rq_rbtree_pop would remove, or NULL. */
static inline struct rq_branch *rq_rbtree_peek(const struct rq_rbtree *queue)
{
    return queue->first;
}

/** The task that follows `branch` in the order of pops, or NULL. Iterate from rq_rbtree_peek. */
static inline struct rq_branch *rq_rbtree_next(const struct rq_branch *branch)
{
    struct rq_branch *next = branch->child[1], *parent = branch->parent;
    if (next != NULL) {
        while (next->child[0] != NULL) {
            next = next->child[0];
        }
        return next;
    }
    while (parent != NULL && parent->child[1] == branch) {
        branch = parent;
        parent = branch->parent;
    }
    return parent;
}

/** Removes a task from this queue, wherever it is in it; one that does not wait stays as it is. */
static inline void rq_rbtree_remove(struct rq_rbtree *queue, struct rq_branch *branch)
{
    struct rq_branch *left = branch->child[0], *right = branch->child[1], *hole = branch->parent, *filler;
    uint8_t lost = branch->colour;
    int side;
    RQ_REQUIRE(rq_branch_waits(branch), "rq_rbtree_remove: the task does not wait");
    RQ_REQUIRE(branch->owner == queue, "rq_rbtree_remove: the task waits in another queue");
    if (lost == RQ_ABSENT) {
        return;
    }
    if (queue->first == branch) {
        queue->first = rq_rbtree_next(branch);
    }
    if (left == NULL || right == NULL) {
        filler = left == NULL ? right : left;
        side = hole != NULL && hole->child[1] == branch;
        rq_rbtree_replace(queue, branch, filler);
    } else { /* The next task takes its place, and leaves its own. */
        struct rq_branch *heir = rq_rbtree_next(branch);
        side = heir == right;
        hole = side ? heir : heir->parent;
        filler = heir->child[1];
        lost = heir->colour;
        if (!side) {
            rq_rbtree_replace(queue, heir, filler);
            heir->child[1] = right;
            right->parent = heir;
        }
        rq_rbtree_replace(queue, branch, heir);
        heir->child[0] = left;
        left->parent = heir;
        heir->colour = branch->colour;
    }
    branch->colour = RQ_ABSENT;
    if (filler != NULL) {
        filler->colour = RQ_BLACK; /* An only child is a red leaf. */
    } else if (lost == RQ_BLACK && hole != NULL) {
        rq_rbtree_repair_black(queue, hole, side);
    }
}

/** Removes the task that runs next; NULL when none waits. */
static inline struct rq_branch *rq_rbtree_pop(struct rq_rbtree *queue)
{
    struct rq_branch *branch = queue->first;
    if (branch == NULL) {
        return NULL;
    }
    RQ_REQUIRE(branch->owner == queue, "rq_rbtree_pop: a link was overwritten");
    struct rq_branch *parent = branch->parent, *right = branch->child[1];
    uint8_t lost = branch->colour;
    queue->now = branch->key;
    branch->colour = RQ_ABSENT;
    /* Nothing is before it, so what is after it below it is a red leaf, which takes its place and its colour. */
    queue->first = right != NULL ? right : parent;
    if (right != NULL) {
        right->parent = parent;
        right->colour = RQ_BLACK;
    }
    if (parent == NULL) {
        queue->root = right;
        return branch;
    }
    parent->child[0] = right;
    if (right == NULL && lost == RQ_BLACK) {
        rq_rbtree_repair_black(queue, parent, 0);
    }
    return branch;
}

#endif
