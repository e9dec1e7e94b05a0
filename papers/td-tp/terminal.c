/* TD-TP's program on a terminal: two threads print 101 lines each into a pseudo-terminal, whose other end this process reads.
 *
 * terminal POLICY [to=pty|file] [cpus=one|all] [reader=fast|slow|late|never] [beside=yes|no] [prints=N]
 *
 * POLICY is fifo, rr or other. With cpus=one both threads, and the reader with beside=yes, run on the first CPU; a reader with beside=no runs on the last. A slow reader takes 64 bytes
 * at a time and waits for 200 us, a late one begins after 50 ms. One that never reads kills the threads when no line has been printed for 200 ms, and then counts what the terminal
 * holds. Prints one line of JSON:
 *   ended    how many threads came to their end
 *   lines    how many lines the terminal took
 *   changes  how often a line follows one of the other thread
 *   longest  the most lines of one thread in a row
 *   first    the thread of the first line
 *   thread1_us, thread2_us  the time of each thread, by its own clock_gettime(CLOCK_MONOTONIC)
 *   total_us                from the creation of the first thread to the end of both, so */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { PRIORITY = 70, MOST = 1 << 24 };

/* Shared with the child; a thread is the only writer of its own. */
struct times { long thread[2], total; volatile int printed[2], ended[2]; };

static int policy = SCHED_OTHER, prints = 100;
static struct times *times;
static volatile long calculated;

