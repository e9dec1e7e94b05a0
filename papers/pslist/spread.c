/*
 * How far the virtual run times of hogs are apart, as the kernel itself says it (/proc/PID/sched).
 * spread HOGS MILLISECONDS: the hogs have the nice values -5, 0 and 5 in turn. A real-time task
 * looks 50 times a second, and no hog runs while it looks. Prints the largest difference, in
 * nanoseconds of virtual run time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int NICE[] = { -5, 0, 5 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A line as "se.vruntime          :       1234.567890", in milliseconds. */
static double vruntime(pid_t pid)
{
	char path[64], text[8192], *line;
	int file;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/sched", pid);
	file = open(path, O_RDONLY);
	if (file < 0)
		fail(path);
	length = read(file, text, sizeof(text) - 1);
	close(file);
	text[length > 0 ? length : 0] = 0;
	line = strstr(text, "se.vruntime");
	line = line ? strchr(line, ':') : NULL;
	if (!line)
		fail("the kernel does not say virtual run times");
	return strtod(line + 1, NULL) * 1e6;
}

int main(int count, char **words)
{
	int hogs = count == 3 ? atoi(words[1]) : 0, looks = count == 3 ? atoi(words[2]) / 20 : 0;
	struct sched_param first = { .sched_priority = 50 }, none = { 0 };
	struct timespec pause = { .tv_nsec = 20000000 };
	pid_t *all = hogs > 0 ? calloc(hogs, sizeof(*all)) : NULL;
	double widest = 0;
	int gate[2];
	char byte;

	if (!all || looks < 1)
		return fprintf(stderr, "usage: spread HOGS MILLISECONDS\n"), 2;
	if (pipe(gate) || sched_setscheduler(0, SCHED_FIFO, &first))
		fail("spread");
	for (int hog = 0; hog < hogs; hog++) {
		all[hog] = fork();
		if (all[hog] < 0)
			fail("fork");
		if (all[hog] == 0) {
			if (sched_setscheduler(0, SCHED_OTHER, &none) || setpriority(PRIO_PROCESS, 0, NICE[hog % 3]))
				fail("a hog");
			close(gate[1]);
			if (read(gate[0], &byte, 1) != 0)
				fail("the gate");
			for (volatile long turn = 0;; turn++)
				;
		}
	}
	close(gate[1]);
	for (int look = 0; look < looks; look++) {
		double low = 0, high = 0;

		nanosleep(&pause, NULL);
		for (int hog = 0; hog < hogs; hog++) {
			double now = vruntime(all[hog]);

			low = hog == 0 || now < low ? now : low;
			high = hog == 0 || now > high ? now : high;
		}
		widest = high - low > widest ? high - low : widest;
	}
	for (int hog = 0; hog < hogs; hog++)
		kill(all[hog], SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("%.0f\n", widest);
	return 0;
}
