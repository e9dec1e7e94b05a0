/* What happens once: ends of files, programs of created tasks, signals, connections, ended children. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 4, CONNECTIONS = 6, SIGNALS = 5 };

static void nothing(int number)
{
	(void)number;
}

static void check(int holds)
{
	if (!holds)
		_exit(1);
}

/* A reader sleeps until the last writer's end. */
static void end_of_file(void)
{
	char byte;
	int ends[2];

	check(!pipe(ends));
	if (!fork()) {
		close(ends[0]);
		usleep(3000);
		check(write(ends[1], "x", 1) == 1);
		usleep(3000);
		_exit(0);
	}
	close(ends[1]);
	check(read(ends[0], &byte, 1) == 1);
	check(read(ends[0], &byte, 1) == 0);
	close(ends[0]);
	check(wait(NULL) > 0);
}

static void programs(void)
{
	for (int child = 0; child < CHILDREN; child++) {
		if (!vfork()) {
			execl("/bin/sleep", "sleep", "0.01", NULL);
			_exit(1);
		}
	}
	for (int child = 0; child < CHILDREN; child++)
		check(wait(NULL) > 0);
}

static void signals(void)
{
	sigset_t set, old;
	int child, number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGCHLD, nothing);
	child = fork();
	if (!child) {
		for (int count = 0; count < SIGNALS; count++) {
			usleep(3000);
			kill(getppid(), SIGUSR1);
		}
		usleep(3000);
		_exit(0);
	}
	sigdelset(&set, SIGCHLD);
	for (int count = 0; count < SIGNALS; count++)
		check(!sigwait(&set, &number));
	sigsuspend(&old);
	check(waitpid(child, NULL, 0) == child);
}

/* Clients that connect to a listening socket, one after the other. */
static void connections(int family, struct sockaddr *address, socklen_t size)
{
	int listener = socket(family, SOCK_STREAM, 0);
	char byte;

	check(!bind(listener, address, size) && !listen(listener, 8));
	getsockname(listener, address, &size);
	if (!fork()) {
		for (int count = 0; count < CONNECTIONS; count++) {
			int from = socket(family, SOCK_STREAM, 0);

			usleep(2000);
			check(!connect(from, address, size));
			check(write(from, "x", 1) == 1 && read(from, &byte, 1) == 1);
			close(from);
		}
		_exit(0);
	}
	for (int count = 0; count < CONNECTIONS; count++) {
		int to = accept(listener, NULL, NULL);

		check(to >= 0 && read(to, &byte, 1) == 1 && write(to, "y", 1) == 1);
		check(read(to, &byte, 1) == 0);
		close(to);
	}
	check(wait(NULL) > 0);
	close(listener);
}

int main(int count, char **arguments)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	struct sockaddr_un path = { .sun_family = AF_UNIX };

	end_of_file();
	programs();
	signals();
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	connections(AF_INET, (struct sockaddr *)&here, sizeof(here));
	snprintf(path.sun_path, sizeof(path.sun_path), "%s/s", count > 1 ? arguments[1] : ".");
	connections(AF_UNIX, (struct sockaddr *)&path, sizeof(path));
	return 0;
}
