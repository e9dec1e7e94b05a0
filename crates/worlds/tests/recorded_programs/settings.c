/* Runs on one CPU, and starts processes that change what is set for them before they work. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;

static void work(int rounds)
{
	struct timespec pause = { .tv_nsec = 200000 };

	while (rounds--) {
		for (long left = 300000; left; left--)
			sum += left;
		nanosleep(&pause, NULL);
	}
}

static int policy(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, policy, &param);
}

int main(void)
{
	static const char *const names[] = { "is-nice", "is-batch", "is-fifo", "is-round-robin", "is-back" };
	int status, failed = 0;
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) || setpriority(PRIO_PROCESS, 0, 0))
		return 1;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 1;
	for (int child = 0; child < 5; child++) {
		if (fork())
			continue;
		prctl(PR_SET_NAME, names[child]);
		if ((child == 0 && setpriority(PRIO_PROCESS, 0, 10)) || (child == 1 && policy(SCHED_BATCH, 0)) ||
		    (child == 2 && policy(SCHED_FIFO, 5)) || (child == 3 && policy(SCHED_RR, 6)))
			_exit(1);
		work(5);
		/* Most of its work is done: where it may run afterwards counts little. */
		if (child == 4 && sched_setaffinity(0, sizeof(all), &all))
			_exit(1);
		work(1);
		_exit(0);
	}
	while (wait(&status) > 0)
		failed |= status;
	return !!failed;
}
