/* Four threads meet at a barrier in 60 rounds, and are joined. */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 60 };

static pthread_barrier_t barrier;
static volatile unsigned long sums[THREADS];

static void *work(void *argument)
{
	long id = (long)argument;
	unsigned drawn = id + 1;

	for (int round = 0; round < ROUNDS; round++) {
		drawn = drawn * 1103515245 + 12345;
		for (long left = 50000 + (drawn >> 16) % 60000; left; left--)
			sums[id] += left;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long id = 0; id < THREADS; id++)
		if (pthread_create(&threads[id], NULL, work, (void *)id))
			exit(1);
	for (int id = 0; id < THREADS; id++)
		pthread_join(threads[id], NULL);
	return 0;
}
