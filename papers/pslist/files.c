/*
 * UnixBench's file read and file write, with a buffer of 256 bytes and 500 blocks of 1024 bytes:
 * each process reads or writes its own file from the begin to the end, again and again. UnixBench
 * stops after a time; this one does equal work.
 *
 * files read|write tmpfs|DEVICE PROCESSES ROUNDS [MKE2FS]: on a tmpfs, or on a block device that
 * MKE2FS formats. Prints kilobytes in a second, of all processes together.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 256, BLOCKS = 500, BUFFERS = BLOCKS * 1024 / BUFFER };

static const char PLACE[] = "/files";
static char buffer[BUFFER];

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

static void format(const char *mke2fs, const char *device)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execlp(mke2fs, mke2fs, "-q", "-F", "-t", "ext2", device, (char *)NULL);
		fail(mke2fs);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("the device cannot be formatted");
}

static void process(int number, int writes, int rounds, int ready, int gate)
{
	char name[32], byte = 0;
	int file;

	snprintf(name, sizeof(name), "%s/%d", PLACE, number);
	file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0)
		fail(name);
	for (int call = 0; call < BUFFERS; call++)
		if (write(file, buffer, BUFFER) != BUFFER)
			fail(name);
	if (write(ready, &byte, 1) != 1 || read(gate, &byte, 1) != 0)
		fail("the gate");
	for (int round = 0; round < rounds; round++) {
		lseek(file, 0, SEEK_SET);
		for (int call = 0; call < BUFFERS; call++) {
			ssize_t done = writes ? write(file, buffer, BUFFER) : read(file, buffer, BUFFER);

			if (done != BUFFER)
				fail(name);
		}
	}
	_exit(0);
}

int main(int count, char **words)
{
	int processes = count > 4 ? atoi(words[3]) : 0, rounds = count > 4 ? atoi(words[4]) : 0;
	int writes = count > 1 && !strcmp(words[1], "write"), ready[2], gate[2], status;
	const char *kind = count > 2 ? words[2] : "";
	char byte;
	long begin;

	if (processes < 1 || rounds < 1 || (!writes && strcmp(words[1], "read")))
		return fprintf(stderr, "usage: files read|write tmpfs|DEVICE PROCESSES ROUNDS [MKE2FS]\n"), 2;
	if (mkdir(PLACE, 0700))
		fail(PLACE);
	if (!strcmp(kind, "tmpfs")) {
		if (mount("tmpfs", PLACE, "tmpfs", 0, NULL))
			fail("tmpfs");
	} else {
		format(count > 5 ? words[5] : "mke2fs", kind);
		if (mount(kind, PLACE, "ext2", 0, NULL))
			fail(kind);
	}
	if (pipe(ready) || pipe(gate))
		fail("pipe");
	for (int number = 0; number < processes; number++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			close(gate[1]);
			process(number, writes, rounds, ready[1], gate[0]);
		}
	}
	for (int number = 0; number < processes; number++)
		if (read(ready[0], &byte, 1) != 1)
			fail("a process");
	sync();
	sleep(1);
	begin = now();
	close(gate[1]);
	for (int number = 0; number < processes; number++)
		if (wait(&status) < 0 || status != 0)
			return fprintf(stderr, "a process failed\n"), 1;
	printf("%.3f\n", (double)processes * rounds * BLOCKS * 1e9 / (now() - begin));
	return 0;
}
