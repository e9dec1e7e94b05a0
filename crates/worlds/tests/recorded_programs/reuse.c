/* Processes one after another with one number: each writes as many bytes as it is old. Prints
 * nothing; ends with 77 where a process may not choose its number. */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVES 40

int main(void)
{
	char bytes[LIVES] = {0};
	int ends[2];
	pid_t number;

	if (pipe(ends))
		return 1;
	number = fork();
	if (!number)
		_exit(0);
	waitpid(number, NULL, 0);
	for (int life = 1; life <= LIVES; life++) {
		struct clone_args arguments = {
			.exit_signal = SIGCHLD,
			.set_tid = (uintptr_t)&number,
			.set_tid_size = 1,
		};
		pid_t child = syscall(SYS_clone3, &arguments, sizeof(arguments));

		if (child < 0)
			return 77;
		if (!child) {
			usleep(500);
			_exit(write(ends[1], bytes, life) != life);
		}
		if (read(ends[0], bytes, life) != life || waitpid(child, NULL, 0) != number)
			return 1;
	}
	return 0;
}