static void fail(const char *what)
{
	fprintf(stderr, "terminal: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void stay_on(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fail("a CPU cannot be chosen");
}

/* As the paper has it: a thread sets its own policy and priority, and begins. */
static long begin(void)
{
	struct sched_param param = { .sched_priority = policy == SCHED_OTHER ? 0 : PRIORITY };
	errno = pthread_setschedparam(pthread_self(), policy, &param);
	if (errno)
		fail("the policy is refused (it needs root, or ulimit -r 70)");
	return now();
}

static void *first(void *unused)
{
	long from = begin();
	for (int value = 0; value <= prints; value++, times->printed[0]++)
		printf("Thread 1 says Hello! %d\n", value);
	times->thread[0] = now() - from;
	times->ended[0] = 1;
	return unused;
}

static void *second(void *unused)
{
	long from = begin();
	for (int loop = 0; loop < 2; loop++)
		for (int i = 100; i > 0; i--)
			calculated = (calculated + i) * 3 / 2 - i;
	for (int value = 0; value <= prints; value++, times->printed[1]++)
		printf("Thread 2 says Hi! %d\n", value);
	times->thread[1] = now() - from;
	times->ended[1] = 1;
	return unused;
}

/* The paper's process. */
static void threads(void)
{
	pthread_t one, two;
	long from = now();
	if (pthread_create(&one, NULL, first, NULL) || pthread_create(&two, NULL, second, NULL))
		fail("a thread cannot be created");
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	times->total = now() - from;
	fflush(stdout);
}

static void wait_for(long ns)
{
	struct timespec t = { ns / 1000000000L, ns % 1000000000L };
	nanosleep(&t, NULL);
}

/* All that comes, until the other end is closed. */
static size_t take(int from, char *text, int is_slow)
{
	size_t length = 0;
	for (;;) {
		ssize_t got = read(from, text + length, is_slow ? 64 : MOST - 1 - length);
		if (got <= 0)
			return length;
		length += got;
		if (length + 64 >= MOST) {
			errno = EFBIG;
			fail("the output");
		}
		if (is_slow)
			wait_for(200000);
	}
}

/* What the terminal of a program that nobody read holds, once no thread prints any more. */
static size_t left_behind(int from, pid_t child, char *text)
{
	for (int before = -1, printed; (printed = times->printed[0] + times->printed[1]) != before || !printed; before = printed)
		wait_for(200000000);
	kill(child, SIGKILL);
	size_t length = 0;
	struct pollfd end = { .fd = from, .events = POLLIN };
	while (poll(&end, 1, 100) > 0 && end.revents & POLLIN) {
		ssize_t got = read(from, text + length, MOST - 1 - length);
		if (got <= 0)
			break;
		length += got;
	}
	return length;
}

static int is(const char *word, const char *key, const char *value)
{
	size_t length = strlen(key);
	return !strncmp(word, key, length) && word[length] == '=' && !strcmp(word + length + 1, value);
}

int main(int count, char **words)
{
	int to_file = 0, on_one = 0, is_slow = 0, is_late = 0, is_never = 0, beside = 0;
	for (int i = 1; i < count; i++) {
		char *word = words[i];
		if (!strcmp(word, "fifo")) policy = SCHED_FIFO;
		else if (!strcmp(word, "rr")) policy = SCHED_RR;
		else if (!strcmp(word, "other")) policy = SCHED_OTHER;
		else if (is(word, "to", "pty") || is(word, "to", "file")) to_file = is(word, "to", "file");
		else if (is(word, "cpus", "one") || is(word, "cpus", "all")) on_one = is(word, "cpus", "one");
		else if (is(word, "reader", "fast")) ;
		else if (is(word, "reader", "slow")) is_slow = 1;
		else if (is(word, "reader", "late")) is_late = 1;
		else if (is(word, "reader", "never")) is_never = 1;
		else if (is(word, "beside", "yes") || is(word, "beside", "no")) beside = is(word, "beside", "yes");
		else if (!strncmp(word, "prints=", 7) && atoi(word + 7) > 0 && atoi(word + 7) <= 100000) prints = atoi(word + 7);
		else { fprintf(stderr, "terminal: `%s` is none of its words, see terminal.c\n", word); return 2; }
	}
	if (to_file && is_never) {
		fprintf(stderr, "terminal: nobody reads a file while it is written; leave out reader=never\n");
		return 2;
	}
	times = mmap(NULL, sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *text = malloc(MOST);
	if (times == MAP_FAILED || !text)
		fail("memory");
	int end = to_file ? memfd_create("output", 0) : posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (end < 0 || (!to_file && (grantpt(end) || unlockpt(end))))
		fail("a terminal cannot be made");
	char name[64] = "";
	if (!to_file && ptsname_r(end, name, sizeof name))
		fail("the terminal has no name");
	/* Open until the child has it, so that the end of file is the child's. */
	int other = to_file ? dup(end) : open(name, O_RDWR | O_NOCTTY);
	if (other < 0)
		fail("the terminal cannot be opened");
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		setsid();
		if (dup2(other, 1) < 0)
			fail("the terminal cannot be the output");
		close(other);
		if (on_one)
			stay_on(0);
		threads();
		exit(0);
	}
	/* Kept open for a terminal that is looked into after its writer's death. */
	if (!is_never)
		close(other);
	if (on_one || beside)
		stay_on(beside ? 0 : (int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (is_late)
		wait_for(50000000);
	size_t length = is_never ? left_behind(end, child, text) : to_file ? 0 : take(end, text, is_slow);
	int status;
	if (waitpid(child, &status, 0) != child || (status && !is_never)) {
		fprintf(stderr, "terminal: the program ended with status %d\n", status);
		return 1;
	}
	if (to_file) {
		lseek(end, 0, SEEK_SET);
		length = take(end, text, 0);
	}
	text[length] = 0;
	int last = 0, begun = 0, changes = 0, longest = 0, row = 0, lines = 0;
	for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
		int who = 0;
		if (sscanf(line, "Thread %d says", &who) != 1 || who < 1 || who > 2)
			continue;
		lines++;
		begun = begun ? begun : who;
		changes += last && who != last;
		row = who == last ? row + 1 : 1;
		longest = row > longest ? row : longest;
		last = who;
	}
	if (lines != 2 * (prints + 1) && !is_never) {
		fprintf(stderr, "terminal: %d of %d lines came through\n", lines, 2 * (prints + 1));
		return 1;
	}
	printf("{\"ended\": %d, \"lines\": %d, \"changes\": %d, \"longest\": %d, \"first\": %d, \"thread1_us\": %.3f, \"thread2_us\": %.3f, \"total_us\": %.3f}\n",
	       times->ended[0] + times->ended[1], lines, changes, longest, begun, times->thread[0] / 1e3, times->thread[1] / 1e3, times->total / 1e3);
	return 0;
}
