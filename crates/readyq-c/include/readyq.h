/* For bindings of other languages. In a kernel in C take the header-only crates/readyq/c/rq.h, which inlines, and costs what you use of it.
 *
 * Ready queues for C: which ready task runs next, and nothing else.
 *
 * Generated from crates/readyq-c/src/lib.rs; `UPDATE_HEADER=1 cargo test -p readyq-c` writes it anew.
 * The caller owns all memory: one node per task, in one array that serves all queues, and the queues themselves. A task is an index into that
 * array and waits in at most one queue. Nothing is allocated; nothing is thread-safe. */

#ifndef READYQ_H
#define READYQ_H

#include <stdint.h>

/*
 The result of a call. Every status other than `RQ_STATUS_OK` leaves the queue unchanged.
 */
typedef enum rq_status {
  /*
   Done.
   */
  RQ_STATUS_OK = 0,
  /*
   No task waits.
   */
  RQ_STATUS_EMPTY = 1,
  /*
   The array has no node for this task: it is full, or the id is wrong.
   */
  RQ_STATUS_BEYOND_SLAB = 2,
  /*
   The structure has no such level.
   */
  RQ_STATUS_LEVEL_OUT_OF_RANGE = 3,
  /*
   The task waits already, in this queue or another one.
   */
  RQ_STATUS_ALREADY_WAITING = 4,
  /*
   The task does not wait in this queue.
   */
  RQ_STATUS_NOT_WAITING = 5,
  /*
   A pointer is null.
   */
  RQ_STATUS_NULL_POINTER = 6,
  /*
   The queue is not initialised, or was initialised with an unknown kind or stride.
   */
  RQ_STATUS_BAD_QUEUE = 7,
} rq_status;

/*
 Which structure a queue is.
 */
typedef enum rq_kind {
  /*
   Round robin; levels are ignored.
   */
  RQ_KIND_RR = 1,
  /*
   Virtual clock in a sorted list.
   */
  RQ_KIND_SORTED_LIST = 2,
  /*
   Virtual clock in a red-black tree.
   */
  RQ_KIND_RBTREE = 3,
  /*
   A list per level, 8 levels, each half as often as the one before, by a table.
   */
  RQ_KIND_MULTILIST2 = 4,
  /*
   The same order without the table, 64 levels.
   */
  RQ_KIND_RULER = 5,
  /*
   Virtual clock in 64 buckets, for strides up to 63.
   */
  RQ_KIND_WHEEL = 6,
  /*
   Strict priorities, 256 levels.
   */
  RQ_KIND_PRIORITY = 7,
} rq_kind;

/*
 How a level becomes a stride; a task with twice the stride gets half the rate.
 */
typedef enum rq_stride {
  /*
   Level l has the stride l + 1.
   */
  RQ_STRIDE_LINEAR = 0,
  /*
   Level l has the stride 2^l.
   */
  RQ_STRIDE_POWERS_OF_TWO = 1,
} rq_stride;

/*
 The node of one task. Initialise with `rq_nodes_init`.
 */
typedef struct rq_node {
  uint64_t opaque[3];
} rq_node;

/*
 A queue. Initialise with `rq_init`; it may be copied only while it is empty.
 */
typedef struct rq_queue {
  uint64_t opaque[266];
} rq_queue;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Initialises `count` nodes. No task waits anywhere.

 # Safety
 `nodes` is null or points to `count` nodes that may be written.
 */
enum rq_status rq_nodes_init(struct rq_node *nodes, uint32_t count);

/*
 Initialises `queue` as an empty queue. `kind` and `stride` are values of `rq_kind` and
 `rq_stride`. `number`, 1 to 255, is unique among the queues that share an array of nodes.

 # Safety
 `queue` is null or points to a queue that may be written.
 */
enum rq_status rq_init(struct rq_queue *queue, uint32_t kind, uint32_t stride, uint8_t number);

/*
 Inserts `task` at `level`, when its slice ends or it wakes.

 # Safety
 `queue` is null or points to initialised or zeroed memory of a queue; `nodes` is null or points
 to `count` initialised nodes. Nothing else accesses either during the call.
 */
enum rq_status rq_insert(struct rq_queue *queue, struct rq_node *nodes, uint32_t count, uint32_t task, uint16_t level);

/*
 Removes the task that runs next and stores it in `task`.

 # Safety
 As `rq_insert`; `task` is null or may be written.
 */
enum rq_status rq_pop(struct rq_queue *queue, struct rq_node *nodes, uint32_t count, uint32_t *task);

/*
 Stores in `task` the task that `rq_pop` would remove.

 # Safety
 As `rq_pop`.
 */
enum rq_status rq_peek(struct rq_queue *queue, struct rq_node *nodes, uint32_t count, uint32_t *task);

/*
 Removes `task`, wherever it waits in this queue: it was killed, migrated or re-prioritised.

 # Safety
 As `rq_insert`.
 */
enum rq_status rq_remove(struct rq_queue *queue, struct rq_node *nodes, uint32_t count, uint32_t task);

/*
 The number of levels that the queue accepts, or 0 if it is invalid.

 # Safety
 `queue` is null or points to initialised or zeroed memory of a queue.
 */
uint32_t rq_levels(struct rq_queue *queue);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* READYQ_H */
