/* Processes and threads that talk through every object that perf's calls show: pipes, a pair of
 * sockets and an event counter, with descriptors duplicated, closed, and inherited by exec. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300

static int count;

static void pass(int rounds, int from, int to)
{
	char byte;

	for (int round = 0; round < rounds; round++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			exit(1);
}

static void start(int from, int to)
{
	char byte = 1;

	if (write(to, &byte, 1) != 1)
		exit(1);
	pass(ROUNDS - 1, from, to);
	if (read(from, &byte, 1) != 1)
		exit(1);
}

static void *counts(void *nothing)
{
	uint64_t value;

	for (int round = 0; round < ROUNDS; round++)
		if (read(count, &value, 8) != 8)
			exit(1);
	return nothing;
}

int main(int argc, char **argv)
{
	int there[2], back[2], pair[2], spare;
	uint64_t one = 1;
	pthread_t thread;

	if (argc > 1 && !strcmp(argv[1], "pass")) {
		/* As a filter: the program got its descriptors by exec. */
		pass(ROUNDS, 0, 1);
		return 0;
	}
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (pipe2(there, O_CLOEXEC) || pipe(back))
		return 1;
	close(spare);
	if (!fork()) {
		dup2(there[0], 0);
		dup2(back[1], 1);
		close(back[0]);
		execl("/proc/self/exe", "carriers", "pass", NULL);
		_exit(1);
	}
	start(back[0], there[1]);
	wait(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	if (!fork()) {
		close(pair[0]);
		pass(ROUNDS, pair[1], pair[1]);
		_exit(0);
	}
	close(pair[1]);
	start(pair[0], pair[0]);
	wait(NULL);
	count = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	pthread_create(&thread, NULL, counts, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		usleep(100);
		if (write(count, &one, 8) != 8)
			return 1;
	}
	pthread_join(thread, NULL);
	return 0;
}
