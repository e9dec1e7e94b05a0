/*
 * All that a desktop does to a scheduler, in a kernel that checks itself: hogs of several weights,
 * tasks that yield, talk through pipes, sleep, fork and end.
 *
 * checked SECONDS: afterwards the kernel must have had nothing to report: no warning, no oops
 * (/proc/sys/kernel/tainted), and its lock checks still on (/proc/lockdep_stats: they go off with
 * their first report). Every task must have run in each second. Prints the number of problems.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOGS = 4, YIELDS = 3, TALKERS = 4, SLEEPERS = 4, FORKS = 2, MOST_SECONDS = 64 };
enum { TASKS = HOGS + YIELDS + 2 * TALKERS + SLEEPERS + FORKS };

static const int NICE[] = { 0, 5, -5, 10 };

/* What each task did in each second. */
static long (*done)[MOST_SECONDS];
static long begin, seconds;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Counts one step; false once the time is over. */
static int step(int task)
{
	long second = (now() - begin) / 1000000000L;

	if (second >= seconds)
		return 0;
	done[task][second]++;
	return 1;
}

static void compute(long turns)
{
	for (volatile long turn = 0; turn < turns; turn++)
		;
}

static void talk(int task, int from, int to, int begins)
{
	char byte = 0;

	while (step(task)) {
		if (begins && write(to, &byte, 1) != 1)
			return;
		if (read(from, &byte, 1) != 1)
			return;
		compute(2000);
		if (!begins && write(to, &byte, 1) != 1)
			return;
	}
}

static void fork_again(int task)
{
	while (step(task)) {
		struct timespec pause = { .tv_nsec = 2000000 };
		pid_t pid = fork();

		if (pid == 0) {
			compute(20000);
			sched_yield();
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
		nanosleep(&pause, NULL);
	}
}

static void run(int task, int (*pipes)[4])
{
	struct timespec pause = { .tv_nsec = 3000000 };
	int of = task;

	/* A talker whose other side has left ends, too. */
	signal(SIGPIPE, SIG_IGN);
	if (of < HOGS) {
		setpriority(PRIO_PROCESS, 0, NICE[of]);
		while (step(task))
			compute(20000);
	} else if ((of -= HOGS) < YIELDS) {
		while (step(task))
			sched_yield();
	} else if ((of -= YIELDS) < 2 * TALKERS) {
		int *both = pipes[of / 2];

		for (int other = 0; other < TALKERS; other++)
			for (int end = 0; end < 4; end++)
				if (other != of / 2 || end == (of % 2 ? 1 : 0) || end == (of % 2 ? 2 : 3))
					close(pipes[other][end]);
		/* The one writes into the first pipe and reads from the second. */
		if (of % 2)
			talk(task, both[0], both[3], 0);
		else
			talk(task, both[2], both[1], 1);
	} else if ((of -= 2 * TALKERS) < SLEEPERS) {
		while (step(task)) {
			nanosleep(&pause, NULL);
			compute(10000);
		}
	} else {
		fork_again(task);
	}
	_exit(0);
}

static void read_file(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);

	if (length < 0)
		fail(path);
	text[length] = 0;
	close(file);
}

int main(int count, char **words)
{
	int pipes[TALKERS][4], problems = 0;
	char text[16384];

	seconds = count == 2 ? atol(words[1]) : 0;
	if (seconds < 1 || seconds > MOST_SECONDS)
		return fprintf(stderr, "usage: checked SECONDS\n"), 2;
	read_file("/proc/lockdep_stats", text, sizeof(text));
	done = mmap(NULL, TASKS * sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (done == MAP_FAILED)
		fail("mmap");
	for (int talker = 0; talker < TALKERS; talker++)
		if (pipe(pipes[talker]) || pipe(pipes[talker] + 2))
			fail("pipe");
	begin = now();
	for (int task = 0; task < TASKS; task++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0)
			run(task, pipes);
	}
	for (int talker = 0; talker < TALKERS; talker++)
		for (int end = 0; end < 4; end++)
			close(pipes[talker][end]);
	while (wait(NULL) > 0)
		;
	for (int task = 0; task < TASKS; task++)
		for (long second = 1; second < seconds; second++)
			if (done[task][second] == 0)
				problems++, printf("task %d did nothing in second %ld\n", task, second);
	read_file("/proc/sys/kernel/tainted", text, sizeof(text));
	if (atol(text) != 0)
		problems++, printf("the kernel is tainted: %s", text);
	read_file("/proc/lockdep_stats", text, sizeof(text));
	char *line = strstr(text, "debug_locks:");
	if (!line || atol(strchr(line, ':') + 1) != 1)
		problems++, printf("the checks of locks have ended\n");
	printf("%d\n", problems);
	return 0;
}
