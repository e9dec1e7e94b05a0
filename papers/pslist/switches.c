/*
 * The calls of yields.c that find somebody else to run: switches THREADS YIELDS calls sched_yield as
 * yields.c does, and prints how many of a hundred calls were a switch, and how many of a hundred
 * were made by the thread that made most. A call that is no switch returns at once: nobody else waits for
 * this CPU.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

struct thread {
	pthread_t id;
	long calls, switches;
};

static pthread_barrier_t gate;
static atomic_long left;

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void *yield(void *argument)
{
	struct thread *self = argument;
	long before;

	pthread_barrier_wait(&gate);
	before = switches();
	while (atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) > 1) {
		sched_yield();
		self->calls++;
	}
	self->switches = switches() - before;
	return NULL;
}

int main(int count, char **words)
{
	int threads = count == 3 ? atoi(words[1]) : 0;
	long yields = count == 3 ? atol(words[2]) : 0, switched = 0, calls = 0, most = 0;
	pthread_attr_t small;
	struct thread *all = threads > 0 ? calloc(threads, sizeof(*all)) : NULL;

	if (!all || yields < 2)
		return fprintf(stderr, "usage: switches THREADS YIELDS\n"), 2;
	atomic_store(&left, yields);
	pthread_barrier_init(&gate, NULL, threads);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int thread = 0; thread < threads; thread++)
		if (pthread_create(&all[thread].id, &small, yield, &all[thread]))
			return perror("pthread_create"), 1;
	for (int thread = 0; thread < threads; thread++) {
		pthread_join(all[thread].id, NULL);
		calls += all[thread].calls;
		switched += all[thread].switches;
		most = all[thread].calls > most ? all[thread].calls : most;
	}
	printf("switched=%.3f most=%.3f\n", 100.0 * switched / calls, 100.0 * most / calls);
	return 0;
}
