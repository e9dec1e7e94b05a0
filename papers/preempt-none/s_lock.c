/*
 * Processes that share a spin lock, as PostgreSQL's share that of the buffer clock:
 *
 *     s_lock PROCESSES SECTIONS [faults=N] [inside=N] [outside=N] [sleep=no] [slice=yes]
 *
 * Each computes (outside, in instructions), takes the lock, computes (inside), and gives it back.
 * With faults the holder touches as many pages of the shared memory that its own table does not have,
 * as a process does that comes to a buffer for the first time.
 *
 * The lock follows s_lock.c of PostgreSQL 17: test and set; after as many looks as spins_per_delay
 * says (10 to 1,000, which adapts) a sleep of 1 ms, then of one to two times the last, up to 1 s. A
 * look costs what `pause` does, here 40 instructions, as an emulator ends a CPU's turn at a real one.
 * With sleep=no it spins until it has the lock.
 *
 * With slice=yes each section asks for an extension of the slice (rseq, Linux 7.0). The exit code is
 * 77 if the kernel has none.
 *
 * It ends when all together have done so many sections. Meanwhile it reads no clock, as that ends the
 * turn of an emulated CPU. It prints: sections in a second; looks at a lock that was taken, and sleeps,
 * in a section; and extensions that were granted, in a million sections.
 */
#define _GNU_SOURCE
#include <pthread.h>
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
	volatile long sections, most __attribute__((aligned(64)));
	volatile int refused;
	char pages[(long)PAGES * PAGE] __attribute__((aligned(4096)));
} *shared;

static long faults, inside = 2000, outside = 20000, sleeps = 1, slice;

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

static void acquire(struct process *self)
{
	long delay = 0;
	int spins = 0;

	while (atomic_exchange(&shared->lock, 1)) {
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

	if (__rseq_size > 0)
		syscall(SYS_rseq, registered, 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
	return syscall(SYS_rseq, &self->area, sizeof(self->area), 0, RSEQ_SIG) == 0 &&
	       prctl(79 /* PR_RSEQ_SLICE_EXTENSION */, 2 /* SET */, 1 /* ENABLE */, 0, 0) == 0;
}

static void run(struct process *self)
{
	pthread_barrier_wait(&shared->gate);
	while (shared->sections < shared->most && !shared->refused) {
		compute(outside);
		if (slice) {
			self->area.request = 1;
			atomic_signal_fence(memory_order_seq_cst);
		}
		acquire(self);
		for (long fault = 0; fault < faults; fault++) {
			char *page = shared->pages + (long)draw(self, PAGES) * PAGE;

			madvise(page, PAGE, MADV_DONTNEED);
			*page = 1;
		}
		compute(inside);
		shared->sections++;
		atomic_store(&shared->lock, 0);
		if (slice) {
			atomic_signal_fence(memory_order_seq_cst);
			self->area.request = 0;
			if (self->area.granted) {
				self->granted++;
				syscall(471 /* rseq_slice_yield */);
			}
		}
	}
}

int main(int count, char **words)
{
	struct { const char *name; long *value; } options[] = {
		{ "faults", &faults }, { "inside", &inside }, { "outside", &outside },
	};
	int all = count > 2 ? atoi(words[1]) : 0;
	long most = count > 2 ? atol(words[2]) : 0, looks = 0, slept = 0, granted = 0, begin;
	double sections, span;
	pthread_barrierattr_t among;

	for (int word = 3; word < count; word++) {
		char *value = strchr(words[word], '=');
		int known = value && (!strcmp(words[word], "sleep=no") || !strcmp(words[word], "slice=yes"));

		sleeps &= strcmp(words[word], "sleep=no") != 0;
		slice |= strcmp(words[word], "slice=yes") == 0;
		for (size_t place = 0; value && place < sizeof(options) / sizeof(*options); place++) {
			if (strncmp(words[word], options[place].name, value - words[word]) == 0) {
				*options[place].value = atol(value + 1);
				known = 1;
			}
		}
		if (!known)
			all = 0;
	}
	if (all < 1 || all > MOST || most <= 0 || faults < 0 || inside < 0 || outside < 0)
		return fprintf(stderr, "usage: s_lock PROCESSES SECTIONS [faults=N] [inside=N] [outside=N] [sleep=no] [slice=yes]\n"), 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return perror("mmap"), 1;
	pthread_barrierattr_init(&among);
	pthread_barrierattr_setpshared(&among, PTHREAD_PROCESS_SHARED);
	shared->most = most;
	pthread_barrier_init(&shared->gate, &among, all + 1);
	for (int process = 0; process < all; process++) {
		struct process *self = &shared->processes[process];

		self->random = process;
		self->spins_per_delay = 100;
		switch (fork()) {
		case -1:
			return perror("fork"), 1;
		case 0:
			shared->refused |= slice && !extends(self);
			run(self);
			_exit(0);
		}
	}
	pthread_barrier_wait(&shared->gate);
	begin = now();
	for (int process = 0; process < all; process++) {
		int status;

		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			return fprintf(stderr, "s_lock: a process has failed\n"), 1;
	}
	for (struct process *self = shared->processes; self < shared->processes + all; self++) {
		looks += self->looks;
		slept += self->sleeps;
		granted += self->granted;
	}
	if (shared->refused)
		return fprintf(stderr, "s_lock: this kernel extends no slices: it needs CONFIG_RSEQ_SLICE_EXTENSION\n"), 77;
	sections = shared->sections;
	span = now() - begin;
	printf("rate=%.1f looks=%.3f sleeps=%.5f granted=%.1f\n", sections * 1e9 / span, looks / sections,
	       slept / sections, granted * 1e6 / sections);
	return 0;
}
