/* A bounded queue between two makers and two takers: a mutex and two condition variables.
 * Each thread computes for about 20 us between two operations. locks [ITEMS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4, PAIRS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static unsigned queue[SLOTS], in, out, taken;
static unsigned items = 1000;

static unsigned compute(unsigned value) {
    for (int round = 0; round < 10000; round++)
        value = value * 1664525 + 1013904223;
    return value;
}

static void *make(void *seed) {
    unsigned value = (unsigned)(size_t)seed;
    for (unsigned item = 0; item < items; item++) {
        value = compute(value);
        pthread_mutex_lock(&lock);
        while (in - out == SLOTS)
            pthread_cond_wait(&not_full, &lock);
        queue[in++ % SLOTS] = value;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *take(void *sum) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (in == out && taken < PAIRS * items)
            pthread_cond_wait(&not_empty, &lock);
        if (taken == PAIRS * items) {
            pthread_cond_broadcast(&not_empty);
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        unsigned value = queue[out++ % SLOTS];
        if (++taken == PAIRS * items)
            pthread_cond_broadcast(&not_empty);
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        *(unsigned *)sum += compute(value);
    }
}

int main(int count, char **words) {
    if (count > 1)
        items = (unsigned)strtoul(words[1], NULL, 10);
    pthread_t threads[2 * PAIRS];
    unsigned sums[PAIRS] = {0};
    for (size_t at = 0; at < PAIRS; at++) {
        pthread_create(&threads[at], NULL, make, (void *)(at + 1));
        pthread_create(&threads[PAIRS + at], NULL, take, &sums[at]);
    }
    for (size_t at = 0; at < 2 * PAIRS; at++)
        pthread_join(threads[at], NULL);
    printf("%u\n", sums[0] + sums[1]);
    return 0;
}
