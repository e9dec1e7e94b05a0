/* A scheduler in C on top of the ready queues: tasks that yield for ever, one slice each, and everything that can go wrong. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "readyq.h"

#define TASKS 8
#define EXPECT(condition) \
  do { if (!(condition)) { printf("line %d: not %s\n", __LINE__, #condition); return 1; } } while (0)

static rq_node nodes[TASKS];

/* Runs `slices` slices of tasks 0..TASKS at the levels 0..TASKS and counts them. */
static int rates(enum rq_kind kind, enum rq_stride stride, int slices, int counts[TASKS]) {
  static rq_queue queue;
  uint32_t task;
  memset(counts, 0, TASKS * sizeof *counts);
  EXPECT(rq_nodes_init(nodes, TASKS) == RQ_STATUS_OK);
  EXPECT(rq_init(&queue, kind, stride, 1) == RQ_STATUS_OK);
  EXPECT(rq_pop(&queue, nodes, TASKS, &task) == RQ_STATUS_EMPTY);
  for (task = 0; task < TASKS; task++)
    EXPECT(rq_insert(&queue, nodes, TASKS, task, (uint16_t)(rq_levels(&queue) > task ? task : 0)) == RQ_STATUS_OK);
  for (int slice = 0; slice < slices; slice++) {
    uint32_t peeked;
    EXPECT(rq_peek(&queue, nodes, TASKS, &peeked) == RQ_STATUS_OK);
    EXPECT(rq_pop(&queue, nodes, TASKS, &task) == RQ_STATUS_OK);
    EXPECT(task == peeked);
    counts[task]++;
    EXPECT(rq_insert(&queue, nodes, TASKS, task, (uint16_t)(rq_levels(&queue) > task ? task : 0)) == RQ_STATUS_OK);
  }
  return 0;
}

static int misuse(enum rq_kind kind) {
  static rq_queue queue, other;
  uint32_t task;
  memset(&queue, 0, sizeof queue);
  EXPECT(rq_nodes_init(NULL, TASKS) == RQ_STATUS_NULL_POINTER);
  EXPECT(rq_nodes_init(nodes, TASKS) == RQ_STATUS_OK);
  EXPECT(rq_pop(&queue, nodes, TASKS, &task) == RQ_STATUS_BAD_QUEUE);
  EXPECT(rq_init(&queue, kind, 2, 1) == RQ_STATUS_BAD_QUEUE);
  EXPECT(rq_init(&queue, kind, RQ_STRIDE_LINEAR, 0) == RQ_STATUS_BAD_QUEUE);
  EXPECT(rq_init(&queue, 99, RQ_STRIDE_LINEAR, 1) == RQ_STATUS_BAD_QUEUE);
  EXPECT(rq_init(NULL, kind, RQ_STRIDE_LINEAR, 1) == RQ_STATUS_NULL_POINTER);
  EXPECT(rq_init(&queue, kind, RQ_STRIDE_LINEAR, 1) == RQ_STATUS_OK);
  EXPECT(rq_init(&other, RQ_KIND_RR, RQ_STRIDE_LINEAR, 2) == RQ_STATUS_OK);
  EXPECT(rq_insert(&queue, nodes, TASKS, TASKS, 0) == RQ_STATUS_BEYOND_SLAB);
  EXPECT(rq_insert(&queue, NULL, TASKS, 0, 0) == RQ_STATUS_NULL_POINTER);
  EXPECT(rq_insert(NULL, nodes, TASKS, 0, 0) == RQ_STATUS_NULL_POINTER);
  EXPECT(rq_pop(&queue, nodes, TASKS, NULL) == RQ_STATUS_NULL_POINTER);
  EXPECT(rq_peek(&queue, nodes, TASKS, NULL) == RQ_STATUS_NULL_POINTER);
  if (rq_levels(&queue) <= 65535)
    EXPECT(rq_insert(&queue, nodes, TASKS, 0, (uint16_t)rq_levels(&queue)) == RQ_STATUS_LEVEL_OUT_OF_RANGE);
  EXPECT(rq_remove(&queue, nodes, TASKS, 3) == RQ_STATUS_NOT_WAITING);
  EXPECT(rq_remove(&queue, nodes, TASKS, 1000) == RQ_STATUS_BEYOND_SLAB);
  EXPECT(rq_insert(&queue, nodes, TASKS, 3, 1) == RQ_STATUS_OK);
  EXPECT(rq_insert(&queue, nodes, TASKS, 3, 1) == RQ_STATUS_ALREADY_WAITING);
  EXPECT(rq_insert(&other, nodes, TASKS, 3, 1) == RQ_STATUS_ALREADY_WAITING);
  EXPECT(rq_remove(&other, nodes, TASKS, 3) == RQ_STATUS_NOT_WAITING);
  EXPECT(rq_remove(&queue, nodes, TASKS, 3) == RQ_STATUS_OK);
  EXPECT(rq_peek(&queue, nodes, TASKS, &task) == RQ_STATUS_EMPTY);
  return 0;
}

int main(void) {
  static const int even[TASKS] = {100, 100, 100, 100, 100, 100, 100, 100};
  static const int halves[TASKS] = {128, 64, 32, 16, 8, 4, 2, 1};
  static const int parts[TASKS] = {840, 420, 280, 210, 168, 140, 120, 105};
  static const int first[TASKS] = {800, 0, 0, 0, 0, 0, 0, 0};
  int counts[TASKS];
  EXPECT(!rates(RQ_KIND_RR, RQ_STRIDE_LINEAR, 800, counts) && !memcmp(counts, even, sizeof counts));
  EXPECT(!rates(RQ_KIND_PRIORITY, RQ_STRIDE_LINEAR, 800, counts) && !memcmp(counts, first, sizeof counts));
  EXPECT(!rates(RQ_KIND_MULTILIST2, RQ_STRIDE_LINEAR, 255, counts) && !memcmp(counts, halves, sizeof counts));
  EXPECT(!rates(RQ_KIND_RULER, RQ_STRIDE_LINEAR, 255, counts) && !memcmp(counts, halves, sizeof counts));
  EXPECT(!rates(RQ_KIND_RBTREE, RQ_STRIDE_POWERS_OF_TWO, 255, counts) && !memcmp(counts, halves, sizeof counts));
  /* At virtual time 840 every task of linear strides 1 to 8 has just had a turn. */
  EXPECT(!rates(RQ_KIND_SORTED_LIST, RQ_STRIDE_LINEAR, 2283, counts) && !memcmp(counts, parts, sizeof counts));
  EXPECT(!rates(RQ_KIND_RBTREE, RQ_STRIDE_LINEAR, 2283, counts) && !memcmp(counts, parts, sizeof counts));
  EXPECT(!rates(RQ_KIND_WHEEL, RQ_STRIDE_LINEAR, 2283, counts) && !memcmp(counts, parts, sizeof counts));
  for (int kind = RQ_KIND_RR; kind <= RQ_KIND_PRIORITY; kind++)
    EXPECT(!misuse((enum rq_kind)kind));
  puts("ok");
  return 0;
}
