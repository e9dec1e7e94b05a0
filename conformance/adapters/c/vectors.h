/* A scheduler in C as a subject of schedlab-vectors (README.md, two folders up).
 *
 * Fill a table, call vectors_main() with it, and start the runner:
 *
 *     cc -std=c11 -o mine mine.c vectors.c
 *     schedlab-vectors --subject 'process:./mine'
 *
 * Times and virtual times are in nanoseconds; at is the time of the event. Tasks are numbered from
 * 1 to VECTORS_TASKS. A callback that is NULL refuses the vectors that need it, by name.
 */
#ifndef VECTORS_H
#define VECTORS_H

#include <stdint.h>

#define VECTORS_TASKS 4096

/* Which members of a struct vectors_state are stated. */
enum {
	VECTORS_VRUNTIME = 1,
	VECTORS_DEADLINE = 2,
	VECTORS_LAG = 4,
	VECTORS_ELIGIBLE = 8
};

/* The state of a task, in ns of nice 0. */
struct vectors_state {
	unsigned stated; /* VECTORS_VRUNTIME | ... */
	int64_t vruntime, deadline, lag;
	int eligible;
};

/* Callbacks that return resched: 1 if the scheduler wants to pick anew, 0 if not, -1 to say
 * nothing. self is handed to each callback. */
struct vectors_scheduler {
	void *self;
	void (*reset)(void *self, int64_t at, int64_t tick, int64_t slice);
	void (*task)(void *self, int64_t at, int task, int32_t weight, int64_t slice, int64_t vruntime,
		     int64_t lag);
	int (*wake)(void *self, int64_t at, int task);
	int (*new_task)(void *self, int64_t at, int task);
	int (*tick)(void *self, int64_t at);
	void (*block)(void *self, int64_t at);
	void (*exit)(void *self, int64_t at);
	void (*yield)(void *self, int64_t at);
	int (*weight)(void *self, int64_t at, int task, int32_t weight);
	int (*slice)(void *self, int64_t at, int task, int64_t slice);
	/* The task that runs from now on, 0 for none. */
	int (*pick)(void *self, int64_t at);
	/* Optional: states a task after an event. 0 if it is not in the queue. */
	int (*state)(void *self, int task, struct vectors_state *state);
};

/* Answers events from the standard input until it ends. Returns what main() should. */
int vectors_main(const struct vectors_scheduler *scheduler);

#endif
