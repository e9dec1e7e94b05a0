/*
 * The first program of a guest whose fair scheduler is read out: it prints the kernel's symbols, or
 * runs the tasks of a scenario. capture.py builds it statically and says what it reads in /scenario.
 *
 * A scenario has a task a line: `nice slice begin times step...`; the slice and the begin are in
 * microseconds, and a slice of 0 is the kernel's. A step is a letter and a number: r runs and s
 * sleeps for so many microseconds, y yields, n takes a nice value, l takes a slice, f forks the task
 * of that line. A line with begin -1 is only ever forked.
 *
 * Time in the guest is the count of instructions, one a nanosecond, so running is counting.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES 64
#define BEGINS 0x5ced1ab /* what capture.py waits for: prctl's first argument */
#define ENDS 0x5ced1ac

static char *lines[LINES];
static struct timespec zero;

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void attributes(int nice, long slice)
{
	struct attributes given = { .size = sizeof given, .nice = nice, .runtime = slice * 1000 };

	if (syscall(SYS_sched_setattr, 0, &given, 0))
		perror("sched_setattr");
}

/* Two instructions a pass. */
static void run(long microseconds)
{
	long passes = microseconds * 500;

	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(passes) : : "cc");
}

static struct timespec after(struct timespec then, long microseconds)
{
	then.tv_nsec += microseconds % 1000000 * 1000;
	then.tv_sec += microseconds / 1000000 + then.tv_nsec / 1000000000;
	then.tv_nsec %= 1000000000;
	return then;
}

static void task(const char *line)
{
	int nice = 0, times = 1, used = 0;
	long slice = 0, begin = 0;

	if (sscanf(line, "%d %ld %ld %d%n", &nice, &slice, &begin, &times, &used) != 4)
		_exit(2);
	if (nice || slice)
		attributes(nice, slice);
	if (begin >= 0) {
		struct timespec at = after(zero, begin);

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	while (times--) {
		const char *step = line + used;
		char letter;
		long number;
		int length;

		while (sscanf(step, " %c%ld%n", &letter, &number, &length) == 2) {
			step += length;
			switch (letter) {
			case 'r':
				run(number);
				break;
			case 's': {
				struct timespec span = after((struct timespec){ 0 }, number);

				nanosleep(&span, NULL);
				break;
			}
			case 'y':
				syscall(SYS_sched_yield);
				break;
			case 'n':
				setpriority(PRIO_PROCESS, 0, number);
				break;
			case 'l':
				attributes(nice, number);
				break;
			case 'f':
				if (!fork()) {
					task(lines[number]);
					_exit(0);
				}
				break;
			default:
				_exit(2);
			}
		}
	}
}

/* The symbols that capture.py names in its argument, from the kernel itself. */
static void symbols(const char *wanted)
{
	static char line[512], name[256], key[260];
	FILE *all = fopen("/proc/kallsyms", "r");

	while (all && fgets(line, sizeof line, all)) {
		if (sscanf(line, "%*s %*s %255s", name) != 1 || strchr(line, '['))
			continue;
		snprintf(key, sizeof key, ",%s,", name);
		if (strstr(wanted, key))
			printf("symbol %s", line);
	}
	printf("symbols end\n");
}

int main(void)
{
	static char text[65536];
	int count = 0, file;
	char *rest = text;

	mount("proc", "/proc", "proc", 0, NULL);
	file = open("/scenario", O_RDONLY);
	if (file < 0 || read(file, text, sizeof text - 1) < 1)
		return 2;
	if (text[0] == ',') {
		symbols(strtok(text, "\n"));
		fflush(stdout);
		reboot(RB_AUTOBOOT);
	}
	for (char *line; count < LINES && (line = strsep(&rest, "\n"));)
		if (*line)
			lines[count++] = line;
	clock_gettime(CLOCK_MONOTONIC, &zero);
	struct timespec soon = after(zero, 180000); /* by then all tasks sleep */

	zero = after(zero, 200000);
	for (int each = 0; each < count; each++) {
		int nice, times;
		long slice, begin;

		if (sscanf(lines[each], "%d %ld %ld %d", &nice, &slice, &begin, &times) == 4 && begin < 0)
			continue;
		if (!fork()) {
			task(lines[each]);
			_exit(0);
		}
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &soon, NULL);
	prctl(BEGINS, 0, 0, 0, 0);
	while (wait(NULL) > 0)
		;
	prctl(ENDS, 0, 0, 0, 0);
	reboot(RB_AUTOBOOT);
	return 0;
}
