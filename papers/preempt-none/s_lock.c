/*
 * Processes that share a spin lock, as PostgreSQL's share that of the buffer clock:
 *
 *     s_lock PROCESSES SECTIONS [faults=N] [at=outside] [inside=N] [outside=N] [sleep=no] [slice=yes]
 *
 * Each computes (outside, in instructions), takes the lock, computes (inside), and gives it back.
 * With faults the holder touches as many pages of the shared memory that its own table does not have,
 * as a process does that comes to a buffer for the first time. With at=outside it does so before it
 * takes the lock.
 *
 * The lock follows s_lock.c of PostgreSQL 17: test and set; after as many looks as spins_per_delay
 * says (10 to 1,000, which adapts) a sleep of 1 ms, then of one to two times the last, up to 1 s. A
 * look costs what `pause` does, here 40 instructions, as an emulator ends a CPU's turn at a real one.
 * PostgreSQL panics after 1,000 sleeps; this one goes on. Its processes begin with the spins_per_delay
 * of others; these begin with 100. With sleep=no a process spins until it has the lock.
 *
 * With slice=yes a process that takes the lock asks for an extension of its slice (rseq, Linux 7.0) until
 * it gives it back. The exit code is 77 if the kernel has none.
 *
 * It measures until all together have done so many sections. Meanwhile it reads no clock, as that ends
 * the turn of an emulated CPU. It prints: sections in a second; looks at a lock that was taken, and sleeps,
 * in a section; and extensions that were granted, in a million sections.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, PAGES = 4096, PAGE = 4096 };

/* linux/rseq.h of 7.0; the C library of today registers the first 32 bytes of it. */
struct area {
	uint32_t cpu_id_start, cpu_id;
	uint64_t critical;
	uint32_t flags, node, concurrency;
	volatile uint8_t request, granted;
	uint16_t reserved;
	char rest[28];
} __attribute__((aligned(64)));

struct process {
	struct area area;
	long looks, sleeps, granted;
	uint64_t random;
	int spins_per_delay;
};

static struct shared {
	struct process processes[MOST];
	pthread_barrier_t gate;
	atomic_int lock __attribute__((aligned(64)));
	volatile long sections __attribute__((aligned(64)));
	long most, over;
	atomic_long began;
	volatile int refused;
	char pages[(long)PAGES * PAGE] __attribute__((aligned(4096)));
} *shared;

static long faults, inside = 2000, outside = 20000, is_outside, sleeps = 1, slice;

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Two instructions a pass. */
static void compute(long instructions)
{
	long passes = instructions / 2;

	if (passes > 0)
		__asm__ volatile("1: dec %0; jnz 1b" : "+r"(passes) : : "cc");
}

static unsigned draw(struct process *self, unsigned below)
{
	self->random = self->random * 6364136223846793005u + 1442695040888963407u;
	return (self->random >> 33) % below;
}

static void relinquish(struct process *self)
{
	atomic_signal_fence(memory_order_seq_cst);
	self->area.request = 0;
	if (self->area.granted) {
		self->granted++;
		syscall(471 /* rseq_slice_yield */);
	}
}

/* Tests and sets. Only who has the lock goes on with a request. */
static int takes(struct process *self)
{
	if (slice) {
		self->area.request = 1;
		atomic_signal_fence(memory_order_seq_cst);
	}
	if (!atomic_exchange(&shared->lock, 1))
		return 1;
	if (slice)
		relinquish(self);
	return 0;
}

static void acquire(struct process *self)
{
	long delay = 0;
	int spins = 0;

	while (!takes(self)) {
		do {
			self->looks++;
			compute(40);
			if (++spins < self->spins_per_delay || !sleeps)
				continue;
			if (delay == 0)
				delay = 1000;
			usleep(delay);
			self->sleeps++;
			delay += delay * draw(self, 1000) / 1000;
			if (delay > 1000000)
				delay = 1000;
			spins = 0;
		} while (atomic_load_explicit(&shared->lock, memory_order_relaxed));
	}
	if (delay == 0 && spins > 0)
		self->spins_per_delay += self->spins_per_delay + 100 <= 1000 ? 100 : 1000 - self->spins_per_delay;
	else if (delay > 0 && self->spins_per_delay > 10)
		self->spins_per_delay--;
}

