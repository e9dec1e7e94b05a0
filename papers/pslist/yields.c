/*
 * The post's yield benchmark: as many calls of sched_yield as possible, by a number of threads.
 * yields THREADS YIELDS: the threads call it YIELDS times together, whoever is first. Prints how
 * many they make in a second, from the first to the last. The threads themselves read the clock: the
 * main thread is one of those that wait for the CPU, and comes when most is done.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t gate;
static atomic_long left;
static atomic_long begin, end;
static long yields;

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *yield(void *unused)
{
	long before;

	pthread_barrier_wait(&gate);
	while ((before = atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed)) > 1) {
		if (before == yields)
			atomic_store(&begin, now());
		sched_yield();
	}
	if (before == 1)
		atomic_store(&end, now());
	return unused;
}

int main(int count, char **words)
{
	int threads = count == 3 ? atoi(words[1]) : 0;
	pthread_attr_t small;
	pthread_t *all = threads > 0 ? calloc(threads, sizeof(*all)) : NULL;

	yields = count == 3 ? atol(words[2]) : 0;
	if (!all || yields < 2)
		return fprintf(stderr, "usage: yields THREADS YIELDS\n"), 2;
	atomic_store(&left, yields);
	pthread_barrier_init(&gate, NULL, threads);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int thread = 0; thread < threads; thread++)
		if (pthread_create(&all[thread], &small, yield, NULL))
			return perror("pthread_create"), 1;
	for (int thread = 0; thread < threads; thread++)
		pthread_join(all[thread], NULL);
	printf("%.3f\n", (yields - 1) * 1e9 / (atomic_load(&end) - atomic_load(&begin)));
	return 0;
}
