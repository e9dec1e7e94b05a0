/* The poster's program: finds Pythagorean triplets in a loop, cut into jobs.
 *
 * pythagoras VARIANT [jobs=N] [each=K] [alive=A] [cpus=one|all] [sleep=US] [workers=W]
 *
 * VARIANT is
 *   single    one thread does all jobs
 *   threads   a thread for each job
 *   pool      W threads, as many as there are CPUs if it is not given, take the jobs from a counter
 *   fork      a process for each job
 *   sleepers  a thread for each job, which sleeps for US microseconds before it works
 *
 * K is the number of triplets that each job finds. At most A jobs have a thread or process at a time, ended ones that are not yet collected among them. Where the system gives no
 * more, the program goes on with as many as it has, and says how many that was. Prints one line of JSON:
 *   ms          from the first job's creation to the end of the last
 *   most_alive  the most jobs that had a thread or process at the same time
 *   jobs        how many were done
 *   triplets    how many were found */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 16 << 10 };

static long jobs = 100, each = 200, alive = 500, sleep_us, workers;
static _Atomic long next_job, now_alive, most_alive, found, done;

static void fail(const char *what)
{
	fprintf(stderr, "pythagoras: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* The first triplets a < b < c with a * a + b * b = c * c, by c and then by a, as a loop finds them. */
static long find(long wanted)
{
	long count = 0;
	for (long c = 5; count < wanted; c++)
		for (long a = 3, b = c - 1; a < b && count < wanted;) {
			long less = a * a + b * b - c * c;
			count += less == 0;
			if (less <= 0)
				a++;
			if (less >= 0)
				b--;
		}
	return count;
}

static void begin(void)
{
	long alone = ++now_alive, most = most_alive;
	while (alone > most && !atomic_compare_exchange_weak(&most_alive, &most, alone))
		;
}

static void work(void)
{
	found += find(each);
	done++;
}

static void nap(void)
{
	struct timespec t = { sleep_us / 1000000, sleep_us % 1000000 * 1000 };
	nanosleep(&t, NULL);
}

static void *thread_of_job(void *none)
{
	if (sleep_us)
		nap();
	work();
	now_alive--;
	return none;
}

static void *thread_of_pool(void *none)
{
	while (next_job++ < jobs)
		work();
	now_alive--;
	return none;
}

/* So many threads, at most `alive` at a time: each has a place, and one that is joined leaves its place to a later one. Their stacks are one piece of memory, as one mapping each
 * meets the system's limit of mappings before that of threads. */
static void threads(long count, void *(*body)(void *))
{
	long places = alive < count ? alive : count, joined = 0;
	pthread_t *ids = malloc(places * sizeof *ids);
	char *stacks = mmap(NULL, places * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	if (!ids || stacks == MAP_FAILED)
		fail("memory");
	for (long made = 0; joined < count;) {
		int is_full = made == count || made - joined == places;
		if (!is_full) {
			pthread_attr_setstack(&attributes, stacks + made % places * STACK, STACK);
			begin();
			errno = pthread_create(&ids[made % places], &attributes, body, NULL);
			if (!errno) {
				made++;
				continue;
			}
			now_alive--;
			if (errno != EAGAIN || made == joined)
				fail("a thread cannot be created");
		}
		pthread_join(ids[joined++ % places], NULL);
	}
}

/* Processes for all jobs, at most `alive` at a time. What they find comes back in their shared memory. */
static void processes(void)
{
	struct { _Atomic long found, done; } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("memory");
	for (long job = 0; job < jobs || now_alive;) {
		if (job < jobs && now_alive < alive) {
			pid_t child = fork();
			if (!child) {
				shared->found += find(each);
				shared->done++;
				_exit(0);
			}
			if (child > 0) {
				begin();
				job++;
				continue;
			}
			if (errno != EAGAIN || !now_alive)
				fail("a process cannot be created");
		}
		int status;
		if (wait(&status) < 0 || status)
			fail("a process did not end well");
		now_alive--;
	}
	found = shared->found;
	done = shared->done;
}

static long number(const char *word, const char *key)
{
	size_t length = strlen(key);
	char *end;
	if (strncmp(word, key, length) || word[length] != '=')
		return -1;
	long value = strtol(word + length + 1, &end, 10);
	if (*end || value < 1 || value > 100000000) {
		fprintf(stderr, "pythagoras: `%s` needs a number from 1 to 100000000\n", word);
		exit(2);
	}
	return value;
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "";
	int on_one = 0;
	workers = sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 2; i < count; i++) {
		long value;
		if ((value = number(words[i], "jobs")) > 0) jobs = value;
		else if ((value = number(words[i], "each")) > 0) each = value;
		else if ((value = number(words[i], "alive")) > 0) alive = value;
		else if ((value = number(words[i], "sleep")) > 0) sleep_us = value;
		else if ((value = number(words[i], "workers")) > 0) workers = value;
		else if (!strcmp(words[i], "cpus=one")) on_one = 1;
		else if (!strcmp(words[i], "cpus=all")) on_one = 0;
		else return fprintf(stderr, "pythagoras: `%s` is none of its words, see pythagoras.c\n", words[i]), 2;
	}
	if (on_one) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(0, &set);
		if (sched_setaffinity(0, sizeof set, &set))
			fail("a CPU cannot be chosen");
	}
	long from = now();
	if (!strcmp(variant, "single")) {
		begin();
		for (long job = 0; job < jobs; job++)
			work();
	} else if (!strcmp(variant, "threads") && !sleep_us) {
		threads(jobs, thread_of_job);
	} else if (!strcmp(variant, "sleepers") && sleep_us) {
		threads(jobs, thread_of_job);
	} else if (!strcmp(variant, "pool")) {
		alive = workers;
		threads(workers, thread_of_pool);
	} else if (!strcmp(variant, "fork")) {
		processes();
	} else {
		return fprintf(stderr, "pythagoras: give single, threads, pool, fork, or sleepers with sleep=US first, see pythagoras.c\n"), 2;
	}
	printf("{\"ms\": %.3f, \"most_alive\": %ld, \"jobs\": %ld, \"triplets\": %ld}\n", (now() - from) / 1e6, most_alive, done, found);
	return 0;
}
