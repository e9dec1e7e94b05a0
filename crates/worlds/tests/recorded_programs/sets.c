/*
 * Waits for several objects: a server with edge-triggered sockets that answers more than a buffer
 * holds, its clients with select(), and threads that share a set of objects watched once each.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 3, ROUNDS = 6, QUESTIONS = 16, ANSWER = 200000, PIPES = 2, MESSAGES = 60 };

static struct sockaddr_in address = { .sin_family = AF_INET };
static char buffer[ANSWER];
static int ends[PIPES][2], messages;

static void check(int holds)
{
	if (!holds)
		_exit(1);
}

static void work(int rounds)
{
	for (volatile int round = 0; round < rounds * 1000; round++)
		;
}

static void watch(int set, int op, int fd, unsigned int events, int place)
{
	struct epoll_event event = { .events = events, .data.u32 = place };

	check(!epoll_ctl(set, op, fd, &event));
}

/* Takes all questions, and writes all answers for which there is room. */
static int answers(int fd, long *owed)
{
	char question[8];
	long count;

	while ((count = read(fd, question, sizeof(question))) > 0)
		*owed += ANSWER;
	if (!count)
		return 0;
	check(errno == EAGAIN);
	while (*owed) {
		work(5);
		count = write(fd, buffer, *owed < ANSWER ? *owed : ANSWER);
		if (count < 0) {
			check(errno == EAGAIN);
			break;
		}
		*owed -= count;
	}
	return 1;
}

static void server(int listener)
{
	int set = epoll_create1(0), open = 0, accepted = 0, fds[CLIENTS + 1];
	long owed[CLIENTS + 1] = { 0 };
	struct epoll_event events[4];

	watch(set, EPOLL_CTL_ADD, listener, EPOLLIN, 0);
	do {
		int count = epoll_wait(set, events, 4, -1);

		for (int place = 0; place < count; place++) {
			unsigned int which = events[place].data.u32;

			if (!which) {
				fds[++accepted] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
				check(fds[accepted] >= 0);
				open++;
				watch(set, EPOLL_CTL_ADD, fds[accepted],
				      EPOLLIN | EPOLLOUT | EPOLLET, accepted);
			} else if (!answers(fds[which], &owed[which])) {
				close(fds[which]);
				open--;
			}
		}
	} while (accepted < CLIENTS || open);
}

static void client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	check(!connect(fd, (struct sockaddr *)&address, sizeof(address)));
	for (int round = 0; round < ROUNDS; round++) {
		usleep(700);
		for (int question = 0; question < QUESTIONS; question++)
			check(write(fd, "question", 8) == 8);
		for (long left = (long)QUESTIONS * ANSWER; left;) {
			struct timeval second = { .tv_sec = 1 };
			fd_set set;

			FD_ZERO(&set);
			FD_SET(fd, &set);
			check(select(fd + 1, &set, NULL, NULL, &second) == 1);
			work(20);
			left -= read(fd, buffer, left < ANSWER ? left : ANSWER);
		}
	}
	close(fd);
}

static void *worker(void *argument)
{
	int set = *(int *)argument;
	struct epoll_event event;

	while (__atomic_fetch_add(&messages, 1, __ATOMIC_SEQ_CST) < PIPES * MESSAGES) {
		check(epoll_wait(set, &event, 1, -1) == 1);
		check(read(ends[event.data.u32][0], buffer, 100) == 100);
		work(50);
		watch(set, EPOLL_CTL_MOD, ends[event.data.u32][0], EPOLLIN | EPOLLONESHOT,
		      event.data.u32);
	}
	return NULL;
}

static void workers(void)
{
	int set = epoll_create1(0);
	pthread_t threads[2];

	for (int place = 0; place < PIPES; place++) {
		check(!pipe(ends[place]));
		watch(set, EPOLL_CTL_ADD, ends[place][0], EPOLLIN | EPOLLONESHOT, place);
	}
	for (int place = 0; place < 2; place++)
		check(!pthread_create(&threads[place], NULL, worker, &set));
	for (int message = 0; message < PIPES * MESSAGES; message++) {
		usleep(200);
		check(write(ends[message % PIPES][1], buffer, 100) == 100);
	}
	for (int place = 0; place < 2; place++)
		pthread_join(threads[place], NULL);
}

int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(!bind(listener, (struct sockaddr *)&address, size) && !listen(listener, 8));
	getsockname(listener, (struct sockaddr *)&address, &size);
	for (int number = 0; number < CLIENTS; number++) {
		if (!fork()) {
			client();
			_exit(0);
		}
	}
	server(listener);
	for (int number = 0; number < CLIENTS; number++) {
		int status = 1;

		check(wait(&status) > 0 && !status);
	}
	workers();
	return 0;
}