/* Registers the whole area in place of the C library's, and allows extensions. */
static int extends(struct process *self)
{
	char *registered = (char *)__builtin_thread_pointer() + __rseq_offset;

	if (__rseq_size > 0 && syscall(SYS_rseq, registered, 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG))
		return 0;
	return syscall(SYS_rseq, &self->area, sizeof(self->area), 0, RSEQ_SIG) == 0 &&
	       prctl(79 /* PR_RSEQ_SLICE_EXTENSION */, 2 /* SET */, 1 /* ENABLE */, 0, 0) == 0;
}

static void touch(struct process *self)
{
	for (long fault = 0; fault < faults; fault++) {
		char *page = shared->pages + (long)draw(self, PAGES) * PAGE;

		madvise(page, PAGE, MADV_DONTNEED);
		*(volatile char *)page = 1;
	}
}

static void run(struct process *self)
{
	long none = 0;

	pthread_barrier_wait(&shared->gate);
	atomic_compare_exchange_strong(&shared->began, &none, now());
	while (shared->sections < shared->most && !shared->refused) {
		compute(outside);
		if (is_outside)
			touch(self);
		acquire(self);
		if (!is_outside)
			touch(self);
		compute(inside);
		if (++shared->sections == shared->most)
			shared->over = now();
		atomic_store(&shared->lock, 0);
		if (slice)
			relinquish(self);
	}
}

/* Whether the word is NAME=NUMBER. */
static int is_number(const char *word, const char *name, long *value)
{
	size_t length = strlen(name);
	char *rest;

	if (strncmp(word, name, length) || word[length] != '=' || word[length + 1] < '0' || word[length + 1] > '9')
		return 0;
	*value = strtol(word + length + 1, &rest, 10);
	return *rest == 0;
}

int main(int count, char **words)
{
	long all = 0, most = 0, looks = 0, slept = 0, granted = 0;
	double sections;
	pthread_barrierattr_t among;
	int is_known = count > 2;

	if (is_known) {
		all = atol(words[1]);
		most = atol(words[2]);
	}
	for (int word = 3; word < count; word++) {
		is_outside |= !strcmp(words[word], "at=outside");
		sleeps &= strcmp(words[word], "sleep=no") != 0;
		slice |= !strcmp(words[word], "slice=yes");
		is_known &= !strcmp(words[word], "at=outside") || !strcmp(words[word], "sleep=no") ||
			    !strcmp(words[word], "slice=yes") || is_number(words[word], "faults", &faults) ||
			    is_number(words[word], "inside", &inside) || is_number(words[word], "outside", &outside);
	}
	if (!is_known || all < 1 || all > MOST || most < 1)
		return fprintf(stderr, "usage: s_lock PROCESSES SECTIONS [faults=N] [at=outside] [inside=N] [outside=N] [sleep=no] [slice=yes]\n"), 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return perror("mmap"), 1;
	/* The memory exists; what a process lacks are entries of its table. */
	memset(shared->pages, 1, sizeof(shared->pages));
	shared->most = most;
	pthread_barrierattr_init(&among);
	pthread_barrierattr_setpshared(&among, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->gate, &among, all);
	for (int process = 0; process < all; process++) {
		struct process *self = &shared->processes[process];

		self->random = process;
		self->spins_per_delay = 100;
		switch (fork()) {
		case -1:
			return perror("fork"), 1;
		case 0:
			/* No process waits at the gate for one that could not be made. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (slice && !extends(self))
				shared->refused = 1;
			run(self);
			_exit(0);
		}
	}
	for (int process = 0; process < all; process++) {
		int status;

		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			return fprintf(stderr, "s_lock: a process has failed\n"), 1;
	}
	if (shared->refused)
		return fprintf(stderr, "s_lock: no extension of slices: it needs CONFIG_RSEQ_SLICE_EXTENSION and GLIBC_TUNABLES=glibc.pthread.rseq=0 or a C library that registers 32 bytes\n"), 77;
	for (struct process *self = shared->processes; self < shared->processes + all; self++) {
		looks += self->looks;
		slept += self->sleeps;
		granted += self->granted;
	}
	sections = shared->most;
	printf("rate=%.1f looks=%.3f sleeps=%.5f granted=%.1f\n", sections * 1e9 / (shared->over - shared->began),
	       looks / sections, slept / sections, granted * 1e6 / sections);
	return 0;
}
