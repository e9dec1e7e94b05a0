/*
 * A queue of a mutex and two condition variables between two producers and two consumers, and a
 * semaphore that hands a turn around: locks of which most calls reach no kernel.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum { ITEMS = 300, ROOM = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static sem_t turns[2];
static int items, left = 2 * ITEMS;
static volatile unsigned long sum;

static void compute(long loops)
{
	for (; loops; loops--)
		sum += loops;
}

static void *produce(void *argument)
{
	(void)argument;
	for (int item = 0; item < ITEMS; item++) {
		compute(4000);
		pthread_mutex_lock(&mutex);
		while (items == ROOM)
			pthread_cond_wait(&emptied, &mutex);
		items++;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *consume(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&mutex);
	while (left > 0) {
		while (!items && left > 0)
			pthread_cond_wait(&filled, &mutex);
		if (left > 0) {
			items--;
			left--;
			pthread_cond_signal(&emptied);
			if (!left)
				pthread_cond_broadcast(&filled);
			pthread_mutex_unlock(&mutex);
			compute(6000);
			pthread_mutex_lock(&mutex);
		}
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *cross(void *argument)
{
	long side = (long)argument;

	for (int crossing = 0; crossing < 200; crossing++) {
		sem_wait(&turns[side]);
		compute(2000);
		sem_post(&turns[!side]);
	}
	return NULL;
}

int main(void)
{
	void *(*tasks[])(void *) = { produce, produce, consume, consume, cross, cross };
	pthread_t threads[6];

	sem_init(&turns[0], 0, 1);
	sem_init(&turns[1], 0, 0);
	for (long task = 0; task < 6; task++)
		if (pthread_create(&threads[task], NULL, tasks[task], (void *)(task % 2)))
			exit(1);
	for (int task = 0; task < 6; task++)
		pthread_join(threads[task], NULL);
	return 0;
}
